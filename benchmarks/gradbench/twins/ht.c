#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { BONES = 22, POSE = 26 };

typedef double Matrix[4][4];

static void product(Matrix a, Matrix b, Matrix out) {
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
            double sum = 0;
            for (int k = 0; k < 4; k++) sum += a[i][k] * b[k][j];
            out[i][j] = sum;
        }
}

/* The rotation by three angles, or its derivative by one of them (0 to 2). */
static void turn(const double *angle, int by, Matrix out) {
    double s[3], c[3], one = by < 0;
    for (int e = 0; e < 3; e++) s[e] = sin(angle[e]), c[e] = cos(angle[e]);
    if (by >= 0) {
        double kept = s[by];
        s[by] = c[by], c[by] = -kept;
    }
    double sx = s[0], sz = s[1], sy = s[2], cx = c[0], cz = c[1], cy = c[2];
    /* a term without an angle has no derivative by it */
    double x = by == 0 ? 0 : 1, y = by == 2 ? 0 : 1, z = by == 1 ? 0 : 1;
    Matrix made = {{x * cz * cy, cz * sy * sx - y * sz * cx, cz * sy * cx + y * sz * sx, 0},
                   {x * sz * cy, sz * sy * sx + y * cz * cx, sz * sy * cx - y * cz * sx, 0},
                   {-x * z * sy, z * cy * sx, z * cy * cx, 0},
                   {0, 0, 0, one}};
    memcpy(out, made, sizeof made);
}

static void globe_of(const double *theta, double R[3][3], double slope[3][3][3]) {
    double norm = sqrt(theta[0] * theta[0] + theta[1] * theta[1] + theta[2] * theta[2]), s = sin(norm), c = cos(norm);
    double u[3] = {theta[0] / norm, theta[1] / norm, theta[2] / norm};
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            int k = 3 - i - j;
            double skew = (j == (i + 1) % 3 ? -1 : 1) * (i != j);
            R[i][j] = u[i] * u[j] * (1 - c) + (i == j ? c : skew * u[k] * s);
            for (int a = 0; slope && a < 3; a++) {
                double du[3];
                for (int e = 0; e < 3; e++) du[e] = ((e == a) - u[e] * u[a]) / norm;
                slope[a][i][j] = (du[i] * u[j] + u[i] * du[j]) * (1 - c) + u[i] * u[j] * s * u[a] +
                                 (i == j ? -s * u[a] : skew * (du[k] * s + u[k] * c * u[a]));
            }
        }
}

typedef struct {
    double angle[BONES][3];
    Matrix relative[BONES], absolute[BONES], bone[BONES];
} Skeleton;

static void pose(const double *theta, const double *base, const double *inverse, const int64_t *parent,
                 const int64_t *which, Skeleton *s) {
    for (int b = 0; b < BONES; b++) {
        Matrix turned;
        for (int e = 0; e < 3; e++) s->angle[b][e] = which[3 * b + e] < 0 ? 0 : theta[which[3 * b + e]];
        turn(s->angle[b], -1, turned);
        product(((Matrix *)base)[b], turned, s->relative[b]);
        if (parent[b] < 0)
            memcpy(s->absolute[b], s->relative[b], sizeof(Matrix));
        else
            product(s->absolute[parent[b]], s->relative[b], s->absolute[b]);
        product(s->absolute[b], ((Matrix *)inverse)[b], s->bone[b]);
    }
}

static void moved(Matrix bone, const double *rest, double weight, double *out) {
    for (int r = 0; r < 3; r++)
        out[r] += weight * (bone[r][0] * rest[0] + bone[r][1] * rest[1] + bone[r][2] * rest[2] + bone[r][3] * rest[3]);
}

static void skin(const Skeleton *s, const double *rest, const double *weight, double *out) {
    out[0] = out[1] = out[2] = 0;
    for (int b = 0; b < BONES; b++) moved(((Skeleton *)s)->bone[b], rest, weight[b], out);
}

static void rotated(double R[3][3], const double *p, double *out) {
    for (int r = 0; r < 3; r++) out[r] = R[r][0] * p[0] + R[r][1] * p[1] + R[r][2] * p[2];
}

