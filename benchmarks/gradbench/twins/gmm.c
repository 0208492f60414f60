#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 16, WIDEST = 128 };

static double logsumexp(const double *x, int64_t n, int64_t stride) {
    double top = -INFINITY, total = 0;
    for (int64_t i = 0; i < n; i++) top = x[i * stride] > top ? x[i * stride] : top;
    for (int64_t i = 0; i < n; i++) total += exp(x[i * stride] - top);
    return top + log(total);
}

/* The factors, one dense triangle for each component. */
static void factors(const double *q, const double *low, const int64_t *place, int64_t d, int64_t k, double *Q) {
    for (int64_t c = 0; c < k; c++)
        for (int64_t i = 0; i < d; i++) {
            for (int64_t j = 0; j < i; j++) Q[(c * d + i) * d + j] = low[c * (d * (d - 1) / 2) + place[i * d + j]];
            Q[(c * d + i) * d + i] = exp(q[c * d + i]);
        }
}

/* A block of points, centred, side by side; those beyond the last are zero. */
static int64_t centred(const double *x, const double *mu, int64_t n, int64_t d, int64_t first, double away[][BLOCK]) {
    int64_t count = n - first < BLOCK ? n - first : BLOCK;
    for (int64_t j = 0; j < d; j++)
        for (int64_t b = 0; b < BLOCK; b++) away[j][b] = b < count ? x[(first + b) * d + j] - mu[j] : 0;
    return count;
}

static void turned(const double *Q, const double away[], int64_t i, int64_t d, double *out) {
    for (int b = 0; b < BLOCK; b++) out[b] = 0;
    for (int64_t j = 0; j <= i; j++)
#pragma omp simd
        for (int b = 0; b < BLOCK; b++) out[b] += Q[i * d + j] * away[j * BLOCK + b];
}

/* F by component, then point; gives the value. */
static double forward(const double *alpha, const double *mu, const double *q, const double *low, const double *x,
                      double gamma, double m, double constant, int64_t n, int64_t d, int64_t k, const double *Q,
                      double *F, double *top) {
    int64_t size = d * (d - 1) / 2;
    double value = constant - n * logsumexp(alpha, k, 1);
#pragma omp parallel for
    for (int64_t c = 0; c < k; c++) {
        double away[WIDEST][BLOCK], row[BLOCK], base = alpha[c];
        for (int64_t i = 0; i < d; i++) base += q[c * d + i];
        for (int64_t first = 0; first < n; first += BLOCK) {
            double square[BLOCK] = {0};
            int64_t count = centred(x, mu + c * d, n, d, first, away);
            for (int64_t i = 0; i < d; i++) {
                turned(Q + c * d * d, away[0], i, d, row);
                for (int b = 0; b < BLOCK; b++) square[b] += row[b] * row[b];
            }
            for (int64_t b = 0; b < count; b++) F[c * n + first + b] = base - 0.5 * square[b];
        }
    }
#pragma omp parallel for reduction(+ : value)
    for (int64_t i = 0; i < n; i++) value += top[i] = logsumexp(F + i, k, n);
    for (int64_t e = 0; e < k * d; e++) value += m * q[e] - 0.5 * gamma * gamma * exp(2 * q[e]);
    for (int64_t e = 0; e < k * size; e++) value -= 0.5 * gamma * gamma * low[e] * low[e];
    return value;
}

void gmm_objective(const double *alpha, const double *mu, const double *q, const double *low, const double *x,
                   const int64_t *place, double gamma, double m, double constant, double *loss, int64_t n, int64_t d,
                   int64_t k) {
    double *Q = calloc(k * d * d, sizeof *Q), *F = malloc((k + 1) * n * sizeof *F);
    factors(q, low, place, d, k, Q);
    *loss = forward(alpha, mu, q, low, x, gamma, m, constant, n, d, k, Q, F, F + k * n);
    free(Q), free(F);
}

void gmm_jacobian(const double *alpha, const double *mu, const double *q, const double *low, const double *x,
                  const int64_t *place, double gamma, double m, double constant, double *loss, double *alpha_slope,
                  double *mu_slope, double *q_slope, double *low_slope, int64_t n, int64_t d, int64_t k) {
    int64_t size = d * (d - 1) / 2;
    double *Q = calloc(k * d * d, sizeof *Q), *F = malloc((k + 1) * n * sizeof *F), *top = F + k * n;
    factors(q, low, place, d, k, Q);
    *loss = forward(alpha, mu, q, low, x, gamma, m, constant, n, d, k, Q, F, top);
    double lse = logsumexp(alpha, k, 1);
#pragma omp parallel for
    for (int64_t c = 0; c < k; c++) {
        double away[WIDEST][BLOCK], row[BLOCK], weight[BLOCK], total = 0;
        double *slope = calloc(d * d, sizeof *slope), *by_mu = mu_slope + c * d;
        const double *mine = Q + c * d * d;
        memset(by_mu, 0, d * sizeof *by_mu);
        for (int64_t first = 0; first < n; first += BLOCK) {
            int64_t count = centred(x, mu + c * d, n, d, first, away);
            for (int64_t b = 0; b < BLOCK; b++) {
                weight[b] = b < count ? exp(F[c * n + first + b] - top[first + b]) : 0;
                total += weight[b];
            }
            for (int64_t i = 0; i < d; i++) {
                double sum = 0;
                turned(mine, away[0], i, d, row);
#pragma omp simd reduction(+ : sum)
                for (int b = 0; b < BLOCK; b++) sum += row[b] *= weight[b];
                for (int64_t j = 0; j <= i; j++) {
                    double part = 0;
#pragma omp simd reduction(+ : part)
                    for (int b = 0; b < BLOCK; b++) part += row[b] * away[j][b];
                    slope[i * d + j] -= part;
                    by_mu[j] += sum * mine[i * d + j];
                }
            }
        }
        alpha_slope[c] = total - n * exp(alpha[c] - lse);
        for (int64_t i = 0; i < d; i++) {
            double e = mine[i * d + i];
            q_slope[c * d + i] = total + m - gamma * gamma * e * e + slope[i * d + i] * e;
            for (int64_t j = 0; j < i; j++) {
                int64_t at = c * size + place[i * d + j];
                low_slope[at] = slope[i * d + j] - gamma * gamma * low[at];
            }
        }
        free(slope);
    }
    free(Q), free(F);
}
