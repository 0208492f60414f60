#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { WORK = 50000 };

/* Centres side by side, so that the distances of one point to all of them run in vectors. */
static double *transposed(const double *centres, int64_t k, int64_t d) {
    double *across = malloc(k * d * sizeof *across);
    for (int64_t c = 0; c < k; c++)
        for (int64_t i = 0; i < d; i++) across[i * k + c] = centres[c * d + i];
    return across;
}

static int64_t nearest(const double *point, const double *across, double *far, int64_t k, int64_t d) {
    memset(far, 0, k * sizeof *far);
    for (int64_t i = 0; i < d; i++)
#pragma omp simd
        for (int64_t c = 0; c < k; c++) {
            double away = point[i] - across[i * k + c];
            far[c] += away * away;
        }
    int64_t best = 0;
    for (int64_t c = 1; c < k; c++)
        if (far[c] < far[best]) best = c;
    return best;
}

void kmeans_cost(const double *points, const double *centres, double *loss, int64_t n, int64_t d, int64_t k) {
    double *across = transposed(centres, k, d), total = 0;
#pragma omp parallel reduction(+ : total) if (n * k * d > WORK)
    {
        double *far = malloc(k * sizeof *far);
#pragma omp for
        for (int64_t i = 0; i < n; i++) total += far[nearest(points + i * d, across, far, k, d)];
        free(far);
    }
    *loss = total;
    free(across);
}

void kmeans_dir(const double *points, const double *centres, double *step, int64_t n, int64_t d, int64_t k) {
    double *across = transposed(centres, k, d), *count = calloc(k, sizeof *count);
    memset(step, 0, k * d * sizeof *step);
#pragma omp parallel if (n * k * d > WORK)
    {
        double *far = malloc(k * sizeof *far), *many = calloc(k, sizeof *many), *sum = calloc(k * d, sizeof *sum);
#pragma omp for
        for (int64_t i = 0; i < n; i++) {
            int64_t c = nearest(points + i * d, across, far, k, d);
            many[c] += 1;
            for (int64_t e = 0; e < d; e++) sum[c * d + e] += 2 * (centres[c * d + e] - points[i * d + e]);
        }
#pragma omp critical
        {
            for (int64_t c = 0; c < k; c++) count[c] += many[c];
            for (int64_t e = 0; e < k * d; e++) step[e] += sum[e];
        }
        free(far), free(many), free(sum);
    }
    for (int64_t c = 0; c < k; c++)
        for (int64_t e = 0; e < d; e++) step[c * d + e] /= 2 * count[c];
    free(across), free(count);
}
