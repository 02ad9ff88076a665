// Loss, derivative and curvature of every row in one blocked pass, with sums over rows in fixed point:
// integers add up to the same total in every order, so threads, shards and shuffles never show.
#include "loss.h"

#include "door.h"
#include "fastmath.h"

namespace cardboost {

namespace {

// Some rows of a pass: the margins F + step D, the target of the squared loss, and row weights. All but F may be null.
struct Rows {
    const double *F, *target, *D;
    double step;
    double smallest;  // margin of all rows: the exponential loss is relative to it
    const int64_t* count;
    const double* factor;

    Rows from(int64_t begin) const {
        auto shifted = [begin](auto p) { return p ? p + begin : nullptr; };
        return {F + begin, shifted(target), shifted(D), step, smallest, shifted(count), shifted(factor)};
    }
};

struct Block {
    double z[kBlock], loss[kBlock], v[kBlock], h[kBlock], d[kBlock];
};

template <LossKind K>
CARDBOOST_INLINE void evaluate(const Rows& rows, int64_t n, Block& out) {
    const double *F = rows.F, *D = rows.D, *target = rows.target, step = rows.step, smallest = rows.smallest;
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

// The scale of a fixed-point sum, and whether the quick rounding holds for all of its terms.
struct Scale {
    double value = 1.0;
    bool quick = false;

    // Of a sum of sizes that is at most `total`, each at most `largest`.
    static Scale of(double total, double largest, const RowWeights& w) {
        return of_value(fixed_scale(total, w.total_count), largest, w);
    }
    // Where a value is at most `largest` for each row.
    static Scale of(double largest, const RowWeights& w) { return of(largest * w.total_weight, largest, w); }
    static Scale of_value(double value, double largest, const RowWeights& w) {
        return {value, largest * w.largest_factor * value < kQuickLimit};
    }
};

CARDBOOST_INLINE int64_t fixed_sum_any(const Scale& scale, const double* value, const Rows& rows, int64_t n) {
    return scale.quick ? fixed_sum<true>(value, rows.count, rows.factor, scale.value, n)
                       : fixed_sum<false>(value, rows.count, rows.factor, scale.value, n);
}

struct Scales {
    Scale loss, v, h, slope, bend;
};
struct Sums {
    int64_t loss = 0, v = 0, h = 0, slope = 0, bend = 0;
    void merge(const Sums& other) {
        loss += other.loss;
        v += other.v;
        h += other.h;
        slope += other.slope;
        bend += other.bend;
    }
    LossSums in_units(const Scales& scale, double shift, double largest) const {
        auto real = [](int64_t sum, const Scale& unit) { return static_cast<double>(sum) / unit.value; };
        return {shift, real(loss, scale.loss), real(v, scale.v), real(h, scale.h), real(slope, scale.slope),
                real(bend, scale.bend), largest};
    }
};

template <LossKind K>
CARDBOOST_INLINE void block_pass(const Rows& rows, int64_t n, const Scales& scale, Block& block, double* v, double* h,
                                 Sums& sums) {
    evaluate<K>(rows, n, block);
    sums.loss += fixed_sum_any(scale.loss, block.loss, rows, n);
    if constexpr (K == LossKind::squared) {  // the curvature is 1: its sum is that of the weights
        for (int64_t i = 0; i < n; ++i) block.d[i] = std::fabs(block.v[i]);
        sums.v += fixed_sum_any(scale.v, block.d, rows, n);
    } else {
        sums.v += fixed_sum_any(scale.v, block.v, rows, n);
        sums.h += fixed_sum_any(scale.h, block.h, rows, n);
    }
    if (v) std::copy(block.v, block.v + n, v);
    if (h) std::copy(block.h, block.h + n, h);
    if (const double* D = rows.D) {
        for (int64_t i = 0; i < n; ++i) block.d[i] = -block.v[i] * D[i];
        sums.slope += fixed_sum_any(scale.slope, block.d, rows, n);
        for (int64_t i = 0; i < n; ++i) block.d[i] = block.h[i] * D[i] * D[i];
        sums.bend += fixed_sum_any(scale.bend, block.d, rows, n);
    }
}

CARDBOOST_CLONES
void block_pass_any(LossKind kind, const Rows& rows, int64_t n, const Scales& scale, Block& block, double* v,
                    double* h, Sums& sums) {
    switch (kind) {
        case LossKind::exponential: return block_pass<LossKind::exponential>(rows, n, scale, block, v, h, sums);
        case LossKind::logistic: return block_pass<LossKind::logistic>(rows, n, scale, block, v, h, sums);
        case LossKind::squared: return block_pass<LossKind::squared>(rows, n, scale, block, v, h, sums);
        case LossKind::squared_hinge: return block_pass<LossKind::squared_hinge>(rows, n, scale, block, v, h, sums);
        case LossKind::smooth_hinge: return block_pass<LossKind::smooth_hinge>(rows, n, scale, block, v, h, sums);
    }
}

Sums sum_blocks(LossKind kind, const Rows& all, int64_t rows, const Scales& scale, int threads, double* v,
                double* h) {
    return reduce_blocks<Sums>(rows, threads, [&](int64_t begin, int64_t n, Sums& part) {
        Block block;
        block_pass_any(kind, all.from(begin), n, scale, block, v ? v + begin : nullptr, h ? h + begin : nullptr, part);
    });
}

struct Extremes {
    double smallest = std::numeric_limits<double>::infinity();
    double largest_d = 0.0;
    void merge(const Extremes& other) {
        smallest = std::min(smallest, other.smallest);
        largest_d = std::max(largest_d, other.largest_d);
    }
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
    return reduce_blocks<Extremes>(rows, threads, [=](int64_t begin, int64_t n, Extremes& part) {
        block_extremes(F + begin, D ? D + begin : nullptr, step, n, part);
    });
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
void dual_block_any(LossKind kind, const double* F, double theta, double log_theta, int64_t n, double* out) {
    if (kind == LossKind::exponential)
        dual_block<LossKind::exponential>(F, theta, log_theta, n, out);
    else if (kind == LossKind::squared_hinge)
        dual_block<LossKind::squared_hinge>(F, theta, log_theta, n, out);
    else if (kind == LossKind::smooth_hinge)
        dual_block<LossKind::smooth_hinge>(F, theta, log_theta, n, out);
    else
        dual_block<LossKind::logistic>(F, theta, log_theta, n, out);
}

// ---- squared loss: residuals have no bound beforehand, so scales come from the rows

struct Reach {
    double residual = 0.0, d = 0.0, target = 0.0;  // largest sizes
    void merge(const Reach& other) {
        residual = std::max(residual, other.residual);
        d = std::max(d, other.d);
        target = std::max(target, other.target);
    }
};

CARDBOOST_CLONES
void block_reach(const double* F, const double* target, const double* D, double step, int64_t n, Reach& out) {
    constexpr int kLanes = 8;
    double r[kLanes] = {}, d[kLanes] = {}, t[kLanes] = {};
    auto take = [&](int k, int64_t i) {
        const double size_d = D ? std::fabs(D[i]) : 0.0, size_target = std::fabs(target[i]);
        const double size_r = std::fabs(target[i] - (D ? F[i] + step * D[i] : F[i]));
        r[k] = size_r > r[k] ? size_r : r[k];
        d[k] = size_d > d[k] ? size_d : d[k];
        t[k] = size_target > t[k] ? size_target : t[k];
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

Reach reach_of(const Rows& all, int64_t rows, int threads) {
    return reduce_blocks<Reach>(rows, threads, [&](int64_t begin, int64_t n, Reach& part) {
        const Rows block = all.from(begin);
        block_reach(block.F, block.target, block.D, block.step, n, part);
    });
}

// What is summed over the rows; `dual` may have either sign.
enum class Quantity { loss, size, dual, dual_size };

CARDBOOST_CLONES
int64_t block_quantity(Quantity what, const Rows& rows, double theta, int64_t n, const Scale& scale, double* value) {
    const double *F = rows.F, *t = rows.target, *D = rows.D, step = rows.step;
    for (int64_t i = 0; i < n; ++i) value[i] = t[i] - (D ? F[i] + step * D[i] : F[i]);
    if (what == Quantity::loss)
        for (int64_t i = 0; i < n; ++i) value[i] = 0.5 * value[i] * value[i];
    if (what == Quantity::dual || what == Quantity::dual_size)
        for (int64_t i = 0; i < n; ++i) {
            const double v = theta * value[i];
            value[i] = v * (t[i] - 0.5 * v);
        }
    if (what == Quantity::size || what == Quantity::dual_size)
        for (int64_t i = 0; i < n; ++i) value[i] = std::fabs(value[i]);
    return fixed_sum_any(scale, value, rows, n);
}

double sum_quantity(Quantity what, const Rows& all, double theta, int64_t rows, int threads, const Scale& scale) {
    auto sum_block = [&](int64_t begin, int64_t n, FixedSum& part) {
        double value[kBlock];
        part.value += block_quantity(what, all.from(begin), theta, n, scale, value);
    };
    return static_cast<double>(reduce_blocks<FixedSum>(rows, threads, sum_block).value);
}

// Passes that look for the digits of a sum; each finds some 50 bits more.
constexpr int kRounds = 20;

// What the rounding of all rows can add to a sum: half a unit each.
double rounding_slack(const RowWeights& w) { return 0.5 * w.total_count + 1.0; }

// A close upper bound on a sum of sizes, each at most `largest`. A scale from the largest alone would leave few
// bits for the other rows where there are outliers; a first sum tells what is needed.
double close_bound(Quantity what, const Rows& all, double theta, double largest, int64_t rows, const RowWeights& w,
                   int threads) {
    double total = largest * w.total_weight * (1.0 + 1e-9);
    if (!(total > 0.0)) return 0.0;
    const double slack = rounding_slack(w);
    for (int round = 0; round < kRounds; ++round) {
        const Scale scale = Scale::of(total, largest, w);
        const double sum = sum_quantity(what, all, theta, rows, threads, scale);
        total = std::min(total, (sum + slack) / scale.value);
        if (sum >= 8.0 * slack) break;
    }
    return total;
}

LossSums squared_pass(const Rows& all, int64_t rows, const RowWeights& w, int threads, double* v, double* h) {
    const Reach reach = reach_of(all, rows, threads);
    const double r = reach.residual, d = reach.d, largest = 0.5 * r * r;
    const double loss = close_bound(Quantity::loss, all, 1.0, largest, rows, w, threads);
    const double size = close_bound(Quantity::size, all, 1.0, r, rows, w, threads);
    const Scales scale{Scale::of(loss, largest, w), Scale::of(size, r, w), {}, Scale::of(size * d, r * d, w),
                       Scale::of(d * d, w)};
    LossSums out = sum_blocks(LossKind::squared, all, rows, scale, threads, v, h).in_units(scale, 0.0, r);
    out.curvature = w.total_weight;
    return out;
}

double squared_dual(const Rows& all, double theta, int64_t rows, const RowWeights& w, int threads) {
    const Reach reach = reach_of(all, rows, threads);
    const double v = theta * reach.residual, largest = v * (reach.target + 0.5 * v);
    const double total = close_bound(Quantity::dual_size, all, theta, largest, rows, w, threads);
    const Scale scale = Scale::of(total, largest, w);
    return sum_quantity(Quantity::dual, all, theta, rows, threads, scale) / scale.value;
}

// A sum below this has too few digits beside what rounding adds.
double few_bits(const RowWeights& w) {
    return std::max(std::ldexp(1.0, 46), std::ldexp(rounding_slack(w), 34));
}

}  // namespace

double fixed_scale(double total, double total_count) {
    if (!(total > 0.0)) return 1.0;
    const double room = (4611686018427387904.0 - 0.5 * total_count) / total;  // 2^62
    return std::ldexp(1.0, std::max(-1000, std::min(1000, std::ilogb(room))));
}

LossSums loss_pass(LossKind kind, const double* F, const double* target, const double* D, double step,
                   int64_t rows, const RowWeights& w, int threads, double* v, double* h) {
    threads = worth_threads(threads, 8, rows);
    Rows all{F, target, D, step, 0.0, w.count, w.factor};
    if (kind == LossKind::squared) return squared_pass(all, rows, w, threads, v, h);
    const Extremes range = extremes(F, D, step, rows, threads);
    const double smallest = all.smallest = range.smallest;
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
    const double d = range.largest_d;
    Scales scale{Scale::of(largest_loss, w), Scale::of(largest_v, w), Scale::of(largest_h, w),
                 Scale::of(d > 0.0 ? largest_v * d : 1.0, w), Scale::of(d > 0.0 ? largest_h * d * d : 1.0, w)};
    Sums sums = sum_blocks(kind, all, rows, scale, threads, v, h);
    // Where a sum is far below what was allowed for, a further pass spends the idle bits.
    const double slack = rounding_slack(w), small = few_bits(w);
    const bool no_loss = largest_v == 0.0 || (kind == LossKind::smooth_hinge && smallest >= 1.0);
    for (int round = 0; round < kRounds && !no_loss; ++round) {
        const int64_t least = std::min(sums.loss, sums.v);
        if (static_cast<double>(round > 0 ? least : std::min(least, sums.h)) >= small) break;
        auto refine = [&](int64_t sum, double largest, Scale& unit) {
            const double total = (static_cast<double>(sum) + slack) / unit.value;
            unit = Scale::of_value(std::max(unit.value, fixed_scale(total, w.total_count)), largest, w);
        };
        refine(sums.loss, largest_loss, scale.loss);
        refine(sums.v, largest_v, scale.v);
        refine(sums.h, largest_h, scale.h);
        sums = sum_blocks(kind, all, rows, scale, threads, nullptr, nullptr);
    }
    return sums.in_units(scale, shift, largest_v);
}

double dual_pass(LossKind kind, const double* F, const double* target, double theta, int64_t rows,
                 const RowWeights& w, int threads) {
    threads = worth_threads(threads, 8, rows);
    const Rows all{F, target, nullptr, 0.0, 0.0, w.count, w.factor};
    if (kind == LossKind::squared) return squared_dual(all, theta, rows, w, threads);
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
    Scale scale = Scale::of(largest, w);
    const double log_theta = theta == 1.0 ? 0.0 : std::log(theta);
    auto total = [&](bool sizes) {
        auto sum_block = [&](int64_t begin, int64_t n, FixedSum& part) {
            double value[kBlock];
            dual_block_any(kind, F + begin, theta, log_theta, n, value);
            if (sizes)
                for (int64_t i = 0; i < n; ++i) value[i] = std::fabs(value[i]);
            part.value += fixed_sum_any(scale, value, all.from(begin), n);
        };
        return static_cast<double>(reduce_blocks<FixedSum>(rows, threads, sum_block).value);
    };
    double sum = total(false);
    for (int round = 0; round < kRounds && std::fabs(sum) < few_bits(w); ++round) {
        const double closer = fixed_scale((total(true) + rounding_slack(w)) / scale.value, w.total_count);
        if (closer <= scale.value) break;
        scale = Scale::of_value(closer, largest, w);
        sum = total(false);
    }
    return sum / scale.value;
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
    const bool quick = Scale::of_value(scale, largest_value, w).quick;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int t = 0; t < threads; ++t)
        quantise_range(quick, value, sign, w, scale, split(rows, t, threads), width, q);
}

namespace {

// The squared loss has a target for every row, the others have none.
void require_target(LossKind kind, const Maybe<double, 1>& target, size_t rows) {
    require(target.has_value() == (kind == LossKind::squared), "a target belongs to the squared loss, and only to it");
    require(have_length(rows, target), "targets and margins differ in length");
}

auto py_loss_pass(int loss, In<double, 1> F, Maybe<double, 1> target, Maybe<double, 1> D, double step,
                  Maybe<int64_t, 1> count, Maybe<double, 1> factor, TotalsTuple totals,
                  std::optional<InOut<double, 2>> rows_out, int threads) {
    const size_t rows = F.shape(0);
    const LossKind kind = loss_kind(loss);
    const RowWeights w = row_weights(count, factor, totals, rows);
    require_target(kind, target, rows);
    require(have_length(rows, D), "margins and direction differ in length");
    require(has_shape(rows_out, {2, rows}), "rows_out must have shape (2, rows)");
    double* v = data_or_null(rows_out);
    const LossSums sums = unlocked([&] {
        return loss_pass(kind, F.data(), data_or_null(target), data_or_null(D), step, static_cast<int64_t>(rows), w,
                         threads, v, v ? v + rows : nullptr);
    });
    return std::make_tuple(sums.shift, sums.loss, sums.derivative, sums.curvature, sums.slope, sums.bend,
                           sums.largest);
}

double py_dual_pass(int loss, In<double, 1> F, Maybe<double, 1> target, double theta, Maybe<int64_t, 1> count,
                    Maybe<double, 1> factor, TotalsTuple totals, int threads) {
    const size_t rows = F.shape(0);
    const LossKind kind = loss_kind(loss);
    const RowWeights w = row_weights(count, factor, totals, rows);
    require_target(kind, target, rows);
    require(theta > 0.0 && theta <= 1.0, "theta must be in (0, 1]");
    return unlocked([&] {
        return dual_pass(kind, F.data(), data_or_null(target), theta, static_cast<int64_t>(rows), w, threads);
    });
}

Out<int64_t> py_quantise(In<double, 2> values, Maybe<int8_t, 1> sign, Maybe<int64_t, 1> count,
                         Maybe<double, 1> factor, double largest_factor, In<double, 1> scales,
                         In<double, 1> largest, In<uint8_t, 1> use_sign, int threads) {
    const size_t width = values.shape(0), rows = values.shape(1);
    require(have_length(width, scales, largest, use_sign), "quantise: one scale per lane");
    require(have_length(rows, sign), "signs and values differ in length");
    const RowWeights w = row_weights(count, factor, {0.0, 0.0, largest_factor}, rows);
    auto out = make<int64_t>({rows, width});
    unlocked([&] {
        for (size_t c = 0; rows > 0 && c < width; ++c)
            quantise(values.data() + c * rows, use_sign.data()[c] ? data_or_null(sign) : nullptr,
                     static_cast<int64_t>(rows), w, scales.data()[c], largest.data()[c], as_int(width), threads,
                     out.data() + c);
    });
    return out;
}

}  // namespace

void bind_loss(nb::module_& m) {
    m.def("loss_pass", &py_loss_pass, "loss"_a, "F"_a, "target"_a.none(), "D"_a.none(), "step"_a, "count"_a.none(),
          "factor"_a.none(), "totals"_a, "rows_out"_a.none().noconvert(), "threads"_a);
    m.def("dual_pass", &py_dual_pass, "loss"_a, "F"_a, "target"_a.none(), "theta"_a, "count"_a.none(),
          "factor"_a.none(), "totals"_a, "threads"_a);
    m.def("quantise", &py_quantise, "values"_a, "sign"_a.none(), "count"_a.none(), "factor"_a.none(),
          "largest_factor"_a, "scales"_a, "largest"_a, "use_sign"_a, "threads"_a);
    m.def("fixed_scale", &fixed_scale, "total"_a, "total_count"_a);
}

}  // namespace cardboost
