// A small convex quadratic on the simplex: Newton on the weights in use with their sum held, up to the first that
// meets 0 and goes out; where there is no more to gain, the weight at 0 with the steepest slope comes in. Everything
// runs in a fixed order on one thread, so equal inputs give equal bits.
#include "simplex.h"

#include <algorithm>
#include <vector>

#include "small_matrix.h"

namespace cardboost {

namespace {

CARDBOOST_CLONES
void add_row(int n, double factor, const double* row, double* r) {
    for (int k = 0; k < n; ++k) r[k] += factor * row[k];
}

}  // namespace

double minimise_on_simplex(int n, const double* q, const double* gradient, const double* x0, double tolerance,
                           int most_changes, double* x, int* changes) {
    std::vector<double> r(gradient, gradient + n);  // the gradient at x
    std::vector<double> matrix(static_cast<size_t>(n) * n), held(n), along(n), step(n);
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
    auto move = [&](int j, double to) {
        add_row(n, to - x[j], row(j), r.data());
        x[j] = to;
    };
    int count = 0, last = -1;  // last: what has just come in
    while (!in.empty()) {
        const int f = static_cast<int>(in.size());
        for (int a = 0; a < f; ++a) {
            for (int b = 0; b <= a; ++b) matrix[static_cast<size_t>(a) * n + b] = row(in[a])[in[b]];
            held[a] = 1.0;
            along[a] = r[in[a]];
        }
        factorise(f, n, matrix.data(), Flat::lift);
        substitute(f, n, matrix.data(), held.data());
        substitute(f, n, matrix.data(), along.data());
        double one = 0.0, own = 0.0;
        for (int a = 0; a < f; ++a) {
            one += held[a];
            own += along[a];
        }
        const double level = one > 0.0 ? own / one : 0.0;
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
        last = best;
    }
    *changes = count;
    double drop = 0.0;
    for (int j = 0; j < n; ++j) drop -= 0.5 * ((gradient[j] - start) + (r[j] - start)) * (x[j] - x0[j]);
    return drop;
}

}  // namespace cardboost
