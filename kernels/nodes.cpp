// Node bounds of the search for the best choice of columns. A node is solved by one thread, in a fixed order of
// operations, so its result does not depend on the number of threads.
#include "nodes.h"

#include "door.h"
#include "node_rows.h"
#include "small_matrix.h"

namespace cardboost {

namespace {

constexpr double kEnough = 0.05;    // a step is the last when it leaves less than this share of the way to the cutoff
constexpr double kConverged = 1e-13;  // share of the value that is lost in its rounding
constexpr double kTight = 1e-11;      // share of the value that a gap may keep where nothing is left to branch on
constexpr int kSweeps = 40;         // of the quadratic model, at most
constexpr int kMultipliers = 20;    // tried per quadratic model, at most
constexpr double kLeastMultiplier = 1e-7;
constexpr double kRoom = 1e-9;      // for rounding, where margins are capped
constexpr double kPivot = 1e-8;     // share of a column's curvature that no others make up, at least
constexpr double kSpare = 1e-8;     // share of the mean curvature of a column that is not set aside
constexpr double kBarrier = 0.02;
constexpr int kAsideRounds = 12;
constexpr int kTries = 6;  // times that curvature set aside is made smaller before it is given up

// One node, as NodeInputs describes them.
struct NodeQuestion {
    const int8_t* state;
    const double *start, *curve;
    double tau, cutoff, objective;
    int max_steps;
};

// Everything a thread needs for a node, allocated once.
class NodeSolver {
public:
    static size_t square(const ChoiceProblem& problem) {
        return problem.caps ? static_cast<size_t>(problem.n) * problem.n : 0;
    }

    explicit NodeSolver(const ChoiceProblem& problem)
        : p_(problem), rows_(problem), w_(problem.n), target_(problem.n), c_(problem.n), worth_(problem.n),
          terms_(problem.n), r_(problem.n), knee_(problem.n), slope_(problem.n),
          H_(static_cast<size_t>(problem.n) * problem.n),
          factor_(static_cast<size_t>(problem.n) * problem.n), scratch_(problem.n), step_(problem.n),
          best_worth_(problem.n), plain_worth_(problem.n), mu_(problem.n), d_(problem.n), aside_(problem.n),
          step_weights_(problem.n), inverse_(H_.size()), S_(square(problem)), P_(square(problem)),
          plain_H_(square(problem)), taken_(problem.n) {
        active_.reserve(problem.n);
        used_.reserve(problem.n);
        seen_.reserve(problem.n);
        span_.reserve(problem.n);
        basis_.reserve(problem.n);
    }

