#pragma once
#include "common.h"

namespace cardboost {

// min  sum s_i exp(-F_i) + sum l1_j w_j + l2_j w_j^2 / 2 + l0_j [w_j > 0],   w_j = step_j q_j,  0 <= q_j <= top_j,
// with at most max_terms (negative: any number) of the counted columns in use. Columns of +-1, packed as by pack_signs.
struct LevelProblem {
    const uint8_t* packed;
    int64_t rows;
    int n;
    const double *s, *l1, *l2, *l0, *step;
    const int32_t* top;
    const uint8_t* counted;
    int64_t max_terms;
};

// What every single-column move would do to the objective, from sums over rows that all moves share: best[j] is the
// best level of column j above 0 (0 where it has none) with all others as they are, rise[j] the change of the
// objective for going there, and drop[j] that for going to 0. Returns the objective at `levels`.
double price_levels(const LevelProblem& problem, const int32_t* levels, int32_t* best, double* rise, double* drop);

// Tenures are drawn between their ends: how many changes of the support a column that left it stays out, and one
// that joined it stays in.
struct Tenure {
    int64_t out_least, out_most, in_least, in_most;
};

// Tabu search, in place on `levels`, `until` (when a column may change sides again), `state` (changes of the support
// so far, random numbers) and the elite (`kept` lines of levels with their values, infinite where empty): the best
// local optima met, one per support. Takes the best move that lowers the objective by more than `tolerance` of it;
// where there is none, the column that joins or leaves the support at the least cost. Returns the moves made.
int64_t tabu_moves(const LevelProblem& problem, const Tenure& tenure, int64_t moves, double tolerance,
                   int32_t* levels, int64_t* until, int64_t* state, int32_t* elite, double* values, int kept);

}  // namespace cardboost
