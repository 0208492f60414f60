#include <math.h>
#include <stdint.h>

/* The square of where the path meets the axis, and its derivative, which goes along with the path. */
static double path(double w, int64_t flight, double *slope) {
    const double centre[2][2] = {{10, 10 - w}, {10, 0}}, moves[2] = {-1, 0};
    double p[2] = {0, 8}, q[2] = {0.75, 0}, dp[2] = {0, 0}, dq[2] = {0, 0};
    for (int64_t u = 0; u < flight && p[1] + 0.1 * q[1] > 0; u++) {
        double push[2] = {0, 0}, dpush[2] = {0, 0};
        for (int c = 0; c < 2; c++) {
            double x = p[0] - centre[c][0], y = p[1] - centre[c][1], dx = dp[0], dy = dp[1] - moves[c];
            double square = x * x + y * y, cube = 1 / (square * sqrt(square));
            double dcube = -3 * cube / square * (x * dx + y * dy);
            push[0] += x * cube, push[1] += y * cube;
            dpush[0] += dx * cube + x * dcube, dpush[1] += dy * cube + y * dcube;
        }
        for (int i = 0; i < 2; i++) {
            p[i] += 0.1 * q[i], dp[i] += 0.1 * dq[i];
            q[i] += 0.1 * push[i], dq[i] += 0.1 * dpush[i];
        }
    }
    double meet = p[0] - q[0] * p[1] / q[1];
    *slope = 2 * meet * (dp[0] - (dq[0] * p[1] + q[0] * dp[1]) / q[1] + q[0] * p[1] * dq[1] / (q[1] * q[1]));
    return meet * meet;
}

void particle_fr(const double *start, double steps, double bound, double *place, int64_t most, int64_t flight) {
    double w = start[0], slope, tilt, rate = 1e-5, value = path(w, flight, &slope);
    for (int64_t s = 0, count = 0; s < most; s++) {
        if (fabs(slope) <= 1e-5) break;
        if (count == 10) {
            rate *= 2, count = 0;
            continue;
        }
        double next = w - rate * slope;
        if (fabs(next - w) <= 1e-5) break;
        double there = path(next, flight, &tilt);
        if (there < value)
            w = next, value = there, slope = tilt, count++;
        else
            rate /= 2, count = 0;
    }
    *place = w;
}
