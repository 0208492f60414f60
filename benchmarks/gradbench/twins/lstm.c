#include <math.h>
#include <stdint.h>
#include <stdlib.h>

/* Matrices are diagonal, so each bit is a chain of its own until the guesses are normalised. */

typedef struct {
    double given, before, cell, forget, enter, leave, change, squash;
} Kept;

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

static const double *gate(const double *main, int64_t l, int kind, int which, int64_t bits) {
    return main + ((l * 2 + kind) * 4 + which) * bits;
}

static void chain(const double *main, const double *extra, const double *state, const double *sequence, int64_t layers,
                  int64_t characters, int64_t bits, int64_t i, Kept *kept, double *guess) {
    double hidden[64], cell[64];
    for (int64_t l = 0; l < layers; l++) {
        hidden[l] = state[(2 * l) * bits + i];
        cell[l] = state[(2 * l + 1) * bits + i];
    }
    for (int64_t t = 0; t + 1 < characters; t++) {
        double given = sequence[t * bits + i] * extra[i];
        for (int64_t l = 0; l < layers; l++) {
            Kept now = {.given = given, .before = hidden[l], .cell = cell[l]};
            now.forget = sigmoid(given * gate(main, l, 0, 0, bits)[i] + gate(main, l, 1, 0, bits)[i]);
            now.enter = sigmoid(hidden[l] * gate(main, l, 0, 1, bits)[i] + gate(main, l, 1, 1, bits)[i]);
            now.leave = sigmoid(given * gate(main, l, 0, 2, bits)[i] + gate(main, l, 1, 2, bits)[i]);
            now.change = tanh(hidden[l] * gate(main, l, 0, 3, bits)[i] + gate(main, l, 1, 3, bits)[i]);
            cell[l] = cell[l] * now.forget + now.enter * now.change;
            now.squash = tanh(cell[l]);
            given = hidden[l] = now.leave * now.squash;
            if (kept) kept[(i * (characters - 1) + t) * layers + l] = now;
        }
        guess[t * bits + i] = given * extra[bits + i] + extra[2 * bits + i];
    }
}

static double loss_of(const double *sequence, const double *guess, double *total, int64_t characters, int64_t bits) {
    double loss = 0;
    for (int64_t t = 0; t + 1 < characters; t++) {
        double sum = 2;
        for (int64_t i = 0; i < bits; i++) sum += exp(guess[t * bits + i]);
        total[t] = sum;
        double lse = log(sum);
        for (int64_t i = 0; i < bits; i++) loss -= sequence[(t + 1) * bits + i] * (guess[t * bits + i] - lse);
    }
    return loss / ((characters - 1) * bits);
}

void lstm_objective(const double *main, const double *extra, const double *state, const double *sequence, double *loss,
                    int64_t layers, int64_t characters, int64_t bits) {
    double *guess = malloc(characters * (bits + 1) * sizeof *guess);
#pragma omp parallel for
    for (int64_t i = 0; i < bits; i++) chain(main, extra, state, sequence, layers, characters, bits, i, NULL, guess);
    *loss = loss_of(sequence, guess, guess + characters * bits, characters, bits);
    free(guess);
}

void lstm_jacobian(const double *main, const double *extra, const double *state, const double *sequence, double *loss,
                   double *main_slope, double *extra_slope, int64_t layers, int64_t characters, int64_t bits) {
    double *guess = malloc(characters * (bits + 1) * sizeof *guess), *total = guess + characters * bits;
    Kept *kept = malloc(bits * (characters - 1) * layers * sizeof *kept);
#pragma omp parallel for
    for (int64_t i = 0; i < bits; i++) chain(main, extra, state, sequence, layers, characters, bits, i, kept, guess);
    *loss = loss_of(sequence, guess, total, characters, bits);
    double *seen = malloc(characters * sizeof *seen);
    for (int64_t t = 0; t + 1 < characters; t++) {
        seen[t] = 0;
        for (int64_t i = 0; i < bits; i++) seen[t] += sequence[(t + 1) * bits + i];
    }
#pragma omp parallel for
    for (int64_t i = 0; i < bits; i++) {
        double hidden[64] = {0}, cell[64] = {0}, slope[64][2][4] = {0}, first = 0, out = 0, bias = 0;
        double scale = 1.0 / ((characters - 1) * bits);
        for (int64_t t = characters - 2; t >= 0; t--) {
            const Kept *at = kept + (i * (characters - 1) + t) * layers;
            double by = scale * (seen[t] * exp(guess[t * bits + i]) / total[t] - sequence[(t + 1) * bits + i]);
            out += by * at[layers - 1].leave * at[layers - 1].squash;
            bias += by;
            double back = by * extra[bits + i];
            for (int64_t l = layers - 1; l >= 0; l--) {
                Kept now = at[l];
                back += hidden[l];
                double by_cell = cell[l] + back * now.leave * (1 - now.squash * now.squash);
                double gates[4] = {by_cell * now.cell * now.forget * (1 - now.forget),
                                   by_cell * now.change * now.enter * (1 - now.enter),
                                   back * now.squash * now.leave * (1 - now.leave),
                                   by_cell * now.enter * (1 - now.change * now.change)};
                for (int g = 0; g < 4; g++) {
                    slope[l][0][g] += gates[g] * (g % 2 ? now.before : now.given);
                    slope[l][1][g] += gates[g];
                }
                cell[l] = by_cell * now.forget;
                hidden[l] = gates[1] * gate(main, l, 0, 1, bits)[i] + gates[3] * gate(main, l, 0, 3, bits)[i];
                back = gates[0] * gate(main, l, 0, 0, bits)[i] + gates[2] * gate(main, l, 0, 2, bits)[i];
            }
            first += back * sequence[t * bits + i];
        }
        for (int64_t l = 0; l < layers; l++)
            for (int kind = 0; kind < 2; kind++)
                for (int g = 0; g < 4; g++) main_slope[((l * 2 + kind) * 4 + g) * bits + i] = slope[l][kind][g];
        extra_slope[i] = first;
        extra_slope[bits + i] = out;
        extra_slope[2 * bits + i] = bias;
    }
    free(guess), free(kept), free(seen);
}
