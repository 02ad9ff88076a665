// Node bounds of the search for the best choice of columns (docs/mathematics.md, "Exact search"). A node is solved by
// one thread, in a fixed order of operations, so its result does not depend on the number of threads.
#include "nodes.h"

#include "curvature.h"
#include "door.h"

namespace cardboost {

namespace {

// Nodes to bound. `start`: weights to begin with; `tau`: the multiplier of the size limit; `curve`: curvature set
// aside by the parent, or null. A bound of `cutoff` is enough. `objective`: that of the incumbent, which caps rely on.
// With max_steps 0 only the bound at `start` is computed, whatever its weights say of columns that are out, and with
// `curve` as it is: one that the search has proved to hold.
struct NodeInputs {
    const int8_t* state;
    const double* start;
    const double* tau;
    const double* curve;
    const uint8_t* curved;  // which nodes are to use curvature; with `curve`
    double cutoff, objective;
    int max_steps;

    NodeInputs from(int64_t node, int64_t n) const {
        return {state + node * n, start + node * n, tau + node, curve && curved[node] ? curve + node * n : nullptr,
                nullptr, cutoff, objective, max_steps};
    }
};

// Per node: the best bound, the weights that prove it, the multiplier of the size limit, the value of the
// relaxation at the last weights, which columns the bound fixes (a ColumnState, kFree: not fixed) and the column
// to branch on (-1: none is used in part). `plain`: the best bound without curvature. `curve`: the curvature that
// the bound sets aside for each column, zero where it does without; `centre`: the weights around which margins are
// capped then.
struct NodeResults {
    double *bound, *weights, *tau, *value;
    int8_t* fixed;
    int32_t* branch;
    double *centre, *curve, *plain;

