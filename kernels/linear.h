// Linear models: one pass over the rows, and coordinate descent on the quadratic model of the loss.
#pragma once
#include "common.h"

namespace cardboost {

// Columns of a matrix, one after the other: dense with `rows` entries each, or compressed (starts is given).
struct LinearColumns {
    const double* values;
    const int32_t* index;   // row of every value; null when dense
    const int64_t* starts;  // where a column starts; null when dense
    int64_t rows;
};

// Logistic loss at scores f for labels y = -1 or 1 and weights s: returns sum s log(1 + exp(-y f)) and fills
// pull = -(derivative by f) and curvature, row by row.
double logistic_rows(const double* f, const double* y, const double* s, int64_t rows, double* pull, double* curvature);

// sum of s times the entropy of v = theta |pull| / s, with v at most 1: the dual value of the logistic loss.
double logistic_dual(const double* pull, const double* s, int64_t rows, double theta);

// Scores x coef + intercept of a row-major matrix, the loss at them (logistic, or half the squared residual) and the
// gradient's sums of pull times row, all in one pass. Returns the loss.
double rows_pass(const double* x, int64_t rows, int64_t columns, const double* coef, double intercept, bool squared,
                 const double* y, const double* s, int threads, double* f, double* pull, double* curvature,
                 double* sums);

// X[:, which]' pull, one number per column.
void column_sums(const LinearColumns& x, const int32_t* which, int64_t n, const double* pull, int threads,
                 double* out);
// X[:, which] coef, one number per row; `out` is filled.
void column_scores(const LinearColumns& x, const int32_t* which, int64_t n, const double* coef, double* out);

// The quadratic model  g d + (1/2) (d, c)' H (d, c) + g0 c + l1 |beta + d| + (l2 / 2) (beta + d)^2  with weights w per
// row, minimised by coordinates over the columns `which`; c, the change of the intercept, follows in closed form.
struct SweepPrices {
    double l1, l2;
    bool intercept;
    double g0;         // derivative by the intercept
    double tolerance;  // on the change of a coordinate's derivative
    int most;          // sweeps
};
struct SweepResult {
    int sweeps;
    double intercept_change, largest;
};
// In and out: beta. Out: shift = X d, without the intercept. Scratch: 3 numbers per column, `rows` numbers.
SweepResult sweep_columns(const LinearColumns& x, const int32_t* which, int n, const double* w, const double* g,
                          const SweepPrices& prices, double* beta, double* shift, double* weighted, double* scratch);
// The same on the matrix q = X' W X, in double or single precision, and a = X' w of total weight `total`.
// In and out: beta, g.
template <typename Number>
SweepResult sweep_gram(const Number* q, int64_t stride, const double* a, double total, int n,
                       const SweepPrices& prices, double* beta, double* g);

}  // namespace cardboost
