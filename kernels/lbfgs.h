// Projected limited-memory BFGS in a box, with the products of two kinds of matrices.
#pragma once
#include <memory>

#include "common.h"
#include "loss.h"

namespace cardboost {

// -loss' of every row relative to `factor`, its weighted sum, and what it exceeds in no row.
struct RowDerivative {
    const double* v;
    double factor, sum, largest;
};

// A matrix by what it does: F = A x, and the edges A' u for the row weights u of a derivative.
class Products {
   public:
    virtual ~Products() = default;
    virtual void margins(const double* x, double* F) = 0;
    virtual void edges(const RowDerivative& at, double* out) = 0;
};

// Signs as group_signs leaves them: words of 64 rows for each of n columns, and of 64 columns for each row.
std::unique_ptr<Products> sign_products(const uint64_t* by_column, const uint64_t* by_row, int n, int64_t rows,
                                        const RowWeights& w);

// Columns as dense.h has them, one after the other: int8 (`signs`: no zeros), or double and at most `largest`.
std::unique_ptr<Products> dense_products(const int8_t* a8, const double* a64, bool signs, double largest, int n,
                                         int64_t rows, const RowWeights& w, int threads);

// Prices and the limit of a weight on one side of zero. l2 > 0, or a limit of 0 and l2 = 0 where the side is closed.
struct Side {
    const double *l1, *l2, *limit;
};

// minimise  mean loss(A z) + sum of l1 |z| + l2 z^2 / 2  over  -limit <= z <= limit,  prices and limits by the side
// of z: a column and its opposite, each with a weight of at least 0, are one z.
struct BoxProblem {
    Products& A;
    LossKind kind;
    RowWeights weights;
    Side plus, minus;
    int n;
    int64_t rows;
    int threads;
};

// What one call hands to the next. The pairs are two rings of `capacity` lines of n entries.
struct BoxState {
    double *z, *F, *edges;    // weights, margins and edges there
    double *steps, *changes;  // the last steps and the changes of the gradient
    double *objective, *gained;  // and the share of the objective that the last step took off
    int64_t *started;  // whether the start has been looked at
    int64_t *next, *held, *flat;  // line of the next pair, number of pairs, steps that gained nothing
    int capacity;
};

// One line per point: objective, largest edge of the open sides, number of weights that are not 0, seconds since the call.
constexpr int kRecord = 4;

enum class BoxEnd : int {
    limit,     // `most` points are recorded
    look,      // the duality gap seems to be within `tolerance` of the objective, or a step gained nothing
    precision  // no step lowers the objective any more; nothing was recorded for it
};

// Steps until one of these ends; the first point of a new state is its start. Returns the number of points.
int lbfgs_steps(const BoxProblem& problem, const BoxState& state, double tolerance, int most, double* records,
                BoxEnd* end);

}  // namespace cardboost
