#include <math.h>
#include <stdint.h>
#include <string.h>

enum { BLOCK = 16, WIDEST = 1024 };

static double sign(double t) { return (t > 0) - (t < 0); }

/* The points of one block, the residuals there, and their squares; points beyond the last have no residual. */
static double residuals(const double *x, int64_t m, int64_t n, int64_t first, double *t, double *left) {
    double value[BLOCK] = {0}, total = 0;
    for (int b = 0; b < BLOCK; b++) t[b] = first + b < n ? -1 + 2.0 * (first + b) / (n - 1) : 0;
    for (int64_t j = m - 1; j >= 0; j--)
#pragma omp simd
        for (int b = 0; b < BLOCK; b++) value[b] = value[b] * t[b] + x[j];
    for (int b = 0; b < BLOCK; b++) {
        left[b] = first + b < n ? sign(t[b]) - value[b] : 0;
        total += left[b] * left[b];
    }
    return 0.5 * total;
}

void llsq_primal(const double *x, double points, double *loss, int64_t m) {
    int64_t n = (int64_t)points;
    double total = 0;
#pragma omp parallel for reduction(+ : total) if (n * m > 50000)
    for (int64_t i = 0; i < n; i += BLOCK) {
        double t[BLOCK], left[BLOCK];
        total += residuals(x, m, n, i, t, left);
    }
    *loss = total;
}

void llsq_gradient(const double *x, double points, double *loss, double *slope, int64_t m) {
    int64_t n = (int64_t)points;
    double total = 0;
    memset(slope, 0, m * sizeof *slope);
#pragma omp parallel reduction(+ : total) if (n * m > 50000)
    {
        double mine[WIDEST] = {0};
#pragma omp for
        for (int64_t i = 0; i < n; i += BLOCK) {
            double t[BLOCK], power[BLOCK];
            total += residuals(x, m, n, i, t, power);
            for (int64_t j = 0; j < m; j++) {
                double sum = 0;
#pragma omp simd reduction(+ : sum)
                for (int b = 0; b < BLOCK; b++) {
                    sum += power[b];
                    power[b] *= t[b];
                }
                mine[j] -= sum;
            }
        }
#pragma omp critical
        for (int64_t j = 0; j < m; j++) slope[j] += mine[j];
    }
    *loss = total;
}
