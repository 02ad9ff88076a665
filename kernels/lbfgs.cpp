// Quasi-Newton steps on all weights at once. Weights at a bound that their gradient holds there are left out of
// a step, and the pairs of steps and gradient changes are cut down to the others (two-metric projection); the
// step is then projected onto the box. Sums over rows are fixed point, all others in a fixed order.
#include <array>
#include <chrono>
#include <memory>

#include "dense.h"
#include "door.h"
#include "signs.h"

namespace cardboost {

namespace {

constexpr double kArmijo = 1e-4;
constexpr double kFirstStep = 0.1;
constexpr int kHalvings = 40;
// Changes of the objective below this share of it are rounding; steps that only make such changes may still
// sharpen the bound, so some are allowed.
constexpr double kRounding = 4e-16;
constexpr int kFlatSteps = 5;

// -loss' of every row relative to `factor`, its weighted sum, and what it exceeds in no row.
struct RowDerivative {
    const double* v;
    double factor, sum, largest;
};

// A matrix by what it does: F = A x, and the edges A' u for the row weights u of a derivative.
class Products {
public:
    virtual ~Products() = default;
    virtual void margins(const double* x, double* F) = 0;
    virtual void edges(const RowDerivative& rows, double* out) = 0;
};

// Prices and the limit of a weight on one side of zero. l2 > 0, or a limit of 0 and l2 = 0 where the side is closed.
struct Side {
    const double *l1, *l2, *limit;
};

// minimise  mean loss(A z) + sum of l1 |z| + l2 z^2 / 2  over  -limit <= z <= limit,  prices and limits by the side
// of z: a column and its opposite, each with a weight of at least 0, are one z.
struct BoxProblem {
    Products& A;
    LossKind kind;
    RowWeights weights;
    Side plus, minus;
    int n;
    int64_t rows;
    int threads;
};

// What one call hands to the next. The pairs are two rings of `capacity` vectors of n entries.
struct BoxState {
    double *z, *F, *edges;    // weights, margins and edges there
    double *steps, *changes;  // the last steps and the changes of the gradient
    double *objective, *gained;  // and the share of the objective that the last step took off
    int64_t *started;  // whether the start has been looked at
    int64_t *next, *held, *flat;  // index of the next pair, number of pairs, steps that gained nothing
    int capacity;
};

// Of every point: objective, largest edge of the open sides, number of weights that are not 0, seconds since the call.
constexpr int kRecord = 4;

enum class BoxEnd : int {
    limit,     // `most` points are recorded
    look,      // the duality gap seems to be within `tolerance` of the objective, or a step gained nothing
    precision  // no step lowers the objective any more; nothing was recorded for it
};

// Integer row weights with the scale that fits their sum; returns what a unit of a sum of them is worth.
double fix_rows(const RowDerivative& derivative, int64_t rows, const RowWeights& w, int threads, int64_t* q) {
    const double scale = fixed_scale(derivative.sum * (1.0 + 1e-9), w.total_count);
    quantise(derivative.v, nullptr, rows, w, scale, derivative.largest, 1, threads, q);
    return derivative.factor / scale / w.total_weight;
}

// Signs as group_signs leaves them: words of 64 rows for each of n columns, and of 64 columns for each row.
class SignProducts : public Products {
public:
    SignProducts(const uint64_t* by_column, const uint64_t* by_row, int n, int64_t rows, const RowWeights& w)
        : by_column_(by_column), by_row_(by_row), n_(n), rows_(rows), w_(w), sums_(n), q_(rows) {}

    void margins(const double* x, double* F) override { sign_sums(by_row_, rows_, n_, x, F); }

    void edges(const RowDerivative& rows, double* out) override {
        const double unit = fix_rows(rows, rows_, w_, 1, q_.data());
        sign_sums(by_column_, n_, rows_, q_.data(), sums_.data());
        for (int j = 0; j < n_; ++j) out[j] = static_cast<double>(sums_[j]) * unit;
    }

private:
    const uint64_t *by_column_, *by_row_;
    int n_;
    int64_t rows_;
    RowWeights w_;
    std::vector<int64_t> sums_, q_;
};

// Columns as dense.h has them, one after the other: int8 (`signs`: no zeros), or double and at most `largest`.
class DenseProducts : public Products {
public:
    DenseProducts(const int8_t* a8, const double* a64, bool signs, double largest, int n, int64_t rows,
                  const RowWeights& w, int threads)
        : a8_(a8), a64_(a64), signs_(signs), largest_(largest), rows_(rows), w_(w), threads_(threads), all_(n),
          sums_(n), used_(n), weights_(n), q_(a8 ? rows : 0), value_(a8 ? 0 : rows) {
        for (int j = 0; j < n; ++j) all_[j] = j;
    }

