#pragma once
#include "common.h"

namespace cardboost {

// min over 0 <= x <= upper of  gradient'(x - x0) + (x - x0)' Q (x - x0) / 2 + sum p_j(x_j)
// with p_j'(x) = slope_j + curve_j * max(0, x - knee_j): linear up to the knee, quadratic beyond.
// Works in place on x (start: x0). Returns the drop of this model; *iterations counts factorisations.
double minimise_quadratic(int n, const double* q, const double* gradient, const double* x0, const double* slope,
                          const double* knee, const double* curve, const double* upper, double tolerance,
                          int max_iterations, double* x, int* iterations);

// The same problem on many supports: candidate c may use the columns members[offsets[c] .. offsets[c+1]) and
// must give up every other weight of x0. drop[c] is what the model falls by (negative: it rises).
void score_supports(int n, const double* q, const double* gradient, const double* x0, const double* slope,
                    const double* curve, const double* upper, const int32_t* members, const int64_t* offsets,
                    int64_t candidates, double tolerance, int threads, double* drop);

}  // namespace cardboost
