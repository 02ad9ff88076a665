#pragma once
#include "common.h"

namespace cardboost {

// The minimum over x >= 0, sum x = sum x0 of gradient'(x - x0) + (x - x0)' q (x - x0) / 2, from a feasible x0, by a
// primal active set. Weights that end at 0 are 0 exactly. Returns the drop; `changes` counts columns that came in or
// went out, at most `most_changes`.
double minimise_on_simplex(int n, const double* q, const double* gradient, const double* x0, double tolerance,
                           int most_changes, double* x, int* changes);

}  // namespace cardboost