    void solve(const NodeQuestion& q, double* bound, double* weights, double* tau_out, double* value_out,
               int8_t* fixed, int32_t* branch, double* centre, double* curve, double* plain) {
        state_ = q.state;
        open(q.start, q.max_steps == 0);
        tau_ = limited_ ? q.tau : 0.0;
        std::copy(p_.l2, p_.l2 + p_.n, mu_.begin());
        std::fill(d_.begin(), d_.end(), 0.0);
        // where nothing is left to branch on, the relaxation is the problem itself and is solved to the end
        decided_ = std::none_of(active_.begin(), active_.end(), [&](int j) { return is_open(j); });
        double value = 0.0;
        *plain = 0.0;
        std::fill(curve, curve + p_.n, 0.0);
        if (q.max_steps == 0 && q.curve) {
            // a bound of the search, at the same weights: the curvature was found to be there
            span_.clear();
            for (int j = 0; j < p_.n; ++j) {
                if (state_[j] != kOut || q.start[j] != 0.0) span_.push_back(j);
                if (p_.role[j] == kAside) d_[j] = q.curve[j];
                mu_[j] += d_[j];
            }
            std::copy(q.curve, q.curve + p_.n, curve);
        }
        value = newton(q.cutoff, q.max_steps, weights);
        std::copy(weights, weights + p_.n, centre);
        *plain = best_;
        if (q.max_steps > 0 && p_.caps && q.curve && !decided_ && best_ < q.cutoff)
            curved(q, weights, centre, curve, &value);
        best_ = std::max(best_, 0.0);  // no loss is negative
        *bound = best_;
        *tau_out = tau_;
        *value_out = value;
        if (q.max_steps > 0) {
            fix(q.cutoff, fixed);
            *branch = best_ < q.cutoff ? choose(weights) : -1;
        } else {
            std::fill(fixed, fixed + p_.n, int8_t(kFree));
            *branch = -1;
        }
    }

private:
    // Newton steps on the relaxation from w_; `weights` takes those of the best bound, the last value is returned
    double newton(double cutoff, int max_steps, double* weights, bool fresh = false) {
        best_ = -std::numeric_limits<double>::infinity();
        set_prices();
        evaluate(w_.data());
        if (!std::isfinite(risk_) && max_steps > 0) {  // an exponential beyond all numbers
            std::fill(w_.begin(), w_.end(), 0.0);
            evaluate(w_.data());
        }
        std::copy(w_.begin(), w_.end(), weights);
        std::fill(best_worth_.begin(), best_worth_.end(), 0.0);
        threshold_ = next_ = 0.0;
        note(weights);
        double value = risk_ + price(w_.data());
        has_model_ = fresh;
        int finishing = 0;
        const double enough = decided_ ? 0.0 : kEnough;
        for (int step = 0; step < max_steps && best_ < cutoff; ++step) {
            if (!fresh) model();
            const bool old = fresh;
            fresh = false;
            has_model_ = true;
            minimise_model();
            const double before = risk_ + price(w_.data());  // at the new multiplier
            const double promised = model_drop();
            if (!(promised > kConverged * std::fabs(before))) {
                // too small a drop to be seen in the value, but the bound may still rise
                for (int j : active_) w_[j] = target_[j];
                evaluate(w_.data());
                value = std::min(before, risk_ + price(w_.data()));
                const double last = best_;
                note(weights);
                if (best_ > last && value - best_ > kTight * std::fabs(value) && ++finishing <= 3) continue;
                break;
            }
            const double old_risk = risk_;
            std::copy(w_.begin(), w_.end(), scratch_.begin());
            double share = 1.0;
            bool moved = false;
            for (int halving = 0; halving < 12; ++halving, share *= 0.5) {
                for (int j : active_) w_[j] = scratch_[j] + share * (target_[j] - scratch_[j]);
                evaluate(w_.data());
                value = risk_ + price(w_.data());
                if (value <= before - 1e-4 * share * promised) {
                    moved = true;
                    break;
                }
            }
            if (!moved) {
                std::copy(scratch_.begin(), scratch_.end(), w_.begin());
                evaluate(w_.data());
                risk_ = old_risk;
                value = before;
                if (old) continue;  // the model was that of another point
                break;
            }
            note(weights);
            const double gap = value - best_;
            if (gap <= std::max(enough * (cutoff - value), kTight * std::fabs(value))) break;
            // a model that foretold the drop well serves once more
            fresh = share == 1.0 && std::fabs(before - value - promised) < 0.05 * promised;
        }
        return value;
    }

    // --- curvature that every better choice leaves in the loss ---

    // A second bound: part of the curvature is set aside as d_j w_j^2 / 2 for the open columns, where their price
    // makes it count like l2. It holds if the rest stays convex wherever a better choice could be.
    void curved(const NodeQuestion& q, double* weights, double* centre, double* curve, double* value) {
        const double plain = best_, plain_threshold = threshold_, plain_next = next_;
        std::copy(best_worth_.begin(), best_worth_.end(), plain_worth_.begin());
        const double plain_value = *value, plain_tau = tau_;
        // proofs are kept in single precision: what is checked here is what will be checked then
        round_all(centre);
        const bool modelled = has_model_;
        if (modelled) std::copy(H_.begin(), H_.end(), plain_H_.begin());
        if (narrow(q.objective, centre) && bend(q, modelled, value) && best_ > plain) {
            std::copy(step_weights_.begin(), step_weights_.end(), weights);
            std::copy(d_.begin(), d_.end(), curve);
            return;
        }
        best_ = plain;
        threshold_ = plain_threshold;
        next_ = plain_next;
        tau_ = plain_tau;
        *value = plain_value;
        std::copy(plain_worth_.begin(), plain_worth_.end(), best_worth_.begin());
        std::copy(p_.l2, p_.l2 + p_.n, mu_.begin());
        std::fill(d_.begin(), d_.end(), 0.0);
        set_prices();
    }

    // the bound with curvature: its weights in step_weights_, what is set aside in d_
    bool bend(const NodeQuestion& q, bool modelled, double* value) {
        // with the parent's curvature a first point is found, and more may be set aside there; else it is found here
        const bool known = modelled && inherit(q.curve);
        if (!known) {
            rows_.cut();
            rows_.hessian_left(basis_, H_.data());
            if (!set_aside(q.curve)) return false;
        }
        for (int j : active_) mu_[j] = p_.l2[j] + d_[j];
        if (modelled) {
            std::copy(plain_H_.begin(), plain_H_.end(), H_.begin());
            for (int j : span_) H_[static_cast<size_t>(j) * p_.n + j] -= d_[j];
        }
        *value = newton(q.cutoff, q.max_steps, step_weights_.data(), modelled);
        round_all(step_weights_.data());
        return hold(step_weights_.data(), known);
    }

