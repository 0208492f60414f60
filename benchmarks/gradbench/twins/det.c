#include <stdint.h>
#include <string.h>

enum { LARGE = 8, WIDEST = 16 };

static double minor(const double *A, int n, int m, const int *columns) {
    const double *row = A + (n - m) * n;
    if (m == 1) return row[columns[0]];
    int left[WIDEST];
    double total = 0, sign = 1;
    memcpy(left, columns + 1, (m - 1) * sizeof *left);
    for (int j = 0; j < m; j++) {
        total += sign * row[columns[j]] * minor(A, n, m - 1, left);
        if (j < m - 1) left[j] = columns[j];
        sign = -sign;
    }
    return total;
}

/* The determinant of a minor; what it is multiplied by goes down with it, and its gradient comes out on the way. */
static double with_gradient(const double *A, int n, int m, const int *columns, double factor, double *slope) {
    const double *row = A + (n - m) * n;
    double *by_row = slope + (n - m) * n;
    if (m == 1) {
        by_row[columns[0]] += factor;
        return row[columns[0]];
    }
    int left[WIDEST];
    double total = 0, sign = 1;
    memcpy(left, columns + 1, (m - 1) * sizeof *left);
    for (int j = 0; j < m; j++) {
        double below = sign * with_gradient(A, n, m - 1, left, factor * sign * row[columns[j]], slope);
        by_row[columns[j]] += factor * below;
        total += row[columns[j]] * below;
        if (j < m - 1) left[j] = columns[j];
        sign = -sign;
    }
    return total;
}

static void others(int n, int without, int *left) {
    for (int i = 0, j = 0; i < n; i++)
        if (i != without) left[j++] = i;
}

void det_primal(const double *A, double *loss, int64_t n) {
    double total = 0;
#pragma omp parallel for reduction(+ : total) if (n >= LARGE) schedule(dynamic)
    for (int j = 0; j < n; j++) {
        int left[WIDEST];
        others(n, j, left);
        total += (j % 2 ? -1 : 1) * A[j] * minor(A, n, n - 1, left);
    }
    *loss = total;
}

void det_gradient(const double *A, double *loss, double *slope, int64_t n) {
    double total = 0;
    memset(slope, 0, n * n * sizeof *slope);
#pragma omp parallel reduction(+ : total) if (n >= LARGE)
    {
        double mine[WIDEST * WIDEST] = {0};
#pragma omp for schedule(dynamic)
        for (int j = 0; j < n; j++) {
            int left[WIDEST];
            double sign = j % 2 ? -1 : 1;
            others(n, j, left);
            mine[j] = sign * with_gradient(A, n, n - 1, left, sign * A[j], mine);
            total += A[j] * mine[j];
        }
#pragma omp critical
        for (int e = 0; e < n * n; e++) slope[e] += mine[e];
    }
    *loss = total;
}
