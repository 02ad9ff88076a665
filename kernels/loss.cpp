// Loss, derivative and curvature of every row in one blocked pass, with sums over rows in fixed point:
// integers add up to the same total in every order, so threads, shards and shuffles never show.
#include "loss.h"

#include <algorithm>
#include <limits>

#include "fastmath.h"

namespace cardboost {

namespace {

struct Block {
    double z[kBlock], loss[kBlock], v[kBlock], h[kBlock], d[kBlock];
};

template <LossKind K>
CARDBOOST_INLINE void evaluate(const double* F, const double* target, const double* D, double step,
                               double smallest, int64_t n, Block& out) {
    if (D)
        for (int64_t i = 0; i < n; ++i) out.z[i] = F[i] + step * D[i];
    else
        std::copy(F, F + n, out.z);
    for (int64_t i = 0; i < n; ++i) {
        const double z = out.z[i];
        if constexpr (K == LossKind::squared) {
            const double v = target[i] - z;
            out.loss[i] = 0.5 * v * v;
            out.v[i] = v;
            out.h[i] = 1.0;
        } else if constexpr (K == LossKind::exponential) {
            const double e = exp_poly(smallest - z);
            out.loss[i] = e;
            out.v[i] = e;
            out.h[i] = e;
        } else if constexpr (K == LossKind::squared_hinge) {
            const double short_of = z < 1.0 ? 1.0 - z : 0.0;
            out.loss[i] = short_of * short_of;
            out.v[i] = 2.0 * short_of;
            out.h[i] = z < 1.0 ? 2.0 : 0.0;
        } else if constexpr (K == LossKind::smooth_hinge) {
            const double short_of = z < 1.0 ? 1.0 - z : 0.0;
            const double v = short_of < kCorner ? short_of / kCorner : 1.0;
            out.loss[i] = v * (short_of - 0.5 * kCorner * v);
            out.v[i] = v;
            out.h[i] = short_of > 0.0 ? v / short_of : 0.0;
        } else {
            const double e = exp_poly(z < 0.0 ? z : -z);
            const double inverse = 1.0 / (1.0 + e);
            out.loss[i] = log1p_poly(e) - (z < 0.0 ? z : 0.0);
            out.v[i] = z < 0.0 ? inverse : e * inverse;
            out.h[i] = e * inverse * inverse;
        }
    }
}

template <bool Quick>
CARDBOOST_INLINE int64_t fix(double x) {
    return Quick ? fix_quick(x) : fix_any(x);
}

// sum of count * round(factor * value * scale)
template <bool Quick>
CARDBOOST_INLINE int64_t fixed_sum(const double* value, const int64_t* count, const double* factor,
                                   double scale, int64_t n) {
    int64_t sum = 0;
    if (count && factor)
        for (int64_t i = 0; i < n; ++i) sum += count[i] * fix<Quick>(value[i] * factor[i] * scale);
    else if (count)
        for (int64_t i = 0; i < n; ++i) sum += count[i] * fix<Quick>(value[i] * scale);
    else if (factor)
        for (int64_t i = 0; i < n; ++i) sum += fix<Quick>(value[i] * factor[i] * scale);
    else
        for (int64_t i = 0; i < n; ++i) sum += fix<Quick>(value[i] * scale);
    return sum;
}

CARDBOOST_INLINE int64_t fixed_sum_any(bool quick, const double* value, const int64_t* count,
                                       const double* factor, double scale, int64_t n) {
    return quick ? fixed_sum<true>(value, count, factor, scale, n)
                 : fixed_sum<false>(value, count, factor, scale, n);
}

struct Scales {
    double loss, v, h, slope, bend;
    bool quick_loss, quick_v, quick_h, quick_slope, quick_bend;
};
struct Sums {
    int64_t loss = 0, v = 0, h = 0, slope = 0, bend = 0;
};

template <LossKind K>
CARDBOOST_INLINE void block_pass(const double* F, const double* target, const double* D, double step,
                                 double smallest, int64_t n, const int64_t* count, const double* factor,
                                 const Scales& scale, Block& block, double* v, double* h, Sums& sums) {
    evaluate<K>(F, target, D, step, smallest, n, block);
    sums.loss += fixed_sum_any(scale.quick_loss, block.loss, count, factor, scale.loss, n);
    if constexpr (K == LossKind::squared) {  // the curvature is 1: its sum is known
        for (int64_t i = 0; i < n; ++i) block.d[i] = std::fabs(block.v[i]);
        sums.v += fixed_sum_any(scale.quick_v, block.d, count, factor, scale.v, n);
    } else {
        sums.v += fixed_sum_any(scale.quick_v, block.v, count, factor, scale.v, n);
        sums.h += fixed_sum_any(scale.quick_h, block.h, count, factor, scale.h, n);
    }
    if (v) std::copy(block.v, block.v + n, v);
    if (h) std::copy(block.h, block.h + n, h);
    if (D) {
        for (int64_t i = 0; i < n; ++i) block.d[i] = -block.v[i] * D[i];
        sums.slope += fixed_sum_any(scale.quick_slope, block.d, count, factor, scale.slope, n);
        for (int64_t i = 0; i < n; ++i) block.d[i] = block.h[i] * D[i] * D[i];
        sums.bend += fixed_sum_any(scale.quick_bend, block.d, count, factor, scale.bend, n);
    }
}

CARDBOOST_CLONES
void block_logistic(const double* F, const double* target, const double* D, double step, double smallest,
                    int64_t n, const int64_t* count, const double* factor, const Scales& scale, Block& block,
                    double* v, double* h, Sums& sums) {
    block_pass<LossKind::logistic>(F, target, D, step, smallest, n, count, factor, scale, block, v, h,
                                   sums);
}

CARDBOOST_CLONES
void block_exponential(const double* F, const double* target, const double* D, double step, double smallest,
                       int64_t n, const int64_t* count, const double* factor, const Scales& scale, Block& block,
                       double* v, double* h, Sums& sums) {
    block_pass<LossKind::exponential>(F, target, D, step, smallest, n, count, factor, scale, block, v, h,
                                      sums);
}

CARDBOOST_CLONES
void block_squared(const double* F, const double* target, const double* D, double step, double smallest,
                   int64_t n, const int64_t* count, const double* factor, const Scales& scale, Block& block,
                   double* v, double* h, Sums& sums) {
    block_pass<LossKind::squared>(F, target, D, step, smallest, n, count, factor, scale, block, v, h, sums);
}

CARDBOOST_CLONES
void block_squared_hinge(const double* F, const double* target, const double* D, double step, double smallest,
                         int64_t n, const int64_t* count, const double* factor, const Scales& scale, Block& block,
                         double* v, double* h, Sums& sums) {
    block_pass<LossKind::squared_hinge>(F, target, D, step, smallest, n, count, factor, scale, block, v, h,
                                        sums);
}

CARDBOOST_CLONES
void block_smooth_hinge(const double* F, const double* target, const double* D, double step, double smallest,
                        int64_t n, const int64_t* count, const double* factor, const Scales& scale, Block& block,
                        double* v, double* h, Sums& sums) {
    block_pass<LossKind::smooth_hinge>(F, target, D, step, smallest, n, count, factor, scale, block, v, h,
                                       sums);
}

struct Extremes {
    double smallest = std::numeric_limits<double>::infinity();
    double largest_d = 0.0;
};

// Minima in eight lanes, so that they vectorise; a minimum is the same in every order.
CARDBOOST_CLONES
void block_extremes(const double* F, const double* D, double step, int64_t n, Extremes& out) {
    constexpr int kLanes = 8;
    double low[kLanes], high[kLanes];
    for (int k = 0; k < kLanes; ++k) {
        low[k] = out.smallest;
        high[k] = out.largest_d;
    }
    auto take = [&](int k, int64_t i) {
        const double d = D ? D[i] : 0.0;
        const double z = D ? F[i] + step * d : F[i];
        const double a = std::fabs(d);
        low[k] = z < low[k] ? z : low[k];
        high[k] = a > high[k] ? a : high[k];
    };
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes)
        for (int k = 0; k < kLanes; ++k) take(k, i + k);
    for (; i < n; ++i) take(0, i);
    for (int k = 0; k < kLanes; ++k) {
        out.smallest = std::min(out.smallest, low[k]);
        out.largest_d = std::max(out.largest_d, high[k]);
    }
}

Extremes extremes(const double* F, const double* D, double step, int64_t rows, int threads) {
    Extremes all;
    const int64_t blocks = (rows + kBlock - 1) / kBlock;
#pragma omp parallel num_threads(threads)
    {
        Extremes own;
#pragma omp for schedule(static)
        for (int64_t b = 0; b < blocks; ++b) {
            const int64_t begin = b * kBlock, n = std::min(kBlock, rows - begin);
            block_extremes(F + begin, D ? D + begin : nullptr, step, n, own);
        }
#pragma omp critical
        {
            all.smallest = std::min(all.smallest, own.smallest);
            all.largest_d = std::max(all.largest_d, own.largest_d);
        }
    }
    return all;
}

// A value that is at most `largest` for each row: its scale and whether the quick rounding holds.
void set_scale(double largest, const RowWeights& w, double& scale, bool& quick) {
    scale = fixed_scale(largest * w.total_weight, w.total_count);
    quick = largest * w.largest_factor * scale < kQuickLimit;
}

Sums sum_blocks(LossKind kind, const double* F, const double* target, const double* D, double step,
                double smallest, int64_t rows, const RowWeights& w, const Scales& scale, int threads, double* v,
                double* h) {
    auto pass = kind == LossKind::logistic        ? block_logistic
                : kind == LossKind::exponential   ? block_exponential
                : kind == LossKind::squared_hinge ? block_squared_hinge
                : kind == LossKind::smooth_hinge  ? block_smooth_hinge
                                                  : block_squared;
    Sums all;
    const int64_t blocks = (rows + kBlock - 1) / kBlock;
#pragma omp parallel num_threads(threads)
    {
        Sums own;
        Block block;
#pragma omp for schedule(static)
        for (int64_t b = 0; b < blocks; ++b) {
            const int64_t begin = b * kBlock, n = std::min(kBlock, rows - begin);
            pass(F + begin, target ? target + begin : nullptr, D ? D + begin : nullptr, step, smallest, n,
                 w.count ? w.count + begin : nullptr, w.factor ? w.factor + begin : nullptr, scale, block,
                 v ? v + begin : nullptr, h ? h + begin : nullptr, own);
        }
#pragma omp critical
        {
            all.loss += own.loss;
            all.v += own.v;
            all.h += own.h;
            all.slope += own.slope;
            all.bend += own.bend;
        }
    }
    return all;
}

// -v ln v - (1 - v) ln(1 - v) and what other losses have in its place, at theta * v
template <LossKind K>
CARDBOOST_INLINE void dual_block(const double* F, double theta, double log_theta, int64_t n, double* out) {
    const bool whole = theta == 1.0;
    for (int64_t i = 0; i < n; ++i) {
        const double z = F[i];
        if constexpr (K == LossKind::exponential) {
            const double v = theta * exp_poly(-z);
            out[i] = v > 0.0 ? v - v * (log_theta - z) : 0.0;
        } else if constexpr (K == LossKind::squared_hinge) {
            const double v = z < 1.0 ? 2.0 * theta * (1.0 - z) : 0.0;
            out[i] = v * (1.0 - 0.25 * v);
        } else if constexpr (K == LossKind::smooth_hinge) {
            const double short_of = z < 1.0 ? 1.0 - z : 0.0;
            const double v = theta * (short_of < kCorner ? short_of / kCorner : 1.0);
            out[i] = v * (1.0 - 0.5 * kCorner * v);
        } else {
            const double e = exp_poly(z < 0.0 ? z : -z);
            const double soft = log1p_poly(e);  // ln(1 + e^-|z|)
            const double v = theta * (z < 0.0 ? 1.0 : e) / (1.0 + e);
            const double log_v = log_theta - (soft + (z < 0.0 ? 0.0 : z));
            const double rest = whole ? -(soft - (z < 0.0 ? z : 0.0)) : log_one_minus(v);
            out[i] = -v * log_v - (1.0 - v) * rest;
        }
    }
}

CARDBOOST_CLONES
void dual_logistic(const double* F, double theta, double log_theta, int64_t n, double* out) {
    dual_block<LossKind::logistic>(F, theta, log_theta, n, out);
}

CARDBOOST_CLONES
void dual_exponential(const double* F, double theta, double log_theta, int64_t n, double* out) {
    dual_block<LossKind::exponential>(F, theta, log_theta, n, out);
}

CARDBOOST_CLONES
void dual_squared_hinge(const double* F, double theta, double log_theta, int64_t n, double* out) {
    dual_block<LossKind::squared_hinge>(F, theta, log_theta, n, out);
}

CARDBOOST_CLONES
void dual_smooth_hinge(const double* F, double theta, double log_theta, int64_t n, double* out) {
    dual_block<LossKind::smooth_hinge>(F, theta, log_theta, n, out);
}

// ---- squared loss: residuals have no bound known beforehand, so scales come from the rows

struct Reach {
    double residual = 0.0, d = 0.0, target = 0.0;  // largest sizes
};

CARDBOOST_CLONES
void block_reach(const double* F, const double* target, const double* D, double step, int64_t n, Reach& out) {
    constexpr int kLanes = 8;
    double r[kLanes] = {}, d[kLanes] = {}, t[kLanes] = {};
    auto take = [&](int k, int64_t i) {
        const double own_d = D ? std::fabs(D[i]) : 0.0, own_t = std::fabs(target[i]);
        const double own_r = std::fabs(target[i] - (D ? F[i] + step * D[i] : F[i]));
        r[k] = own_r > r[k] ? own_r : r[k];
        d[k] = own_d > d[k] ? own_d : d[k];
        t[k] = own_t > t[k] ? own_t : t[k];
    };
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes)
        for (int k = 0; k < kLanes; ++k) take(k, i + k);
    for (; i < n; ++i) take(0, i);
    for (int k = 0; k < kLanes; ++k) {
        out.residual = std::max(out.residual, r[k]);
        out.d = std::max(out.d, d[k]);
        out.target = std::max(out.target, t[k]);
    }
}