    // margins of better choices lie between narrower limits: those of the ellipsoid around the centre that its bound
    // leaves
    bool narrow(double objective, const double* centre) {
        std::copy(centre, centre + p_.n, w_.begin());
        best_ = -std::numeric_limits<double>::infinity();
        evaluate(w_.data());
        note(scratch_.data());
        const double room = objective - best_ + kRoom * (1.0 + std::fabs(objective));
        if (!(room > 0.0) || !std::isfinite(room)) return false;
        rows_.widen();
        rows_.cut();
        set_basis();
        rows_.hessian_left(basis_, H_.data());
        const int size = static_cast<int>(basis_.size());
        used_ = basis_;
        load_factor(0.0);
        if (!factorise(size, p_.n, factor_.data(), Flat::refuse, kPivot)) return false;
        invert(size, p_.n, factor_.data(), inverse_.data(), P_.data());
        rows_.narrow(basis_, P_.data(), 2.0 * room);
        return true;
    }

    // d_: as large as can be with H_ - diag(d_) still positive definite; the sum of its logarithms counts
    bool set_aside(const double* start) {
        // decided columns first: the rest of the factor is that of the open ones' Schur complement
        used_.clear();
        for (int j : basis_)
            if (!is_open(j) || p_.role[j] != kAside) used_.push_back(j);
        const int first = static_cast<int>(used_.size());
        for (int j : basis_)
            if (is_open(j) && p_.role[j] == kAside) used_.push_back(j);
        const int size = static_cast<int>(used_.size()), open = size - first, n = p_.n;
        if (open == 0) return false;
        load_factor(-2.0 * kSpare * mean_curvature());
        if (!factorise(size, p_.n, factor_.data(), Flat::refuse)) return false;
        for (int a = 0; a < open; ++a)
            for (int b = 0; b <= a; ++b) {
                double sum = 0.0;
                const double *x = factor_.data() + static_cast<size_t>(first + a) * n + first,
                             *y = factor_.data() + static_cast<size_t>(first + b) * n + first;
                for (int k = 0; k <= b; ++k) sum += x[k] * y[k];
                S_[static_cast<size_t>(a) * n + b] = S_[static_cast<size_t>(b) * n + a] = sum;
            }
        if (!begin_aside(start, first, open)) return false;
        for (int round = 0; round < kAsideRounds; ++round) {
            // P_ = inverse of S - D
            if (!leaves_definite(open, 1.0, 0.0)) return false;
            invert(open, p_.n, factor_.data(), inverse_.data(), P_.data());
            for (int a = 0; a < open; ++a) {
                const double inverse = 1.0 / aside_[a];
                step_[a] = inverse - kBarrier * P_[static_cast<size_t>(a) * n + a];
                double* row = factor_.data() + static_cast<size_t>(a) * n;
                for (int b = 0; b <= a; ++b) {
                    const double own = P_[static_cast<size_t>(a) * n + b];
                    row[b] = kBarrier * own * own + (a == b ? inverse * inverse : 0.0);
                }
            }
            if (!factorise(open, p_.n, factor_.data(), Flat::refuse)) return false;
            substitute(open, p_.n, factor_.data(), step_.data());
            double change = 0.0, far = 1.0;
            for (int a = 0; a < open; ++a)
                if (aside_[a] + far * step_[a] < 0.1 * aside_[a]) far = -0.9 * aside_[a] / step_[a];
            bool inside = false;
            for (int halving = 0; halving < 12 && !inside; ++halving) {
                inside = leaves_definite(open, 1.0, far);
                if (!inside) far *= 0.6;
            }
            if (!inside) break;
            for (int a = 0; a < open; ++a) {
                change = std::max(change, std::fabs(far * step_[a]) / aside_[a]);
                aside_[a] += far * step_[a];
            }
            if (change < 0.05) break;
        }
        std::fill(d_.begin(), d_.end(), 0.0);
        for (int a = 0; a < open; ++a) d_[used_[first + a]] = aside_[a] * (1.0 - 1e-3);
        round_all(d_.data());
        return true;
    }

    // whether S_ - diag(scale * aside_ + far * step_) is positive definite; factor_ is its factor then
    bool leaves_definite(int open, double scale, double far) {
        for (int a = 0; a < open; ++a) {
            const double* own = S_.data() + static_cast<size_t>(a) * p_.n;
            double* row = factor_.data() + static_cast<size_t>(a) * p_.n;
            std::copy(own, own + a + 1, row);
            row[a] -= scale * aside_[a] + (far == 0.0 ? 0.0 : far * step_[a]);
        }
        return factorise(open, p_.n, factor_.data(), Flat::refuse);
    }

    // d_: the parent's, where it has one for every open column
    bool inherit(const double* start) {
        std::fill(d_.begin(), d_.end(), 0.0);
        bool any = false;
        for (int j : basis_) {
            if (!is_open(j) || p_.role[j] != kAside) continue;
            if (!(start[j] > 0.0)) return false;
            d_[j] = start[j];
            any = true;
        }
        return any;
    }

