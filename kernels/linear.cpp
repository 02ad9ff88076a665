// Linear models: one pass over the rows, and coordinate descent on the quadratic model of the loss.
//
// Sums run in a fixed order: four lanes, and for rows a fixed number of parts, whatever the number of threads.
#include "door.h"
#include "fastmath.h"

namespace cardboost {

namespace {

using Lanes = Vector<double, 4>;
constexpr int64_t kFew = 64;    // rows whose entries stay in the cache between their score and their gradient
constexpr int64_t kParts = 16;  // partial gradients

CARDBOOST_INLINE double add_up(const Lanes& v) { return (v[0] + v[1]) + (v[2] + v[3]); }

// Columns of a matrix, one after the other: dense with `rows` entries each, or compressed (starts is given).
struct LinearColumns {
    const double* values;
    const int32_t* index;   // row of every value; null when dense
    const int64_t* starts;  // where a column starts; null when dense
    int64_t rows;
};

// The quadratic model  g d + (1/2) (d, c)' H (d, c) + g0 c + l1 |beta + d| + (l2 / 2) (beta + d)^2  with weights w per
// row, minimised by coordinates over the columns `which`; c, the change of the intercept, follows in closed form.
struct SweepPrices {
    double l1, l2;
    bool intercept;
    double g0;         // derivative by the intercept
    double tolerance;  // on the change of a coordinate's derivative
    int most;          // sweeps
};
struct SweepResult {
    int sweeps;
    double intercept_change, largest;
};
CARDBOOST_CLONES
double dot(const double* a, const double* b, int64_t n) {
    Lanes s0{}, s1{}, s2{}, s3{};
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        s0 += load<4>(a + i) * load<4>(b + i);
        s1 += load<4>(a + i + 4) * load<4>(b + i + 4);
        s2 += load<4>(a + i + 8) * load<4>(b + i + 8);
        s3 += load<4>(a + i + 12) * load<4>(b + i + 12);
    }
    double sum = add_up((s0 + s1) + (s2 + s3));
    for (; i < n; ++i) sum += a[i] * b[i];
    return sum;
}

CARDBOOST_CLONES
void dot_and_square(const double* a, const double* w, int64_t n, double* first, double* second) {
    Lanes s0{}, s1{}, q0{}, q1{};
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const Lanes x0 = load<4>(a + i), x1 = load<4>(a + i + 4);
        const Lanes p0 = x0 * load<4>(w + i), p1 = x1 * load<4>(w + i + 4);
        s0 += p0;
        s1 += p1;
        q0 += p0 * x0;
        q1 += p1 * x1;
    }
    double s = add_up(s0 + s1), q = add_up(q0 + q1);
    for (; i < n; ++i) {
        const double p = a[i] * w[i];
        s += p;
        q += p * a[i];
    }
    *first = s;
    *second = q;
}

CARDBOOST_CLONES
void add_weighted(const double* a, double d, const double* w, int64_t n, double* shift, double* weighted) {
    for (int64_t i = 0; i < n; ++i) {
        const double step = d * a[i];
        shift[i] += step;
        weighted[i] += w[i] * step;
    }
}

// scores of four rows at once: the coefficients are read once
CARDBOOST_CLONES
void four_scores(const double* x, int64_t columns, const double* coef, double* out) {
    const double *r0 = x, *r1 = x + columns, *r2 = x + 2 * columns, *r3 = x + 3 * columns;
    Lanes s0{}, s1{}, s2{}, s3{};
    int64_t j = 0;
    for (; j + 4 <= columns; j += 4) {
        const Lanes c = load<4>(coef + j);
        s0 += load<4>(r0 + j) * c;
        s1 += load<4>(r1 + j) * c;
        s2 += load<4>(r2 + j) * c;
        s3 += load<4>(r3 + j) * c;
    }
    out[0] = add_up(s0);
    out[1] = add_up(s1);
    out[2] = add_up(s2);
    out[3] = add_up(s3);
    for (; j < columns; ++j) {
        out[0] += r0[j] * coef[j];
        out[1] += r1[j] * coef[j];
        out[2] += r2[j] * coef[j];
        out[3] += r3[j] * coef[j];
    }
}