    NodeResults from(int64_t node, int64_t n) const {
        return {bound + node, weights + node * n, tau + node, value + node, fixed + node * n, branch + node,
                centre + node * n, curve + node * n, plain + node};
    }
};

// The weights to begin with: those of the parent, inside the box of every active column.
void set_start(const Node& node, const double* start, bool any_weights, std::vector<double>& w) {
    std::fill(w.begin(), w.end(), 0.0);
    if (any_weights)
        std::copy(start, start + node.problem.n, w.begin());
    else
        for (int j : node.active) w[j] = std::min(std::max(start[j], 0.0), node.problem.upper[j]);
}

// The curvature of a bound of the search, which holds at its weights.
void set_curvature(const NodeInputs& in, Node& node, std::vector<double>& d) {
    node.span.clear();
    for (int j = 0; j < node.problem.n; ++j) {
        if (node.state[j] != kOut || in.start[j] != 0.0) node.span.push(j);
        if (node.problem.role[j] == kAside) d[j] = in.curve[j];
    }
}

void bound_node(const NodeInputs& in, NodeWorkspace& work, CurvatureWorkspace& scratch, const NodeResults& out) {
    Node& node = work.node;
    const int n = node.problem.n;
    const bool only_bound = in.max_steps == 0;
    node.open(in.state, only_bound);
    set_start(node, in.start, only_bound, work.point.w);
    work.relaxation.tau = node.limited ? *in.tau : 0.0;
    std::fill(work.relaxation.d.begin(), work.relaxation.d.end(), 0.0);
    if (only_bound && in.curve) set_curvature(in, node, work.relaxation.d);
    const NewtonResult plain = newton(in.cutoff, in.max_steps, false, work);
    *out.plain = work.best.value;
    *out.value = plain.value;
    std::copy(work.best.weights.begin(), work.best.weights.end(), out.centre);
    if (!only_bound && node.problem.caps && in.curve && !node.decided && work.best.value < in.cutoff)
        curvature_bound({in.curve, in.objective, in.cutoff, in.max_steps}, plain, work, scratch, out.centre,
                        out.value);
    work.best.value = std::max(work.best.value, 0.0);  // no loss is negative
    *out.bound = work.best.value;
    *out.tau = work.relaxation.tau;
    std::copy(work.best.weights.begin(), work.best.weights.end(), out.weights);
    std::copy_n(only_bound && in.curve ? in.curve : work.relaxation.d.data(), n, out.curve);
    std::fill_n(out.fixed, n, int8_t(kFree));
    *out.branch = -1;
    if (only_bound || !(work.best.value < in.cutoff)) return;
    fix_columns(node, work.best, in.cutoff, out.fixed);
    *out.branch = branching_column(node, work.relaxation, work.best, work.model);
}

// Bounds every node by its convex relaxation: Newton steps from `start` until the bound reaches `cutoff`, or it
// is clear that it will not.
void bound_nodes(const ChoiceProblem& problem, int64_t nodes, const NodeInputs& in, int threads,
                 const NodeResults& out) {
    threads = static_cast<int>(std::min<int64_t>(nodes, worth_threads(threads, nodes, problem.m, problem.n)));
    std::vector<NodeWorkspace> workspaces;
    std::vector<CurvatureWorkspace> scratch;
    workspaces.reserve(threads);
    scratch.reserve(threads);
    for (int t = 0; t < threads; ++t) {
        workspaces.emplace_back(problem);
        scratch.emplace_back(problem);
    }
#pragma omp parallel for schedule(dynamic, 1) num_threads(std::max(1, threads))
    for (int64_t k = 0; k < nodes; ++k) {
        const int t = thread_index();
        bound_node(in.from(k, problem.n), workspaces[t], scratch[t], out.from(k, problem.n));
    }
}

// Caps and floors of the rows come with roles and twins of the columns.
void require_caps(const ChoiceProblem& p, bool fit, double objective) {
    require(fit && !p.caps == !p.floors && !p.caps == !p.role && !p.role == !p.twin,
            "bound_nodes: caps come with floors, roles and twins, for every row and column");
    if (!p.caps) return;
    for (int64_t i = 0; i < p.m; ++i)
        require(std::isfinite(p.caps[i]) && std::isfinite(p.floors[i]), "bound_nodes: caps must be finite");
    for (int j = 0; j < p.n; ++j)
        require(p.twin[j] >= 0 && p.twin[j] <= j, "bound_nodes: a twin is the column itself or an earlier one");
    require(std::isfinite(objective), "bound_nodes: caps need an objective");
}

auto py_bound_nodes(int loss, Maybe<uint8_t, 2> packed, Maybe<double, 2> dense, In<double, 1> share, In<double, 1> l1,
                    In<double, 1> l2, In<double, 1> l0, In<double, 1> upper, In<uint8_t, 1> charged, int max_terms,
                    In<int8_t, 2> state, In<double, 2> start, In<double, 1> tau, double cutoff, int max_steps,
                    int threads, Maybe<double, 1> floors, Maybe<double, 1> caps, Maybe<uint8_t, 1> role,
                    Maybe<int32_t, 1> twin, double objective, Maybe<double, 2> curve, Maybe<uint8_t, 1> curved) {
    const size_t n = l1.shape(0), m = share.shape(0), nodes = state.shape(0);
    require(loss == 0 || loss == 1, "bound_nodes: exponential or logistic loss only");
    require(packed.has_value() != dense.has_value(), "bound_nodes: give packed signs or dense columns");
    require(has_shape(packed, {(n + 7) / 8, m}), "bound_nodes: packed has another shape");
    require(has_shape(dense, {n, m}), "bound_nodes: dense has another shape");
    require(have_length(n, l2, l0, upper, charged), "bound_nodes: sizes differ");
    require(state.shape(1) == n && has_shape(start, {nodes, n}) && have_length(nodes, tau),
            "bound_nodes: nodes differ in size");
    for (size_t j = 0; j < n; ++j)
        require(l1.data()[j] >= 0 && l2.data()[j] >= 0 && l0.data()[j] >= 0 && upper.data()[j] >= 0 &&
                    std::isfinite(l1.data()[j] + l2.data()[j] + l0.data()[j] + upper.data()[j]),
                "bound_nodes: prices must be at least 0 and boxes finite");
    require(all_entries(state, [](int8_t s) { return s >= 0 && s <= 2; }), "bound_nodes: states must be 0, 1 or 2");
    require(all_entries(start, [](double x) { return std::isfinite(x); }), "bound_nodes: weights must be finite");
    require(all_entries(tau, [](double x) { return x >= 0.0; }), "bound_nodes: tau must be at least 0");
    const ChoiceProblem problem{static_cast<LossKind>(loss), as_int(n), static_cast<int64_t>(m),
                                data_or_null(packed), data_or_null(dense), share.data(), l1.data(), l2.data(),
                                l0.data(), upper.data(), charged.data(), max_terms, data_or_null(floors),
                                data_or_null(caps), data_or_null(role), data_or_null(twin)};
    require_caps(problem, have_length(m, floors, caps) && have_length(n, role, twin), objective);
    require(!curve || caps, "bound_nodes: a curve needs caps");
    require(curve.has_value() == curved.has_value() && have_length(nodes, curved),
            "bound_nodes: a curve is for nodes that say if they use it");
    require(has_shape(curve, {nodes, n}), "bound_nodes: nodes differ in size");
    require(!curve || all_entries(*curve, [](double x) { return x >= 0.0 && std::isfinite(x); }),
            "bound_nodes: a curve must be finite");
    auto bound = make<double>({nodes}), weights = make<double>({nodes, n}), tau_out = make<double>({nodes});
    auto value = make<double>({nodes}), centre = make<double>({nodes, n}), curve_out = make<double>({nodes, n});
    auto plain = make<double>({nodes});
    auto fixed = make<int8_t>({nodes, n});
    auto branch = make<int32_t>({nodes});
    unlocked([&] {
        bound_nodes(problem, static_cast<int64_t>(nodes),
                    {state.data(), start.data(), tau.data(), data_or_null(curve), data_or_null(curved), cutoff,
                     objective, max_steps},
                    threads,
                    {bound.data(), weights.data(), tau_out.data(), value.data(), fixed.data(), branch.data(),
                     centre.data(), curve_out.data(), plain.data()});
    });
    return std::make_tuple(bound, weights, tau_out, value, fixed, branch, centre, curve_out, plain);
}

}  // namespace

void bind_nodes(nb::module_& m) {
    m.def("bound_nodes", &py_bound_nodes, "loss"_a, "packed"_a.none(), "dense"_a.none(), "share"_a, "l1"_a, "l2"_a,
          "l0"_a, "upper"_a, "charged"_a, "max_terms"_a, "state"_a, "start"_a, "tau"_a, "cutoff"_a, "max_steps"_a,
          "threads"_a, "floors"_a = nb::none(), "caps"_a = nb::none(), "role"_a = nb::none(), "twin"_a = nb::none(),
          "objective"_a = 0.0, "curve"_a = nb::none(), "curved"_a = nb::none());
}

}  // namespace cardboost