    // aside_: that of the parent, smaller if it must be, or a share of what every column has by itself
    bool begin_aside(const double* start, int first, int open) {
        bool known = true;
        for (int a = 0; a < open && known; ++a) known = (aside_[a] = start[used_[first + a]]) > 0.0;
        if (known) {
            double scale = 1.0;
            for (int k = 0; k < 5; ++k, scale *= 0.7)
                if (leaves_definite(open, scale, 0.0)) {
                    for (int a = 0; a < open; ++a) aside_[a] *= scale;
                    return true;
                }
        }
        std::fill_n(aside_.begin(), open, 0.0);
        if (!leaves_definite(open, 0.0, 0.0)) return false;
        invert(open, p_.n, factor_.data(), inverse_.data(), P_.data());
        for (int a = 0; a < open; ++a) aside_[a] = 0.9 / (open * P_[static_cast<size_t>(a) * p_.n + a]);
        return true;
    }

    // whether the curvature that is left at `weights` allows d_, chosen `anew` or made smaller a few times if need be;
    // sets the bound
    bool hold(const double* weights, bool anew) {
        std::copy(weights, weights + p_.n, w_.begin());
        rows_.move(w_.data(), seen_);
        rows_.cut();
        rows_.hessian_left(basis_, H_.data());
        if (anew && !set_aside(d_.data())) return false;
        const int size = static_cast<int>(basis_.size());
        used_ = basis_;
        const double spare = kSpare * mean_curvature();
        for (int k = 0; k < kTries; ++k) {
            load_factor(-spare);
            for (int a = 0; a < size; ++a) factor_[static_cast<size_t>(a) * p_.n + a] -= d_[used_[a]];
            if (factorise(size, p_.n, factor_.data(), Flat::refuse)) {
                for (int j : span_) mu_[j] = p_.l2[j] + d_[j];
                best_ = -std::numeric_limits<double>::infinity();
                set_prices();
                evaluate(w_.data());
                note(scratch_.data());
                for (int j : basis_) H_[static_cast<size_t>(j) * p_.n + j] -= d_[j];
                return true;
            }
            for (int j : span_) d_[j] *= 0.85;
            round_all(d_.data());
        }
        return false;
    }

    // of the columns of span_ that are equal or opposite, the first: each direction that is open, once
    void set_basis() {
        basis_.clear();
        std::fill(taken_.begin(), taken_.end(), uint8_t(0));
        for (int j : span_)
            if (p_.role[j] != kZero && !taken_[p_.twin[j]]) {
                taken_[p_.twin[j]] = 1;
                basis_.push_back(j);
            }
    }

    double mean_curvature() const {
        double trace = 0.0;
        for (int j : basis_) trace += H_[static_cast<size_t>(j) * p_.n + j];
        return trace / basis_.size();
    }

    void round_all(double* x) const {
        for (int j = 0; j < p_.n; ++j) x[j] = static_cast<float>(x[j]);
    }

    void load_factor(double added) {
        const int size = static_cast<int>(used_.size());
        for (int a = 0; a < size; ++a)
            for (int b = 0; b <= a; ++b)
                factor_[static_cast<size_t>(a) * p_.n + b] =
                    H_[static_cast<size_t>(used_[a]) * p_.n + used_[b]] + (a == b ? added : 0.0);
    }

    // the quadratic model at w_: the curvature that is not set aside
    void model() {
        rows_.hessian(span_, H_.data());
        for (int j : span_) H_[static_cast<size_t>(j) * p_.n + j] -= d_[j];
    }

    bool is_open(int j) const { return state_[j] == kFree && p_.charged[j]; }

    // `as_given`: row weights may come from any weights, also of columns that are out
    void open(const double* start, bool as_given) {
        active_.clear();
        seen_.clear();
        slots_ = p_.max_terms;
        for (int j = 0; j < p_.n; ++j) {
            const bool out = state_[j] == kOut || p_.upper[j] == 0.0;
            w_[j] = as_given ? start[j] : out ? 0.0 : std::min(std::max(start[j], 0.0), p_.upper[j]);
            if (!out) active_.push_back(j);
            if (state_[j] == kIn && p_.charged[j]) --slots_;
        }
        limited_ = p_.max_terms >= 0;
        if (limited_ && slots_ <= 0) {
            slots_ = 0;
            active_.erase(std::remove_if(active_.begin(), active_.end(), [&](int j) { return is_open(j); }),
                          active_.end());
            for (int j = 0; j < p_.n; ++j)
                if (is_open(j) && !as_given) w_[j] = 0.0;
        }
        for (int j = 0; j < p_.n; ++j)
            if (as_given) seen_.push_back(j);
        if (!as_given) seen_ = active_;
        span_ = active_;
    }

