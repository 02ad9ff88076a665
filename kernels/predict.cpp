// Prediction from raw numbers: per feature a search among its own few cuts and one addition.
#include "predict.h"

#include <algorithm>
#include <atomic>
#include <limits>

namespace cardboost {

namespace {

// position = number of cuts below the value
CARDBOOST_CLONES
void few_cuts(const double* x, int64_t n, const double* cuts, int n_cuts, int32_t* at) {
    for (int64_t i = 0; i < n; ++i) at[i] = 0;
    for (int k = 0; k < n_cuts; ++k) {
        const double e = cuts[k];
        for (int64_t i = 0; i < n; ++i) at[i] += e < x[i] ? 1 : 0;
    }
}

void many_cuts(const double* x, int64_t n, const double* cuts, int n_cuts, int32_t* at) {
    for (int64_t i = 0; i < n; ++i)
        at[i] = static_cast<int32_t>(std::lower_bound(cuts, cuts + n_cuts, x[i]) - cuts);
}

}  // namespace

int64_t predict_steps(const std::vector<Column>& columns, int64_t rows, const double* cuts,
                      const int64_t* offsets, const double* levels, const double* missing, double base,
                      int threads, double* score, double* contributions) {
    const int n = static_cast<int>(columns.size());
    threads = worth_threads(threads, rows * n);
    std::atomic<int64_t> bad{n};
    const int64_t blocks = (rows + kBlock - 1) / kBlock;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t b = 0; b < blocks; ++b) {
        double values[kBlock];
        int32_t at[kBlock];
        const int64_t begin = b * kBlock, size = std::min(kBlock, rows - begin);
        double* out = score + begin;
        std::fill(out, out + size, base);
        for (int k = 0; k < n; ++k) {
            gather(columns[k], begin, begin + size, values);
            const double* own = cuts + offsets[k];
            const int n_cuts = static_cast<int>(offsets[k + 1] - offsets[k]);
            (n_cuts <= 16 ? few_cuts : many_cuts)(values, size, own, n_cuts, at);
            const double* level = levels + offsets[k] + k;
            bool infinite = false;
            for (int64_t i = 0; i < size; ++i) {
                const double x = values[i];
                infinite |= std::isinf(x);
                const double value = x == x ? level[at[i]] : missing[k];
                out[i] += value;
                if (contributions) contributions[static_cast<int64_t>(k) * rows + begin + i] = value;
            }
            if (infinite) {
                int64_t seen = bad.load();
                while (k < seen && !bad.compare_exchange_weak(seen, k)) {
                }
            }
        }
    }
    return bad.load() == n ? -1 : bad.load();
}

namespace {

CARDBOOST_CLONES
bool any_infinite(const double* x, int64_t n) {
    int64_t found = 0;
    for (int64_t i = 0; i < n; ++i) found |= std::fabs(x[i]) == std::numeric_limits<double>::infinity();
    return found != 0;
}

}  // namespace

int64_t find_infinite(const std::vector<Column>& columns, int64_t rows, int threads) {
    const int64_t n = static_cast<int64_t>(columns.size());
    threads = worth_threads(threads, rows * n);
    const int64_t blocks = (rows + kBlock - 1) / kBlock;
    int64_t first = n;
#pragma omp parallel for schedule(static) num_threads(threads) reduction(min : first)
    for (int64_t b = 0; b < blocks; ++b) {
        double values[kBlock];
        const int64_t begin = b * kBlock, size = std::min(kBlock, rows - begin);
        for (int64_t j = 0; j < std::min(first, n); ++j) {
            if (columns[j].kind != Kind::f64 && columns[j].kind != Kind::f32) continue;
            gather(columns[j], begin, begin + size, values);
            if (any_infinite(values, size)) first = j;
        }
    }
    return first == n ? -1 : first;
}

}  // namespace cardboost