CARDBOOST_CLONES
void add_four_rows(const double* x, int64_t columns, const double* pull, double* sums) {
    const double *r0 = x, *r1 = x + columns, *r2 = x + 2 * columns, *r3 = x + 3 * columns;
    const double p0 = pull[0], p1 = pull[1], p2 = pull[2], p3 = pull[3];
    for (int64_t j = 0; j < columns; ++j) sums[j] += (p0 * r0[j] + p1 * r1[j]) + (p2 * r2[j] + p3 * r3[j]);
}

CARDBOOST_CLONES
double logistic_block(const double* f, const double* y, const double* s, int64_t n, double* pull, double* curvature) {
    double loss[kFew];
    for (int64_t i = 0; i < n; ++i) {
        const double z = y[i] * f[i];
        const double e = exp_poly(-std::fabs(z));
        const double share = 1.0 / (1.0 + e);
        loss[i] = s[i] * (log1p_poly(e) + (z < 0.0 ? -z : 0.0));
        pull[i] = s[i] * y[i] * (z < 0.0 ? share : e * share);
        curvature[i] = s[i] * (e * share) * share;
    }
    double sum = 0.0;
    for (int64_t i = 0; i < n; ++i) sum += loss[i];
    return sum;
}

CARDBOOST_CLONES
double entropy_block(const double* pull, const double* s, double theta, int64_t n) {
    double value[kFew];
    for (int64_t i = 0; i < n; ++i) {
        double v = std::fabs(pull[i]) / s[i];
        v = theta * (v > 1.0 ? 1.0 : v);
        const double rest = 1.0 - v;
        value[i] = -s[i] * (v * log_one_minus(rest) + rest * log_one_minus(v));
    }
    double sum = 0.0;
    for (int64_t i = 0; i < n; ++i) sum += value[i];
    return sum;
}

double squared_block(const double* f, const double* y, const double* s, int64_t n, double* pull, double* curvature) {
    double sum = 0.0;
    for (int64_t i = 0; i < n; ++i) {
        const double r = y[i] - f[i];
        pull[i] = s[i] * r;
        curvature[i] = s[i];
        sum += 0.5 * pull[i] * r;
    }
    return sum;
}

double soft(double z, double threshold) {
    return z > threshold ? z - threshold : z < -threshold ? z + threshold : 0.0;
}

// Columns as the sweeps read them.
struct Dense {
    const LinearColumns& x;
    const double* column(int32_t j) const { return x.values + static_cast<int64_t>(j) * x.rows; }
    void moments(int32_t j, const double* w, double* a, double* h) const { dot_and_square(column(j), w, x.rows, a, h); }
    double product(int32_t j, const double* t) const { return dot(column(j), t, x.rows); }
    void add(int32_t j, double d, const double* w, double* shift, double* t) const {
        add_weighted(column(j), d, w, x.rows, shift, t);
    }
};

struct Compressed {
    const LinearColumns& x;
    void moments(int32_t j, const double* w, double* a, double* h) const {
        double s = 0.0, q = 0.0;
        for (int64_t k = x.starts[j]; k < x.starts[j + 1]; ++k) {
            const double p = x.values[k] * w[x.index[k]];
            s += p;
            q += p * x.values[k];
        }
        *a = s;
        *h = q;
    }
    double product(int32_t j, const double* t) const {
        double s0 = 0.0, s1 = 0.0;
        int64_t k = x.starts[j];
        const int64_t end = x.starts[j + 1];
        for (; k + 2 <= end; k += 2) {
            s0 += x.values[k] * t[x.index[k]];
            s1 += x.values[k + 1] * t[x.index[k + 1]];
        }
        if (k < end) s0 += x.values[k] * t[x.index[k]];
        return s0 + s1;
    }
    void add(int32_t j, double d, const double* w, double* shift, double* t) const {
        for (int64_t k = x.starts[j]; k < x.starts[j + 1]; ++k) {
            const int32_t i = x.index[k];
            const double step = d * x.values[k];
            shift[i] += step;
            t[i] += w[i] * step;
        }
    }
};

