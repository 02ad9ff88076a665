// The convex master's inner problem: a small dense quadratic with a box and a piecewise quadratic price per
// weight. Coordinate sweeps find which weights sit at a bound or a knee; Newton steps finish the others.
// Everything runs in a fixed order on one thread, so equal inputs give equal bits.
#include "quadratic.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace cardboost {

namespace {

struct Price {
    double slope, knee, curve, upper;
    double derivative(double x) const { return slope + curve * std::max(0.0, x - knee); }
    double value(double x) const {
        const double over = std::max(0.0, x - knee);
        return slope * x + 0.5 * curve * over * over;
    }
};

// argmin over [0, upper] of r (x - at) + d (x - at)^2 / 2 + price(x)
double best_coordinate(const Price& p, double r, double d, double at) {
    double x;
    const double beyond = r + d * (p.knee - at) + p.slope;  // derivative at the knee
    if (beyond < 0.0) {
        const double total = d + p.curve;
        x = total > 0.0 ? p.knee - beyond / total : p.upper;
    } else {
        x = d > 0.0 ? at - (r + p.slope) / d : (r + p.slope > 0.0 ? 0.0 : at);
    }
    return std::min(std::max(x, 0.0), p.upper);
}

// In-place Cholesky of the lower triangle; a pivot that vanishes gets a large value, which freezes that
// direction. y <- A^-1 y. The inner loop subtracts a multiple of one column from a row, which vectorises
// without changing the order of any sum.
CARDBOOST_CLONES
void solve_cholesky(int n, double* a, double* y, double* column) {
    for (int j = 0; j < n; ++j) {
        double* pivot_row = a + static_cast<int64_t>(j) * n;
        const double size = column[j];  // the diagonal before elimination
        const double pivot = pivot_row[j] > 1e-13 * (std::fabs(size) + 1e-300) ? std::sqrt(pivot_row[j]) : 1e100;
        pivot_row[j] = pivot;
        const double inverse = 1.0 / pivot;
        double* l = column + n;
        for (int i = j + 1; i < n; ++i) {
            double* row = a + static_cast<int64_t>(i) * n;
            row[j] *= inverse;
            l[i] = row[j];
        }
        for (int i = j + 1; i < n; ++i) {
            double* row = a + static_cast<int64_t>(i) * n;
            const double factor = l[i];
            for (int k = j + 1; k <= i; ++k) row[k] -= factor * l[k];
        }
    }
    for (int i = 0; i < n; ++i) {
        double sum = y[i];
        const double* row = a + static_cast<int64_t>(i) * n;
        for (int k = 0; k < i; ++k) sum -= row[k] * y[k];
        y[i] = sum / row[i];
    }
    for (int i = n - 1; i >= 0; --i) {
        y[i] /= a[static_cast<int64_t>(i) * n + i];
        const double* row = a + static_cast<int64_t>(i) * n;
        const double value = y[i];
        for (int k = 0; k < i; ++k) y[k] -= row[k] * value;
    }
}

CARDBOOST_CLONES
void add_scaled(int n, double factor, const double* row, double* r) {
    for (int k = 0; k < n; ++k) r[k] += factor * row[k];
}

}  // namespace

