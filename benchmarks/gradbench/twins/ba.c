#include <math.h>
#include <stdint.h>

typedef struct {
    double P[3], u[3], R[3], cross[3], flat[2], angle, cosine, sine, dot, radius, bent;
} Seen;

static double dot(const double *a, const double *b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

static void cross(const double *a, const double *b, double *out) {
    out[0] = a[1] * b[2] - a[2] * b[1];
    out[1] = a[2] * b[0] - a[0] * b[2];
    out[2] = a[0] * b[1] - a[1] * b[0];
}

static Seen project(const double *c, const double *x) {
    Seen s;
    for (int i = 0; i < 3; i++) s.P[i] = x[i] - c[3 + i];
    s.angle = sqrt(dot(c, c));
    s.cosine = cos(s.angle);
    s.sine = sin(s.angle);
    for (int i = 0; i < 3; i++) s.u[i] = c[i] / s.angle;
    cross(s.u, s.P, s.cross);
    s.dot = dot(s.u, s.P);
    for (int i = 0; i < 3; i++)
        s.R[i] = s.P[i] * s.cosine + s.cross[i] * s.sine + s.u[i] * s.dot * (1 - s.cosine);
    s.flat[0] = s.R[0] / s.R[2];
    s.flat[1] = s.R[1] / s.R[2];
    s.radius = s.flat[0] * s.flat[0] + s.flat[1] * s.flat[1];
    s.bent = 1 + c[9] * s.radius + c[10] * s.radius * s.radius;
    return s;
}

void ba_objective(const double *cameras, const double *points, const double *w, const double *feature,
                  const int64_t *camera, const int64_t *point, double *error, double *weight_error, int64_t p) {
#pragma omp parallel for
    for (int64_t o = 0; o < p; o++) {
        const double *c = cameras + 11 * camera[o];
        Seen s = project(c, points + 3 * point[o]);
        for (int r = 0; r < 2; r++)
            error[2 * o + r] = w[o] * (s.flat[r] * s.bent * c[6] + c[7 + r] - feature[2 * o + r]);
        weight_error[o] = 1 - w[o] * w[o];
    }
}

void ba_jacobian(const double *cameras, const double *points, const double *w, const double *feature,
                 const int64_t *camera, const int64_t *point, double *by_camera, double *by_point, double *by_weight,
                 double *weight_slope, int64_t p) {
#pragma omp parallel for
    for (int64_t o = 0; o < p; o++) {
        const double *c = cameras + 11 * camera[o];
        Seen s = project(c, points + 3 * point[o]);
        double bend = c[9] + 2 * c[10] * s.radius;
        weight_slope[o] = -2 * w[o];
        for (int r = 0; r < 2; r++) {
            double *out = by_camera + 11 * (r * p + o), *at = by_point + 3 * (r * p + o);
            double by_bent = w[o] * s.flat[r] * c[6], flat[2], R[3], side[3], turn[3], u[3];
            for (int q = 0; q < 2; q++) flat[q] = by_bent * bend * 2 * s.flat[q];
            flat[r] += w[o] * c[6] * s.bent;
            R[0] = flat[0] / s.R[2];
            R[1] = flat[1] / s.R[2];
            R[2] = -(flat[0] * s.flat[0] + flat[1] * s.flat[1]) / s.R[2];
            cross(R, s.u, side);
            cross(s.P, R, turn);
            double along = dot(R, s.u), rest = along * (1 - s.cosine);
            for (int i = 0; i < 3; i++) {
                at[i] = R[i] * s.cosine + s.sine * side[i] + rest * s.u[i];
                u[i] = s.sine * turn[i] + s.dot * (1 - s.cosine) * R[i] + rest * s.P[i];
                out[3 + i] = -at[i];
            }
            double by_cosine = dot(s.P, R) - s.dot * along, by_sine = dot(s.cross, R);
            double by_angle = by_sine * s.cosine - by_cosine * s.sine - dot(u, s.u) / s.angle;
            for (int i = 0; i < 3; i++) out[i] = u[i] / s.angle + by_angle * s.u[i];
            out[6] = w[o] * s.flat[r] * s.bent;
            out[7 + r] = w[o];
            out[8 - r] = 0;
            out[9] = by_bent * s.radius;
            out[10] = by_bent * s.radius * s.radius;
            by_weight[r * p + o] = s.flat[r] * s.bent * c[6] + c[7 + r] - feature[2 * o + r];
        }
    }
}
