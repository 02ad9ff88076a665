// A network with one hidden layer: what a pass over the rows computes.
//
// Rows stand side by side: tables are (blocks, columns, kNetRows), so that what is done to one row is done to
// eight at once. The last block is filled up with rows of weight 0. Sums run over chunks of blocks, in eight
// lanes each, and the chunks are added in their order: the number of threads changes no bit.
#pragma once
#include "common.h"

namespace cardboost {

constexpr int64_t kNetRows = 64;  // rows of a block

enum class Activation : int { tanh = 0, relu = 1, logistic = 2 };

struct NetShape {
    int64_t blocks, inputs, hidden, outputs;  // inputs: with the column of ones
};

// Activations act(z w) of all rows, `a` (blocks, hidden + 1, 64), whose last column is made of ones; and the normal
// equations of the last layer: `gram` (shared ? 1 : outputs, hidden + 1, hidden + 1) = sum q a a' and `right`
// (hidden + 1, outputs) = sum q a t. `shared`: all outputs of a row have the weight of the first.
void net_hidden(const NetShape& shape, const double* z, const double* w, Activation activation, const double* t,
                const double* q, bool shared, int threads, double* a, double* gram, double* right);

// 1/2 sum q (a v - t)^2, its gradient by w in `gradient` (inputs, hidden), and by v in `last` (hidden + 1, outputs).
double net_errors(const NetShape& shape, const double* z, const double* a, Activation activation, const double* t,
                  const double* q, const double* v, int threads, double* gradient, double* last);

}  // namespace cardboost