    // the relaxed price: slope up to the knee, l1 + l2 w beyond it
    void set_prices() {
        for (int j : active_) {
            knee_[j] = 0.0;
            slope_[j] = p_.l1[j];
            const double cost = p_.l0[j] + tau_;
            if (!is_open(j) || !(cost > 0.0)) continue;
            const double mu = mu_[j];
            knee_[j] = mu > 0.0 ? std::min(std::sqrt(2.0 * cost / mu), p_.upper[j]) : p_.upper[j];
            slope_[j] = p_.l1[j] + cost / knee_[j] + 0.5 * mu * knee_[j];
        }
    }

    double price(const double* w) const {
        double total = limited_ ? -tau_ * slots_ : 0.0;
        for (int j : active_) {
            if (state_[j] == kIn && p_.charged[j]) total += p_.l0[j];
            const double mu = mu_[j], x = w[j];
            if (x <= knee_[j])
                total += slope_[j] * x;
            else
                total += p_.l1[j] * x + 0.5 * mu * x * x + (is_open(j) ? p_.l0[j] + tau_ : 0.0);
        }
        return total;
    }

    double share_of(int j, double x) const {
        return knee_[j] > 0.0 ? std::min(1.0, x / knee_[j]) : (x > 0.0 ? 1.0 : 0.0);
    }

    // risk and edges at w, without the curvature that is set aside
    void evaluate(const double* w) {
        risk_ = rows_.move(w, seen_);
        rows_.edges(seen_, c_.data());
        for (int j : span_) {
            risk_ -= 0.5 * d_[j] * w[j] * w[j];
            c_[j] += d_[j] * w[j];
        }
    }

    // --- the bound ---

    // kappa_j - l0_j: the most a column can be worth
    double worth(int j) const {
        const double excess = c_[j] - p_.l1[j];
        if (!(excess > 0.0)) return -p_.l0[j];
        const double mu = mu_[j];
        const double x = mu > 0.0 ? std::min(excess / mu, p_.upper[j]) : p_.upper[j];
        return excess * x - 0.5 * mu * x * x - p_.l0[j];
    }

    // D(u), with its parts kept for fixing; `weights` takes the weights of the best one
    void note(double* weights) {
        double dual = risk_, sizes = 0.0;
        for (int j : seen_) dual += w_[j] * c_[j];
        double forced = 0.0;
        int open = 0;
        for (int j : active_) {
            worth_[j] = worth(j);
            if (is_open(j)) {
                if (worth_[j] > 0.0) terms_[open++] = worth_[j];
            } else {
                // uncharged columns may stay out; charged ones here are forced in
                forced += p_.charged[j] ? worth_[j] : std::max(0.0, worth_[j]);
            }
            sizes += std::fabs(worth_[j]);
        }
        double taken = 0.0;
        double threshold = 0.0, next = 0.0;
        if (limited_ && open > slots_) {
            std::sort(terms_.begin(), terms_.begin() + open, [](double a, double b) { return a > b; });
            threshold = slots_ > 0 ? terms_[slots_ - 1] : std::numeric_limits<double>::infinity();
            next = terms_[slots_];
            open = slots_;
        }
        for (int k = 0; k < open; ++k) taken += terms_[k];
        const double bound = dual - forced - taken - 1e-13 * (1.0 + std::fabs(dual) + sizes);
        if (bound > best_) {
            best_ = bound;
            std::copy(w_.begin(), w_.end(), weights);
            std::copy(worth_.begin(), worth_.end(), best_worth_.begin());
            threshold_ = threshold;
            next_ = next;
        }
    }

    // columns whose other state would lift the bound to the cutoff
    void fix(double cutoff, int8_t* fixed) const {
        std::fill(fixed, fixed + p_.n, int8_t(kFree));
        if (!(best_ < cutoff)) return;
        for (int j : active_) {
            if (!is_open(j)) continue;
            const double own = best_worth_[j], plus = std::max(0.0, own);
            // forced in: it takes a place, from the least of those taken if there are enough
            const bool taken = own > 0.0 && (!limited_ || own >= threshold_);
            double in, out;
            if (limited_) {
                in = taken ? 0.0 : threshold_ - own;
                out = taken ? own - next_ : 0.0;
                if (!std::isfinite(in)) in = 0.0;
            } else {
                in = plus - own;
                out = plus;
            }
            if (best_ + in >= cutoff)
                fixed[j] = kOut;
            else if (best_ + out >= cutoff)
                fixed[j] = kIn;
        }
    }

    // --- the quadratic model ---