double minimise_quadratic(int n, const double* q, const double* gradient, const double* x0, const double* slope,
                          const double* knee, const double* curve, const double* upper, double tolerance,
                          int max_iterations, double* x, int* iterations) {
    std::vector<Price> price(n);
    std::vector<double> r(gradient, gradient + n), direction(n), matrix, step, scratch;
    std::vector<int> free;
    for (int j = 0; j < n; ++j) price[j] = {slope[j], knee[j], curve[j], upper[j]};
    std::copy(x0, x0 + n, x);
    auto row = [&](int j) { return q + static_cast<int64_t>(j) * n; };
    auto move = [&](int j, double to) {
        const double delta = to - x[j];
        if (delta == 0.0) return;
        x[j] = to;
        add_scaled(n, delta, row(j), r.data());
    };
    for (int j = 0; j < n; ++j) move(j, std::min(std::max(x[j], 0.0), price[j].upper));
    auto sweep = [&]() {
        for (int j = 0; j < n; ++j) {
            if (price[j].upper <= 0.0) continue;
            const double d = row(j)[j];
            const double g = r[j] + price[j].derivative(x[j]);
            if (x[j] == 0.0 && g >= 0.0) continue;
            move(j, best_coordinate(price[j], r[j], d, x[j]));
        }
    };
    // largest derivative that a feasible move could still follow
    auto violation = [&]() {
        double worst = 0.0;
        for (int j = 0; j < n; ++j) {
            const double g = r[j] + price[j].derivative(x[j]);
            if (g > 0.0 && x[j] > 0.0) worst = std::max(worst, g);
            if (g < 0.0 && x[j] < price[j].upper) worst = std::max(worst, -g);
        }
        return worst;
    };
    int count = 0;
    for (; count < max_iterations; ++count) {
        sweep();
        if (violation() <= tolerance) break;
        // Newton on the coordinates strictly inside, up to the first bound or knee, until none is met
        for (int inner = 0; inner <= n; ++inner) {
            free.clear();
            for (int j = 0; j < n; ++j)
                if (x[j] > 0.0 && x[j] < price[j].upper) free.push_back(j);
            const int f = static_cast<int>(free.size());
            if (f == 0) break;
            matrix.resize(static_cast<size_t>(f) * f);
            step.resize(f);
            for (int a = 0; a < f; ++a) {
                const int j = free[a];
                for (int b = 0; b <= a; ++b) matrix[static_cast<size_t>(a) * f + b] = row(j)[free[b]];
                const double g = r[j] + price[j].derivative(x[j]);
                const bool beyond = x[j] > price[j].knee || (x[j] == price[j].knee && g < 0.0);
                matrix[static_cast<size_t>(a) * f + a] += (beyond ? price[j].curve : 0.0) + 1e-14 * row(j)[j];
                step[a] = -g;
            }
            scratch.resize(2 * static_cast<size_t>(f));
            for (int a = 0; a < f; ++a) scratch[a] = matrix[static_cast<size_t>(a) * f + a];
            solve_cholesky(f, matrix.data(), step.data(), scratch.data());
            double slope_along = 0.0;
            for (int a = 0; a < f; ++a)
                slope_along += step[a] * (r[free[a]] + price[free[a]].derivative(x[free[a]]));
            if (!(slope_along < 0.0)) break;
            double length = 1.0;
            int blocking = -1;
            double target = 0.0;
            for (int a = 0; a < f; ++a) {
                const int j = free[a];
                auto meets = [&](double bound) {
                    const double t = (bound - x[j]) / step[a];
                    if (t >= 0.0 && t < length) {
                        length = t;
                        blocking = j;
                        target = bound;
                    }
                };
                if (step[a] < 0.0) {
                    meets(x[j] > price[j].knee && price[j].knee > 0.0 ? price[j].knee : 0.0);
                } else if (step[a] > 0.0) {
                    if (x[j] < price[j].knee && price[j].knee < price[j].upper) meets(price[j].knee);
                    else if (std::isfinite(price[j].upper)) meets(price[j].upper);
                }
            }
            std::fill(direction.begin(), direction.end(), 0.0);
            for (int a = 0; a < f; ++a) {
                const int j = free[a];
                const double to = j == blocking ? target : std::max(0.0, std::min(price[j].upper, x[j] + length * step[a]));
                direction[j] = to - x[j];
                x[j] = to;
            }
            for (int j = 0; j < n; ++j)
                if (direction[j] != 0.0) add_scaled(n, direction[j], row(j), r.data());
            if (blocking < 0) break;
        }
        if (violation() <= tolerance) {
            ++count;
            break;
        }
    }
    *iterations = count;
    // drop of the model: r = gradient + Q (x - x0)
    double drop = 0.0;
    for (int j = 0; j < n; ++j)
        drop += 0.5 * (gradient[j] + r[j]) * (x0[j] - x[j]) + (price[j].value(x0[j]) - price[j].value(x[j]));
    return drop;
}

void score_supports(int n, const double* q, const double* gradient, const double* x0, const double* slope,
                    const double* curve, const double* upper, const int32_t* members, const int64_t* offsets,
                    int64_t candidates, double tolerance, int threads, double* drop) {
    threads = worth_threads(threads, candidates * 500);
#pragma omp parallel num_threads(threads)
    {
        std::vector<char> allowed(n);
        std::vector<int> columns;
        std::vector<double> matrix, part[7];
#pragma omp for schedule(dynamic, 8)
        for (int64_t c = 0; c < candidates; ++c) {
            std::fill(allowed.begin(), allowed.end(), 0);
            for (int64_t k = offsets[c]; k < offsets[c + 1]; ++k) allowed[members[k]] = 1;
            columns.clear();
            for (int j = 0; j < n; ++j)
                if (allowed[j] || x0[j] > 0.0) columns.push_back(j);
            const int size = static_cast<int>(columns.size());
            matrix.resize(static_cast<size_t>(size) * size);
            for (auto& p : part) p.assign(size, 0.0);
            for (int a = 0; a < size; ++a) {
                const int j = columns[a];
                for (int b = 0; b < size; ++b)
                    matrix[static_cast<size_t>(a) * size + b] = q[static_cast<int64_t>(j) * n + columns[b]];
                part[0][a] = gradient[j];
                part[1][a] = x0[j];
                part[2][a] = slope[j];
                part[3][a] = curve[j];
                part[4][a] = allowed[j] ? upper[j] : 0.0;
            }
            int iterations;
            drop[c] = minimise_quadratic(size, matrix.data(), part[0].data(), part[1].data(), part[2].data(),
                                         part[5].data(), part[3].data(), part[4].data(), tolerance, 30,
                                         part[6].data(), &iterations);
        }
    }
}

}  // namespace cardboost
