// Linear models: products with columns, and coordinate descent on the quadratic model of the loss. Sums run in a fixed
// order.
#include "door.h"

namespace cardboost {

namespace {

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
void dot_and_square(const double* a, const double* w, int64_t n, double* first, double* second) {
    Vector<double, 4> s0{}, s1{}, q0{}, q1{};
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const Vector<double, 4> x0 = load<4>(a + i), x1 = load<4>(a + i + 4);
        const Vector<double, 4> p0 = x0 * load<4>(w + i), p1 = x1 * load<4>(w + i + 4);
        s0 += p0;
        s1 += p1;
        q0 += p0 * x0;
        q1 += p1 * x1;
    }
    double s = add_lanes(s0 + s1), q = add_lanes(q0 + q1);
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

void bind_sweeps(nb::module_& m) {
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