Reach reach_of(const double* F, const double* target, const double* D, double step, int64_t rows, int threads) {
    Reach all;
    const int64_t blocks = (rows + kBlock - 1) / kBlock;
#pragma omp parallel num_threads(threads)
    {
        Reach own;
#pragma omp for schedule(static)
        for (int64_t b = 0; b < blocks; ++b) {
            const int64_t begin = b * kBlock, n = std::min(kBlock, rows - begin);
            block_reach(F + begin, target + begin, D ? D + begin : nullptr, step, n, own);
        }
#pragma omp critical
        {
            all.residual = std::max(all.residual, own.residual);
            all.d = std::max(all.d, own.d);
            all.target = std::max(all.target, own.target);
        }
    }
    return all;
}

// What is summed over the rows; `dual` may have either sign.
enum class Quantity { loss, size, dual, dual_size };

struct Squared {
    const double *F, *target, *D;
    double step, theta;
};

CARDBOOST_CLONES
int64_t block_quantity(Quantity what, const Squared& at, int64_t begin, int64_t n, const int64_t* count,
                       const double* factor, bool quick, double scale, double* value) {
    const double *F = at.F + begin, *t = at.target + begin, *D = at.D ? at.D + begin : nullptr;
    for (int64_t i = 0; i < n; ++i) value[i] = t[i] - (D ? F[i] + at.step * D[i] : F[i]);
    if (what == Quantity::loss)
        for (int64_t i = 0; i < n; ++i) value[i] = 0.5 * value[i] * value[i];
    if (what == Quantity::dual || what == Quantity::dual_size)
        for (int64_t i = 0; i < n; ++i) {
            const double v = at.theta * value[i];
            value[i] = v * (t[i] - 0.5 * v);
        }
    if (what == Quantity::size || what == Quantity::dual_size)
        for (int64_t i = 0; i < n; ++i) value[i] = std::fabs(value[i]);
    return fixed_sum_any(quick, value, count, factor, scale, n);
}