// Sweeps over all columns; between them sweeps over those in use, until nothing moves. `a` is X' w, of total weight
// `total`; square(k) is the curvature of column k, slope(k) the derivative of the smooth part without l2 and intercept,
// and move(k, d) changes coordinate k by d.
template <class Square, class Slope, class Move>
SweepResult sweeps(int n, const SweepPrices& prices, const double* a, double total, double* beta, const Square& square,
                   const Slope& slope, const Move& move) {
    const bool intercept = prices.intercept && total > 0.0;
    double moved = 0.0;  // sum of w times X d
    // returns the change of the coordinate's derivative
    auto visit = [&](int k) {
        const double raw = square(k), h = raw - (intercept ? a[k] * a[k] / total : 0.0);
        const double curve = (h > 1e-13 * raw ? h : 0.0) + prices.l2;
        double value = 0.0;
        if (curve > 0.0) {
            double derivative = slope(k) + prices.l2 * beta[k];
            if (intercept) derivative -= (prices.g0 + moved) / total * a[k];
            value = soft(curve * beta[k] - derivative, prices.l1) / curve;
        } else if (beta[k] == 0.0 || prices.l1 == 0.0) {
            return 0.0;
        }
        const double d = value - beta[k];
        if (d == 0.0) return 0.0;
        beta[k] = value;
        move(k, d);
        moved += d * a[k];
        return std::fabs(d) * curve;
    };
    SweepResult out{0, 0.0, 0.0};
    bool all = true;
    double first = 0.0;
    while (out.sweeps < prices.most) {
        double largest = 0.0;
        for (int k = 0; k < n; ++k)
            if (all || beta[k] != 0.0) largest = std::max(largest, visit(k));
        ++out.sweeps;
        out.largest = largest;
        if (all) first = largest;
        const bool still = all ? largest <= prices.tolerance : largest <= std::max(prices.tolerance, 0.1 * first);
        if (all && still) break;
        all = still;
    }
    out.intercept_change = intercept ? -(prices.g0 + moved) / total : 0.0;
    return out;
}

// Coordinate descent on the quadratic model. In and out: beta. Out: shift = X d, without the intercept.
template <class Columns>
SweepResult sweep_columns(const Columns& x, int64_t rows, const int32_t* which, int n, const double* w,
                          const double* g, const SweepPrices& prices, double* beta, double* shift) {
    std::vector<double> weighted(rows), a(n), squares(n);  // w X d; X' w; the squares of every column
    double total = 0.0;
    for (int64_t i = 0; i < rows; ++i) total += w[i];
    for (int k = 0; k < n; ++k) x.moments(which[k], w, &a[k], &squares[k]);
    std::fill(shift, shift + rows, 0.0);
    return sweeps(
        n, prices, a.data(), total, beta, [&](int k) { return squares[k]; },
        [&](int k) { return g[k] + x.product(which[k], weighted.data()); },
        [&](int k, double d) { x.add(which[k], d, w, shift, weighted.data()); });
}

// The same on the matrix q = X' W X, in double or single precision, and a = X' w. In and out: beta, g.
template <typename Number>
SweepResult sweep_gram(const Number* q, const double* a, double total, int n, const SweepPrices& prices, double* beta,
                       double* g) {
    auto row = [=](int k) { return q + static_cast<int64_t>(k) * n; };
    return sweeps(
        n, prices, a, total, beta, [&](int k) { return static_cast<double>(row(k)[k]); },
        [&](int k) { return g[k]; }, [&](int k, double d) { add_scaled(n, d, row(k), g); });
}

// Logistic loss at scores f for labels y = -1 or 1 and weights s: returns sum s log(1 + exp(-y f)) and fills
// pull = -(derivative by f) and curvature, row by row.
double logistic_rows(const double* f, const double* y, const double* s, int64_t rows, double* pull,
                     double* curvature) {
    double sum = 0.0;
    for (int64_t b = 0; b < rows; b += kFew)
        sum += logistic_block(f + b, y + b, s + b, std::min(kFew, rows - b), pull + b, curvature + b);
    return sum;
}

// sum of s times the entropy of v = theta |pull| / s, with v at most 1: the dual value of the logistic loss.
double logistic_dual(const double* pull, const double* s, int64_t rows, double theta) {
    double sum = 0.0;
    for (int64_t b = 0; b < rows; b += kFew) sum += entropy_block(pull + b, s + b, theta, std::min(kFew, rows - b));
    return sum;
}

