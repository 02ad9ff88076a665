// Quasi-Newton steps on all weights at once. Weights at a bound that their gradient holds there are left out of
// a step, and the pairs of steps and gradient changes are cut down to the others (two-metric projection); the
// step is then projected onto the box. Sums over rows are fixed point, all others in a fixed order.
#include "lbfgs.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <vector>

#include "dense.h"
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

// Integer row weights with the scale that fits their sum; returns what a unit of a sum of them is worth.
double fix_rows(const RowDerivative& at, int64_t rows, const RowWeights& w, int threads, int64_t* q) {
    const double scale = fixed_scale(at.sum * (1.0 + 1e-9), w.total_count);
    quantise(at.v, nullptr, rows, w, scale, at.largest, 1, threads, q);
    return at.factor / scale / w.total_weight;
}

class SignProducts : public Products {
   public:
    SignProducts(const uint64_t* by_column, const uint64_t* by_row, int n, int64_t rows, const RowWeights& w)
        : by_column_(by_column), by_row_(by_row), n_(n), rows_(rows), w_(w), sums_(n), q_(rows) {}

    void margins(const double* x, double* F) override { sign_sums(by_row_, rows_, n_, x, F); }

    void edges(const RowDerivative& at, double* out) override {
        const double unit = fix_rows(at, rows_, w_, 1, q_.data());
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

    void edges(const RowDerivative& at, double* out) override {
        const int n = static_cast<int>(all_.size());
        double unit;
        if (a8_) {
            unit = fix_rows(at, rows_, w_, threads_, q_.data());
            dense_edges(a8_, signs_, rows_, all_.data(), n, q_.data(), threads_, sums_.data());
        } else {  // products are rounded, so the scale leaves room for the entries
            double largest = 0.0;
            for (int64_t i = 0; i < rows_; ++i) {
                value_[i] = w_.factor ? at.v[i] * w_.factor[i] : at.v[i];
                largest = std::max(largest, std::fabs(value_[i]));
            }
            const double scale = fixed_scale(at.sum * std::max(largest_, 1e-300) * (1.0 + 1e-9), w_.total_count);
            dense_edges_real(a64_, rows_, all_.data(), n, value_.data(), w_.count, scale,
                             scale * largest_ * largest < kQuickLimit, threads_, sums_.data());
            unit = at.factor / scale / w_.total_weight;
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

// Sums in four lanes and a fixed order: quick, and the same in every build.
template <int K, class Take>
CARDBOOST_INLINE void sum_lanes(int n, double* out, Take take) {
    Four<double> sum[K] = {};
    int j = 0;
    for (; j + 4 <= n; j += 4) take(j, 4 * sizeof(double), sum);
    if (j < n) take(j, (n - j) * sizeof(double), sum);
    for (int i = 0; i < K; ++i) out[i] = (sum[i][0] + sum[i][1]) + (sum[i][2] + sum[i][3]);
}

CARDBOOST_CLONES
double inner(int n, const double* x, const double* y) {
    double out;
    sum_lanes<1>(n, &out, [&](int j, size_t size, Four<double>* sum) {
        Four<double> a{}, b{};
        std::memcpy(&a, x + j, size);
        std::memcpy(&b, y + j, size);
        sum[0] += a * b;
    });
    return out;
}

// s'y, s's and y'y where the mask is 1, and s'r
CARDBOOST_CLONES
void pair_sums(int n, const double* s, const double* y, const double* r, const double* mask, double* out) {
    sum_lanes<4>(n, out, [&](int j, size_t size, Four<double>* sum) {
        Four<double> a{}, b{}, c{}, m{};
        std::memcpy(&a, s + j, size);
        std::memcpy(&b, y + j, size);
        std::memcpy(&c, r + j, size);
        std::memcpy(&m, mask + j, size);
        sum[0] += a * m * b;
        sum[1] += a * m * a;
        sum[2] += b * m * b;
        sum[3] += a * c;
    });
}

// The slope of the objective where a weight may go, 0 where it is held; `up` tells on which side of zero it is.
// Where the weight is 0 at most one of the two directions can lower the objective, as no l1 is negative.
CARDBOOST_CLONES
void slopes(const BoxProblem& problem, const double* z, const double* edges, double* __restrict slope,
            double* __restrict up) {
    const Side plus = problem.plus, minus = problem.minus;
    for (int j = 0; j < problem.n; ++j) {
        const double rise = plus.l1[j] + plus.l2[j] * z[j] - edges[j];
        const double fall = minus.l1[j] - minus.l2[j] * z[j] + edges[j];
        const double most = plus.limit[j], least = minus.limit[j], size = std::fabs(z[j]);
        const double side = z[j] == 0.0 ? fall - rise : z[j];
        const double own = side > 0.0 ? rise : fall, limit = side > 0.0 ? most : least;
        const double room = own < 0.0 ? limit - size : size;
        up[j] = side > 0.0 ? 1.0 : -1.0;
        slope[j] = room > 0.0 ? up[j] * own : 0.0;
    }
}

// -H slope, H the inverse of the remembered pairs on the weights that may move; without pairs a short step.
class Direction {
   public:
    Direction(int n, int capacity)
        : gathered_(new double[static_cast<size_t>(n / kFew) * 2 * capacity]), free_(n), r_(n), mask_(n),
          curvature_(capacity), alpha_(capacity) {}

    void find(int n, const BoxState& at, const double* slope, double* d) {
        const int pairs = static_cast<int>(*at.held);
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
        auto line = [&](int p) { return (*at.next + at.capacity - 1 - p) % at.capacity * n; };
        auto step = [&](int p) {
            return few ? gathered_.get() + static_cast<int64_t>(2) * f * p : at.steps + line(p);
        };
        auto change = [&](int p) { return few ? step(p) + f : at.changes + line(p); };
        for (int p = 0; p < pairs; ++p) {  // newest first
            const double *s = step(p), *y = change(p);
            if (few)
                for (int j = 0; j < f; ++j) {
                    step(p)[j] = at.steps[line(p) + free_[j]];
                    change(p)[j] = at.changes[line(p) + free_[j]];
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
             double* __restrict trial, double* __restrict cost) {
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
    sum_lanes<2>(n, out, [&](int j, size_t size, Four<double>* sum) {
        Four<double> a{}, b{}, c{}, e{};
        std::memcpy(&a, cost + j, size);
        std::memcpy(&b, slope + j, size);
        std::memcpy(&c, trial + j, size);
        std::memcpy(&e, z + j, size);
        sum[0] += a;
        sum[1] += b * (c - e);
    });
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
        const double own = a > b ? a : b;
        largest[k] = own > largest[k] ? own : largest[k];
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
              const double* next_edges, double* __restrict moved, double* __restrict change) {
    const double *plus = problem.plus.l2, *minus = problem.minus.l2;
    for (int j = 0; j < problem.n; ++j) {
        const double above = plus[j], below = minus[j];
        const double after = (trial[j] > 0.0 ? above : below) * trial[j];
        const double before = (z[j] > 0.0 ? above : below) * z[j];
        moved[j] = trial[j] - z[j];
        change[j] = (after - before) - (next_edges[j] - edges[j]);
    }
}

}  // namespace

std::unique_ptr<Products> sign_products(const uint64_t* by_column, const uint64_t* by_row, int n, int64_t rows,
                                        const RowWeights& w) {
    return std::make_unique<SignProducts>(by_column, by_row, n, rows, w);
}

std::unique_ptr<Products> dense_products(const int8_t* a8, const double* a64, bool signs, double largest, int n,
                                         int64_t rows, const RowWeights& w, int threads) {
    return std::make_unique<DenseProducts>(a8, a64, signs, largest, n, rows, w, threads);
}

int lbfgs_steps(const BoxProblem& problem, const BoxState& at, double tolerance, int most, double* records,
                BoxEnd* end) {
    const auto begin = std::chrono::steady_clock::now();
    const int n = problem.n;
    const RowWeights& w = problem.weights;
    std::vector<double> slope(n), up(n), d(n), trial(n), cost(n), edges(n);
    std::vector<double> F(problem.rows), v(problem.rows), h(problem.rows);
    Direction direction(n, at.capacity);
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
        const bool start = !*at.started;
        if (start) {
            for (int j = 0; j < n; ++j) up[j] = at.z[j] > 0.0 ? 1.0 : -1.0;
            project(problem, at.z, d.data(), 0.0, up.data(), trial.data(), cost.data());
            std::copy(trial.begin(), trial.end(), at.z);
            const double price = price_and_fall(n, cost.data(), d.data(), at.z, at.z, &fall);
            *at.objective = risk(at.z, at.F) + price;
            *at.gained = std::numeric_limits<double>::infinity();
            *at.started = 1;
            problem.A.edges(rows, at.edges);
        } else {
            slopes(problem, at.z, at.edges, slope.data(), up.data());
            const double objective = *at.objective;
            double value;
            for (;;) {
                direction.find(n, at, slope.data(), d.data());
                const double room = *at.flat < kFlatSteps ? kRounding * std::fabs(objective) : 0.0;
                double step = 1.0;
                for (int k = 0; k < kHalvings; ++k, step *= 0.5) {
                    project(problem, at.z, d.data(), step, up.data(), trial.data(), cost.data());
                    const double price = price_and_fall(n, cost.data(), slope.data(), trial.data(), at.z, &fall);
                    value = risk(trial.data(), F.data()) + price;
                    if (value <= objective + kArmijo * fall + room) break;
                }
                *at.flat = value >= objective ? *at.flat + 1 : 0;
                const bool better = value <= objective + room && !std::equal(at.z, at.z + n, trial.begin());
                if (better && *at.flat <= kFlatSteps) break;
                if (better || *at.held == 0) {
                    *end = BoxEnd::precision;
                    return point;
                }
                *at.held = 0;
            }
            problem.A.edges(rows, edges.data());
            new_pair(problem, at.z, trial.data(), at.edges, edges.data(), at.steps + *at.next * n,
                     at.changes + *at.next * n);
            *at.next = (*at.next + 1) % at.capacity;
            *at.held = std::min<int64_t>(*at.held + 1, at.capacity);
            *at.gained = objective != 0.0 ? (objective - value) / std::fabs(objective) : 0.0;
            *at.objective = value;
            std::copy(trial.begin(), trial.end(), at.z);
            std::copy(edges.begin(), edges.end(), at.edges);
            std::copy(F.begin(), F.end(), at.F);
        }
        double* record = records + static_cast<int64_t>(point) * kRecord;
        record[0] = *at.objective;
        record[1] = largest_edge(problem, at.edges);
        record[2] = static_cast<double>(n - std::count(at.z, at.z + n, 0.0));
        record[3] = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        // the gap is far larger than the gain of a step: a bound cannot help before this
        bool look = *at.gained <= kRounding;
        if (!look && (start || *at.gained <= tolerance)) {
            const double dual = dual_pass(problem.kind, at.F, nullptr, 1.0, problem.rows, w, problem.threads);
            const double bound = std::max(0.0, dual / w.total_weight - gain(problem, at.edges));
            look = *at.objective - bound <= tolerance * std::fabs(*at.objective);
        }
        if (look) {
            *end = BoxEnd::look;
            return point + 1;
        }
    }
    *end = BoxEnd::limit;
    return most;
}

}  // namespace cardboost