int64_t sum_quantity(Quantity what, const Squared& at, int64_t rows, const RowWeights& w, int threads,
                     bool quick, double scale) {
    int64_t sum = 0;
    const int64_t blocks = (rows + kBlock - 1) / kBlock;
#pragma omp parallel for schedule(static) num_threads(threads) reduction(+ : sum)
    for (int64_t b = 0; b < blocks; ++b) {
        double value[kBlock];
        const int64_t begin = b * kBlock, n = std::min(kBlock, rows - begin);
        sum += block_quantity(what, at, begin, n, w.count ? w.count + begin : nullptr,
                              w.factor ? w.factor + begin : nullptr, quick, scale, value);
    }
    return sum;
}

// A sum of sizes that is at most `total`, each at most `largest`: its scale and whether the quick rounding holds.
void tight_scale(double total, double largest, const RowWeights& w, double& scale, bool& quick) {
    scale = fixed_scale(total, w.total_count);
    quick = largest * w.largest_factor * scale < kQuickLimit;
}

// Passes that look for the digits of a sum; each finds some 50 bits more.
constexpr int kRounds = 20;

// A close upper bound on a sum of sizes, each at most `largest`. A scale from the largest alone would leave few
// bits for the other rows where there are outliers; a first sum tells what is needed.
double close_bound(Quantity what, const Squared& at, double largest, int64_t rows, const RowWeights& w,
                   int threads) {
    double total = largest * w.total_weight * (1.0 + 1e-9);
    if (!(total > 0.0)) return 0.0;
    const double slack = 0.5 * w.total_count + 1.0;  // half a unit per rounding
    for (int round = 0; round < kRounds; ++round) {
        double scale;
        bool quick;
        tight_scale(total, largest, w, scale, quick);
        const double sum = static_cast<double>(sum_quantity(what, at, rows, w, threads, quick, scale));
        total = std::min(total, (sum + slack) / scale);
        if (sum >= 8.0 * slack) break;
    }
    return total;
}

