// The convex relaxation of a node, its lower bounds, and Newton steps on it.
#pragma once
#include "node_rows.h"

namespace cardboost {

// The relaxed price of a column: docs/mathematics.md, "Relaxation". An open column costs l0 + tau instead of l0, as in
// docs/mathematics.md, "At most k terms"; where curvature is set aside l2 + d takes the part of l2, as in
// docs/mathematics.md, "Exact search".
struct Relaxation {
    explicit Relaxation(int n) : d(n), mu(n), knee(n), slope(n) {}
    double tau = 0.0;                 // multiplier of the size limit
    std::vector<double> d;            // curvature set aside for each column
    std::vector<double> mu;           // l2 + d
    std::vector<double> knee, slope;  // slope w up to the knee, l1 w + mu w^2 / 2 + l0 + tau beyond it

    double share(int j, double weight) const {
        return knee[j] > 0.0 ? std::min(1.0, weight / knee[j]) : (weight > 0.0 ? 1.0 : 0.0);
    }
};

// mu, knee and slope of the active columns, from d and tau.
void set_prices(const Node& node, Relaxation& relaxation);

// Weights, and there the risk and the edges of columns, both without the curvature that is set aside.
struct Point {
    explicit Point(int n) : w(n), edges(n) {}
    std::vector<double> w, edges;
    double risk = 0.0;
};

// Risk and edges at point.w; `rows` moves there.
void evaluate(const Node& node, const Relaxation& relaxation, NodeRows& rows, Point& point);

// The best of several bounds D(u) (docs/mathematics.md, "One bound for everything").
struct Bound {
    explicit Bound(int n) : weights(n), worth(n), terms(n), candidate(n) {}
    void reset(const std::vector<double>& w);

    double value = 0.0;
    std::vector<double> weights;         // that prove it
    std::vector<double> worth;           // kappa_j - l0_j of the active columns
    double threshold = 0.0, next = 0.0;  // under a size limit: the least worth that is counted, the largest that is not
    std::vector<double> terms, candidate;  // scratch space: positive terms, and the worth of columns at a point
};

// D(u) at a point, if it is higher than `best`.
void raise_bound(const Node& node, const Relaxation& relaxation, const Point& point, Bound& best);

// fixed[j]: the state that column j must have, as the bound would reach the cutoff in the other one, or kFree.
void fix_columns(const Node& node, const Bound& bound, double cutoff, int8_t* fixed);

// The quadratic model of the smooth part around a point.
struct QuadraticModel {
    explicit QuadraticModel(int n)
        : H(checked_size(n, n)), target(n), gradient(n), inner(n), factor(H.size()), inverse(H.size()), step(n),
          start(n) {}
    std::vector<double> H;         // curvature that is not set aside, (n, n); rows and columns of the node's span count
    std::vector<double> target;    // weights that minimise the model with the relaxed prices
    std::vector<double> gradient;  // of the smooth part there
    ColumnList inner;              // scratch space
    std::vector<double> factor, inverse, step, start;
};

// The lower triangle of H over some columns, with `added` on its diagonal; n numbers a row.
void load_triangle(const ColumnList& columns, int n, const std::vector<double>& H, double added, double* triangle);

// What the steps on one node work on. A thread has one, allocated before the nodes are shared out.
struct NodeWorkspace {
    explicit NodeWorkspace(const ChoiceProblem& problem)
        : node(problem), rows(problem), relaxation(problem.n), point(problem.n), best(problem.n), model(problem.n) {}
    Node node;
    NodeRows rows;
    Relaxation relaxation;
    Point point;
    Bound best;
    QuadraticModel model;
};

struct NewtonResult {
    double value;   // of the relaxation at the last weights
    bool modelled;  // whether model.H is that of a step
};

// Newton steps on the relaxation from point.w, until the bound reaches the cutoff or it is clear that it will not
// (docs/mathematics.md, "Exact search"). In: node, relaxation.d and tau, point.w, and with `modelled` model.H. Out:
// best, relaxation.tau and what follows from it, the last point and model.
NewtonResult newton(double cutoff, int max_steps, bool modelled, NodeWorkspace& work);

// The open column to branch on, or -1 (docs/mathematics.md, "Exact search": branching).
int branching_column(const Node& node, const Relaxation& relaxation, const Bound& bound, QuadraticModel& model);

}  // namespace cardboost
