// The relaxation of a node is solved by one thread, in a fixed order of operations, so that results do not depend on
// the number of threads.
#include "relaxation.h"

#include <limits>

#include "small_matrix.h"

namespace cardboost {

namespace {

constexpr double kEnough = 0.05;  // a step is the last when it leaves less than this share of the way to the cutoff
constexpr double kConverged = 1e-13;  // share of the value that is lost in its rounding
constexpr double kTight = 1e-11;  // share of the value that a gap may keep where nothing is left to branch on
constexpr double kRounding = 1e-13;  // share of its parts by which a bound is lowered
constexpr double kArmijo = 1e-4;  // share of the drop that the model promises, at least
constexpr int kHalvings = 12;  // of a step
constexpr int kFinishing = 3;  // steps that only raise the bound
constexpr double kAccurate = 0.05;  // error of a model, as a share of the drop, with which it serves once more
constexpr int kSweeps = 40;  // of the quadratic model, at most
constexpr int kMultipliers = 20;  // tried per quadratic model, at most
constexpr double kLeastMultiplier = 1e-7;  // the first that is tried above 0

// The relaxed objective of the prices, less tau times the slots under a size limit.
double price(const Node& node, const Relaxation& relaxation, const std::vector<double>& w) {
    const ChoiceProblem& p = node.problem;
    double total = node.limited ? -relaxation.tau * node.slots : 0.0;
    for (int j : node.active) {
        if (node.is_forced(j)) total += p.l0[j];
        const double mu = relaxation.mu[j], x = w[j];
        if (x <= relaxation.knee[j])
            total += relaxation.slope[j] * x;
        else
            total += p.l1[j] * x + 0.5 * mu * x * x + (node.is_open(j) ? p.l0[j] + relaxation.tau : 0.0);
    }
    return total;
}

// kappa_j - l0_j: the most that a column with this edge can be worth.
double column_worth(const ChoiceProblem& p, const Relaxation& relaxation, int j, double edge) {
    const double excess = edge - p.l1[j], mu = relaxation.mu[j];
    if (!(excess > 0.0)) return -p.l0[j];
    const double x = mu > 0.0 ? std::min(excess / mu, p.upper[j]) : p.upper[j];
    return excess * x - 0.5 * mu * x * x - p.l0[j];
}

const double* matrix_row(const std::vector<double>& matrix, int n, int j) {
    return matrix.data() + static_cast<size_t>(j) * n;
}

// The model at the rows' margins: their Hessian without the curvature that is set aside.
void set_model(const Node& node, const Relaxation& relaxation, NodeRows& rows, QuadraticModel& model) {
    rows.hessian(node.span, model.H.data());
    for (int j : node.span) model.H[static_cast<size_t>(j) * node.problem.n + j] -= relaxation.d[j];
}

// Changes one coordinate of the target, and the gradient with it.
void move_coordinate(const Node& node, int j, double next, QuadraticModel& model) {
    const double change = next - model.target[j], *row = matrix_row(model.H, node.problem.n, j);
    model.target[j] = next;
    for (int k : node.active) model.gradient[k] += change * row[k];
}

// Every coordinate once; returns the largest change, in units of the root of its curvature.
double sweep(const Node& node, const Relaxation& relaxation, QuadraticModel& model) {
    const ChoiceProblem& p = node.problem;
    double largest = 0.0;
    for (int j : node.active) {
        const double curvature = std::max(matrix_row(model.H, p.n, j)[j], 1e-9 * relaxation.d[j]);
        const double h = curvature * (1.0 + 1e-12) + 1e-300, x = model.target[j], mu = relaxation.mu[j];
        const double gradient = model.gradient[j], knee = relaxation.knee[j];
        auto beyond = [&] { return (h * x - gradient - p.l1[j]) / (h + mu); };
        double next = knee > 0.0 ? x - (gradient + relaxation.slope[j]) / h : beyond();
        if (knee > 0.0 && next > knee) next = std::max(knee, beyond());
        next = std::min(std::max(next, 0.0), p.upper[j]);
        if (next == x) continue;
        move_coordinate(node, j, next, model);
        largest = std::max(largest, std::fabs(next - x) * std::sqrt(h));
    }
    return largest;
}

// A Newton step of all coordinates inside their piece of the price, up to the first end of a piece.
void leap(const Node& node, const Relaxation& relaxation, QuadraticModel& model) {
    const ChoiceProblem& p = node.problem;
    const std::vector<double>&knee = relaxation.knee, &target = model.target;
    ColumnList& inner = model.inner;
    inner.clear();
    for (int j : node.active)
        if (target[j] > 0.0 && target[j] < p.upper[j] && target[j] != knee[j]) inner.push(j);
    const int size = inner.size();
    if (size < 2) return;
    load_triangle(inner, p.n, model.H, 0.0, model.factor.data());
    for (int a = 0; a < size; ++a) {
        const int j = inner[a];
        const bool beyond = target[j] > knee[j];
        const double slope = beyond ? p.l1[j] + relaxation.mu[j] * target[j] : relaxation.slope[j];
        model.step[a] = -(model.gradient[j] + slope);
        model.factor[static_cast<size_t>(a) * p.n + a] += beyond ? relaxation.mu[j] : 0.0;
    }
    factorise(size, p.n, model.factor.data(), Flat::lift);
    substitute(size, p.n, model.factor.data(), model.step.data());
    double far = 1.0;
    for (int a = 0; a < size; ++a) {
        const int j = inner[a];
        const bool beyond = target[j] > knee[j];
        const double low = beyond ? knee[j] : 0.0, high = beyond || knee[j] == 0.0 ? p.upper[j] : knee[j];
        if (target[j] + far * model.step[a] < low) far = (low - target[j]) / model.step[a];
        if (target[j] + far * model.step[a] > high) far = (high - target[j]) / model.step[a];
    }
    if (!(far > 0.0)) return;
    for (int a = 0; a < size; ++a) {
        const int j = inner[a];
        move_coordinate(node, j, std::min(std::max(target[j] + far * model.step[a], 0.0), p.upper[j]), model);
    }
}

// model.target: minimises the model with these prices, by coordinate descent from where it is.
void descend(const Node& node, const Relaxation& relaxation, const Point& point, QuadraticModel& model) {
    const double tolerance = node.decided ? 1e-13 : 1e-8;
    for (int j : node.active) {
        double slope = -point.edges[j];
        const double* row = matrix_row(model.H, node.problem.n, j);
        for (int k : node.active) slope += row[k] * (model.target[k] - point.w[k]);
        model.gradient[j] = slope;
    }
    for (int round = 0; round < kSweeps; ++round) {
        if (sweep(node, relaxation, model) < tolerance) break;
        if (round >= 1) leap(node, relaxation, model);
    }
}

// model.target: minimises the model with the relaxed prices, at the multiplier that meets the size limit
// (docs/mathematics.md, "At most k terms").
void minimise_model(const Node& node, const Point& point, Relaxation& relaxation, QuadraticModel& model) {
    auto shares = [&] {
        double total = 0.0;
        for (int j : node.active)
            if (node.is_open(j)) total += relaxation.share(j, model.target[j]);
        return total;
    };
    for (int j : node.active) model.target[j] = point.w[j];
    descend(node, relaxation, point, model);
    if (!node.limited) return;
    // the shares in use fall as the multiplier grows; a multiplier near the best one will do
    double& tau = relaxation.tau;
    const double near = 1e-3 * (1 + node.slots);
    double low = 0.0, high = -1.0, above = 0.0, below = 0.0, used = shares();
    for (int round = 0; round < kMultipliers; ++round) {
        const double excess = used - node.slots;
        if (std::fabs(excess) <= near || (excess < 0.0 && tau == 0.0)) break;
        if (excess > 0.0) {
            low = tau;
            above = excess;
        } else {
            high = tau;
            below = -excess;
        }
        if (high < 0.0) {
            const double growth = std::min(std::max(used / std::max(node.slots, 1), 1.2), 4.0);
            tau = std::max(tau * growth, kLeastMultiplier);
        } else if (low == 0.0 && above == 0.0) {
            tau = high > kLeastMultiplier ? 0.25 * high : 0.0;
        } else {
            if (high - low <= 1e-6 * high) break;
            const double share = std::min(std::max(above / (above + below), 0.1), 0.9);
            tau = low + share * (high - low);
        }
        set_prices(node, relaxation);
        descend(node, relaxation, point, model);
        used = shares();
    }
}

// By how much the model says the relaxation falls from the point to the target.
double model_drop(const Node& node, const Relaxation& relaxation, const Point& point, const QuadraticModel& model) {
    double smooth = 0.0;
    for (int j : node.active)
        smooth += 0.5 * (model.gradient[j] - point.edges[j]) * (point.w[j] - model.target[j]);
    return smooth + price(node, relaxation, point.w) - price(node, relaxation, model.target);
}

// The open column that could be worth most, or -1 if none is open.
int widest_column(const Node& node, const Bound& bound) {
    int best = -1;
    for (int j : node.active)
        if (node.is_open(j) && (best < 0 || bound.worth[j] > bound.worth[best])) best = j;
    return best;
}

}  // namespace

void set_prices(const Node& node, Relaxation& relaxation) {
    const ChoiceProblem& p = node.problem;
    for (int j : node.active) {
        const double mu = relaxation.mu[j] = p.l2[j] + relaxation.d[j], cost = p.l0[j] + relaxation.tau;
        double &knee = relaxation.knee[j] = 0.0, &slope = relaxation.slope[j] = p.l1[j];
        if (!node.is_open(j) || !(cost > 0.0)) continue;
        knee = mu > 0.0 ? std::min(std::sqrt(2.0 * cost / mu), p.upper[j]) : p.upper[j];
        slope = p.l1[j] + cost / knee + 0.5 * mu * knee;
    }
}

void evaluate(const Node& node, const Relaxation& relaxation, NodeRows& rows, Point& point) {
    point.risk = rows.move(point.w.data(), node.weighted);
    rows.edges(node.weighted, point.edges.data());
    for (int j : node.span) {
        const double weight = point.w[j], d = relaxation.d[j];
        point.risk -= 0.5 * d * weight * weight;
        point.edges[j] += d * weight;
    }
}

void Bound::reset(const std::vector<double>& w) {
    value = -std::numeric_limits<double>::infinity();
    weights = w;
    std::fill(worth.begin(), worth.end(), 0.0);
    threshold = next = 0.0;
}

void raise_bound(const Node& node, const Relaxation& relaxation, const Point& point, Bound& best) {
    const ChoiceProblem& p = node.problem;
    std::vector<double>&worth = best.candidate, &terms = best.terms;
    double dual = point.risk, sizes = 0.0, forced = 0.0;
    for (int j : node.weighted) dual += point.w[j] * point.edges[j];
    int open = 0;
    for (int j : node.active) {
        worth[j] = column_worth(p, relaxation, j, point.edges[j]);
        if (!node.is_open(j))  // uncharged columns may stay out; charged ones here are forced in
            forced += p.charged[j] ? worth[j] : std::max(0.0, worth[j]);
        else if (worth[j] > 0.0)
            terms[open++] = worth[j];
        sizes += std::fabs(worth[j]);
    }
    double counted = 0.0, threshold = 0.0, next = 0.0;
    if (node.limited && open > node.slots) {
        std::sort(terms.begin(), terms.begin() + open, [](double a, double b) { return a > b; });
        threshold = node.slots > 0 ? terms[node.slots - 1] : std::numeric_limits<double>::infinity();
        next = terms[node.slots];
        open = node.slots;
    }
    for (int k = 0; k < open; ++k) counted += terms[k];
    const double bound = dual - forced - counted - kRounding * (1.0 + std::fabs(dual) + sizes);
    if (!(bound > best.value)) return;
    best.value = bound;
    best.weights = point.w;
    std::swap(best.worth, best.candidate);
    best.threshold = threshold;
    best.next = next;
}

void fix_columns(const Node& node, const Bound& bound, double cutoff, int8_t* fixed) {
    std::fill_n(fixed, node.problem.n, int8_t(kFree));
    if (!(bound.value < cutoff)) return;
    for (int j : node.active) {
        if (!node.is_open(j)) continue;
        const double worth = bound.worth[j];
        // forced in: it takes a slot, from the least of those counted if there are enough
        const bool counted = worth > 0.0 && (!node.limited || worth >= bound.threshold);
        double rise_in, rise_out;
        if (node.limited) {
            rise_in = counted ? 0.0 : bound.threshold - worth;
            rise_out = counted ? worth - bound.next : 0.0;
            if (!std::isfinite(rise_in)) rise_in = 0.0;
        } else {
            rise_out = std::max(0.0, worth);
            rise_in = rise_out - worth;
        }
        if (bound.value + rise_in >= cutoff)
            fixed[j] = kOut;
        else if (bound.value + rise_out >= cutoff)
            fixed[j] = kIn;
    }
}

void load_triangle(const ColumnList& columns, int n, const std::vector<double>& H, double added, double* triangle) {
    for (int a = 0; a < columns.size(); ++a) {
        const double* from = matrix_row(H, n, columns[a]);
        double* row = triangle + static_cast<size_t>(a) * n;
        for (int b = 0; b <= a; ++b) row[b] = from[columns[b]];
        row[a] += added;
    }
}

NewtonResult newton(double cutoff, int max_steps, bool modelled, NodeWorkspace& work) {
    const Node& node = work.node;
    Relaxation& relaxation = work.relaxation;
    Point& point = work.point;
    QuadraticModel& model = work.model;
    Bound& best = work.best;
    auto relaxed_value = [&] { return point.risk + price(node, relaxation, point.w); };
    set_prices(node, relaxation);
    evaluate(node, relaxation, work.rows, point);
    if (!std::isfinite(point.risk) && max_steps > 0) {  // an exponential beyond all numbers
        std::fill(point.w.begin(), point.w.end(), 0.0);
        evaluate(node, relaxation, work.rows, point);
    }
    best.reset(point.w);
    raise_bound(node, relaxation, point, best);
    double value = relaxed_value();
    int finishing = 0;
    const double enough = node.decided ? 0.0 : kEnough;
    bool kept = modelled;  // the model of another point serves once more
    for (int step = 0; step < max_steps && best.value < cutoff; ++step) {
        const bool old = kept;
        if (!old) set_model(node, relaxation, work.rows, model);
        kept = false;
        modelled = true;
        minimise_model(node, point, relaxation, model);
        const double before = relaxed_value();  // at the new multiplier
        const double promised = model_drop(node, relaxation, point, model);
        if (!(promised > kConverged * std::fabs(before))) {
            // too small a drop to be seen in the value, but the bound may still rise
            for (int j : node.active) point.w[j] = model.target[j];
            evaluate(node, relaxation, work.rows, point);
            value = std::min(before, relaxed_value());
            const double last = best.value;
            raise_bound(node, relaxation, point, best);
            const bool open = best.value > last && value - best.value > kTight * std::fabs(value);
            if (open && ++finishing <= kFinishing) continue;
            break;
        }
        const double old_risk = point.risk;
        model.start = point.w;
        double share = 1.0;
        bool moved = false;
        for (int halving = 0; halving < kHalvings && !moved; ++halving) {
            if (halving > 0) share *= 0.5;
            for (int j : node.active) point.w[j] = model.start[j] + share * (model.target[j] - model.start[j]);
            evaluate(node, relaxation, work.rows, point);
            value = relaxed_value();
            moved = value <= before - kArmijo * share * promised;
        }
        if (!moved) {
            point.w = model.start;
            evaluate(node, relaxation, work.rows, point);
            point.risk = old_risk;
            value = before;
            if (old) continue;
            break;
        }
        raise_bound(node, relaxation, point, best);
        const double gap = value - best.value;
        if (gap <= std::max(enough * (cutoff - value), kTight * std::fabs(value))) break;
        kept = share == 1.0 && std::fabs(before - value - promised) < kAccurate * promised;
    }
    return {value, modelled};
}

int branching_column(const Node& node, const Relaxation& relaxation, const Bound& bound, QuadraticModel& model) {
    const ChoiceProblem& p = node.problem;
    ColumnList& used = model.inner;
    used.clear();
    for (int j : node.active)
        if (bound.weights[j] > 0.0) used.push(j);
    const int size = used.size();
    if (size == 0) return widest_column(node, bound);
    // the diagonal of the inverse of the model over the columns in use says how far each may move
    load_triangle(used, p.n, model.H, 0.0, model.factor.data());
    for (int a = 0; a < size; ++a) model.factor[static_cast<size_t>(a) * p.n + a] += relaxation.mu[used[a]];
    factorise(size, p.n, model.factor.data(), Flat::lift);
    invert_factor(size, p.n, model.factor.data(), model.inverse.data());
    int best = -1;
    double best_score = -1.0;
    for (int a = 0; a < size; ++a) {
        const int j = used[a];
        if (!node.is_open(j)) continue;
        const double weight = bound.weights[j], share = relaxation.share(j, weight);
        if (share >= 1.0) continue;
        const double out = 0.5 * weight * weight / inverse_entry(size, p.n, model.inverse.data(), a, a);
        const double left = 1.0 - share;  // with l2 the relaxed price is a parabola's tangent
        const double in = (p.l0[j] + relaxation.tau) * left * (relaxation.knee[j] < p.upper[j] ? left : 1.0);
        const double score = std::max(out, 1e-9) * std::max(in, 1e-9);
        if (score > best_score) {
            best_score = score;
            best = j;
        }
    }
    return best >= 0 ? best : widest_column(node, bound);
}

}  // namespace cardboost