    // target_: minimises c'd and H plus prices around w_, with the multiplier that meets the size limit
    void minimise_model() {
        for (int j : active_) target_[j] = w_[j];
        descend();
        if (!limited_) return;
        // the shares in use fall as the multiplier grows; a multiplier near the best one will do
        const double near = 1e-3 * (1 + slots_);
        double low = 0.0, high = -1.0, above = 0.0, below = 0.0, used = shares();
        for (int round = 0; round < kMultipliers; ++round) {
            const double excess = used - slots_;
            if (std::fabs(excess) <= near || (excess < 0.0 && tau_ == 0.0)) break;
            if (excess > 0.0) {
                low = tau_;
                above = excess;
            } else {
                high = tau_;
                below = -excess;
            }
            double next;
            if (high < 0.0) {
                next = std::max(tau_ * std::min(std::max(used / std::max(slots_, 1), 1.2), 4.0), kLeastMultiplier);
            } else if (low == 0.0 && above == 0.0) {
                next = high > kLeastMultiplier ? 0.25 * high : 0.0;
            } else {
                const double share = std::min(std::max(above / (above + below), 0.1), 0.9);
                next = low + share * (high - low);
                if (high - low <= 1e-6 * high) break;
            }
            tau_ = next;
            set_prices();
            descend();
            used = shares();
        }
    }

    double shares() const {
        double total = 0.0;
        for (int j : active_)
            if (is_open(j)) total += share_of(j, target_[j]);
        return total;
    }

    // coordinate descent; r_ = gradient of the smooth part at target_
    void descend() {
        const double tolerance = decided_ ? 1e-13 : 1e-8;
        const int n = p_.n;
        for (int j : active_) {
            double slope = -c_[j];
            const double* row = H_.data() + static_cast<size_t>(j) * n;
            for (int k : active_) slope += row[k] * (target_[k] - w_[k]);
            r_[j] = slope;
        }
        for (int round = 0; round < kSweeps; ++round) {
            const double largest = sweep();
            if (largest < tolerance) break;
            if (round >= 1) leap();
        }
    }

    // every coordinate once; returns the largest change, in units of the root of its curvature
    double sweep() {
        double largest = 0.0;
        for (int j : active_) {
            const double* row = H_.data() + static_cast<size_t>(j) * p_.n;
            const double h = std::max(row[j], 1e-9 * d_[j]) * (1.0 + 1e-12) + 1e-300, x = target_[j], mu = mu_[j];
            double next;
            if (knee_[j] > 0.0) {
                next = x - (r_[j] + slope_[j]) / h;
                if (next > knee_[j]) next = std::max(knee_[j], (h * x - r_[j] - p_.l1[j]) / (h + mu));
            } else {
                next = (h * x - r_[j] - p_.l1[j]) / (h + mu);
            }
            next = std::min(std::max(next, 0.0), p_.upper[j]);
            const double change = next - x;
            if (change == 0.0) continue;
            target_[j] = next;
            for (int k : active_) r_[k] += change * row[k];
            largest = std::max(largest, std::fabs(change) * std::sqrt(h));
        }
        return largest;
    }

    // a Newton step of all coordinates inside their piece of the price, up to the first end of a piece
    void leap() {
        const int n = p_.n;
        used_.clear();
        for (int j : active_) {
            const double x = target_[j];
            if (x > 0.0 && x < p_.upper[j] && x != knee_[j]) used_.push_back(j);
        }
        const int size = static_cast<int>(used_.size());
        if (size < 2) return;
        for (int a = 0; a < size; ++a) {
            const int j = used_[a];
            const bool beyond = target_[j] > knee_[j];
            step_[a] = -(r_[j] + (beyond ? p_.l1[j] + mu_[j] * target_[j] : slope_[j]));
            double* row = factor_.data() + static_cast<size_t>(a) * n;
            for (int b = 0; b <= a; ++b) row[b] = H_[static_cast<size_t>(j) * n + used_[b]];
            row[a] += beyond ? mu_[j] : 0.0;
        }
        factorise(size, n, factor_.data(), Flat::lift);
        substitute(size, p_.n, factor_.data(), step_.data());
        double far = 1.0;
        for (int a = 0; a < size; ++a) {
            const int j = used_[a];
            const bool beyond = target_[j] > knee_[j];
            const double low = beyond ? knee_[j] : 0.0, high = beyond || knee_[j] == 0.0 ? p_.upper[j] : knee_[j];
            if (target_[j] + far * step_[a] < low) far = (low - target_[j]) / step_[a];
            if (target_[j] + far * step_[a] > high) far = (high - target_[j]) / step_[a];
        }
        if (!(far > 0.0)) return;
        for (int a = 0; a < size; ++a) {
            const int j = used_[a];
            const double next = std::min(std::max(target_[j] + far * step_[a], 0.0), p_.upper[j]);
            const double change = next - target_[j];
            target_[j] = next;
            const double* row = H_.data() + static_cast<size_t>(j) * n;
            for (int k : active_) r_[k] += change * row[k];
        }
    }