// Scores x coef + intercept of a row-major matrix, the loss at them (logistic, or half the squared residual) and the
// gradient's sums of pull times row, all in one pass. Returns the loss.
double rows_pass(const double* x, int64_t rows, int64_t columns, const double* coef, double intercept, bool squared,
                 const double* y, const double* s, int threads, double* f, double* pull, double* curvature,
                 double* sums) {
    threads = worth_threads(threads, rows, columns);
    std::vector<double> partial(checked_size(kParts, columns), 0.0);
    double losses[kParts];
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t part = 0; part < kParts; ++part) {
        const Range range = split(rows, static_cast<int>(part), kParts);
        double* sums_of_part = partial.data() + part * columns;
        double loss = 0.0;
        for (int64_t b = range.begin; b < range.end; b += kFew) {
            const int64_t n = std::min(kFew, range.end - b);
            int64_t i = 0;
            for (; i + 4 <= n; i += 4) four_scores(x + (b + i) * columns, columns, coef, f + b + i);
            for (; i < n; ++i) f[b + i] = dot(x + (b + i) * columns, coef, columns);
            for (i = 0; i < n; ++i) f[b + i] += intercept;
            loss += squared ? squared_block(f + b, y + b, s + b, n, pull + b, curvature + b)
                            : logistic_block(f + b, y + b, s + b, n, pull + b, curvature + b);
            for (i = 0; i + 4 <= n; i += 4) add_four_rows(x + (b + i) * columns, columns, pull + b + i, sums_of_part);
            for (; i < n; ++i) add_scaled(columns, pull[b + i], x + (b + i) * columns, sums_of_part);
        }
        losses[part] = loss;
    }
    std::fill(sums, sums + columns, 0.0);
    double loss = 0.0;
    for (int64_t part = 0; part < kParts; ++part) {
        loss += losses[part];
        for (int64_t j = 0; j < columns; ++j) sums[j] += partial[part * columns + j];
    }
    return loss;
}

// X[:, which]' pull, one number per column.
void column_sums(const LinearColumns& x, const int32_t* which, int64_t n, const double* pull, int threads,
                 double* out) {
    threads = worth_threads(threads, x.starts ? 100 : x.rows, n);
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t k = 0; k < n; ++k)
        out[k] = x.starts ? Compressed{x}.product(which[k], pull) : Dense{x}.product(which[k], pull);
}

// X[:, which] coef, one number per row; `out` is filled.
void column_scores(const LinearColumns& x, const int32_t* which, int64_t n, const double* coef, double* out) {
    std::fill(out, out + x.rows, 0.0);
    for (int64_t k = 0; k < n; ++k)
        for (int64_t e = x.starts[which[k]]; coef[k] != 0.0 && e < x.starts[which[k] + 1]; ++e)
            out[x.index[e]] += coef[k] * x.values[e];
}

double py_logistic_rows(In<double, 1> f, In<double, 1> y, In<double, 1> s, InOut<double, 1> pull,
                        InOut<double, 1> curvature) {
    const size_t rows = f.shape(0);
    require(have_length(rows, y, s, pull, curvature), "logistic_rows: arrays differ in length");
    return unlocked([&] {
        return logistic_rows(f.data(), y.data(), s.data(), static_cast<int64_t>(rows), pull.data(), curvature.data());
    });
}

double py_logistic_dual(In<double, 1> pull, In<double, 1> s, double theta) {
    require(have_length(s.shape(0), pull), "logistic_dual: arrays differ in length");
    require(theta >= 0.0 && theta <= 1.0, "logistic_dual: theta must be between 0 and 1");
    return unlocked([&] { return logistic_dual(pull.data(), s.data(), static_cast<int64_t>(s.shape(0)), theta); });
}

auto py_rows_pass(In<double, 2> x, In<double, 1> coef, double intercept, bool squared, In<double, 1> y,
                  In<double, 1> s, InOut<double, 2> out, int threads) {
    const size_t rows = x.shape(0), columns = x.shape(1);
    require(have_length(columns, coef), "rows_pass: one coefficient per column is needed");
    require(have_length(rows, y, s) && has_shape(out, {3, rows}), "rows_pass: arrays differ in length");
    auto sums = make<double>({columns});
    double *f = out.data(), *pull = f + rows, *curvature = pull + rows;
    const double loss = unlocked([&] {
        return rows_pass(x.data(), static_cast<int64_t>(rows), static_cast<int64_t>(columns), coef.data(), intercept,
                         squared, y.data(), s.data(), threads, f, pull, curvature, sums.data());
    });
    return std::make_tuple(loss, sums);
}

