#include <math.h>
#include <stdint.h>

enum { LARGE = 20000 };  // below it threads cost more than they save

static double largest(const double *x, int64_t n) {
    double top = -INFINITY;
#pragma omp parallel for simd reduction(max : top) if (n > LARGE)
    for (int64_t i = 0; i < n; i++) top = x[i] > top ? x[i] : top;
    return top;
}

void lse_primal(const double *x, double *loss, int64_t n) {
    double top = largest(x, n), total = 0;
#pragma omp parallel for reduction(+ : total) if (n > LARGE)
    for (int64_t i = 0; i < n; i++) total += exp(x[i] - top);
    *loss = top + log(total);
}

void lse_gradient(const double *x, double *loss, double *slope, int64_t n) {
    double top = largest(x, n), total = 0;
#pragma omp parallel for reduction(+ : total) if (n > LARGE)
    for (int64_t i = 0; i < n; i++) total += slope[i] = exp(x[i] - top);
    double scale = 1 / total;
#pragma omp parallel for simd if (n > LARGE)
    for (int64_t i = 0; i < n; i++) slope[i] *= scale;
    *loss = top + log(total);
}
