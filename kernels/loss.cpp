// Loss, derivative and curvature of every row in one blocked pass, with sums over rows in fixed point:
// integers add up to the same total in every order, so threads, shards and shuffles never show.
#include "loss.h"

#include <nanobind/stl/array.h>
#include <nanobind/stl/function.h>

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

// The scale of a fixed-point sum, and whether the quick rounding holds for all of its terms. Scale 0: the sum is not
// wanted.
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

constexpr Scale kNotWanted{0.0, false};

CARDBOOST_INLINE int64_t fixed_sum_any(const Scale& scale, const double* value, const Rows& rows, int64_t n) {
    if (scale.value == 0.0) return 0;
    return scale.quick ? fixed_sum<true>(value, rows.count, rows.factor, scale.value, n)
                       : fixed_sum<false>(value, rows.count, rows.factor, scale.value, n);
}

struct Scales {
    Scale loss = kNotWanted, v = kNotWanted, h = kNotWanted, slope = kNotWanted, bend = kNotWanted;
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
        auto real = [](int64_t sum, const Scale& unit) {
            return unit.value == 0.0 ? 0.0 : static_cast<double>(sum) / unit.value;
        };
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

struct Extremes {
    double smallest = std::numeric_limits<double>::infinity();          // margin
    double largest_d = 0.0, largest_residual = 0.0, largest_target = 0.0;  // sizes; the last two of the squared loss
    void merge(const Extremes& other) {
        smallest = std::min(smallest, other.smallest);
        largest_d = std::max(largest_d, other.largest_d);
        largest_residual = std::max(largest_residual, other.largest_residual);
        largest_target = std::max(largest_target, other.largest_target);
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

// The same for the squared loss, whose residuals have no bound beforehand.
CARDBOOST_CLONES
void block_sizes(const double* F, const double* target, const double* D, double step, int64_t n, Extremes& out) {
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
        out.largest_residual = std::max(out.largest_residual, r[k]);
        out.largest_d = std::max(out.largest_d, d[k]);
        out.largest_target = std::max(out.largest_target, t[k]);
    }
}

// -v ln v - (1 - v) ln(1 - v) and what other losses have in its place, at theta * v
template <LossKind K>
CARDBOOST_INLINE void dual_block(const Rows& rows, double theta, double log_theta, int64_t n, double* out) {
    const bool whole = theta == 1.0;
    for (int64_t i = 0; i < n; ++i) {
        const double z = rows.F[i];
        if constexpr (K == LossKind::squared) {
            const double v = theta * (rows.target[i] - z);
            out[i] = v * (rows.target[i] - 0.5 * v);
        } else if constexpr (K == LossKind::exponential) {
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
void dual_block_any(LossKind kind, const Rows& rows, double theta, double log_theta, int64_t n, double* out) {
    switch (kind) {
        case LossKind::exponential: return dual_block<LossKind::exponential>(rows, theta, log_theta, n, out);
        case LossKind::logistic: return dual_block<LossKind::logistic>(rows, theta, log_theta, n, out);
        case LossKind::squared: return dual_block<LossKind::squared>(rows, theta, log_theta, n, out);
        case LossKind::squared_hinge: return dual_block<LossKind::squared_hinge>(rows, theta, log_theta, n, out);
        case LossKind::smooth_hinge: return dual_block<LossKind::smooth_hinge>(rows, theta, log_theta, n, out);
    }
}

// A look at all rows, of one of three kinds. What is made of them (below) is the same for rows in memory and in parts.
struct InMemory {
    LossKind kind;
    Rows all;
    int64_t rows;
    int threads;
    double *v = nullptr, *h = nullptr;  // of every row, where they are wanted

    Extremes extremes() const {
        return reduce_blocks<Extremes>(rows, threads, [&](int64_t begin, int64_t n, Extremes& part) {
            const Rows block = all.from(begin);
            if (kind == LossKind::squared)
                block_sizes(block.F, block.target, block.D, block.step, n, part);
            else
                block_extremes(block.F, block.D, block.step, n, part);
        });
    }

    // `smallest`: margin of all rows, also of other parts
    Sums sums(const Scales& scale, double smallest, bool store) const {
        Rows shifted = all;
        shifted.smallest = smallest;
        const bool with_v = store && v, with_h = store && h;
        return reduce_blocks<Sums>(rows, threads, [&](int64_t begin, int64_t n, Sums& part) {
            Block block;
            block_pass_any(kind, shifted.from(begin), n, scale, block, with_v ? v + begin : nullptr,
                           with_h ? h + begin : nullptr, part);
        });
    }

    // `sizes`: of absolute values
    int64_t dual(double theta, const Scale& scale, bool sizes) const {
        const double log_theta = theta == 1.0 ? 0.0 : std::log(theta);
        auto sum_block = [&](int64_t begin, int64_t n, FixedSum& part) {
            double value[kBlock];
            const Rows block = all.from(begin);
            dual_block_any(kind, block, theta, log_theta, n, value);
            if (sizes)
                for (int64_t i = 0; i < n; ++i) value[i] = std::fabs(value[i]);
            part.value += fixed_sum_any(scale, value, block, n);
        };
        return reduce_blocks<FixedSum>(rows, threads, sum_block).value;
    }
};

// Passes that look for the digits of a sum; each finds some 50 bits more.
constexpr int kRounds = 20;

// What the rounding of all rows can add to a sum: half a unit each.
double rounding_slack(const RowWeights& w) { return 0.5 * w.total_count + 1.0; }

// A close upper bound on a sum of sizes, each at most `largest`; sum_at(scale) is that sum in units. A scale from the
// largest alone would leave few bits for the other rows where there are outliers; a first sum tells what is needed.
class CloseBound {
  public:
    CloseBound(double largest, const RowWeights& w)
        : total_(largest * w.total_weight * (1.0 + 1e-9)), largest_(largest), w_(w), done_(!(total_ > 0.0)) {}

    bool done() const { return done_; }
    double value() const { return total_ > 0.0 ? total_ : 0.0; }
    // The scale of the next sum, which is not wanted when all is known.
    Scale scale() const { return done_ ? kNotWanted : Scale::of(total_, largest_, w_); }
    void take(int64_t units) {
        if (done_) return;
        const double sum = static_cast<double>(units), slack = rounding_slack(w_);
        total_ = std::min(total_, (sum + slack) / scale().value);
        done_ = sum >= 8.0 * slack || ++rounds_ == kRounds;
    }

  private:
    double total_, largest_;
    const RowWeights& w_;
    bool done_;
    int rounds_ = 0;
};

template <class SumAt>
double close_bound(const SumAt& sum_at, double largest, const RowWeights& w) {
    CloseBound bound(largest, w);
    while (!bound.done()) bound.take(sum_at(bound.scale()));
    return bound.value();
}

// Residuals have no bound beforehand, so scales come from the rows.
template <class Pass>
LossSums squared_sums(const Pass& pass, const RowWeights& w) {
    const Extremes extremes = pass.extremes();
    const double r = extremes.largest_residual, d = extremes.largest_d, largest = 0.5 * r * r;
    CloseBound loss(largest, w), size(r, w);
    while (!(loss.done() && size.done())) {
        Scales both;
        both.loss = loss.scale();
        both.v = size.scale();
        const Sums sums = pass.sums(both, 0.0, false);
        loss.take(sums.loss);
        size.take(sums.v);
    }
    const Scales scale{Scale::of(loss.value(), largest, w), Scale::of(size.value(), r, w), kNotWanted,
                       Scale::of(size.value() * d, r * d, w), Scale::of(d * d, w)};
    LossSums out = pass.sums(scale, 0.0, true).in_units(scale, 0.0, r);
    out.curvature = w.total_weight;
    return out;
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

namespace {

template <class Pass>
LossSums loss_sums(LossKind kind, const Pass& pass, const RowWeights& w) {
    if (kind == LossKind::squared) return squared_sums(pass, w);
    const Extremes extremes = pass.extremes();
    const double smallest = extremes.smallest;
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
    const double d = extremes.largest_d;
    Scales scale{Scale::of(largest_loss, w), Scale::of(largest_v, w), Scale::of(largest_h, w),
                 Scale::of(d > 0.0 ? largest_v * d : 1.0, w), Scale::of(d > 0.0 ? largest_h * d * d : 1.0, w)};
    Sums sums = pass.sums(scale, smallest, true);
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
        sums = pass.sums(scale, smallest, false);
    }
    return sums.in_units(scale, shift, largest_v);
}

template <class Pass>
double dual_sum(LossKind kind, const Pass& pass, double theta, const RowWeights& w) {
    const Extremes extremes = pass.extremes();
    auto sizes_at = [&](const Scale& scale) { return pass.dual(theta, scale, true); };
    auto sum_at = [&](const Scale& scale) { return static_cast<double>(pass.dual(theta, scale, false)); };
    double largest = 0.7;  // ln 2 for the logistic loss
    if (kind == LossKind::squared) {
        const double v = theta * extremes.largest_residual;
        largest = v * (extremes.largest_target + 0.5 * v);
        const Scale scale = Scale::of(close_bound(sizes_at, largest, w), largest, w);
        return sum_at(scale) / scale.value;
    }
    if (kind == LossKind::exponential) {
        const double v = theta * std::exp(-extremes.smallest);
        largest = std::max(1.0, std::fabs(v - v * std::log(v)));
    } else if (kind == LossKind::squared_hinge) {
        const double half = theta * std::max(0.0, 1.0 - extremes.smallest);
        largest = std::max(1.0, half * (half + 2.0));
    } else if (kind == LossKind::smooth_hinge) {
        largest = 1.0;
    }
    Scale scale = Scale::of(largest, w);
    double sum = sum_at(scale);
    for (int round = 0; round < kRounds && std::fabs(sum) < few_bits(w); ++round) {
        const double sizes = static_cast<double>(sizes_at(scale));
        const double closer = fixed_scale((sizes + rounding_slack(w)) / scale.value, w.total_count);
        if (closer <= scale.value) break;
        scale = Scale::of_value(closer, largest, w);
        sum = sum_at(scale);
    }
    return sum / scale.value;
}

}  // namespace

LossSums loss_pass(LossKind kind, const double* F, const double* target, const double* D, double step,
                   int64_t rows, const RowWeights& w, int threads, double* v, double* h) {
    const Rows all{F, target, D, step, 0.0, w.count, w.factor};
    return loss_sums(kind, InMemory{kind, all, rows, worth_threads(threads, 8, rows), v, h}, w);
}

double dual_pass(LossKind kind, const double* F, const double* target, double theta, int64_t rows,
                 const RowWeights& w, int threads) {
    const Rows all{F, target, nullptr, 0.0, 0.0, w.count, w.factor};
    return dual_sum(kind, InMemory{kind, all, rows, worth_threads(threads, 8, rows)}, theta, w);
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

// Sums of a pass, with their scales, as Python has them: in the order loss, v, h, slope, bend.
using ScaleTuple = std::tuple<double, bool>;
using ScaleTuples = std::array<ScaleTuple, 5>;

Scale scale_of(const ScaleTuple& scale) {
    const double value = std::get<0>(scale);
    require(value >= 0.0 && std::isfinite(value), "a scale must be finite and not negative");
    return {value, std::get<1>(scale)};
}
ScaleTuple tuple_of(const Scale& scale) { return {scale.value, scale.quick}; }

// Rows in parts, wherever they are: functions of Python that put together the results of the kernels for a part.
struct InParts {
    std::function<std::array<double, 4>()> extremes_of;
    std::function<std::array<int64_t, 5>(ScaleTuples, double, bool)> sums_of;
    std::function<int64_t(ScaleTuple, bool)> dual_of;

    Extremes extremes() const {
        const auto [negative, d, residual, target] = extremes_of();
        return {-negative, d, residual, target};
    }
    Sums sums(const Scales& scale, double smallest, bool store) const {
        const ScaleTuples scales{tuple_of(scale.loss), tuple_of(scale.v), tuple_of(scale.h), tuple_of(scale.slope),
                                 tuple_of(scale.bend)};
        const auto [loss, v, h, slope, bend] = sums_of(scales, smallest, store);
        return {loss, v, h, slope, bend};
    }
    int64_t dual(double, const Scale& scale, bool sizes) const { return dual_of(tuple_of(scale), sizes); }
};

auto as_tuple(const LossSums& sums) {
    return std::make_tuple(sums.shift, sums.loss, sums.derivative, sums.curvature, sums.slope, sums.bend, sums.largest);
}

// The rows of one call, checked.
InMemory rows_in_memory(int loss, const In<double, 1>& F, const Maybe<double, 1>& target, const Maybe<double, 1>& D,
                        double step, const Maybe<int64_t, 1>& count, const Maybe<double, 1>& factor, int threads) {
    const size_t rows = F.shape(0);
    const LossKind kind = loss_kind(loss);
    require_target(kind, target, rows);
    require(have_length(rows, D), "margins and direction differ in length");
    const RowWeights w = row_weights(count, factor, {0.0, 0.0, 1.0}, rows);
    const Rows all{F.data(), data_or_null(target), data_or_null(D), step, 0.0, w.count, w.factor};
    return {kind, all, static_cast<int64_t>(rows), worth_threads(threads, 8, rows)};
}

void store_rows(std::optional<InOut<double, 2>>& rows_out, InMemory& pass) {
    const size_t rows = static_cast<size_t>(pass.rows);
    require(has_shape(rows_out, {2, rows}), "rows_out must have shape (2, rows)");
    pass.v = data_or_null(rows_out);
    pass.h = pass.v ? pass.v + rows : nullptr;
}

auto py_loss_pass(int loss, In<double, 1> F, Maybe<double, 1> target, Maybe<double, 1> D, double step,
                  Maybe<int64_t, 1> count, Maybe<double, 1> factor, TotalsTuple totals,
                  std::optional<InOut<double, 2>> rows_out, int threads) {
    InMemory pass = rows_in_memory(loss, F, target, D, step, count, factor, threads);
    store_rows(rows_out, pass);
    const RowWeights w = row_weights(count, factor, totals, F.shape(0));
    return as_tuple(unlocked([&] { return loss_sums(pass.kind, pass, w); }));
}

double py_dual_pass(int loss, In<double, 1> F, Maybe<double, 1> target, double theta, Maybe<int64_t, 1> count,
                    Maybe<double, 1> factor, TotalsTuple totals, int threads) {
    const InMemory pass = rows_in_memory(loss, F, target, {}, 0.0, count, factor, threads);
    require(theta > 0.0 && theta <= 1.0, "theta must be in (0, 1]");
    const RowWeights w = row_weights(count, factor, totals, F.shape(0));
    return unlocked([&] { return dual_sum(pass.kind, pass, theta, w); });
}

// The sizes of part of the rows: what is smallest is negated, so that all are maxima.
auto py_loss_extremes(int loss, In<double, 1> F, Maybe<double, 1> target, Maybe<double, 1> D, double step,
                      int threads) {
    const InMemory pass = rows_in_memory(loss, F, target, D, step, {}, {}, threads);
    const Extremes part = unlocked([&] { return pass.extremes(); });
    return std::make_tuple(-part.smallest, part.largest_d, part.largest_residual, part.largest_target);
}

auto py_loss_sums(int loss, In<double, 1> F, Maybe<double, 1> target, Maybe<double, 1> D, double step,
                  Maybe<int64_t, 1> count, Maybe<double, 1> factor, ScaleTuples scales, double smallest,
                  std::optional<InOut<double, 2>> rows_out, int threads) {
    InMemory pass = rows_in_memory(loss, F, target, D, step, count, factor, threads);
    store_rows(rows_out, pass);
    const Scales scale{scale_of(scales[0]), scale_of(scales[1]), scale_of(scales[2]), scale_of(scales[3]),
                       scale_of(scales[4])};
    const Sums sums = unlocked([&] { return pass.sums(scale, smallest, true); });
    return std::make_tuple(sums.loss, sums.v, sums.h, sums.slope, sums.bend);
}

int64_t py_dual_sum(int loss, In<double, 1> F, Maybe<double, 1> target, double theta, Maybe<int64_t, 1> count,
                    Maybe<double, 1> factor, ScaleTuple scale, bool sizes, int threads) {
    const InMemory pass = rows_in_memory(loss, F, target, {}, 0.0, count, factor, threads);
    require(theta > 0.0 && theta <= 1.0, "theta must be in (0, 1]");
    const Scale unit = scale_of(scale);
    return unlocked([&] { return pass.dual(theta, unit, sizes); });
}

RowWeights totals_of(const TotalsTuple& totals) { return row_weights({}, {}, totals, 0); }

auto py_loss_pass_in_parts(int loss, TotalsTuple totals, decltype(InParts::extremes_of) extremes,
                           decltype(InParts::sums_of) sums) {
    return as_tuple(loss_sums(loss_kind(loss), InParts{extremes, sums, {}}, totals_of(totals)));
}

double py_dual_pass_in_parts(int loss, double theta, TotalsTuple totals, decltype(InParts::extremes_of) extremes,
                             decltype(InParts::dual_of) dual) {
    require(theta > 0.0 && theta <= 1.0, "theta must be in (0, 1]");
    return dual_sum(loss_kind(loss), InParts{extremes, {}, dual}, theta, totals_of(totals));
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
    m.def("loss_extremes", &py_loss_extremes, "loss"_a, "F"_a, "target"_a.none(), "D"_a.none(), "step"_a, "threads"_a);
    m.def("loss_sums", &py_loss_sums, "loss"_a, "F"_a, "target"_a.none(), "D"_a.none(), "step"_a, "count"_a.none(),
          "factor"_a.none(), "scales"_a, "smallest"_a, "rows_out"_a.none().noconvert(), "threads"_a);
    m.def("dual_sum", &py_dual_sum, "loss"_a, "F"_a, "target"_a.none(), "theta"_a, "count"_a.none(),
          "factor"_a.none(), "scale"_a, "sizes"_a, "threads"_a);
    m.def("loss_pass_in_parts", &py_loss_pass_in_parts, "loss"_a, "totals"_a, "extremes"_a, "sums"_a);
    m.def("dual_pass_in_parts", &py_dual_pass_in_parts, "loss"_a, "theta"_a, "totals"_a, "extremes"_a, "dual"_a);
    m.def("quantise", &py_quantise, "values"_a, "sign"_a.none(), "count"_a.none(), "factor"_a.none(),
          "largest_factor"_a, "scales"_a, "largest"_a, "use_sign"_a, "threads"_a);
    m.def("fixed_scale", &fixed_scale, "total"_a, "total_count"_a);
}

}  // namespace cardboost