    void margins(const double* x, double* F) override {
        int used = 0;
        for (const int32_t j : all_)
            if (x[j] != 0.0) {
                used_[used] = j;
                weights_[used++] = x[j];
            }
        dense_margins(a8_, a64_, rows_, used_.data(), used, weights_.data(), threads_, F);
    }

    void edges(const RowDerivative& rows, double* out) override {
        const int n = static_cast<int>(all_.size());
        double unit;
        if (a8_) {
            unit = fix_rows(rows, rows_, w_, threads_, q_.data());
            dense_edges(a8_, signs_, rows_, all_.data(), n, q_.data(), threads_, sums_.data());
        } else {  // products are rounded, so the scale leaves room for the entries
            double largest = 0.0;
            for (int64_t i = 0; i < rows_; ++i) {
                value_[i] = w_.factor ? rows.v[i] * w_.factor[i] : rows.v[i];
                largest = std::max(largest, std::fabs(value_[i]));
            }
            const double scale = fixed_scale(rows.sum * std::max(largest_, 1e-300) * (1.0 + 1e-9), w_.total_count);
            dense_edges_real(a64_, rows_, all_.data(), n, value_.data(), w_.count, scale,
                             scale * largest_ * largest < kQuickLimit, threads_, sums_.data());
            unit = rows.factor / scale / w_.total_weight;
        }
        for (int j = 0; j < n; ++j) out[j] = static_cast<double>(sums_[j]) * unit;
    }

private:
    const int8_t* a8_;
    const double* a64_;
    bool signs_;
    double largest_;
    int64_t rows_;
    RowWeights w_;
    int threads_;
    std::vector<int32_t> all_;
    std::vector<int64_t> sums_;
    std::vector<int32_t> used_;
    std::vector<double> weights_;
    std::vector<int64_t> q_;
    std::vector<double> value_;
};

// y += factor mask x
CARDBOOST_CLONES
void add_masked(int n, double factor, const double* x, const double* mask, double* y) {
    for (int j = 0; j < n; ++j) y[j] += factor * mask[j] * x[j];
}

// Sums in four lanes and a fixed order: quick, and the same in every build. `take` gets the next four entries of every
// vector, 0 beyond their ends.
template <int K, class Take, class... Vectors>
CARDBOOST_INLINE void sum_lanes(int n, double* out, const Take& take, const Vectors*... vectors) {
    Vector<double, 4> sum[K] = {};
    int j = 0;
    for (; j + 4 <= n; j += 4) take(sum, load<4>(vectors + j)...);
    auto rest = [&](const double* x) {
        std::array<double, 4> padded{};
        std::copy(x + j, x + n, padded.data());
        return padded;
    };
    if (j < n) take(sum, load<4>(rest(vectors).data())...);
    for (int i = 0; i < K; ++i) out[i] = add_lanes(sum[i]);
}

CARDBOOST_CLONES
double inner(int n, const double* x, const double* y) {
    double out;
    sum_lanes<1>(n, &out, [](auto* sum, const auto& a, const auto& b) { sum[0] += a * b; }, x, y);
    return out;
}

// s'y, s's and y'y where the mask is 1, and s'r
CARDBOOST_CLONES
void pair_sums(int n, const double* s, const double* y, const double* r, const double* mask, double* out) {
    auto take = [](auto* sum, const auto& a, const auto& b, const auto& c, const auto& m) {
        sum[0] += a * m * b;
        sum[1] += a * m * a;
        sum[2] += b * m * b;
        sum[3] += a * c;
    };
    sum_lanes<4>(n, out, take, s, y, r, mask);
}

// The slope of the objective where a weight may go, 0 where it is held; `up` tells on which side of zero it is.
// Where the weight is 0 at most one of the two directions can lower the objective, as no l1 is negative.
CARDBOOST_CLONES
void slopes(const BoxProblem& problem, const double* z, const double* edges, double* CARDBOOST_RESTRICT slope,
            double* CARDBOOST_RESTRICT up) {
    const Side plus = problem.plus, minus = problem.minus;
    for (int j = 0; j < problem.n; ++j) {
        const double rise = plus.l1[j] + plus.l2[j] * z[j] - edges[j];
        const double fall = minus.l1[j] - minus.l2[j] * z[j] + edges[j];
        const double most = plus.limit[j], least = minus.limit[j], size = std::fabs(z[j]);
        const double side = z[j] == 0.0 ? fall - rise : z[j];
        const double outward = side > 0.0 ? rise : fall, limit = side > 0.0 ? most : least;
        const double room = outward < 0.0 ? limit - size : size;
        up[j] = side > 0.0 ? 1.0 : -1.0;
        slope[j] = room > 0.0 ? up[j] * outward : 0.0;
    }
}

// -H slope, H the inverse of the remembered pairs on the weights that may move; without pairs a short step.
class Direction {
public:
    Direction(int n, int capacity)
        : gathered_(new double[checked_size(n / kFew, 2, capacity)]), free_(n), r_(n), mask_(n),
          curvature_(capacity), alpha_(capacity) {}

