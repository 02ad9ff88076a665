#pragma once
#include "common.h"

namespace cardboost {

// exponential, logistic, squared_hinge, smooth_hinge: of the margin F. squared: of the residual F - target; its
// derivative has either sign.
enum class LossKind : int { exponential, logistic, squared, squared_hinge, smooth_hinge };

// The hinge with its corner at 1 rounded off: (1 - F)^2 / (2 kCorner) from 1 - kCorner to 1. Its slope is the same
// in all rows further below, where Newton steps would have nothing to go by: in place of its curvature stands that
// of the parabola that touches the loss at F, has its minimum at 1 and lies nowhere below the loss.
constexpr double kCorner = 1.0 / 4.0;

// Row weights: the weight of a row is count * factor; either pointer may be null (all 1). Counts multiply
// after rounding, so a row with count 2 gives the same bits as the row twice.
struct RowWeights {
    const int64_t* count;
    const double* factor;
    double total_count;   // sum of counts
    double total_weight;  // sum of count * factor
    double largest_factor;
};

// Sums over rows at margins F + step * D, exact for any order of the rows. For the exponential loss every
// sum, derivative and curvature is relative to e^shift, shift = -(smallest margin).
struct LossSums {
    double shift;
    double loss;        // sum w loss
    double derivative;  // sum w |loss'|
    double curvature;   // sum w loss''
    double slope;       // sum w loss' D          (with D)
    double bend;        // sum w loss'' D^2       (with D)
    double largest;     // no |loss'| of a row is above this
};

// target: of every row for the squared loss, null for the others
LossSums loss_pass(LossKind kind, const double* F, const double* target, const double* D, double step,
                   int64_t rows, const RowWeights& weights, int threads, double* v, double* h);

// sum w * (-conjugate(-theta v)) with v = -loss'(F); relative to nothing (unshifted). Squared loss:
// sum w (theta v target - (theta v)^2 / 2).
double dual_pass(LossKind kind, const double* F, const double* target, double theta, int64_t rows,
                 const RowWeights& weights, int threads);

// q[row * width] = sign * count * round(factor * value * scale); no |value| is above largest_value
void quantise(const double* value, const int8_t* sign, int64_t rows, const RowWeights& weights, double scale,
              double largest_value, int width, int threads, int64_t* q);

// The largest power of two that keeps a sum of `total` (over total_count roundings) inside 62 bits
double fixed_scale(double total, double total_count);

}  // namespace cardboost
