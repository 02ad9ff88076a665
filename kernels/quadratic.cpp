// The convex master's inner problem: a small dense quadratic with a box and a piecewise quadratic price per
// weight. Coordinate sweeps find which weights sit at a bound or a knee; Newton steps finish the others.
// Everything runs in a fixed order on one thread, so equal inputs give equal bits.
#include "door.h"

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

// argmin over [0, upper] of r (x - now) + d (x - now)^2 / 2 + price(x)
double best_coordinate(const Price& p, double r, double d, double now) {
    double x;
    const double beyond = r + d * (p.knee - now) + p.slope;  // derivative at the knee
    if (beyond < 0.0) {
        const double total = d + p.curve;
        x = total > 0.0 ? p.knee - beyond / total : p.upper;
    } else {
        x = d > 0.0 ? now - (r + p.slope) / d : (r + p.slope > 0.0 ? 0.0 : now);
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

// min over 0 <= x <= upper of  gradient'(x - x0) + (x - x0)' Q (x - x0) / 2 + sum p_j(x_j)
// with p_j'(x) = slope_j + curve_j * max(0, x - knee_j): linear up to the knee, quadratic beyond.
struct QuadraticProblem {
    int n;
    const double *q, *gradient, *x0;
    const Price* price;
};

// Scratch space for problems of up to n weights.
struct QuadraticWorkspace {
    std::vector<double> r, direction, matrix, step, scratch;
    std::vector<int> free;
    explicit QuadraticWorkspace(size_t n)
        : r(n), direction(n), matrix(checked_size(n, n)), step(n), scratch(2 * n), free(n) {}
};

// The minimum, in x, and the drop of this model; *iterations counts factorisations.
double minimise_quadratic(const QuadraticProblem& problem, double tolerance, int max_iterations,
                          QuadraticWorkspace& work, double* x, int* iterations) {
    const int n = problem.n;
    const double *q = problem.q, *gradient = problem.gradient, *x0 = problem.x0;
    const Price* price = problem.price;
    double *r = work.r.data(), *direction = work.direction.data(), *matrix = work.matrix.data();
    double *step = work.step.data(), *scratch = work.scratch.data();
    int* free = work.free.data();
    std::copy(gradient, gradient + n, r);
    std::copy(x0, x0 + n, x);
    auto row = [=](int j) { return q + static_cast<int64_t>(j) * n; };
    auto move = [&](int j, double to) {
        const double delta = to - x[j];
        if (delta == 0.0) return;
        x[j] = to;
        add_scaled(n, delta, row(j), r);
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
            int f = 0;
            for (int j = 0; j < n; ++j)
                if (x[j] > 0.0 && x[j] < price[j].upper) free[f++] = j;
            if (f == 0) break;
            for (int a = 0; a < f; ++a) {
                const int j = free[a];
                for (int b = 0; b <= a; ++b) matrix[static_cast<size_t>(a) * f + b] = row(j)[free[b]];
                const double g = r[j] + price[j].derivative(x[j]);
                const bool beyond = x[j] > price[j].knee || (x[j] == price[j].knee && g < 0.0);
                matrix[static_cast<size_t>(a) * f + a] += (beyond ? price[j].curve : 0.0) + 1e-14 * row(j)[j];
                step[a] = -g;
            }
            for (int a = 0; a < f; ++a) scratch[a] = matrix[static_cast<size_t>(a) * f + a];
            solve_cholesky(f, matrix, step, scratch);
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
            std::fill(direction, direction + n, 0.0);
            for (int a = 0; a < f; ++a) {
                const int j = free[a];
                const double inside = std::max(0.0, std::min(price[j].upper, x[j] + length * step[a]));
                const double to = j == blocking ? target : inside;
                direction[j] = to - x[j];
                x[j] = to;
            }
            for (int j = 0; j < n; ++j)
                if (direction[j] != 0.0) add_scaled(n, direction[j], row(j), r);
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

// The same problem, with all knees at 0, on many supports: candidate c may use the columns
// members[offsets[c] .. offsets[c+1]) and must give up every other weight of x0. drop[c] is what the model falls by
// (negative: it rises).
void score_supports(const QuadraticProblem& problem, const int32_t* members, const int64_t* offsets,
                    int64_t candidates, double tolerance, int threads, double* drop) {
    struct Workspace {
        std::vector<char> allowed;
        std::vector<int> columns;
        std::vector<double> matrix, gradient, x0, x;
        std::vector<Price> price;
        QuadraticWorkspace quadratic;
        Workspace(size_t n, size_t most)
            : allowed(n), columns(most), matrix(checked_size(most, most)), gradient(most), x0(most), x(most),
              price(most), quadratic(most) {}
    };
    const int n = problem.n;
    const double *q = problem.q, *gradient = problem.gradient, *x0 = problem.x0;
    const Price* price = problem.price;
    threads = worth_threads(threads, candidates, 500);
    // no candidate uses more columns than the start and the largest support together
    int64_t most = 0;
    for (int64_t c = 0; c < candidates; ++c) most = std::max(most, offsets[c + 1] - offsets[c]);
    most = std::min<int64_t>(n, most + std::count_if(x0, x0 + n, [](double x) { return x > 0.0; }));
    std::vector<Workspace> workspaces;
    workspaces.reserve(threads);
    for (int t = 0; t < threads; ++t) workspaces.emplace_back(n, most);
#pragma omp parallel for schedule(dynamic, 8) num_threads(threads)
    for (int64_t c = 0; c < candidates; ++c) {
        Workspace& work = workspaces[thread_index()];
        std::fill(work.allowed.begin(), work.allowed.end(), 0);
        for (int64_t k = offsets[c]; k < offsets[c + 1]; ++k) work.allowed[members[k]] = 1;
        int size = 0;
        for (int j = 0; j < n; ++j)
            if (work.allowed[j] || x0[j] > 0.0) work.columns[size++] = j;
        for (int a = 0; a < size; ++a) {
            const int j = work.columns[a];
            for (int b = 0; b < size; ++b)
                work.matrix[static_cast<size_t>(a) * size + b] = q[static_cast<int64_t>(j) * n + work.columns[b]];
            work.gradient[a] = gradient[j];
            work.x0[a] = x0[j];
            work.price[a] = price[j];
            if (!work.allowed[j]) work.price[a].upper = 0.0;
        }
        int iterations;
        drop[c] = minimise_quadratic(
            {size, work.matrix.data(), work.gradient.data(), work.x0.data(), work.price.data()}, tolerance, 30,
            work.quadratic, work.x.data(), &iterations);
    }
}

std::vector<Price> prices(const In<double, 1>& slope, const double* knee, const In<double, 1>& curve,
                          const In<double, 1>& upper) {
    std::vector<Price> out(slope.shape(0));
    for (size_t j = 0; j < out.size(); ++j)
        out[j] = {slope.data()[j], knee ? knee[j] : 0.0, curve.data()[j], upper.data()[j]};
    return out;
}

auto py_minimise_quadratic(In<double, 2> q, In<double, 1> gradient, In<double, 1> x0, In<double, 1> slope,
                           In<double, 1> knee, In<double, 1> curve, In<double, 1> upper, double tolerance,
                           int max_iterations) {
    const size_t n = gradient.shape(0);
    require(has_shape(q, {n, n}) && have_length(n, x0, slope, knee, curve, upper), "minimise_quadratic: sizes differ");
    const std::vector<Price> price = prices(slope, knee.data(), curve, upper);
    auto x = make<double>({n});
    int iterations = 0;
    const double drop = unlocked([&] {
        QuadraticWorkspace work(n);
        return minimise_quadratic({as_int(n), q.data(), gradient.data(), x0.data(), price.data()}, tolerance,
                                  max_iterations, work, x.data(), &iterations);
    });
    return std::make_tuple(x, drop, iterations);
}

Out<double> py_score_supports(In<double, 2> q, In<double, 1> gradient, In<double, 1> x0, In<double, 1> slope,
                              In<double, 1> curve, In<double, 1> upper, In<int32_t, 1> members,
                              In<int64_t, 1> offsets, double tolerance, int threads) {
    const size_t n = gradient.shape(0);
    require(has_shape(q, {n, n}) && have_length(n, x0, slope, curve, upper), "score_supports: sizes differ");
    require(offsets.shape(0) >= 1, "score_supports: offsets must start at 0");
    const size_t candidates = offsets.shape(0) - 1;
    require_offsets(offsets, candidates, members.shape(0));
    require_indices(members, n);
    const std::vector<Price> price = prices(slope, nullptr, curve, upper);
    auto drop = make<double>({candidates});
    unlocked([&] {
        score_supports({as_int(n), q.data(), gradient.data(), x0.data(), price.data()}, members.data(),
                       offsets.data(), static_cast<int64_t>(candidates), tolerance, threads, drop.data());
    });
    return drop;
}

}  // namespace

void bind_quadratic(nb::module_& m) {
    m.def("minimise_quadratic", &py_minimise_quadratic, "q"_a, "gradient"_a, "x0"_a, "slope"_a, "knee"_a, "curve"_a,
          "upper"_a, "tolerance"_a, "max_iterations"_a);
    m.def("score_supports", &py_score_supports, "q"_a, "gradient"_a, "x0"_a, "slope"_a, "curve"_a, "upper"_a,
          "members"_a, "offsets"_a, "tolerance"_a, "threads"_a);
}

}  // namespace cardboost