    void find(int n, const BoxState& state, const double* slope, double* d) {
        const int pairs = static_cast<int>(*state.held);
        int f = 0;
        for (int j = 0; j < n; ++j) {
            free_[f] = j;
            f += slope[j] != 0.0;
        }
        // few weights that move are gathered; otherwise the others are masked
        const bool few = f <= n / kFew;
        const int size = few ? f : n;
        double *r = few ? r_.data() : d, *mask = mask_.data(), scale = 0.0;
        for (int j = 0; j < size; ++j) {
            r[j] = -slope[few ? free_[j] : j];
            mask[j] = r[j] != 0.0;
        }
        auto pair = [&](int p) { return (*state.next + state.capacity - 1 - p) % state.capacity * n; };
        auto step = [&](int p) {
            return few ? gathered_.get() + static_cast<int64_t>(2) * f * p : state.steps + pair(p);
        };
        auto change = [&](int p) { return few ? step(p) + f : state.changes + pair(p); };
        for (int p = 0; p < pairs; ++p) {  // newest first
            const double *s = step(p), *y = change(p);
            if (few)
                for (int j = 0; j < f; ++j) {
                    step(p)[j] = state.steps[pair(p) + free_[j]];
                    change(p)[j] = state.changes[pair(p) + free_[j]];
                }
            double sums[4];
            pair_sums(size, s, y, r, mask, sums);
            const double sy = sums[0], ss = sums[1], yy = sums[2];
            curvature_[p] = sy > 1e-12 * std::sqrt(ss * yy) ? sy : 0.0;
            if (curvature_[p] == 0.0) continue;
            if (scale == 0.0) scale = sy / yy;
            alpha_[p] = sums[3] / sy;
            add_masked(size, -alpha_[p], y, mask, r);
        }
        if (pairs == 0) {
            double largest = 1e-300;
            for (int j = 0; j < size; ++j) largest = std::max(largest, std::fabs(r[j]));
            scale = kFirstStep / largest;
        }
        if (scale > 0.0)
            for (int j = 0; j < size; ++j) r[j] *= scale;
        for (int p = pairs - 1; p >= 0; --p)
            if (curvature_[p] != 0.0)
                add_masked(size, alpha_[p] - inner(size, change(p), r) / curvature_[p], step(p), mask, r);
        if (!few) return;
        std::fill(d, d + n, 0.0);
        for (int j = 0; j < f; ++j) d[free_[j]] = r[j];
    }

private:
    static constexpr int kFew = 4;
    std::unique_ptr<double[]> gathered_;
    std::vector<int> free_;
    std::vector<double> r_, mask_, curvature_, alpha_;
};

// trial = z + step d, brought back to its side of zero and its limit; `cost` is what it costs
CARDBOOST_CLONES
void project(const BoxProblem& problem, const double* z, const double* d, double step, const double* up,
             double* CARDBOOST_RESTRICT trial, double* CARDBOOST_RESTRICT cost) {
    const Side plus = problem.plus, minus = problem.minus;
    for (int j = 0; j < problem.n; ++j) {
        const double limits[2] = {plus.limit[j], minus.limit[j]}, l1s[2] = {plus.l1[j], minus.l1[j]};
        const double l2s[2] = {plus.l2[j], minus.l2[j]};
        const double limit = up[j] > 0.0 ? limits[0] : limits[1];
        const double l1 = up[j] > 0.0 ? l1s[0] : l1s[1], l2 = up[j] > 0.0 ? l2s[0] : l2s[1];
        double size = up[j] * (z[j] + step * d[j]);
        size = size > 0.0 ? size : 0.0;
        size = size < limit ? size : limit;
        trial[j] = up[j] * size;
        cost[j] = (l1 + 0.5 * l2 * size) * size;
    }
}

// sum of the costs, and through `fall` slope' (trial - z)
CARDBOOST_CLONES
double price_and_fall(int n, const double* cost, const double* slope, const double* trial, const double* z,
                      double* fall) {
    double out[2];
    auto take = [](auto* sum, const auto& a, const auto& b, const auto& c, const auto& e) {
        sum[0] += a;
        sum[1] += b * (c - e);
    };
    sum_lanes<2>(n, out, take, cost, slope, trial, z);
    *fall = out[1];
    return out[0];
}

// The most that all columns together can gain at their edges.
double gain(const BoxProblem& problem, const double* edges) {
    double sum = 0.0;
    for (const bool above : {true, false}) {
        const Side& side = above ? problem.plus : problem.minus;
        for (int j = 0; j < problem.n; ++j) {
            const double excess = (above ? edges[j] : -edges[j]) - side.l1[j];
            if (!(excess > 0.0 && side.limit[j] > 0.0)) continue;
            const double size = std::min(excess / side.l2[j], side.limit[j]);
            sum += excess * size - 0.5 * side.l2[j] * size * size;
        }
    }
    return sum;
}

CARDBOOST_CLONES
double largest_edge(const BoxProblem& problem, const double* edges) {
    constexpr int kLanes = 8;
    const double none = -std::numeric_limits<double>::infinity();
    const double *plus = problem.plus.l2, *minus = problem.minus.l2;
    double largest[kLanes];
    std::fill(largest, largest + kLanes, none);
    auto take = [&](int j, int k) {
        const double e = edges[j], a = plus[j] > 0.0 ? e : none, b = minus[j] > 0.0 ? -e : none;
        const double larger = a > b ? a : b;
        largest[k] = larger > largest[k] ? larger : largest[k];
    };
    int j = 0;
    for (; j + kLanes <= problem.n; j += kLanes)
        for (int k = 0; k < kLanes; ++k) take(j + k, k);
    for (; j < problem.n; ++j) take(j, 0);
    return *std::max_element(largest, largest + kLanes);
}

// the step to a trial, and what the slope changes by
CARDBOOST_CLONES
void new_pair(const BoxProblem& problem, const double* z, const double* trial, const double* edges,
              const double* next_edges, double* CARDBOOST_RESTRICT moved, double* CARDBOOST_RESTRICT change) {
    const double *plus = problem.plus.l2, *minus = problem.minus.l2;
    for (int j = 0; j < problem.n; ++j) {
        const double above = plus[j], below = minus[j];
        const double after = (trial[j] > 0.0 ? above : below) * trial[j];
        const double before = (z[j] > 0.0 ? above : below) * z[j];
        moved[j] = trial[j] - z[j];
        change[j] = (after - before) - (next_edges[j] - edges[j]);
    }
}

// Steps until one of these ends; the first point of a new state is its start. Returns the number of points.
int lbfgs_steps(const BoxProblem& problem, const BoxState& state, double tolerance, int most, double* records,
                BoxEnd* end) {
    const auto begin = std::chrono::steady_clock::now();
    const int n = problem.n;
    const RowWeights& w = problem.weights;
    std::vector<double> slope(n), up(n), d(n), trial(n), cost(n), edges(n);
    std::vector<double> F(problem.rows), v(problem.rows), h(problem.rows);
    Direction direction(n, state.capacity);
    RowDerivative rows{v.data(), 1.0, 0.0, 1.0};
    auto risk = [&](const double* z, double* margins) {
        problem.A.margins(z, margins);
        const LossSums sums = loss_pass(problem.kind, margins, nullptr, nullptr, 0.0, problem.rows, w,
                                        problem.threads, v.data(), h.data());
        rows.factor = std::exp(std::min(sums.shift, 700.0));
        rows.sum = sums.derivative;
        rows.largest = sums.largest;
        return sums.loss * rows.factor / w.total_weight;
    };
    double fall;
    for (int point = 0; point < most; ++point) {
        const bool start = !*state.started;
        if (start) {
            for (int j = 0; j < n; ++j) up[j] = state.z[j] > 0.0 ? 1.0 : -1.0;
            project(problem, state.z, d.data(), 0.0, up.data(), trial.data(), cost.data());
            std::copy(trial.begin(), trial.end(), state.z);
            const double price = price_and_fall(n, cost.data(), d.data(), state.z, state.z, &fall);
            *state.objective = risk(state.z, state.F) + price;
            *state.gained = std::numeric_limits<double>::infinity();
            *state.started = 1;
            problem.A.edges(rows, state.edges);
        } else {
            slopes(problem, state.z, state.edges, slope.data(), up.data());
            const double objective = *state.objective;
            double value;
            for (;;) {
                direction.find(n, state, slope.data(), d.data());
                const double room = *state.flat < kFlatSteps ? kRounding * std::fabs(objective) : 0.0;
                double step = 1.0;
                for (int k = 0; k < kHalvings; ++k, step *= 0.5) {
                    project(problem, state.z, d.data(), step, up.data(), trial.data(), cost.data());
                    const double price = price_and_fall(n, cost.data(), slope.data(), trial.data(), state.z, &fall);
                    value = risk(trial.data(), F.data()) + price;
                    if (value <= objective + kArmijo * fall + room) break;
                }
                *state.flat = value >= objective ? *state.flat + 1 : 0;
                const bool better = value <= objective + room && !std::equal(state.z, state.z + n, trial.begin());
                if (better && *state.flat <= kFlatSteps) break;
                if (better || *state.held == 0) {
                    *end = BoxEnd::precision;
                    return point;
                }
                *state.held = 0;
            }
            problem.A.edges(rows, edges.data());
            new_pair(problem, state.z, trial.data(), state.edges, edges.data(), state.steps + *state.next * n,
                     state.changes + *state.next * n);
            *state.next = (*state.next + 1) % state.capacity;
            *state.held = std::min<int64_t>(*state.held + 1, state.capacity);
            *state.gained = objective != 0.0 ? (objective - value) / std::fabs(objective) : 0.0;
            *state.objective = value;
            std::copy(trial.begin(), trial.end(), state.z);
            std::copy(edges.begin(), edges.end(), state.edges);
            std::copy(F.begin(), F.end(), state.F);
        }
        double* record = records + static_cast<int64_t>(point) * kRecord;
        record[0] = *state.objective;
        record[1] = largest_edge(problem, state.edges);
        record[2] = static_cast<double>(n - std::count(state.z, state.z + n, 0.0));
        record[3] = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        // the gap is far larger than the gain of a step: a bound cannot help before this
        bool look = *state.gained <= kRounding;
        if (!look && (start || *state.gained <= tolerance)) {
            const double dual = dual_pass(problem.kind, state.F, nullptr, 1.0, problem.rows, w, problem.threads);
            const double bound = std::max(0.0, dual / w.total_weight - gain(problem, state.edges));
            look = *state.objective - bound <= tolerance * std::fabs(*state.objective);
        }
        if (look) {
            *end = BoxEnd::look;
            return point + 1;
        }
    }
    *end = BoxEnd::limit;
    return most;
}

// What the bindings for both kinds of matrices are called with: prices and limits of the two sides of zero, and the
// state.
struct BoxArrays {
    In<double, 2> l1, l2, limit;
    InOut<double, 1> z, F, edges;
    InOut<double, 3> pairs;
    InOut<double, 1> numbers;
    InOut<int64_t, 1> counts;
};

auto run_lbfgs(Products& A, int loss, const RowWeights& w, const BoxArrays& in, double tolerance, int most,
               int threads) {
    const size_t n = in.z.shape(0), capacity = in.pairs.shape(1);
    const LossKind kind = loss_kind(loss);
    require(kind != LossKind::squared, "lbfgs: the loss must be one of the margin");
    for (const auto& side : {in.l1, in.l2, in.limit})
        require(has_shape(side, {2, n}), "lbfgs: prices and limits must have shape (2, columns)");
    require(have_length(n, in.edges), "lbfgs: edges and weights differ in length");
    require(capacity >= 1 && has_shape(in.pairs, {2, capacity, n}), "lbfgs: pairs of another size");
    require(have_length(2, in.numbers) && have_length(4, in.counts), "lbfgs: a state of another size");
    int64_t* counts = in.counts.data();
    const auto [next, held] = std::make_pair(counts[1], counts[2]);
    require(next >= 0 && next < as_int(capacity) && held >= 0 && held <= as_int(capacity),
            "lbfgs: more pairs than there is room for");
    require(most >= 1 && most <= 1000000, "lbfgs: between 1 and 1000000 points");
    for (size_t k = 0; k < 2 * n; ++k)
        require(in.l1.data()[k] >= 0.0 && in.limit.data()[k] >= 0.0 &&
                    (in.l2.data()[k] > 0.0 || in.limit.data()[k] == 0.0),
                "lbfgs: l1 and limits must be at least 0, and l2 above 0 on every side that is open");
    auto side = [&](size_t k) { return Side{in.l1.data() + k * n, in.l2.data() + k * n, in.limit.data() + k * n}; };
    const BoxProblem problem{A, kind, w, side(0), side(1), as_int(n), static_cast<int64_t>(in.F.shape(0)), threads};
    const BoxState state{in.z.data(), in.F.data(), in.edges.data(), in.pairs.data(), in.pairs.data() + capacity * n,
                         in.numbers.data(), in.numbers.data() + 1, counts, counts + 1, counts + 2, counts + 3,
                         as_int(capacity)};
    auto records = make<double>({static_cast<size_t>(most), static_cast<size_t>(kRecord)});
    BoxEnd end;
    const int points = unlocked([&] { return lbfgs_steps(problem, state, tolerance, most, records.data(), &end); });
    return std::make_tuple(static_cast<int>(end), points, records);
}

auto py_lbfgs_signs(In<uint64_t, 2> by_column, In<uint64_t, 2> by_row, int loss, Maybe<int64_t, 1> count,
                    Maybe<double, 1> factor, TotalsTuple totals, In<double, 2> l1, In<double, 2> l2,
                    In<double, 2> limit, InOut<double, 1> z, InOut<double, 1> F, InOut<double, 1> edges,
                    InOut<double, 3> pairs, InOut<double, 1> numbers, InOut<int64_t, 1> counts, double tolerance,
                    int most, int threads) {
    const size_t rows = F.shape(0), n = z.shape(0);
    require(has_shape(by_column, {(rows + 63) / 64, n}) && has_shape(by_row, {(n + 63) / 64, rows}),
            "lbfgs_signs: packed signs of another size");
    const RowWeights w = row_weights(count, factor, totals, rows);
    SignProducts A(by_column.data(), by_row.data(), as_int(n), static_cast<int64_t>(rows), w);
    return run_lbfgs(A, loss, w, {l1, l2, limit, z, F, edges, pairs, numbers, counts}, tolerance, most, threads);
}

auto py_lbfgs_dense(AnyMatrix a, bool signs, double largest, int loss, Maybe<int64_t, 1> count,
                    Maybe<double, 1> factor, TotalsTuple totals, In<double, 2> l1, In<double, 2> l2,
                    In<double, 2> limit, InOut<double, 1> z, InOut<double, 1> F, InOut<double, 1> edges,
                    InOut<double, 3> pairs, InOut<double, 1> numbers, InOut<int64_t, 1> counts, double tolerance,
                    int most, int threads) {
    const DenseArray entries = dense_array(a);
    const size_t rows = F.shape(0), n = z.shape(0);
    require(has_shape(a, {n, rows}), "lbfgs_dense: a matrix of another size");
    const RowWeights w = row_weights(count, factor, totals, rows);
    DenseProducts A(entries.small, entries.real, signs, largest, as_int(n), static_cast<int64_t>(rows), w, threads);
    return run_lbfgs(A, loss, w, {l1, l2, limit, z, F, edges, pairs, numbers, counts}, tolerance, most, threads);
}

}  // namespace

void bind_lbfgs(nb::module_& m) {
    m.def("lbfgs_signs", &py_lbfgs_signs, "by_column"_a, "by_row"_a, "loss"_a, "count"_a.none(), "factor"_a.none(),
          "totals"_a, "l1"_a, "l2"_a, "limit"_a, "z"_a.noconvert(), "F"_a.noconvert(), "edges"_a.noconvert(),
          "pairs"_a.noconvert(), "numbers"_a.noconvert(), "counts"_a.noconvert(), "tolerance"_a, "most"_a,
          "threads"_a);
    m.def("lbfgs_dense", &py_lbfgs_dense, "a"_a, "signs"_a, "largest"_a, "loss"_a, "count"_a.none(), "factor"_a.none(),
          "totals"_a, "l1"_a, "l2"_a, "limit"_a, "z"_a.noconvert(), "F"_a.noconvert(), "edges"_a.noconvert(),
          "pairs"_a.noconvert(), "numbers"_a.noconvert(), "counts"_a.noconvert(), "tolerance"_a, "most"_a,
          "threads"_a);
}

}  // namespace cardboost
