// Linear models: one pass over the rows. Sums run in a fixed order: four lanes, and a fixed number of parts, whatever
// the number of threads.
#include "door.h"
#include "fastmath.h"

namespace cardboost {

namespace {

constexpr int64_t kFew = 64;    // rows whose entries stay in the cache between their score and their gradient
constexpr int64_t kParts = 16;  // partial gradients

// scores of four rows at once: the coefficients are read once
CARDBOOST_CLONES
void four_scores(const double* x, int64_t columns, const double* coef, double* out) {
    const double *r0 = x, *r1 = x + columns, *r2 = x + 2 * columns, *r3 = x + 3 * columns;
    Vector<double, 4> s0{}, s1{}, s2{}, s3{};
    int64_t j = 0;
    for (; j + 4 <= columns; j += 4) {
        const Vector<double, 4> c = load<4>(coef + j);
        s0 += load<4>(r0 + j) * c;
        s1 += load<4>(r1 + j) * c;
        s2 += load<4>(r2 + j) * c;
        s3 += load<4>(r3 + j) * c;
    }
    out[0] = add_lanes(s0);
    out[1] = add_lanes(s1);
    out[2] = add_lanes(s2);
    out[3] = add_lanes(s3);
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

// Scores x coef + intercept of a row-major matrix, the loss at them (logistic, or half the squared residual), the
// sum of the pulls, and the gradient's sums of pull times row, all in one pass. Returns the loss.
double rows_pass(const double* x, int64_t rows, int64_t columns, const double* coef, double intercept, bool squared,
                 const double* y, const double* s, int threads, double* f, double* pull, double* curvature,
                 double* sums, double* total) {
    threads = worth_threads(threads, rows / 4, columns);  // a thread for 0.3 ms: below that, starting it costs more
    std::vector<double> partial(checked_size(kParts, columns), 0.0);
    double losses[kParts], totals[kParts];
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t part = 0; part < kParts; ++part) {
        const Range range = split(rows, static_cast<int>(part), kParts);
        double* sums_of_part = partial.data() + part * columns;
        double loss = 0.0, pulls = 0.0;
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
            double block = 0.0;
            for (i = 0; i < n; ++i) block += pull[b + i];
            pulls += block;
        }
        losses[part] = loss;
        totals[part] = pulls;
    }
    std::fill(sums, sums + columns, 0.0);
    double loss = 0.0;
    *total = 0.0;
    for (int64_t part = 0; part < kParts; ++part) {
        loss += losses[part];
        *total += totals[part];
        for (int64_t j = 0; j < columns; ++j) sums[j] += partial[part * columns + j];
    }
    return loss;
}

// Sums of pulls, the intercept's last, become the slope of the loss, and with l2 the gradient. Returns what l2 costs.
double to_gradient(int64_t columns, const double* coef, double l2, double* slope, double* gradient) {
    for (int64_t j = 0; j <= columns; ++j) gradient[j] = slope[j] = -slope[j];
    add_scaled(columns, l2, coef, gradient);
    return 0.5 * l2 * dot(coef, coef, columns);
}

// x of (U' U) x = q, in place of q, for a row-major U of which only the upper half is read.
void solve_factor(const double* u, int64_t n, double* q) {
    for (int64_t j = 0; j < n; ++j) {
        q[j] /= u[j * n + j];
        add_scaled(n - j - 1, -q[j], u + j * n + j + 1, q + j + 1);
    }
    for (int64_t j = n - 1; j >= 0; --j)
        q[j] = (q[j] - dot(u + j * n + j + 1, q + j + 1, n - j - 1)) / u[j * n + j];
}

// q = -H gradient. Without pairs H is diag(scale) M diag(scale), M the inverse of U'U, or R R' for a root R of `rank`
// columns, or 1. Pairs of a step and the change of the gradient, the oldest first, correct it: two loops of BFGS.
void quasi_newton(int64_t n, const double* gradient, const double* scale, const double* factor, const double* root,
                  int64_t rank, const double* pairs, int64_t held, double* q) {
    std::vector<double> share(static_cast<size_t>(held)), image(static_cast<size_t>(rank), 0.0);
    for (int64_t j = 0; j < n; ++j) q[j] = -gradient[j];
    auto step = [&](int64_t k) { return pairs + 2 * k * n; };
    auto change = [&](int64_t k) { return step(k) + n; };
    for (int64_t k = held - 1; k >= 0; --k) {
        share[k] = dot(step(k), q, n) / dot(step(k), change(k), n);
        add_scaled(n, -share[k], change(k), q);
    }
    for (int64_t j = 0; j < n; ++j) q[j] *= scale[j];
    if (factor) solve_factor(factor, n, q);
    if (root) {
        for (int64_t j = 0; j < n; ++j) add_scaled(rank, q[j], root + j * rank, image.data());
        for (int64_t j = 0; j < n; ++j) q[j] = dot(root + j * rank, image.data(), rank);
    }
    for (int64_t j = 0; j < n; ++j) q[j] *= scale[j];
    for (int64_t k = 0; k < held; ++k)
        add_scaled(n, share[k] - dot(change(k), q, n) / dot(step(k), change(k), n), step(k), q);
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

auto py_rows_pass(In<double, 2> x, In<double, 1> z, double l2, bool intercept, bool squared, In<double, 1> y,
                  In<double, 1> s, InOut<double, 2> out, int threads) {
    const size_t rows = x.shape(0), columns = x.shape(1);
    require(have_length(columns + 1, z), "rows_pass: one coefficient per column and an intercept are needed");
    require(have_length(rows, y, s) && has_shape(out, {3, rows}), "rows_pass: arrays differ in length");
    auto slopes = make<double>({2, columns + 1});
    double *f = out.data(), *pull = f + rows, *curvature = pull + rows;
    double* slope = slopes.data();
    const double* coef = z.data();
    const double loss = unlocked([&] {
        return rows_pass(x.data(), static_cast<int64_t>(rows), static_cast<int64_t>(columns), coef, coef[columns],
                         squared, y.data(), s.data(), threads, f, pull, curvature, slope, slope + columns);
    });
    slope[columns] *= intercept;
    const double penalty = to_gradient(static_cast<int64_t>(columns), coef, l2, slope, slope + columns + 1);
    return std::make_tuple(loss, loss + penalty, slopes);
}

auto py_quasi_newton(In<double, 1> gradient, In<double, 1> scale, Maybe<double, 2> factor, Maybe<double, 2> root,
                     In<double, 3> pairs, int64_t held) {
    const size_t n = gradient.shape(0), rank = root ? root->shape(1) : 0;
    require(have_length(n, scale) && has_shape(factor, {n, n}) && has_shape(root, {n, rank}),
            "quasi_newton: arrays differ in length");
    require(has_shape(pairs, {pairs.shape(0), 2, n}) && held >= 0 && static_cast<size_t>(held) <= pairs.shape(0),
            "quasi_newton: pairs of two vectors are needed, as many as are held");
    auto out = make<double>({n});
    unlocked([&] {
        quasi_newton(static_cast<int64_t>(n), gradient.data(), scale.data(), data_or_null(factor), data_or_null(root),
                     static_cast<int64_t>(rank), pairs.data(), held, out.data());
    });
    return out;
}

}  // namespace

void bind_linear(nb::module_& m) {
    m.def("logistic_rows", &py_logistic_rows, "f"_a, "y"_a, "s"_a, "pull"_a.noconvert(), "curvature"_a.noconvert());
    m.def("logistic_dual", &py_logistic_dual, "pull"_a, "s"_a, "theta"_a);
    m.def("rows_pass", &py_rows_pass, "x"_a, "z"_a, "l2"_a, "intercept"_a, "squared"_a, "y"_a, "s"_a,
          "out"_a.noconvert(), "threads"_a);
    m.def("quasi_newton", &py_quasi_newton, "gradient"_a, "scale"_a, "factor"_a.none(), "root"_a.none(), "pairs"_a,
          "held"_a);
}

}  // namespace cardboost
