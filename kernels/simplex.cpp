// A small convex quadratic on the simplex: Newton on the weights in use with their sum held, up to the first that
// meets 0 and goes out; where there is no more to gain, the weight at 0 with the steepest slope comes in. Everything
// runs in a fixed order on one thread, so equal inputs give equal bits.
#include "door.h"

namespace cardboost {

namespace {

CARDBOOST_CLONES
double dot(int n, const double* a, const double* b) {
    constexpr int kLanes = 8;
    double sum[kLanes] = {};
    int k = 0;
    for (; k + kLanes <= n; k += kLanes)
        for (int l = 0; l < kLanes; ++l) sum[l] += a[k + l] * b[k + l];
    double rest = 0.0;
    for (; k < n; ++k) rest += a[k] * b[k];
    return (((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]))) + rest;
}

// The Cholesky factor of the rows and columns in use, kept as they come and go: O(size^2) a change. Where the matrix
// is flat a pivot gets a little.
class Factor {
  public:
    explicit Factor(int most) : stride_(most), f_(checked_size(most, most)) {}

    // One more: `entries` are its products with those before it and with itself.
    void append(int size, const double* entries) {
        double* last = row(size);
        for (int b = 0; b < size; ++b) last[b] = (entries[b] - dot(b, last, row(b))) / row(b)[b];
        const double rest = entries[size] - dot(size, last, last);
        last[size] = std::sqrt(std::max(rest, 1e-12 * entries[size] + 1e-300));
    }

    // Row `index` is left out, and rotations of two columns at a time bring the triangle back.
    void remove(int size, int index) {
        for (int a = index; a + 1 < size; ++a) std::copy(row(a + 1), row(a + 1) + a + 2, row(a));
        for (int k = index; k + 1 < size; ++k) {
            const double one = row(k)[k], two = row(k)[k + 1], length = std::hypot(one, two);
            const double c = one / length, s = two / length;
            for (int a = k; a + 1 < size; ++a) {
                double *left = row(a) + k, *right = left + 1;
                const double x = *left, y = *right;
                *left = c * x + s * y;
                *right = c * y - s * x;
            }
        }
    }

    // x becomes the inverse of the matrix times x.
    void solve(int size, double* x) const {
        for (int a = 0; a < size; ++a) x[a] = (x[a] - dot(a, row(a), x)) / row(a)[a];
        for (int a = size - 1; a >= 0; --a) {
            x[a] /= row(a)[a];
            add_scaled(a, -x[a], row(a), x);
        }
    }