    // by how much the model says the relaxation falls from w_ to target_
    double model_drop() const {
        double smooth = 0.0;
        for (int j : active_) smooth += 0.5 * (r_[j] - c_[j]) * (w_[j] - target_[j]);
        return smooth + price(w_.data()) - price(target_.data());
    }

    // --- branching ---

    // the column whose two children promise the most, by the quadratic model
    int choose(const double* weights) {
        used_.clear();
        for (int j : active_)
            if (weights[j] > 0.0) used_.push_back(j);
        const int size = static_cast<int>(used_.size());
        if (size == 0) return widest();
        // the inverse of the model over used_: its diagonal says how far each may move
        load_factor(0.0);
        for (int a = 0; a < size; ++a) factor_[static_cast<size_t>(a) * p_.n + a] += mu_[used_[a]];
        factorise(size, p_.n, factor_.data(), Flat::lift);
        invert_factor(size, p_.n, factor_.data(), inverse_.data());
        int best = -1;
        double best_score = -1.0;
        for (int a = 0; a < size; ++a) {
            const int j = used_[a];
            if (!is_open(j)) continue;
            const double share = share_of(j, weights[j]);
            if (share >= 1.0) continue;
            const double spread = inverse_entry(size, p_.n, inverse_.data(), a, a);
            const double out = 0.5 * weights[j] * weights[j] / spread;
            const double cost = p_.l0[j] + tau_;
            const double left = 1.0 - share;  // with l2 the relaxed price is a parabola's tangent
            const double in = cost * left * (knee_[j] < p_.upper[j] ? left : 1.0);
            const double score = std::max(out, 1e-9) * std::max(in, 1e-9);
            if (score > best_score) {
                best_score = score;
                best = j;
            }
        }
        return best >= 0 ? best : widest();
    }

    // where nothing is used in part: the open column that could be worth most, or -1 if none is open
    int widest() const {
        int best = -1;
        for (int j : active_)
            if (is_open(j) && (best < 0 || best_worth_[j] > best_worth_[best])) best = j;
        return best;
    }

