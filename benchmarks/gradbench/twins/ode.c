#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { LARGE = 5000 };

/* One step from y to next; a, b and c are kept for a reverse pass. To be called by all threads of a team. */
static void step(int64_t n, double h, const double *x, const double *y, double *a, double *b, double *c, double *next) {
#pragma omp for simd
    for (int64_t i = 0; i < n; i++) a[i] = x[i] * (i ? y[i - 1] : 1);
#pragma omp for simd
    for (int64_t i = 0; i < n; i++) b[i] = x[i] * (i ? y[i - 1] + h / 2 * a[i - 1] : 1);
#pragma omp for simd
    for (int64_t i = 0; i < n; i++) c[i] = x[i] * (i ? y[i - 1] + h / 2 * b[i - 1] : 1);
#pragma omp for simd
    for (int64_t i = 0; i < n; i++) {
        double d = x[i] * (i ? y[i - 1] + h * c[i - 1] : 1);
        next[i] = y[i] + h / 6 * (a[i] + 2 * b[i] + 2 * c[i] + d);
    }
}

void ode_primal(const double *x, double steps, double *y, int64_t n, int64_t s) {
    double h = 2 / steps, *work = malloc(4 * n * sizeof *work);
    double *a = work, *b = a + n, *c = b + n, *other = c + n;
    memset(s % 2 ? other : y, 0, n * sizeof *y);
#pragma omp parallel if (n > LARGE)
    for (int64_t t = 0; t < s; t++) {
        int into = (s - t) % 2;
        step(n, h, x, into ? other : y, a, b, c, into ? y : other);
    }
    free(work);
}

void ode_gradient(const double *x, double steps, double *loss, double *slope, int64_t n, int64_t s) {
    double h = 2 / steps, *work = malloc((s + 9) * n * sizeof *work);
    double *y = work, *a = y + (s + 1) * n, *b = a + n, *c = b + n, *back = c + n, *ca = back + n, *cb = ca + n,
           *cc = cb + n, *old = cc + n;
    memset(y, 0, n * sizeof *y);
    memset(slope, 0, n * sizeof *slope);
    memset(back, 0, n * sizeof *back);
    back[n - 1] = 1;
#pragma omp parallel if (n > LARGE)
    {
        for (int64_t t = 0; t < s; t++) step(n, h, x, y + t * n, a, b, c, y + (t + 1) * n);
        for (int64_t t = s - 1; t >= 0; t--) {
            const double *at = y + t * n;
            step(n, h, x, at, a, b, c, old);
            /* d of i reads c and y of i - 1, and so on: each element gathers from its right neighbour */
#pragma omp for simd
            for (int64_t i = 0; i < n; i++) {
                double through = i + 1 < n ? x[i + 1] * h / 6 * back[i + 1] : 0;
                cc[i] = h / 3 * back[i] + h * through;
                old[i] = back[i] + through;
                slope[i] += h / 6 * back[i] * (i ? at[i - 1] + h * c[i - 1] : 1);
            }
#pragma omp for simd
            for (int64_t i = 0; i < n; i++) {
                double through = i + 1 < n ? x[i + 1] * cc[i + 1] : 0;
                cb[i] = h / 3 * back[i] + h / 2 * through;
                old[i] += through;
                slope[i] += cc[i] * (i ? at[i - 1] + h / 2 * b[i - 1] : 1);
            }
#pragma omp for simd
            for (int64_t i = 0; i < n; i++) {
                double through = i + 1 < n ? x[i + 1] * cb[i + 1] : 0;
                ca[i] = h / 6 * back[i] + h / 2 * through;
                old[i] += through;
                slope[i] += cb[i] * (i ? at[i - 1] + h / 2 * a[i - 1] : 1);
            }
#pragma omp for simd
            for (int64_t i = 0; i < n; i++) {
                back[i] = old[i] + (i + 1 < n ? x[i + 1] * ca[i + 1] : 0);
                slope[i] += ca[i] * (i ? at[i - 1] : 1);
            }
        }
    }
    *loss = y[s * n + n - 1];
    free(work);
}