SweepPrices sweep_prices(double l1, double l2, bool intercept, double g0, double tolerance, int most) {
    require(l1 >= 0.0 && l2 >= 0.0 && tolerance >= 0.0, "sweeps: prices and tolerance must be at least 0");
    require(most >= 0, "sweeps: most must be at least 0");
    return {l1, l2, intercept, g0, tolerance, most};
}

LinearColumns dense_columns(const In<double, 2>& x, const In<int32_t, 1>& which) {
    require_indices(which, x.shape(0));
    return {x.data(), nullptr, nullptr, static_cast<int64_t>(x.shape(1))};
}

// Compressed columns, those of `which` with entries within the rows.
LinearColumns csc_columns(const In<double, 1>& values, const In<int32_t, 1>& index, const In<int64_t, 1>& starts,
                          const In<int32_t, 1>& which, size_t rows) {
    const size_t entries = values.shape(0), n = starts.shape(0);
    require(n >= 1 && have_length(entries, index), "sparse columns: values and rows differ in length");
    require_indices(which, n - 1);
    for (size_t k = 0; k < which.shape(0); ++k) {
        const int64_t from = starts.data()[which.data()[k]], to = starts.data()[which.data()[k] + 1];
        require(from >= 0 && from <= to && static_cast<size_t>(to) <= entries, "sparse columns: starts do not fit");
        uint32_t largest = 0;  // a negative row becomes a large one
        for (int64_t e = from; e < to; ++e) largest = std::max(largest, static_cast<uint32_t>(index.data()[e]));
        require(from == to || largest < rows, "sparse columns: a row is out of range");
    }
    return {values.data(), index.data(), starts.data(), static_cast<int64_t>(rows)};
}

auto run_sweep(const LinearColumns& x, const In<int32_t, 1>& which, const In<double, 1>& w, const In<double, 1>& g,
               const SweepPrices& prices, const InOut<double, 1>& beta, const InOut<double, 1>& shift) {
    const size_t n = which.shape(0), rows = static_cast<size_t>(x.rows);
    require(have_length(n, g, beta), "sweeps: one number per column is needed");
    require(have_length(rows, w, shift), "sweeps: one number per row is needed");
    auto run = [&](const auto& columns) {
        return sweep_columns(columns, x.rows, which.data(), as_int(n), w.data(), g.data(), prices, beta.data(),
                             shift.data());
    };
    const SweepResult result = unlocked([&] { return x.starts ? run(Compressed{x}) : run(Dense{x}); });
    return std::make_tuple(result.sweeps, result.intercept_change, result.largest);
}

auto py_sweep_dense(In<double, 2> x, In<int32_t, 1> which, In<double, 1> w, In<double, 1> g, double l1, double l2,
                    bool intercept, double g0, double tolerance, int most, InOut<double, 1> beta,
                    InOut<double, 1> shift) {
    return run_sweep(dense_columns(x, which), which, w, g, sweep_prices(l1, l2, intercept, g0, tolerance, most), beta,
                     shift);
}

auto py_sweep_csc(In<double, 1> values, In<int32_t, 1> index, In<int64_t, 1> starts, In<int32_t, 1> which,
                  In<double, 1> w, In<double, 1> g, double l1, double l2, bool intercept, double g0, double tolerance,
                  int most, InOut<double, 1> beta, InOut<double, 1> shift) {
    return run_sweep(csc_columns(values, index, starts, which, shift.shape(0)), which, w, g,
                     sweep_prices(l1, l2, intercept, g0, tolerance, most), beta, shift);
}