  private:
    double* row(int a) { return f_.data() + static_cast<size_t>(a) * stride_; }
    const double* row(int a) const { return f_.data() + static_cast<size_t>(a) * stride_; }
    int stride_;
    std::vector<double> f_;
};

// The minimum over x >= 0, sum x = sum x0 of gradient'(x - x0) + (x - x0)' q (x - x0) / 2, from a feasible x0, by a
// primal active set. Weights that end at 0 are 0 exactly. Returns the drop; `changes` counts columns that came in or
// went out, at most `most_changes`.
double minimise_on_simplex(int n, const double* q, const double* gradient, const double* x0, double tolerance,
                           int most_changes, double* x, int* changes) {
    std::vector<double> r(gradient, gradient + n);  // the gradient at x
    std::vector<double> held(n), along(n), step(n);
    Factor factor(n);
    std::vector<int> in;
    std::copy(x0, x0 + n, x);
    double radius = 0.0, start = 0.0;
    for (int j = 0; j < n; ++j) {
        if (x[j] > 0.0) in.push_back(j);
        radius += x[j];
        start += x[j] * gradient[j];
    }
    start = radius > 0.0 ? start / radius : 0.0;  // the mean slope, which no step along the simplex sees
    auto row = [&](int j) { return q + static_cast<size_t>(j) * n; };
    // small weights last: they are the ones to go out, and the end of a factor is cheap to change
    std::stable_sort(in.begin(), in.end(), [&](int a, int b) { return x0[a] > x0[b]; });
    auto enter = [&](int size) {
        for (int b = 0; b <= size; ++b) step[b] = row(in[size])[in[b]];
        factor.append(size, step.data());
    };
    for (int a = 0; a < static_cast<int>(in.size()); ++a) enter(a);
    auto move = [&](int j, double to) {
        add_scaled(n, to - x[j], row(j), r.data());
        x[j] = to;
    };
    int count = 0, last = -1;  // last: what has just come in
    while (!in.empty()) {
        const int f = static_cast<int>(in.size());
        for (int a = 0; a < f; ++a) {
            held[a] = 1.0;
            along[a] = r[in[a]];
        }
        factor.solve(f, held.data());
        factor.solve(f, along.data());
        double one = 0.0, sum = 0.0;
        for (int a = 0; a < f; ++a) {
            one += held[a];
            sum += along[a];
        }
        const double level = one > 0.0 ? sum / one : 0.0;
        double length = 1.0, slope = 0.0;
        int blocking = -1;
        for (int a = 0; a < f; ++a) {
            step[a] = level * held[a] - along[a];
            slope += step[a] * (r[in[a]] - level);
            if (step[a] < 0.0 && x[in[a]] < -step[a] * length) {
                length = -x[in[a]] / step[a];
                blocking = a;
            }
        }
        const bool downhill = slope < 0.0 && one > 0.0;
        if (downhill) {
            int largest = in[0];
            double others = 0.0;
            for (int a = 0; a < f; ++a) {
                move(in[a], a == blocking ? 0.0 : std::max(0.0, x[in[a]] + length * step[a]));
                if (x[in[a]] > x[largest]) largest = in[a];
            }
            for (int j : in)
                if (j != largest) others += x[j];
            move(largest, std::max(0.0, radius - others));  // what rounding has done to the sum
        }
        if (downhill && blocking >= 0) {
            const int gone = in[blocking];
            in.erase(in.begin() + blocking);
            factor.remove(f, blocking);
            // what has come in and goes out at once would come in again
            if (gone == last || count++ >= most_changes) break;
            continue;
        }
        // the best on these: the slope is the same for all of them, up to rounding
        double mean = 0.0, total = 0.0;
        for (int j : in) {
            mean += x[j] * r[j];
            total += x[j];
        }
        mean = total > 0.0 ? mean / total : level;
        int best = -1;
        double steepest = mean - tolerance;
        for (int j = 0; j < n; ++j) {
            if (r[j] < steepest && x[j] == 0.0 && std::find(in.begin(), in.end(), j) == in.end()) {
                steepest = r[j];
                best = j;
            }
        }
        if (best < 0 || count++ >= most_changes) break;
        in.push_back(best);
        enter(f);
        last = best;
    }
    *changes = count;
    double drop = 0.0;
    for (int j = 0; j < n; ++j) drop -= 0.5 * ((gradient[j] - start) + (r[j] - start)) * (x[j] - x0[j]);
    return drop;
}

auto py_minimise_on_simplex(In<double, 2> q, In<double, 1> gradient, In<double, 1> x0, double tolerance,
                            int most_changes) {
    const size_t n = gradient.shape(0);
    require(has_shape(q, {n, n}) && have_length(n, x0), "minimise_on_simplex: sizes differ");
    require(all_entries(x0, [](double x) { return x >= 0.0; }), "minimise_on_simplex: x0 must not be negative");
    auto x = make<double>({n});
    int changes = 0;
    const double drop = unlocked([&] {
        return minimise_on_simplex(as_int(n), q.data(), gradient.data(), x0.data(), tolerance, most_changes, x.data(),
                                   &changes);
    });
    return std::make_tuple(x, drop, changes);
}

}  // namespace

void bind_simplex(nb::module_& m) {
    m.def("minimise_on_simplex", &py_minimise_on_simplex, "q"_a, "gradient"_a, "x0"_a, "tolerance"_a,
          "most_changes"_a);
}

}  // namespace cardboost