    const ChoiceProblem& p_;
    NodeRows rows_;
    const int8_t* state_ = nullptr;
    bool limited_ = false, decided_ = false, has_model_ = false;
    int slots_ = 0;
    double tau_ = 0.0, risk_ = 0.0, best_ = 0.0, threshold_ = 0.0, next_ = 0.0;
    std::vector<int> active_, used_, seen_, span_, basis_;
    std::vector<double> w_, target_, c_, worth_, terms_, r_, knee_, slope_, H_, factor_, scratch_, step_, best_worth_,
        plain_worth_, mu_, d_, aside_, step_weights_, inverse_, S_, P_, plain_H_;
    std::vector<uint8_t> taken_;  // directions of the basis, by the first column that has each
};

}  // namespace

void bound_nodes(const ChoiceProblem& problem, int64_t nodes, const NodeInputs& in, int threads,
                 const NodeResults& out) {
    const int64_t n = problem.n;
    threads = static_cast<int>(std::min<int64_t>(nodes, worth_threads(threads, nodes, problem.m, n)));
#pragma omp parallel num_threads(std::max(1, threads))
    {
        NodeSolver solver(problem);
#pragma omp for schedule(dynamic, 1)
        for (int64_t k = 0; k < nodes; ++k)
            solver.solve({in.state + k * n, in.start + k * n,
                          in.curve && in.curved[k] ? in.curve + k * n : nullptr, in.tau[k], in.cutoff, in.objective,
                          in.max_steps},
                         out.bound + k, out.weights + k * n, out.tau + k, out.value + k, out.fixed + k * n,
                         out.branch + k, out.centre + k * n, out.curve + k * n, out.plain + k);
    }
}

auto py_bound_nodes(int loss, Maybe<uint8_t, 2> packed, Maybe<double, 2> dense, In<double, 1> share, In<double, 1> l1,
                    In<double, 1> l2, In<double, 1> l0, In<double, 1> upper, In<uint8_t, 1> charged, int max_terms,
                    In<int8_t, 2> state, In<double, 2> start, In<double, 1> tau, double cutoff, int max_steps,
                    int threads, Maybe<double, 1> floors, Maybe<double, 1> caps, Maybe<uint8_t, 1> role,
                    Maybe<int32_t, 1> twin, double objective,
                    Maybe<double, 2> curve, Maybe<uint8_t, 1> curved) {
    const size_t n = l1.shape(0), m = share.shape(0), nodes = state.shape(0);
    require(loss == 0 || loss == 1, "bound_nodes: exponential or logistic loss only");
    require(packed.has_value() != dense.has_value(), "bound_nodes: give packed signs or dense columns");
    require(!packed || (packed->shape(0) == (n + 7) / 8 && packed->shape(1) == m), "bound_nodes: packed has another shape");
    require(!dense || (dense->shape(0) == n && dense->shape(1) == m), "bound_nodes: dense has another shape");
    require(l2.shape(0) == n && l0.shape(0) == n && upper.shape(0) == n && charged.shape(0) == n,
            "bound_nodes: sizes differ");
    require(state.shape(1) == n && start.shape(0) == nodes && start.shape(1) == n && tau.shape(0) == nodes,
            "bound_nodes: nodes differ in size");
    for (size_t j = 0; j < n; ++j)
        require(l1.data()[j] >= 0 && l2.data()[j] >= 0 && l0.data()[j] >= 0 && upper.data()[j] >= 0 &&
                    std::isfinite(l1.data()[j] + l2.data()[j] + l0.data()[j] + upper.data()[j]),
                "bound_nodes: prices must be at least 0 and boxes finite");
    for (size_t k = 0; k < nodes * n; ++k)
        require(state.data()[k] >= 0 && state.data()[k] <= 2 && std::isfinite(start.data()[k]),
                "bound_nodes: states must be 0, 1 or 2 and weights finite");
    for (size_t k = 0; k < nodes; ++k) require(tau.data()[k] >= 0, "bound_nodes: tau must be at least 0");
    require(!caps || (floors && caps->shape(0) == m && floors->shape(0) == m), "bound_nodes: caps and floors are for rows");
    require(caps.has_value() == floors.has_value(), "bound_nodes: caps come with floors");
    for (size_t i = 0; caps && i < m; ++i)
        require(std::isfinite(caps->data()[i]) && std::isfinite(floors->data()[i]), "bound_nodes: caps must be finite");
    require(caps.has_value() == role.has_value() && (!role || role->shape(0) == n), "bound_nodes: caps need roles");
    require(role.has_value() == twin.has_value() && (!twin || twin->shape(0) == n), "bound_nodes: roles need twins");
    for (size_t j = 0; twin && j < n; ++j)
        require(twin->data()[j] >= 0 && twin->data()[j] <= static_cast<int32_t>(j),
                "bound_nodes: a twin is the column itself or an earlier one");
    require(!caps || std::isfinite(objective), "bound_nodes: caps need an objective");
    require(!curve || caps, "bound_nodes: a curve needs caps");
    require(curve.has_value() == curved.has_value() && (!curved || curved->shape(0) == nodes),
            "bound_nodes: a curve is for nodes that say if they use it");
    require(!curve || (curve->shape(0) == nodes && curve->shape(1) == n), "bound_nodes: nodes differ in size");
    for (size_t k = 0; curve && k < nodes * n; ++k)
        require(curve->data()[k] >= 0.0 && std::isfinite(curve->data()[k]), "bound_nodes: a curve must be finite");
    ChoiceProblem problem{static_cast<LossKind>(loss), static_cast<int>(n), static_cast<int64_t>(m),
                          packed ? packed->data() : nullptr, dense ? dense->data() : nullptr, share.data(), l1.data(),
                          l2.data(), l0.data(), upper.data(), charged.data(), max_terms,
                          floors ? floors->data() : nullptr, caps ? caps->data() : nullptr, role ? role->data() : nullptr,
                          twin ? twin->data() : nullptr};
    auto bound = make<double>({nodes}), weights = make<double>({nodes, n}), tau_out = make<double>({nodes}),
         value = make<double>({nodes});
    auto fixed = make<int8_t>({nodes, n});
    auto branch = make<int32_t>({nodes});
    auto centre_out = make<double>({nodes, n}), curve_out = make<double>({nodes, n}), plain = make<double>({nodes});
    {
        nb::gil_scoped_release release;
        bound_nodes(problem, static_cast<int64_t>(nodes),
                    {state.data(), start.data(), tau.data(), curve ? curve->data() : nullptr,
                     curved ? curved->data() : nullptr, cutoff, objective, max_steps},
                    threads,
                    {bound.data(), weights.data(), tau_out.data(), value.data(), fixed.data(), branch.data(),
                     centre_out.data(), curve_out.data(), plain.data()});
    }
    return std::make_tuple(bound, weights, tau_out, value, fixed, branch, centre_out, curve_out, plain);
}

void bind_nodes(nb::module_& m) {
    m.def("bound_nodes", &py_bound_nodes, "loss"_a, "packed"_a.none(), "dense"_a.none(), "share"_a, "l1"_a, "l2"_a,
          "l0"_a, "upper"_a, "charged"_a, "max_terms"_a, "state"_a, "start"_a, "tau"_a, "cutoff"_a, "max_steps"_a,
          "threads"_a, "floors"_a = nb::none(), "caps"_a = nb::none(), "role"_a = nb::none(), "twin"_a = nb::none(),
          "objective"_a = 0.0, "curve"_a = nb::none(), "curved"_a = nb::none());
}

}  // namespace cardboost