LossSums squared_pass(const Squared& at, int64_t rows, const RowWeights& w, int threads, double* v, double* h) {
    const Reach reach = reach_of(at.F, at.target, at.D, at.step, rows, threads);
    const double r = reach.residual, d = reach.d, largest = 0.5 * r * r;
    const double loss = close_bound(Quantity::loss, at, largest, rows, w, threads);
    const double size = close_bound(Quantity::size, at, r, rows, w, threads);
    Scales scale{};
    tight_scale(loss, largest, w, scale.loss, scale.quick_loss);
    tight_scale(size, r, w, scale.v, scale.quick_v);
    tight_scale(size * d, r * d, w, scale.slope, scale.quick_slope);
    set_scale(d * d, w, scale.bend, scale.quick_bend);
    const Sums sums =
        sum_blocks(LossKind::squared, at.F, at.target, at.D, at.step, 0.0, rows, w, scale, threads, v, h);
    LossSums out;
    out.shift = 0.0;
    out.loss = static_cast<double>(sums.loss) / scale.loss;
    out.derivative = static_cast<double>(sums.v) / scale.v;
    out.curvature = w.total_weight;
    out.slope = static_cast<double>(sums.slope) / scale.slope;
    out.bend = static_cast<double>(sums.bend) / scale.bend;
    out.largest = r;
    return out;
}