template <typename Number>
auto py_sweep_gram(In<Number, 2> q, In<double, 1> a, double total, double l1, double l2, bool intercept, double g0,
                   double tolerance, int most, InOut<double, 1> beta, InOut<double, 1> g) {
    const size_t n = q.shape(0);
    require(q.shape(1) == n && have_length(n, a, beta, g), "sweep_gram: arrays differ in length");
    const SweepPrices prices = sweep_prices(l1, l2, intercept, g0, tolerance, most);
    const SweepResult result = unlocked(
        [&] { return sweep_gram(q.data(), a.data(), total, as_int(n), prices, beta.data(), g.data()); });
    return std::make_tuple(result.sweeps, result.intercept_change, result.largest);
}

Out<double> sums_of(const LinearColumns& x, const In<int32_t, 1>& which, const In<double, 1>& pull, int threads) {
    const size_t n = which.shape(0);
    require(have_length(static_cast<size_t>(x.rows), pull), "column_sums: one number per row is needed");
    auto out = make<double>({n});
    unlocked([&] { column_sums(x, which.data(), static_cast<int64_t>(n), pull.data(), threads, out.data()); });
    return out;
}

Out<double> py_column_sums_dense(In<double, 2> x, In<int32_t, 1> which, In<double, 1> pull, int threads) {
    return sums_of(dense_columns(x, which), which, pull, threads);
}

Out<double> py_column_sums_csc(In<double, 1> values, In<int32_t, 1> index, In<int64_t, 1> starts,
                               In<int32_t, 1> which, In<double, 1> pull, int threads) {
    return sums_of(csc_columns(values, index, starts, which, pull.shape(0)), which, pull, threads);
}

Out<double> py_column_scores_csc(In<double, 1> values, In<int32_t, 1> index, In<int64_t, 1> starts,
                                 In<int32_t, 1> which, In<double, 1> coef, int64_t rows) {
    require(have_length(which.shape(0), coef), "column_scores: one coefficient per column is needed");
    require(rows >= 0, "column_scores: rows must be at least 0");
    const LinearColumns x = csc_columns(values, index, starts, which, static_cast<size_t>(rows));
    auto out = make<double>({static_cast<size_t>(rows)});
    unlocked([&] {
        column_scores(x, which.data(), static_cast<int64_t>(which.shape(0)), coef.data(), out.data());
    });
    return out;
}

template <typename Number>
void bind_sweep_gram(nb::module_& m) {
    m.def("sweep_gram", &py_sweep_gram<Number>, "q"_a, "a"_a, "total"_a, "l1"_a, "l2"_a, "intercept"_a, "g0"_a,
          "tolerance"_a, "most"_a, "beta"_a.noconvert(), "g"_a.noconvert());
}

}  // namespace

void bind_linear(nb::module_& m) {
    m.def("logistic_rows", &py_logistic_rows, "f"_a, "y"_a, "s"_a, "pull"_a.noconvert(), "curvature"_a.noconvert());
    m.def("logistic_dual", &py_logistic_dual, "pull"_a, "s"_a, "theta"_a);
    m.def("rows_pass", &py_rows_pass, "x"_a, "coef"_a, "intercept"_a, "squared"_a, "y"_a, "s"_a, "out"_a.noconvert(),
          "threads"_a);
    m.def("column_sums_dense", &py_column_sums_dense, "x"_a, "which"_a, "pull"_a, "threads"_a);
    m.def("column_sums_csc", &py_column_sums_csc, "values"_a, "index"_a, "starts"_a, "which"_a, "pull"_a, "threads"_a);
    m.def("column_scores_csc", &py_column_scores_csc, "values"_a, "index"_a, "starts"_a, "which"_a, "coef"_a,
          "rows"_a);
    m.def("sweep_dense", &py_sweep_dense, "x"_a, "which"_a, "w"_a, "g"_a, "l1"_a, "l2"_a, "intercept"_a, "g0"_a,
          "tolerance"_a, "most"_a, "beta"_a.noconvert(), "shift"_a.noconvert());
    m.def("sweep_csc", &py_sweep_csc, "values"_a, "index"_a, "starts"_a, "which"_a, "w"_a, "g"_a, "l1"_a, "l2"_a,
          "intercept"_a, "g0"_a, "tolerance"_a, "most"_a, "beta"_a.noconvert(), "shift"_a.noconvert());
    bind_sweep_gram<double>(m);
    bind_sweep_gram<float>(m);
}

}  // namespace cardboost
