// Steps are numbered as in docs/mathematics.md, "Exact search". One thread works, in a fixed order of operations.
#include "curvature.h"

#include <limits>

#include "small_matrix.h"

namespace cardboost {

namespace {

constexpr double kRoom = 1e-9;   // for rounding, where margins are capped
constexpr double kPivot = 1e-8;  // share of a column's curvature that no others make up, at least
constexpr double kSpare = 1e-8;  // share of the mean curvature of a column that is not set aside
constexpr double kBarrier = 0.02;  // weight of the determinant that keeps the rest positive definite
constexpr int kAsideRounds = 12;  // Newton steps on the curvature set aside
constexpr int kHalvings = 12;     // of such a step
constexpr int kShrinks = 5;       // of the parent's curvature
constexpr int kTries = 6;  // times that curvature set aside is made smaller before it is given up

// Proofs are kept in single precision: what is checked here is what will be checked then.
void round_to_float(int n, double* x) {
    for (int j = 0; j < n; ++j) x[j] = static_cast<float>(x[j]);
}

bool takes_curvature(const Node& node, int j) { return node.is_open(j) && node.problem.role[j] == kAside; }

void set_basis(const Node& node, CurvatureWorkspace& scratch) {
    const ChoiceProblem& p = node.problem;
    scratch.basis.clear();
    std::fill(scratch.taken.begin(), scratch.taken.end(), 0);
    for (int j : node.span) {
        if (p.role[j] == kZero || scratch.taken[p.twin[j]]) continue;
        scratch.taken[p.twin[j]] = 1;
        scratch.basis.push(j);
    }
}

double mean_curvature(const ColumnList& basis, int n, const std::vector<double>& H) {
    double trace = 0.0;
    for (int j : basis) trace += H[static_cast<size_t>(j) * n + j];
    return trace / basis.size();
}

// Step 2: the margins of better choices lie between narrower floors and caps, those of the ellipsoid around the centre
// that its bound leaves. False where there is no such ellipsoid.
bool narrow_margins(double objective, const double* centre, NodeWorkspace& work, CurvatureWorkspace& scratch) {
    const int n = work.node.problem.n;
    std::copy(centre, centre + n, work.point.w.begin());
    evaluate(work.node, work.relaxation, work.rows, work.point);
    work.best.reset(work.point.w);
    raise_bound(work.node, work.relaxation, work.point, work.best);
    const double room = objective - work.best.value + kRoom * (1.0 + std::fabs(objective));
    if (!(room > 0.0) || !std::isfinite(room)) return false;
    work.rows.widen();
    work.rows.cut();
    set_basis(work.node, scratch);
    work.rows.hessian_left(scratch.basis, work.model.H.data());
    const int size = scratch.basis.size();
    load_triangle(scratch.basis, n, work.model.H, 0.0, scratch.factor.data());
    if (!factorise(size, n, scratch.factor.data(), Flat::refuse, kPivot)) return false;
    invert(size, n, scratch.factor.data(), scratch.factor_inverse.data(), scratch.inverse.data());
    work.rows.narrow(scratch.basis, scratch.inverse.data(), 2.0 * room);
    return true;
}

// Whether complement - diag(scale aside + far step) is positive definite; scratch.factor is its factor then.
bool leaves_definite(int size, int n, double scale, double far, CurvatureWorkspace& scratch) {
    for (int a = 0; a < size; ++a) {
        const double* from = scratch.complement.data() + static_cast<size_t>(a) * n;
        double* row = scratch.factor.data() + static_cast<size_t>(a) * n;
        std::copy(from, from + a + 1, row);
        row[a] -= scale * scratch.aside[a] + (far == 0.0 ? 0.0 : far * scratch.step[a]);
    }
    return factorise(size, n, scratch.factor.data(), Flat::refuse);
}

// scratch.aside of the open columns order[first ..]: the parent's, smaller if it must be, or a share of what every
// column has by itself. False where nothing is left.
bool begin_aside(const double* parent, int first, int size, int n, CurvatureWorkspace& scratch) {
    bool inherited = true;
    for (int a = 0; a < size && inherited; ++a)
        inherited = (scratch.aside[a] = parent[scratch.order[first + a]]) > 0.0;
    double scale = 1.0;
    for (int k = 0; inherited && k < kShrinks; ++k, scale *= 0.7)
        if (leaves_definite(size, n, scale, 0.0, scratch)) {
            for (int a = 0; a < size; ++a) scratch.aside[a] *= scale;
            return true;
        }
    std::fill_n(scratch.aside.begin(), size, 0.0);
    if (!leaves_definite(size, n, 0.0, 0.0, scratch)) return false;
    invert(size, n, scratch.factor.data(), scratch.factor_inverse.data(), scratch.inverse.data());
    for (int a = 0; a < size; ++a)
        scratch.aside[a] = 0.9 / (size * scratch.inverse[static_cast<size_t>(a) * n + a]);
    return true;
}

// scratch.complement: the Schur complement in H of the open columns, over those decided; scratch.order has the decided
// ones first. Returns their number, or -1 where H is not positive definite.
int eliminate_decided(const Node& node, const std::vector<double>& H, CurvatureWorkspace& scratch) {
    const int n = node.problem.n;
    ColumnList& order = scratch.order;
    order.clear();
    for (int j : scratch.basis)
        if (!takes_curvature(node, j)) order.push(j);
    const int first = order.size();
    for (int j : scratch.basis)
        if (takes_curvature(node, j)) order.push(j);
    const int size = order.size() - first;
    if (size == 0) return -1;
    load_triangle(order, n, H, -2.0 * kSpare * mean_curvature(scratch.basis, n, H), scratch.factor.data());
    if (!factorise(order.size(), n, scratch.factor.data(), Flat::refuse)) return -1;
    for (int a = 0; a < size; ++a)
        for (int b = 0; b <= a; ++b) {
            const double *x = scratch.factor.data() + static_cast<size_t>(first + a) * n + first,
                         *y = scratch.factor.data() + static_cast<size_t>(first + b) * n + first;
            double sum = 0.0;
            for (int k = 0; k <= b; ++k) sum += x[k] * y[k];
            scratch.complement[static_cast<size_t>(a) * n + b] = scratch.complement[static_cast<size_t>(b) * n + a] =
                sum;
        }
    return first;
}

// A Newton step on sum log d + kBarrier log det(complement - diag(d)), from d = scratch.aside. Returns the largest
// relative change, 0 where no step was made, or -1 where the matrix is not positive definite.
double step_aside(int size, int n, CurvatureWorkspace& scratch) {
    std::vector<double>&aside = scratch.aside, &step = scratch.step;
    if (!leaves_definite(size, n, 1.0, 0.0, scratch)) return -1.0;
    invert(size, n, scratch.factor.data(), scratch.factor_inverse.data(), scratch.inverse.data());
    for (int a = 0; a < size; ++a) {
        const double* P = scratch.inverse.data() + static_cast<size_t>(a) * n;
        const double inverse = 1.0 / aside[a];
        step[a] = inverse - kBarrier * P[a];
        double* row = scratch.factor.data() + static_cast<size_t>(a) * n;
        for (int b = 0; b <= a; ++b) row[b] = kBarrier * P[b] * P[b] + (a == b ? inverse * inverse : 0.0);
    }
    if (!factorise(size, n, scratch.factor.data(), Flat::refuse)) return -1.0;
    substitute(size, n, scratch.factor.data(), step.data());
    double far = 1.0;
    for (int a = 0; a < size; ++a)
        if (aside[a] + far * step[a] < 0.1 * aside[a]) far = -0.9 * aside[a] / step[a];
    bool inside = false;
    for (int halving = 0; halving < kHalvings && !inside; ++halving) {
        inside = leaves_definite(size, n, 1.0, far, scratch);
        if (!inside) far *= 0.6;
    }
    if (!inside) return 0.0;
    double change = 0.0;
    for (int a = 0; a < size; ++a) {
        change = std::max(change, std::fabs(far * step[a]) / aside[a]);
        aside[a] += far * step[a];
    }
    return change;
}

// Step 4: d, as large as can be with H - diag(d) still positive definite; `parent` is where it begins.
bool set_aside(const Node& node, const std::vector<double>& H, const double* parent, CurvatureWorkspace& scratch,
               std::vector<double>& d) {
    const int n = node.problem.n, first = eliminate_decided(node, H, scratch);
    if (first < 0) return false;
    const int size = scratch.order.size() - first;
    if (!begin_aside(parent, first, size, n, scratch)) return false;
    for (int round = 0; round < kAsideRounds; ++round) {
        const double change = step_aside(size, n, scratch);
        if (change < 0.0) return false;
        if (change < 0.05) break;
    }
    std::fill(d.begin(), d.end(), 0.0);
    for (int a = 0; a < size; ++a) d[scratch.order[first + a]] = scratch.aside[a] * (1.0 - 1e-3);
    round_to_float(n, d.data());
    return true;
}

// d: the parent's. False where it has none for some open column.
bool inherit(const Node& node, const ColumnList& basis, const double* parent, std::vector<double>& d) {
    std::fill(d.begin(), d.end(), 0.0);
    bool any = false;
    for (int j : basis) {
        if (!takes_curvature(node, j)) continue;
        if (!(parent[j] > 0.0)) return false;
        d[j] = parent[j];
        any = true;
    }
    return any;
}

// Step 3 at work.best.weights: whether the curvature that is left there allows d, chosen `anew` or made smaller a few
// times if need be; work.best is the bound then.
bool hold(bool anew, NodeWorkspace& work, CurvatureWorkspace& scratch) {
    const Node& node = work.node;
    const int n = node.problem.n;
    std::vector<double>&H = work.model.H, &d = work.relaxation.d;
    work.point.w = work.best.weights;
    work.rows.move(work.point.w.data(), node.weighted);
    work.rows.cut();
    work.rows.hessian_left(scratch.basis, H.data());
    if (anew && !set_aside(node, H, d.data(), scratch, d)) return false;
    const int size = scratch.basis.size();
    const double spare = kSpare * mean_curvature(scratch.basis, n, H);
    for (int k = 0; k < kTries; ++k) {
        load_triangle(scratch.basis, n, H, -spare, scratch.factor.data());
        for (int a = 0; a < size; ++a) scratch.factor[static_cast<size_t>(a) * n + a] -= d[scratch.basis[a]];
        if (factorise(size, n, scratch.factor.data(), Flat::refuse)) {
            set_prices(node, work.relaxation);
            evaluate(node, work.relaxation, work.rows, work.point);
            work.best.value = -std::numeric_limits<double>::infinity();
            raise_bound(node, work.relaxation, work.point, work.best);
            for (int j : scratch.basis) H[static_cast<size_t>(j) * n + j] -= d[j];
            return true;
        }
        for (int j : node.span) d[j] *= 0.85;
        round_to_float(n, d.data());
    }
    return false;
}

// The bound with curvature in work.best, between the margins of `rows`.
bool bend(const CurvatureInputs& inputs, bool modelled, NodeWorkspace& work, CurvatureWorkspace& scratch,
          double* value) {
    const Node& node = work.node;
    const int n = node.problem.n;
    std::vector<double>&H = work.model.H, &d = work.relaxation.d;
    // with the parent's curvature Newton steps lead to a point where more may be set aside; else it is set aside here
    const bool inherited = modelled && inherit(node, scratch.basis, inputs.parent, d);
    if (!inherited) {
        work.rows.cut();
        work.rows.hessian_left(scratch.basis, H.data());
        if (!set_aside(node, H, inputs.parent, scratch, d)) return false;
    }
    if (modelled) {
        H = scratch.model;
        for (int j : node.span) H[static_cast<size_t>(j) * n + j] -= d[j];
    }
    *value = newton(inputs.cutoff, inputs.max_steps, modelled, work).value;
    round_to_float(n, work.best.weights.data());
    return hold(inherited, work, scratch);
}

}  // namespace

bool curvature_bound(const CurvatureInputs& inputs, const NewtonResult& plain, NodeWorkspace& work,
                     CurvatureWorkspace& scratch, double* centre, double* value) {
    scratch.plain = work.best;
    const double plain_tau = work.relaxation.tau;
    if (plain.modelled) scratch.model = work.model.H;
    round_to_float(work.node.problem.n, centre);
    if (narrow_margins(inputs.objective, centre, work, scratch) &&
        bend(inputs, plain.modelled, work, scratch, value) && work.best.value > scratch.plain.value)
        return true;
    work.best = scratch.plain;
    work.relaxation.tau = plain_tau;
    *value = plain.value;
    std::fill(work.relaxation.d.begin(), work.relaxation.d.end(), 0.0);
    set_prices(work.node, work.relaxation);
    return false;
}

}  // namespace cardboost
