// Node bounds of the search for the best choice of columns. A node is solved by one thread, in a fixed order of
// operations, so its result does not depend on the number of threads.
#include "nodes.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "fastmath.h"

namespace cardboost {

namespace {

constexpr double kEnough = 0.05;    // a step is the last when it leaves less than this share of the way to the cutoff
constexpr double kConverged = 1e-13;  // share of the value that is lost in its rounding
constexpr double kTight = 1e-11;      // share of the value that a gap may keep where nothing is left to branch on
constexpr int kSweeps = 40;         // of the quadratic model, at most
constexpr int kMultipliers = 20;    // tried per quadratic model, at most
constexpr double kLeastMultiplier = 1e-7;
constexpr double kRoom = 1e-9;      // for rounding, where margins are capped
constexpr double kWider = 1e-6;     // the same, for widths that come from an inverse
constexpr double kPivot = 1e-8;     // share of a column's curvature that no others make up, at least
constexpr double kSpare = 1e-8;     // share of the mean curvature of a column that is not set aside
constexpr double kBarrier = 0.02;
constexpr int kAsideRounds = 12;
constexpr int kTries = 6;  // times that curvature set aside is made smaller before it is given up

// sums over eight signs, indexed by their byte
void fill_signs(const double* w, int size, double* table) {
    double total = 0.0;
    for (int k = 0; k < size; ++k) total += w[k];
    table[0] = total;
    for (int k = 0; k < 8; ++k) {
        const double twice = k < size ? 2.0 * w[k] : 0.0;
        for (int b = 0; b < (1 << k); ++b) table[(1 << k) + b] = table[b] - twice;
    }
}

// sums of a histogram over signed bits: out[k] = sum over b of h[b] * (bit k of b ? -1 : 1); h is used up
void fold_signs(double* h, double* out) {
    for (int k = 7; k >= 0; --k) {
        double difference = 0.0;
        for (int b = 0; b < (1 << k); ++b) {
            difference += h[b] - h[b + (1 << k)];
            h[b] += h[b + (1 << k)];
        }
        out[k] = difference;
    }
}

// risk; row weights and curvatures of every row
CARDBOOST_CLONES
double row_pass(LossKind loss, int64_t m, const double* F, const double* share, double* u, double* curve) {
    double sum[8] = {};
    if (loss == LossKind::exponential) {
        for (int64_t i = 0; i < m; ++i) curve[i] = u[i] = share[i] * exp_poly(-F[i]);
        int64_t i = 0;
        for (; i + 8 <= m; i += 8)
            for (int k = 0; k < 8; ++k) sum[k] += u[i + k];
        for (; i < m; ++i) sum[0] += u[i];
    } else {
        // logistic; curve holds the loss until it is summed
        for (int64_t i = 0; i < m; ++i) {
            const double z = F[i], e = exp_poly(z < 0.0 ? z : -z), inverse = 1.0 / (1.0 + e);
            u[i] = share[i] * (z < 0.0 ? inverse : e * inverse);
            curve[i] = share[i] * (log1p_poly(e) + (z < 0.0 ? -z : 0.0));
        }
        int64_t i = 0;
        for (; i + 8 <= m; i += 8)
            for (int k = 0; k < 8; ++k) sum[k] += curve[i + k];
        for (; i < m; ++i) sum[0] += curve[i];
        for (i = 0; i < m; ++i) {
            const double e = exp_poly(F[i] < 0.0 ? F[i] : -F[i]), inverse = 1.0 / (1.0 + e);
            curve[i] = share[i] * e * inverse * inverse;
        }
    }
    return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

// What is left of the curvature of every row on margins between its floor and its cap: the loss stays above its
// tangent at F plus so much curvature. With the distance x to an end it is 2 (loss(F + x) - loss(F) - loss'(F) x) / x^2
// there, and the least of that at both ends and of the curvature at F: on either side it rises and then falls.
// Near F, where this is a difference of equals, curvature falls at most by exp(-|x|).
CARDBOOST_CLONES
void cut_curvature(LossKind loss, int64_t m, const double* F, const double* floors, const double* caps,
                   const double* share, const double* u, double* left) {
    if (loss == LossKind::exponential) {  // falls all the way: caps count
        for (int64_t i = 0; i < m; ++i) {
            const double x = caps[i] - F[i];
            const bool near = x < 0.05 && x > -0.05;
            const double y = near ? 1.0 : x;
            const double far = 2.0 * (exp_poly(-y) - 1.0 + y) / (y * y);
            const double series =
                1.0 - x * (1.0 / 3.0 - x * (1.0 / 12.0 - x * (1.0 / 60.0 - x * (1.0 / 360.0 - x / 2520.0))));
            left[i] = u[i] * (near ? series : far) * (1.0 - 1e-9);
        }
        return;
    }
    for (int64_t i = 0; i < m; ++i) {
        const double z = F[i], e = exp_poly(z < 0.0 ? z : -z), inverse = 1.0 / (1.0 + e);
        const double here = log1p_poly(e) + (z < 0.0 ? -z : 0.0), slope = z < 0.0 ? inverse : e * inverse;
        const double own = e * inverse * inverse;
        double least = own;
        for (int side = 0; side < 2; ++side) {
            const double x = (side ? caps[i] : floors[i]) - z, size = x < 0.0 ? -x : x;
            const bool near = size < 0.05;
            const double y = near ? 1.0 : x, end = z + y;
            const double there = log1p_poly(exp_poly(end < 0.0 ? end : -end)) + (end < 0.0 ? -end : 0.0);
            const double far = 2.0 * (there - here + slope * y) / (y * y);
            const double close = own * (1.0 - size * (1.0 / 3.0));
            const double found = near ? close : far;
            least = found < least ? found : least;
        }
        left[i] = share[i] * (least > 0.0 ? least : 0.0) * (1.0 - 1e-9);
    }
}

constexpr int kRows = 128;  // of a block: forty columns of it are 40 kB

// the signs in one bit of each byte
CARDBOOST_CLONES
void unpack_signs(const uint8_t* bytes, int bit, int rows, double* out) {
    for (int i = 0; i < rows; ++i) out[i] = static_cast<double>(1 - 2 * (bytes[i] >> bit & 1));
}

CARDBOOST_CLONES
void scale_block(int size, const double* x, int rows, const double* block, double* scaled) {
    for (int a = 0; a < size; ++a)
        for (int i = 0; i < rows; ++i) scaled[a * kRows + i] = block[a * kRows + i] * x[i];
    for (int a = 0; a < size; ++a) std::fill(scaled + a * kRows + rows, scaled + (a + 1) * kRows, 0.0);
}

// gram += block scaled', its lower half; lines beyond `size` may hold anything finite
CARDBOOST_CLONES
void gram_block(int size, const double* block, const double* scaled, double* gram) {
    for (int a = 0; a < size; a += 2) {
        const double *a0 = block + a * kRows, *a1 = a0 + kRows;
        for (int b = 0; b <= a + 1 && b < size; b += 3) {
            const double *b0 = scaled + b * kRows, *b1 = b0 + kRows, *b2 = b1 + kRows;
            double s0 = 0.0, s1 = 0.0, s2 = 0.0, t0 = 0.0, t1 = 0.0, t2 = 0.0;
#pragma omp simd reduction(+ : s0, s1, s2, t0, t1, t2)
            for (int i = 0; i < kRows; ++i) {
                s0 += a0[i] * b0[i];
                s1 += a0[i] * b1[i];
                s2 += a0[i] * b2[i];
                t0 += a1[i] * b0[i];
                t1 += a1[i] * b1[i];
                t2 += a1[i] * b2[i];
            }
            const double found[6] = {s0, s1, s2, t0, t1, t2};
            for (int q = 0; q < 6; ++q) {
                const int j = a + q / 3, k = b + q % 3;
                if (j < size && k <= j) gram[j * size + k] += found[q];
            }
        }
    }
}

// spans = a' P a of every row
CARDBOOST_CLONES
void block_spans(int size, int stride, const double* P, const double* block, double* spans) {
    std::fill(spans, spans + kRows, 0.0);
    for (int a = 0; a < size; ++a) {
        const double *own = block + a * kRows, *row = P + static_cast<size_t>(a) * stride;
        double sum[kRows];
        for (int i = 0; i < kRows; ++i) sum[i] = 0.5 * row[a] * own[i];
        int b = 0;
        for (; b + 4 <= a; b += 4) {
            const double *b0 = block + b * kRows, *b1 = b0 + kRows, *b2 = b1 + kRows, *b3 = b2 + kRows;
            const double p0 = row[b], p1 = row[b + 1], p2 = row[b + 2], p3 = row[b + 3];
            for (int i = 0; i < kRows; ++i) sum[i] += (p0 * b0[i] + p1 * b1[i]) + (p2 * b2[i] + p3 * b3[i]);
        }
        for (; b < a; ++b) {
            const double* other = block + b * kRows;
            for (int i = 0; i < kRows; ++i) sum[i] += row[b] * other[i];
        }
        for (int i = 0; i < kRows; ++i) spans[i] += 2.0 * own[i] * sum[i];
    }
}

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
        : p_(problem), groups_((problem.n + 7) / 8), F_(problem.m), u_(problem.m), curvature_(problem.m),
          w_(problem.n), target_(problem.n), c_(problem.n), worth_(problem.n), terms_(problem.n), r_(problem.n),
          knee_(problem.n), slope_(problem.n), H_(static_cast<size_t>(problem.n) * problem.n),
          factor_(static_cast<size_t>(problem.n) * problem.n), scratch_(problem.n), step_(problem.n),
          best_worth_(problem.n), plain_worth_(problem.n), mu_(problem.n), d_(problem.n), aside_(problem.n),
          step_weights_(problem.n), caps_(problem.caps ? problem.m : 0), floors_(caps_.size()), left_(caps_.size()), S_(square(problem)), P_(square(problem)), plain_H_(square(problem)),
          inverse_(square(problem)) {
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
        if (!narrow(q.objective, centre)) {
            best_ = plain;
            return;
        }
        // with the parent's curvature a first point is found, and more may be set aside there; else it is found here
        const bool known = modelled && inherit(q.curve);
        if (!known) {
            cut();
            hessian(basis_, left_);
            if (!set_aside(q.curve)) {
                best_ = plain;
                return;
            }
        }
        for (int j : active_) mu_[j] = p_.l2[j] + d_[j];
        if (modelled) {
            std::copy(plain_H_.begin(), plain_H_.end(), H_.begin());
            for (int j : span_) H_[static_cast<size_t>(j) * p_.n + j] -= d_[j];
        }
        std::copy(centre, centre + p_.n, w_.begin());
        *value = newton(q.cutoff, q.max_steps, step_weights_.data(), modelled);
        round_all(step_weights_.data());
        if (hold(step_weights_.data(), known) && best_ > plain) {
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

    // caps_ and floors_: margins of better choices are between them, from the ellipsoid around the centre that its bound leaves
    bool narrow(double objective, const double* centre) {
        std::copy(centre, centre + p_.n, w_.begin());
        best_ = -std::numeric_limits<double>::infinity();
        evaluate(w_.data());
        note(scratch_.data());
        best_ = std::max(best_, 0.0);
        const double room = objective - best_ + kRoom * (1.0 + std::fabs(objective));
        if (!(room > 0.0) || !std::isfinite(room)) return false;
        std::copy(p_.caps, p_.caps + p_.m, caps_.begin());
        std::copy(p_.floors, p_.floors + p_.m, floors_.begin());
        cut();
        set_basis();
        hessian(basis_, left_);
        const int size = static_cast<int>(basis_.size());
        used_ = basis_;
        load_factor(0.0);
        if (!factorise_strictly(size, kPivot)) return false;
        small_inverse(size);
        narrow_rows(2.0 * room);
        return true;
    }

    // caps_ and floors_: no further from F than sqrt(scale * a' P a), P_ over basis_
    void narrow_rows(double scale) {
        const int size = static_cast<int>(basis_.size());
        double spans[kRows];
        for (int64_t first = 0; first < p_.m; first += kRows) {
            const int rows = static_cast<int>(std::min<int64_t>(kRows, p_.m - first));
            load_block(basis_, first, rows);
            block_spans(size, p_.n, P_.data(), block_.data(), spans);
            for (int i = 0; i < rows; ++i) {
                const double width = std::sqrt(std::max(0.0, spans[i]) * scale) * (1.0 + kWider), at = F_[first + i];
                caps_[first + i] = std::min(caps_[first + i], at + width);
                floors_[first + i] = std::max(floors_[first + i], at - width);
            }
        }
    }

    // left_: what is left of every row's curvature on its way from F to its floor or cap
    void cut() {
        cut_curvature(p_.loss, p_.m, F_.data(), floors_.data(), caps_.data(), p_.share, u_.data(), left_.data());
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
        if (!factorise_strictly(size)) return false;
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
            for (int a = 0; a < open; ++a)
                for (int b = 0; b <= a; ++b)
                    factor_[static_cast<size_t>(a) * n + b] = S_[static_cast<size_t>(a) * n + b] - (a == b ? aside_[a] : 0.0);
            if (!factorise_strictly(open)) return false;
            small_inverse(open);
            for (int a = 0; a < open; ++a) {
                const double inverse = 1.0 / aside_[a];
                step_[a] = inverse - kBarrier * P_[static_cast<size_t>(a) * n + a];
                double* row = factor_.data() + static_cast<size_t>(a) * n;
                for (int b = 0; b <= a; ++b) {
                    const double own = P_[static_cast<size_t>(a) * n + b];
                    row[b] = kBarrier * own * own + (a == b ? inverse * inverse : 0.0);
                }
            }
            if (!factorise_strictly(open)) return false;
            substitute(open);
            double change = 0.0, far = 1.0;
            for (int a = 0; a < open; ++a)
                if (aside_[a] + far * step_[a] < 0.1 * aside_[a]) far = -0.9 * aside_[a] / step_[a];
            bool inside = false;
            for (int halving = 0; halving < 12 && !inside; ++halving) {
                for (int a = 0; a < open; ++a)
                    for (int b = 0; b <= a; ++b)
                        factor_[static_cast<size_t>(a) * n + b] =
                            S_[static_cast<size_t>(a) * n + b] - (a == b ? aside_[a] + far * step_[a] : 0.0);
                inside = factorise_strictly(open);
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
        const int n = p_.n;
        auto fits = [&](double scale) {
            for (int a = 0; a < open; ++a)
                for (int b = 0; b <= a; ++b)
                    factor_[static_cast<size_t>(a) * n + b] =
                        S_[static_cast<size_t>(a) * n + b] - (a == b ? scale * aside_[a] : 0.0);
            return factorise_strictly(open);
        };
        bool known = true;
        for (int a = 0; a < open && known; ++a) known = (aside_[a] = start[used_[first + a]]) > 0.0;
        if (known) {
            double scale = 1.0;
            for (int k = 0; k < 5; ++k, scale *= 0.7)
                if (fits(scale)) {
                    for (int a = 0; a < open; ++a) aside_[a] *= scale;
                    return true;
                }
        }
        for (int a = 0; a < open; ++a) aside_[a] = 0.0;
        if (!fits(0.0)) return false;
        small_inverse(open);
        for (int a = 0; a < open; ++a) aside_[a] = 0.9 / (open * P_[static_cast<size_t>(a) * n + a]);
        return true;
    }

    // whether the curvature that is left at `weights` allows d_, chosen `anew` or made smaller a few times if need be;
    // sets the bound
    bool hold(const double* weights, bool anew) {
        std::copy(weights, weights + p_.n, w_.begin());
        margins(w_.data());
        row_pass(p_.loss, p_.m, F_.data(), p_.share, u_.data(), curvature_.data());
        cut();
        hessian(basis_, left_);
        if (anew) {
            std::copy(d_.begin(), d_.end(), plain_H_.begin());
            if (!set_aside(plain_H_.data())) return false;
        }
        const int size = static_cast<int>(basis_.size());
        used_ = basis_;
        const double spare = kSpare * mean_curvature();
        for (int k = 0; k < kTries; ++k) {
            load_factor(-spare);
            for (int a = 0; a < size; ++a) factor_[static_cast<size_t>(a) * p_.n + a] -= d_[used_[a]];
            if (factorise_strictly(size)) {
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

    // columns of span_ without those that repeat another one
    void set_basis() {
        basis_.clear();
        for (int j : span_)
            if (p_.role[j] != kRepeats) basis_.push_back(j);
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

    // whether the lower triangle in factor_ is positive definite; then it becomes its factor
    bool factorise_strictly(int size, double least = 0.0) {
        const int n = p_.n;
        double* f = factor_.data();
        for (int a = 0; a < size; ++a) {
            double* row = f + static_cast<size_t>(a) * n;
            for (int b = 0; b < a; ++b) {
                const double* other = f + static_cast<size_t>(b) * n;
                double sum = row[b];
                for (int k = 0; k < b; ++k) sum -= row[k] * other[k];
                row[b] = sum / other[b];
            }
            double rest = row[a];
            const double enough = least * rest;
            for (int k = 0; k < a; ++k) rest -= row[k] * row[k];
            if (!(rest > enough)) return false;
            row[a] = std::sqrt(rest);
        }
        return true;
    }

    // P_ = inverse of what factor_ is the factor of, rows and columns counted from 0
    void small_inverse(int size) {
        const int n = p_.n;
        double* x = inverse_.data();  // rows: columns of the inverse factor
        for (int a = 0; a < size; ++a) {
            double* own = x + static_cast<size_t>(a) * n;
            for (int b = a; b < size; ++b) {
                const double* row = factor_.data() + static_cast<size_t>(b) * n;
                double sum = a == b ? 1.0 : 0.0;
                for (int k = a; k < b; ++k) sum -= row[k] * own[k];
                own[b] = sum / row[b];
            }
        }
        for (int a = 0; a < size; ++a)
            for (int b = 0; b <= a; ++b) {
                const double *u = x + static_cast<size_t>(a) * n, *v = x + static_cast<size_t>(b) * n;
                double sum = 0.0;
                for (int k = a; k < size; ++k) sum += u[k] * v[k];
                P_[static_cast<size_t>(a) * n + b] = P_[static_cast<size_t>(b) * n + a] = sum;
            }
    }

    // step_ = inverse of what factor_ is the factor of, times step_
    void substitute(int size) {
        const double* f = factor_.data();
        const int n = p_.n;
        for (int a = 0; a < size; ++a) {
            const double* row = f + static_cast<size_t>(a) * n;
            for (int k = 0; k < a; ++k) step_[a] -= row[k] * step_[k];
            step_[a] /= row[a];
        }
        for (int a = size - 1; a >= 0; --a) {
            step_[a] /= f[static_cast<size_t>(a) * n + a];
            for (int k = 0; k < a; ++k) step_[k] -= f[static_cast<size_t>(a) * n + k] * step_[a];
        }
    }

    // the quadratic model at w_: the curvature that is not set aside
    void model() {
        hessian(span_, curvature_);
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

    double share_of(int j, double x) const { return knee_[j] > 0.0 ? std::min(1.0, x / knee_[j]) : (x > 0.0 ? 1.0 : 0.0); }

    // --- over the rows ---

    void margins(const double* w) {
        std::fill(F_.begin(), F_.end(), 0.0);
        if (p_.packed) {
            double table[256];
            for (int g = 0; g < groups_; ++g) {
                const int size = std::min(8, p_.n - 8 * g);
                if (std::all_of(w + 8 * g, w + 8 * g + size, [](double x) { return x == 0.0; })) continue;
                fill_signs(w + 8 * g, size, table);
                const uint8_t* bytes = p_.packed + static_cast<int64_t>(g) * p_.m;
                for (int64_t i = 0; i < p_.m; ++i) F_[i] += table[bytes[i]];
            }
        } else {
            for (int j : seen_) {
                if (w[j] == 0.0) continue;
                const double* a = p_.dense + static_cast<int64_t>(j) * p_.m;
                for (int64_t i = 0; i < p_.m; ++i) F_[i] += w[j] * a[i];
            }
        }
    }

    // risk, row weights u, curvatures and edges at w
    void evaluate(const double* w) {
        margins(w);
        risk_ = row_pass(p_.loss, p_.m, F_.data(), p_.share, u_.data(), curvature_.data());
        edges();
        for (int j : span_) {
            risk_ -= 0.5 * d_[j] * w[j] * w[j];
            c_[j] += d_[j] * w[j];
        }
    }

    void edges() {
        if (p_.packed) {
            double h[2][256], out[8];
            for (int g = 0; g < groups_; ++g) {
                byte_sums(p_.packed + static_cast<int64_t>(g) * p_.m, u_.data(), h);
                fold_signs(h[0], out);
                std::copy_n(out, std::min(8, p_.n - 8 * g), c_.data() + 8 * g);
            }
        } else {
            for (int j : seen_) c_[j] = inner(p_.dense + static_cast<int64_t>(j) * p_.m, u_.data());
        }
    }

    double inner(const double* a, const double* x) const {
        double sum[8] = {};
        int64_t i = 0;
        for (; i + 8 <= p_.m; i += 8)
            for (int k = 0; k < 8; ++k) sum[k] += a[i + k] * x[i + k];
        for (; i < p_.m; ++i) sum[0] += a[i] * x[i];
        return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
    }

    // two tables, so that neighbouring rows do not wait for each other; added up in the first
    void byte_sums(const uint8_t* bytes, const double* x, double (*h)[256]) const {
        std::fill(h[0], h[0] + 512, 0.0);
        int64_t i = 0;
        for (; i + 2 <= p_.m; i += 2) {
            h[0][bytes[i]] += x[i];
            h[1][bytes[i + 1]] += x[i + 1];
        }
        if (i < p_.m) h[0][bytes[i]] += x[i];
        for (int b = 0; b < 256; ++b) h[0][b] += h[1][b];
    }

    // H_ = sum of x_i a_ij a_ik over these columns, a block of rows at a time
    void hessian(const std::vector<int>& columns, const std::vector<double>& x) {
        const int size = static_cast<int>(columns.size()), n = p_.n;
        gram_.resize(static_cast<size_t>(size) * size);
        std::fill(gram_.begin(), gram_.end(), 0.0);
        block_.resize(static_cast<size_t>(size + 2) * kRows);
        scaled_.resize(static_cast<size_t>(size + 2) * kRows);
        for (int64_t first = 0; first < p_.m; first += kRows) {
            const int rows = static_cast<int>(std::min<int64_t>(kRows, p_.m - first));
            load_block(columns, first, rows);
            scale_block(size, x.data() + first, rows, block_.data(), scaled_.data());
            gram_block(size, block_.data(), scaled_.data(), gram_.data());
        }
        for (int a = 0; a < size; ++a)
            for (int b = 0; b <= a; ++b) {
                const size_t j = columns[a], k = columns[b];
                H_[j * n + k] = H_[k * n + j] = gram_[static_cast<size_t>(a) * size + b];
            }
    }

    // block_: rows first .. first + rows of these columns, one line each; what is left of a line is zero
    void load_block(const std::vector<int>& columns, int64_t first, int rows) {
        const int size = static_cast<int>(columns.size());
        for (int a = 0; a < size; ++a) {
            double* line = block_.data() + static_cast<size_t>(a) * kRows;
            const int j = columns[a];
            if (p_.packed)
                unpack_signs(p_.packed + static_cast<int64_t>(j >> 3) * p_.m + first, j & 7, rows, line);
            else
                std::copy_n(p_.dense + static_cast<int64_t>(j) * p_.m + first, rows, line);
            std::fill(line + rows, line + kRows, 0.0);
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
        factorise(size);
        substitute(size);
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
        invert(size);
        int best = -1;
        double best_score = -1.0;
        for (int a = 0; a < size; ++a) {
            const int j = used_[a];
            if (!is_open(j)) continue;
            const double share = share_of(j, weights[j]);
            if (share >= 1.0) continue;
            const double spread = factor_[static_cast<size_t>(a) * p_.n + a];  // of the inverse
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

    // Cholesky factor of the lower triangle in factor_; directions without curvature get a little
    void factorise(int size) {
        const int n = p_.n;
        double* f = factor_.data();
        for (int a = 0; a < size; ++a) {
            double* row = f + static_cast<size_t>(a) * n;
            for (int b = 0; b < a; ++b) {
                const double* other = f + static_cast<size_t>(b) * n;
                double sum = row[b];
                for (int k = 0; k < b; ++k) sum -= row[k] * other[k];
                row[b] = sum / other[b];
            }
            double rest = row[a];
            const double own = rest;
            for (int k = 0; k < a; ++k) rest -= row[k] * row[k];
            row[a] = std::sqrt(std::max(rest, 1e-12 * own + 1e-300));
        }
    }

    // the diagonal of the inverse of the model over used_, left on the diagonal of factor_
    void invert(int size) {
        const int n = p_.n;
        double* f = factor_.data();
        for (int a = 0; a < size; ++a)
            for (int b = 0; b <= a; ++b)
                f[static_cast<size_t>(a) * n + b] =
                    H_[static_cast<size_t>(used_[a]) * n + used_[b]] + (a == b ? mu_[used_[a]] : 0.0);
        factorise(size);
        // the diagonal of the inverse: squared columns of the inverse factor, column by column
        std::vector<double>& x = inverse_column_;
        x.resize(size);
        for (int a = 0; a < size; ++a) {
            double total = 0.0;
            for (int b = a; b < size; ++b) {
                const double* row = f + static_cast<size_t>(b) * n;
                double sum = a == b ? 1.0 : 0.0;
                for (int k = a; k < b; ++k) sum -= row[k] * x[k];
                x[b] = sum / row[b];
                total += x[b] * x[b];
            }
            diagonal_.resize(std::max<size_t>(diagonal_.size(), size));
            diagonal_[a] = total;
        }
        for (int a = 0; a < size; ++a) f[static_cast<size_t>(a) * n + a] = diagonal_[a];
    }

    const ChoiceProblem& p_;
    const int groups_;
    const int8_t* state_ = nullptr;
    bool limited_ = false, decided_ = false, has_model_ = false;
    int slots_ = 0;
    double tau_ = 0.0, risk_ = 0.0, best_ = 0.0, threshold_ = 0.0, next_ = 0.0;
    std::vector<int> active_, used_, seen_, span_, basis_;
    std::vector<double> F_, u_, curvature_, w_, target_, c_, worth_, terms_, r_, knee_, slope_, H_, factor_, scratch_, step_,
        best_worth_, plain_worth_, mu_, d_, aside_, step_weights_, caps_, floors_, left_, S_, P_, plain_H_, inverse_;
    std::vector<double> gram_, block_, scaled_, inverse_column_, diagonal_;
};

}  // namespace

void bound_nodes(const ChoiceProblem& problem, int64_t nodes, const NodeInputs& in, int threads,
                 const NodeResults& out) {
    const int64_t n = problem.n;
    threads = static_cast<int>(std::min<int64_t>(nodes, worth_threads(threads, nodes * problem.m * n)));
#pragma omp parallel num_threads(std::max(1, threads))
    {
        NodeSolver solver(problem);
#pragma omp for schedule(dynamic, 1)
        for (int64_t k = 0; k < nodes; ++k)
            solver.solve({in.state + k * n, in.start + k * n,
                          in.curve && in.curved[k] ? in.curve + k * n : nullptr, in.tau[k], in.cutoff, in.objective, in.max_steps},
                         out.bound + k, out.weights + k * n, out.tau + k, out.value + k, out.fixed + k * n,
                         out.branch + k, out.centre + k * n, out.curve + k * n, out.plain + k);
    }
}

}  // namespace cardboost
