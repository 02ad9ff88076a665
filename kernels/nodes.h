// The search for the best choice of columns: the problem, and one of its nodes.
#pragma once
#include <vector>

#include "loss.h"

namespace cardboost {

// Of a column where curvature is set aside: it is zero, it has a twin or no price, or some curvature may be set
// aside for it.
enum ColumnRole : uint8_t { kZero = 0, kPlain = 1, kAside = 2 };

// What a column may do in a node.
enum ColumnState : int8_t { kFree = 0, kIn = 1, kOut = 2 };

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

// A list of columns, with room for all of them.
class ColumnList {
public:
    explicit ColumnList(int n) : columns_(n) {}
    void clear() { size_ = 0; }
    void push(int column) { columns_[size_++] = column; }
    int size() const { return size_; }
    int operator[](int k) const { return columns_[k]; }
    const int* begin() const { return columns_.data(); }
    const int* end() const { return columns_.data() + size_; }

private:
    std::vector<int> columns_;
    int size_ = 0;
};

// A node of the search (docs/mathematics.md, "Exact search"): what every column may do, and the lists that follow.
struct Node {
    explicit Node(const ChoiceProblem& choice)
        : problem(choice), active(choice.n), weighted(choice.n), span(choice.n) {}

    // `any_weights`: row weights come from any weights, also of columns that are out
    void open(const int8_t* column_state, bool any_weights) {
        state = column_state;
        limited = problem.max_terms >= 0;
        slots = problem.max_terms;
        for (int j = 0; j < problem.n; ++j) slots -= state[j] == kIn && problem.charged[j];
        if (limited) slots = std::max(slots, 0);
        active.clear();
        weighted.clear();
        decided = true;
        for (int j = 0; j < problem.n; ++j) {
            const bool out = state[j] == kOut || problem.upper[j] == 0.0 || (is_open(j) && limited && slots == 0);
            if (!out) active.push(j);
            if (!out && is_open(j)) decided = false;
            if (!out || any_weights) weighted.push(j);
        }
        span = active;
    }

    bool is_open(int j) const { return state[j] == kFree && problem.charged[j]; }
    bool is_forced(int j) const { return state[j] == kIn && problem.charged[j]; }

    const ChoiceProblem& problem;
    const int8_t* state = nullptr;
    ColumnList active;      // may be used
    ColumnList weighted;    // may have a weight
    ColumnList span;        // have a row in the Hessian
    bool limited = false;   // no more than `slots` open columns may be used
    int slots = 0;
    bool decided = false;   // no column is open: the relaxation is the problem itself, and is solved to the end
};

}  // namespace cardboost
