// Linear models: one pass over the rows, and coordinate descent on the quadratic model of the loss.
//
// Sums run in a fixed order: four lanes, and for rows a fixed number of parts, whatever the number of threads.
#include "linear.h"

#include <algorithm>
#include <vector>

#include "fastmath.h"

namespace cardboost {

namespace {

using Lanes = Four<double>;
constexpr int64_t kFew = 64;    // rows whose entries stay in the cache between their score and their gradient
constexpr int64_t kParts = 16;  // partial gradients

CARDBOOST_INLINE Lanes load(const double* p) {
    Lanes v;
    std::memcpy(&v, p, sizeof v);
    return v;
}
CARDBOOST_INLINE void store(double* p, Lanes v) { std::memcpy(p, &v, sizeof v); }
CARDBOOST_INLINE double add_up(Lanes v) { return (v[0] + v[1]) + (v[2] + v[3]); }

CARDBOOST_CLONES
double dot(const double* a, const double* b, int64_t n) {
    Lanes s0{}, s1{}, s2{}, s3{};
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        s0 += load(a + i) * load(b + i);
        s1 += load(a + i + 4) * load(b + i + 4);
        s2 += load(a + i + 8) * load(b + i + 8);
        s3 += load(a + i + 12) * load(b + i + 12);
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
        const Lanes x0 = load(a + i), x1 = load(a + i + 4);
        const Lanes p0 = x0 * load(w + i), p1 = x1 * load(w + i + 4);
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
void add_scaled(const double* a, double d, const double* w, int64_t n, double* shift, double* weighted) {
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
        const Lanes c = load(coef + j);
        s0 += load(r0 + j) * c;
        s1 += load(r1 + j) * c;
        s2 += load(r2 + j) * c;
        s3 += load(r3 + j) * c;
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
void add_row(const double* x, int64_t columns, double pull, double* sums) {
    for (int64_t j = 0; j < columns; ++j) sums[j] += pull * x[j];
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
    const double* at(int32_t j) const { return x.values + static_cast<int64_t>(j) * x.rows; }
    void moments(int32_t j, const double* w, double* a, double* h) const { dot_and_square(at(j), w, x.rows, a, h); }
    double product(int32_t j, const double* t) const { return dot(at(j), t, x.rows); }
    void add(int32_t j, double d, const double* w, double* shift, double* t) const {
        add_scaled(at(j), d, w, x.rows, shift, t);
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

// Sweeps over all columns; between them sweeps over those in use, until nothing moves. `visit(k)` updates one
// coordinate and returns the change of its derivative.
template <class Visit>
SweepResult sweeps(int n, const SweepPrices& prices, const double* beta, Visit visit) {
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
    return out;
}

template <class Columns>
SweepResult sweep(const Columns& x, int64_t rows, const int32_t* which, int n, const double* w, const double* g,
                  const SweepPrices& prices, double* beta, double* shift, double* weighted, double* scratch) {
    double *a = scratch, *h = scratch + n, *threshold = scratch + 2 * n;
    double total = 0.0;
    for (int64_t i = 0; i < rows; ++i) total += w[i];
    const bool intercept = prices.intercept && total > 0.0;
    for (int k = 0; k < n; ++k) {
        double raw;
        x.moments(which[k], w, &a[k], &raw);
        h[k] = raw - (intercept ? a[k] * a[k] / total : 0.0);
        if (!(h[k] > 1e-13 * raw)) h[k] = 0.0;
        threshold[k] = prices.l1;
    }
    std::fill(shift, shift + rows, 0.0);
    std::fill(weighted, weighted + rows, 0.0);
    double moved = 0.0;  // sum of w times X d
    SweepResult out = sweeps(n, prices, beta, [&](int k) {
        const double curve = h[k] + prices.l2;
        if (!(curve > 0.0)) {
            if (beta[k] == 0.0 || threshold[k] == 0.0) return 0.0;
        }
        double wanted = 0.0;
        if (curve > 0.0) {
            double slope = g[k] + x.product(which[k], weighted) + prices.l2 * beta[k];
            if (intercept) slope -= (prices.g0 + moved) / total * a[k];
            wanted = soft(curve * beta[k] - slope, threshold[k]) / curve;
        }
        const double d = wanted - beta[k];
        if (d == 0.0) return 0.0;
        beta[k] = wanted;
        x.add(which[k], d, w, shift, weighted);
        moved += d * a[k];
        return std::fabs(d) * curve;
    });
    out.intercept_change = intercept ? -(prices.g0 + moved) / total : 0.0;
    return out;
}

CARDBOOST_CLONES
void add_line(const double* line, double d, int64_t n, double* g) {
    for (int64_t i = 0; i < n; ++i) g[i] += d * line[i];
}

CARDBOOST_CLONES
void add_line(const float* line, double d, int64_t n, double* g) {
    for (int64_t i = 0; i < n; ++i) g[i] += d * static_cast<double>(line[i]);
}

}  // namespace

double logistic_rows(const double* f, const double* y, const double* s, int64_t rows, double* pull,
                     double* curvature) {
    double sum = 0.0;
    for (int64_t b = 0; b < rows; b += kFew)
        sum += logistic_block(f + b, y + b, s + b, std::min(kFew, rows - b), pull + b, curvature + b);
    return sum;
}

double logistic_dual(const double* pull, const double* s, int64_t rows, double theta) {
    double sum = 0.0;
    for (int64_t b = 0; b < rows; b += kFew) sum += entropy_block(pull + b, s + b, theta, std::min(kFew, rows - b));
    return sum;
}

double rows_pass(const double* x, int64_t rows, int64_t columns, const double* coef, double intercept, bool squared,
                 const double* y, const double* s, int threads, double* f, double* pull, double* curvature,
                 double* sums) {
    threads = worth_threads(threads, rows * columns / 4);  // a thread for 0.3 ms: below that, starting it costs more
    std::vector<double> partial(static_cast<size_t>(kParts * columns), 0.0);
    double losses[kParts];
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t part = 0; part < kParts; ++part) {
        const Range own = split(rows, static_cast<int>(part), kParts);
        double* mine = partial.data() + part * columns;
        double loss = 0.0;
        for (int64_t b = own.begin; b < own.end; b += kFew) {
            const int64_t n = std::min(kFew, own.end - b);
            int64_t i = 0;
            for (; i + 4 <= n; i += 4) four_scores(x + (b + i) * columns, columns, coef, f + b + i);
            for (; i < n; ++i) f[b + i] = dot(x + (b + i) * columns, coef, columns);
            for (i = 0; i < n; ++i) f[b + i] += intercept;
            loss += squared ? squared_block(f + b, y + b, s + b, n, pull + b, curvature + b)
                            : logistic_block(f + b, y + b, s + b, n, pull + b, curvature + b);
            for (i = 0; i + 4 <= n; i += 4) add_four_rows(x + (b + i) * columns, columns, pull + b + i, mine);
            for (; i < n; ++i) add_row(x + (b + i) * columns, columns, pull[b + i], mine);
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

void column_sums(const LinearColumns& x, const int32_t* which, int64_t n, const double* pull, int threads,
                 double* out) {
    threads = worth_threads(threads, x.starts ? 100 * n : x.rows * n);
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t k = 0; k < n; ++k)
        out[k] = x.starts ? Compressed{x}.product(which[k], pull) : Dense{x}.product(which[k], pull);
}

void column_scores(const LinearColumns& x, const int32_t* which, int64_t n, const double* coef, double* out) {
    std::fill(out, out + x.rows, 0.0);
    for (int64_t k = 0; k < n; ++k) {
        if (coef[k] == 0.0) continue;
        if (!x.starts) {
            add_row(x.values + static_cast<int64_t>(which[k]) * x.rows, x.rows, coef[k], out);
            continue;
        }
        for (int64_t e = x.starts[which[k]]; e < x.starts[which[k] + 1]; ++e) out[x.index[e]] += coef[k] * x.values[e];
    }
}

SweepResult sweep_columns(const LinearColumns& x, const int32_t* which, int n, const double* w, const double* g,
                          const SweepPrices& prices, double* beta, double* shift, double* weighted, double* scratch) {
    if (x.starts) return sweep(Compressed{x}, x.rows, which, n, w, g, prices, beta, shift, weighted, scratch);
    return sweep(Dense{x}, x.rows, which, n, w, g, prices, beta, shift, weighted, scratch);
}

template <typename Number>
SweepResult sweep_gram(const Number* q, int64_t stride, const double* a, double total, int n,
                       const SweepPrices& prices, double* beta, double* g) {
    const bool intercept = prices.intercept && total > 0.0;
    double moved = 0.0;
    SweepResult out = sweeps(n, prices, beta, [&](int k) {
        const double raw = q[k * stride + k];
        double h = raw - (intercept ? a[k] * a[k] / total : 0.0);
        if (!(h > 1e-13 * raw)) h = 0.0;
        const double curve = h + prices.l2;
        double wanted = 0.0;
        if (curve > 0.0) {
            double slope = g[k] + prices.l2 * beta[k];
            if (intercept) slope -= (prices.g0 + moved) / total * a[k];
            wanted = soft(curve * beta[k] - slope, prices.l1) / curve;
        } else if (beta[k] == 0.0 || prices.l1 == 0.0) {
            return 0.0;
        }
        const double d = wanted - beta[k];
        if (d == 0.0) return 0.0;
        beta[k] = wanted;
        add_line(q + k * stride, d, n, g);
        moved += d * a[k];
        return std::fabs(d) * curve;
    });
    out.intercept_change = intercept ? -(prices.g0 + moved) / total : 0.0;
    return out;
}

template SweepResult sweep_gram(const double*, int64_t, const double*, double, int, const SweepPrices&, double*, double*);
template SweepResult sweep_gram(const float*, int64_t, const double*, double, int, const SweepPrices&, double*, double*);

}  // namespace cardboost