double squared_dual(const Squared& at, int64_t rows, const RowWeights& w, int threads) {
    const Reach reach = reach_of(at.F, at.target, nullptr, 0.0, rows, threads);
    const double v = at.theta * reach.residual, largest = v * (reach.target + 0.5 * v);
    double scale;
    bool quick;
    tight_scale(close_bound(Quantity::dual_size, at, largest, rows, w, threads), largest, w, scale, quick);
    return static_cast<double>(sum_quantity(Quantity::dual, at, rows, w, threads, quick, scale)) / scale;
}

}  // namespace

double fixed_scale(double total, double total_count) {
    if (!(total > 0.0)) return 1.0;
    const double room = (4611686018427387904.0 - 0.5 * total_count) / total;  // 2^62
    return std::ldexp(1.0, std::max(-1000, std::min(1000, std::ilogb(room))));
}

namespace {

// What the rounding of all rows can add to a sum: half a unit each.
double rounding_slack(const RowWeights& w) { return 0.5 * w.total_count + 1.0; }

// A sum below this has too few digits beside that.
double few_bits(const RowWeights& w) {
    return std::max(std::ldexp(1.0, 46), std::ldexp(rounding_slack(w), 34));
}

}  // namespace

LossSums loss_pass(LossKind kind, const double* F, const double* target, const double* D, double step,
                   int64_t rows, const RowWeights& w, int threads, double* v, double* h) {
    threads = worth_threads(threads, 8 * rows);
    if (kind == LossKind::squared) return squared_pass({F, target, D, step, 0.0}, rows, w, threads, v, h);
    const Extremes range = extremes(F, D, step, rows, threads);
    const double smallest = range.smallest;
    double shift = 0.0, largest_loss = 1.0, largest_v = 1.0, largest_h = 1.0;
    if (kind == LossKind::exponential) {
        shift = -smallest;
    } else if (kind == LossKind::logistic) {
        largest_loss = 0.7 + std::max(0.0, -smallest);
        largest_h = 0.25;
    } else if (kind == LossKind::smooth_hinge) {
        largest_loss = std::max(1.0, 1.0 - smallest);
        largest_h = 1.0 / kCorner;
    } else {  // squared hinge
        const double short_of = std::max(0.0, 1.0 - smallest);
        largest_loss = short_of * short_of;
        largest_v = 2.0 * short_of;
        largest_h = 2.0;
    }
    Scales scale{};
    set_scale(largest_loss, w, scale.loss, scale.quick_loss);
    set_scale(largest_v, w, scale.v, scale.quick_v);
    set_scale(largest_h, w, scale.h, scale.quick_h);
    const double d = range.largest_d;
    set_scale(d > 0.0 ? largest_v * d : 1.0, w, scale.slope, scale.quick_slope);
    set_scale(d > 0.0 ? largest_h * d * d : 1.0, w, scale.bend, scale.quick_bend);
    Sums sums = sum_blocks(kind, F, nullptr, D, step, smallest, rows, w, scale, threads, v, h);
    // Where a sum is far below what was allowed for, a further pass spends the idle bits.
    const double slack = rounding_slack(w), small = few_bits(w);
    const bool no_loss = largest_v == 0.0 || (kind == LossKind::smooth_hinge && smallest >= 1.0);
    for (int round = 0; round < kRounds && !no_loss; ++round) {
        const int64_t least = std::min(sums.loss, sums.v);
        if (static_cast<double>(round > 0 ? least : std::min(least, sums.h)) >= small) break;
        auto refine = [&](int64_t sum, double largest, double& at, bool& quick) {
            const double total = (static_cast<double>(sum) + slack) / at;
            at = std::max(at, fixed_scale(total, w.total_count));
            quick = largest * w.largest_factor * at < kQuickLimit;
        };
        refine(sums.loss, largest_loss, scale.loss, scale.quick_loss);
        refine(sums.v, largest_v, scale.v, scale.quick_v);
        refine(sums.h, largest_h, scale.h, scale.quick_h);
        sums = sum_blocks(kind, F, nullptr, D, step, smallest, rows, w, scale, threads, nullptr, nullptr);
    }
    LossSums out;
    out.shift = shift;
    out.loss = static_cast<double>(sums.loss) / scale.loss;
    out.derivative = static_cast<double>(sums.v) / scale.v;
    out.curvature = static_cast<double>(sums.h) / scale.h;
    out.slope = static_cast<double>(sums.slope) / scale.slope;
    out.bend = static_cast<double>(sums.bend) / scale.bend;
    out.largest = largest_v;
    return out;
}