void ht_objective(const double *theta, const double *us, const double *points, const double *base,
                  const double *inverse, const double *rest, const double *weight, const int64_t *parent,
                  const int64_t *which, const int64_t *triangle, const int64_t *triangle_of, double *error, int64_t v,
                  int64_t n) {
    Skeleton s;
    double R[3][3], *hand = malloc(3 * v * sizeof *hand);
    pose(theta, base, inverse, parent, which, &s);
    globe_of(theta, R, NULL);
#pragma omp parallel for if (v > 2000)
    for (int64_t i = 0; i < v; i++) {
        double p[3];
        skin(&s, rest + 4 * i, weight + BONES * i, p);
        rotated(R, p, hand + 3 * i);
        for (int r = 0; r < 3; r++) hand[3 * i + r] += theta[3 + r];
    }
#pragma omp parallel for if (n > 5000)
    for (int64_t i = 0; i < n; i++) {
        const int64_t *corner = triangle + 3 * triangle_of[i];
        double a = us[2 * i], b = us[2 * i + 1];
        for (int r = 0; r < 3; r++)
            error[3 * i + r] = points[3 * i + r] - a * hand[3 * corner[0] + r] - b * hand[3 * corner[1] + r] -
                               (1 - a - b) * hand[3 * corner[2] + r];
    }
    free(hand);
}

void ht_jacobian(const double *theta, const double *us, const double *points, const double *base,
                 const double *inverse, const double *rest, const double *weight, const int64_t *parent,
                 const int64_t *which, const int64_t *triangle, const int64_t *triangle_of, double *by_pose,
                 double *by_place, int64_t v, int64_t n) {
    Skeleton s;
    double R[3][3], slope[3][3][3], *hand = malloc(3 * v * (POSE - 3 + 1) * sizeof *hand), *change = hand + 3 * v;
    /* of each angle: the bones from its own to the end of the finger, and how they change */
    static Matrix by[POSE][4];
    int first[POSE] = {0}, count[POSE] = {0};
    pose(theta, base, inverse, parent, which, &s);
    globe_of(theta, R, slope);
    for (int b = 0; b < BONES; b++)
        for (int e = 0; e < 3; e++) {
            int64_t k = which[3 * b + e];
            if (k < 0) continue;
            Matrix turned, relative, absolute, next;
            turn(s.angle[b], e, turned);
            product(((Matrix *)base)[b], turned, relative);
            product(s.absolute[parent[b]], relative, absolute);
            first[k] = b;
            for (int c = b; c < BONES && (c == b || parent[c] == c - 1); c++) {
                if (c > b) {
                    product(absolute, s.relative[c], next);
                    memcpy(absolute, next, sizeof next);
                }
                product(absolute, ((Matrix *)inverse)[c], by[k][count[k]++]);
            }
        }
#pragma omp parallel for if (v > 500)
    for (int64_t i = 0; i < v; i++) {
        double p[3], q[3];
        skin(&s, rest + 4 * i, weight + BONES * i, p);
        rotated(R, p, hand + 3 * i);
        for (int a = 0; a < 3; a++) rotated(slope[a], p, change + 3 * (a * v + i));
        for (int k = 6; k < POSE; k++) {
            q[0] = q[1] = q[2] = 0;
            for (int c = 0; c < count[k]; c++) moved(by[k][c], rest + 4 * i, weight[BONES * i + first[k] + c], q);
            rotated(R, q, change + 3 * ((k - 3) * v + i));
        }
    }
#pragma omp parallel for if (n > 500)
    for (int64_t i = 0; i < n; i++) {
        const int64_t *corner = triangle + 3 * triangle_of[i];
        double a = us[2 * i], b = us[2 * i + 1];
        for (int r = 0; r < 3; r++) {
            by_place[3 * i + r] = hand[3 * corner[2] + r] - hand[3 * corner[0] + r];
            by_place[3 * (n + i) + r] = hand[3 * corner[2] + r] - hand[3 * corner[1] + r];
        }
        for (int k = 0; k < POSE; k++)
            for (int r = 0; r < 3; r++) {
                if (k >= 3 && k < 6) {
                    by_pose[3 * (k * n + i) + r] = -(k - 3 == r);
                    continue;
                }
                const double *at = change + 3 * (k < 3 ? k : k - 3) * v + r;
                by_pose[3 * (k * n + i) + r] =
                    -(a * at[3 * corner[0]] + b * at[3 * corner[1]] + (1 - a - b) * at[3 * corner[2]]);
            }
    }
    free(hand);
}
