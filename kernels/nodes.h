#pragma once
#include "loss.h"

namespace cardboost {

// A choice of columns: sum s_i loss(F_i) + sum l1 w + l2 w^2 / 2 + l0 [w > 0], 0 <= w <= upper, with at most
// max_terms charged columns in use (-1: any number). Columns have y multiplied in.
struct ChoiceProblem {
    LossKind loss;
    int n;
    int64_t m;
    const uint8_t* packed;  // signs, (ceil(n / 8), m); null where columns are not +-1
    const double* dense;    // (n, m) otherwise
    const double* share;    // s_i
    const double *l1, *l2, *l0, *upper;
    const uint8_t* charged;
    int max_terms;
    // margins between which those of all choices better than the objective are, or null; with them the role of every
    // column (a ColumnRole) and its twin: the first column that equals it or its opposite
    const double *floors, *caps;
    const uint8_t* role;
    const int32_t* twin;
};

// Of a column where curvature is set aside: it is zero, it has a twin or no price, or some curvature may be set
// aside for it.
enum ColumnRole : uint8_t { kZero = 0, kPlain = 1, kAside = 2 };

// What a column may do in a node.
enum ColumnState : int8_t { kFree = 0, kIn = 1, kOut = 2 };

// Nodes to bound. `start`: weights to begin with; `tau`: the multiplier of the size limit; `curve`: curvature set
// aside by the parent, or null. A bound of `cutoff` is enough. `objective`: that of the best choice known, which
// caps rely on. With max_steps 0 only the bound at `start` is computed, whatever its weights say of columns that
// are out, and with `curve` as it is: one that the search has found to hold.
struct NodeInputs {
    const int8_t* state;
    const double* start;
    const double* tau;
    const double* curve;
    const uint8_t* curved;  // which nodes are to use curvature; with `curve`
    double cutoff, objective;
    int max_steps;
};

// Per node: the best bound, the weights that prove it, the multiplier of the size limit, the value of the
// relaxation at the last weights, which columns the bound fixes (a ColumnState, kFree: not fixed) and the column
// to branch on (-1: none is used in part). `plain`: the best bound without curvature. `curve`: the curvature that
// the bound sets aside for each column, zero where it does without; `centre`: the weights around which margins are
// capped then.
struct NodeResults {
    double* bound;
    double* weights;
    double* tau;
    double* value;
    int8_t* fixed;
    int32_t* branch;
    double* centre;
    double* curve;
    double* plain;
};

// Bounds every node by its convex relaxation: Newton steps from `start` until the bound reaches `cutoff`, or it
// is clear that it will not.
void bound_nodes(const ChoiceProblem& problem, int64_t nodes, const NodeInputs& inputs, int threads,
                 const NodeResults& results);

}  // namespace cardboost