double dual_pass(LossKind kind, const double* F, const double* target, double theta, int64_t rows,
                 const RowWeights& w, int threads) {
    threads = worth_threads(threads, 8 * rows);
    if (kind == LossKind::squared) return squared_dual({F, target, nullptr, 0.0, theta}, rows, w, threads);
    const Extremes range = extremes(F, nullptr, 0.0, rows, threads);
    double largest = 0.7;  // ln 2 for the logistic loss
    if (kind == LossKind::exponential) {
        const double v = theta * std::exp(-range.smallest);
        largest = std::max(1.0, std::fabs(v - v * std::log(v)));
    } else if (kind == LossKind::squared_hinge) {
        const double half = theta * std::max(0.0, 1.0 - range.smallest);
        largest = std::max(1.0, half * (half + 2.0));
    } else if (kind == LossKind::smooth_hinge) {
        largest = 1.0;
    }
    double scale;
    bool quick;
    set_scale(largest, w, scale, quick);
    const double log_theta = theta == 1.0 ? 0.0 : std::log(theta);
    const auto dual = kind == LossKind::logistic       ? dual_logistic
                      : kind == LossKind::exponential  ? dual_exponential
                      : kind == LossKind::smooth_hinge ? dual_smooth_hinge
                                                       : dual_squared_hinge;
    auto total = [&](bool sizes) {
        int64_t sum = 0;
        const int64_t blocks = (rows + kBlock - 1) / kBlock;
#pragma omp parallel for schedule(static) num_threads(threads) reduction(+ : sum)
        for (int64_t b = 0; b < blocks; ++b) {
            double value[kBlock];
            const int64_t begin = b * kBlock, n = std::min(kBlock, rows - begin);
            dual(F + begin, theta, log_theta, n, value);
            if (sizes)
                for (int64_t i = 0; i < n; ++i) value[i] = std::fabs(value[i]);
            sum += fixed_sum_any(quick, value, w.count ? w.count + begin : nullptr,
                                 w.factor ? w.factor + begin : nullptr, scale, n);
        }
        return static_cast<double>(sum);
    };
    double sum = total(false);
    for (int round = 0; round < kRounds && std::fabs(sum) < few_bits(w); ++round) {
        const double closer = fixed_scale((total(true) + rounding_slack(w)) / scale, w.total_count);
        if (closer <= scale) break;
        scale = closer;
        quick = largest * w.largest_factor * scale < kQuickLimit;
        sum = total(false);
    }
    return sum / scale;
}

