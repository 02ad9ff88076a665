// The bound of a node that makes the loss pay: some of its curvature is set aside for the open columns, where their
// price makes it count like l2 (docs/mathematics.md, "Exact search": curvature).
#pragma once
#include "relaxation.h"

namespace cardboost {

// Scratch space of a thread, empty where the problem has no caps.
struct CurvatureWorkspace {
    explicit CurvatureWorkspace(const ChoiceProblem& problem)
        : CurvatureWorkspace(problem.caps ? problem.n : 0, problem.caps ? checked_size(problem.n, problem.n) : 0) {}

    ColumnList basis;        // of columns that are equal or opposite the first: every direction once
    ColumnList order;        // the basis in another order
    std::vector<char> taken;  // directions of the basis, by the first column that has each
    std::vector<double> aside, step;                                       // of the open columns, and its Newton step
    std::vector<double> complement, factor, factor_inverse, inverse, model;  // (n, n)
    Bound plain;  // without curvature

private:
    CurvatureWorkspace(int n, size_t square)
        : basis(n), order(n), taken(n), aside(n), step(n), complement(square), factor(square), factor_inverse(square),
          inverse(square), model(square), plain(n) {}
};

// What a node hands on: the curvature that the parent set aside, the objective of the incumbent, and limits.
struct CurvatureInputs {
    const double* parent;
    double objective, cutoff;
    int max_steps;
};

// Looks for a higher bound with curvature, after the Newton steps without that ended with `plain`. In and out:
// work.best and work.relaxation, which change only if the bound is higher (returns true); *value, of the relaxation;
// `centre`, the weights around which margins are capped, rounded to single precision. work.model.H is that of the last
// step either way.
bool curvature_bound(const CurvatureInputs& inputs, const NewtonResult& plain, NodeWorkspace& work,
                     CurvatureWorkspace& scratch, double* centre, double* value);

}  // namespace cardboost
