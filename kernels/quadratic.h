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

// d = -H gradient for weights 0 <= x <= upper, H the limited-memory BFGS inverse of `pairs` steps and gradient
// changes (each a line of n entries, oldest first). Weights that their gradient holds at a bound keep d = 0 and are
// cut from the pairs; so is a pair without positive curvature on the others. Without pairs d = -gradient.
void lbfgs_direction(const double* steps, const double* changes, int pairs, int n, const double* x,
                     const double* upper, const double* gradient, double* d);

// trial = x + step d, brought back into the box, and moved = trial - x. Returns the price l1 w + l2 w^2 / 2 of the
// trial and, through `slope`, gradient' moved.
double project_step(int n, const double* x, const double* d, double step, const double* gradient, const double* l1,
                    const double* l2, const double* upper, double* trial, double* moved, double* slope);

}  // namespace cardboost