namespace {

template <bool Quick>
CARDBOOST_INLINE void quantise_rows(const double* value, const int8_t* sign, const RowWeights& w, double scale,
                                    Range r, int width, int64_t* q) {
    for (int64_t i = r.begin; i < r.end; ++i) {
        double x = value[i];
        if (w.factor) x *= w.factor[i];
        int64_t k = fix<Quick>(x * scale);
        if (w.count) k *= w.count[i];
        q[i * width] = sign && sign[i] < 0 ? -k : k;
    }
}

CARDBOOST_CLONES
void quantise_range(bool quick, const double* value, const int8_t* sign, const RowWeights& w, double scale,
                    Range r, int width, int64_t* q) {
    if (quick)
        quantise_rows<true>(value, sign, w, scale, r, width, q);
    else
        quantise_rows<false>(value, sign, w, scale, r, width, q);
}

}  // namespace

void quantise(const double* value, const int8_t* sign, int64_t rows, const RowWeights& w, double scale,
              double largest_value, int width, int threads, int64_t* q) {
    threads = worth_threads(threads, rows);
    const bool quick = largest_value * w.largest_factor * scale < kQuickLimit;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int t = 0; t < threads; ++t)
        quantise_range(quick, value, sign, w, scale, split(rows, t, threads), width, q);
}

}  // namespace cardboost
