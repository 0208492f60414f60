#include <math.h>
#include <stdint.h>

typedef double (*Value)(const double *at, const void *with, double *slope);

static void least(Value function, const void *with, const double *start, int64_t steps, double *x) {
    double slope[2], tilt[2], next[2], rate = 1e-5;
    x[0] = start[0], x[1] = start[1];
    double value = function(x, with, slope);
    for (int64_t s = 0, count = 0; s < steps; s++) {
        if (sqrt(slope[0] * slope[0] + slope[1] * slope[1]) <= 1e-5) return;
        if (count == 10) {
            rate *= 2, count = 0;
            continue;
        }
        double far = 0;
        for (int i = 0; i < 2; i++) {
            next[i] = x[i] - rate * slope[i];
            far += (next[i] - x[i]) * (next[i] - x[i]);
        }
        if (sqrt(far) <= 1e-5) return;
        double there = function(next, with, tilt);
        if (there < value) {
            for (int i = 0; i < 2; i++) x[i] = next[i], slope[i] = tilt[i];
            value = there, count++;
        } else
            rate /= 2, count = 0;
    }
}

typedef struct {
    const double *x, *start;
    int64_t steps;
} Outer;

static double inner(const double *y, const void *with, double *slope) {
    const double *x = ((const Outer *)with)->x;
    slope[0] = 2 * y[0], slope[1] = 2 * y[1];
    return -((x[0] * x[0] + x[1] * x[1]) - (y[0] * y[0] + y[1] * y[1]));
}

static double outer(const double *x, const void *with, double *slope) {
    Outer given = *(const Outer *)with;
    double y[2], unused[2];
    given.x = x;
    least(inner, &given, given.start, given.steps, y);
    slope[0] = 2 * x[0], slope[1] = 2 * x[1];
    return -inner(y, &given, unused);
}

void saddle_rr(const double *start, double bound, double *best, double *worst, int64_t steps) {
    Outer given = {best, start, steps};
    least(outer, &given, start, steps, best);
    least(inner, &given, start, steps, worst);
}
