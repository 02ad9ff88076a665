// Margins of any number of stumps: per feature they add up to one lookup table over its bins.
#include "margins.h"

#include <algorithm>

namespace cardboost {

namespace {

CARDBOOST_CLONES
void block_margins(const uint8_t* bins, int64_t rows, int64_t begin, int64_t n, const int32_t* features,
                   int n_features, const double* tables, double base, const int8_t* sign, double* out) {
    for (int64_t i = 0; i < n; ++i) out[i] = base;
    int f = 0;
    for (; f + 4 <= n_features; f += 4) {
        const uint8_t* b0 = bins + static_cast<int64_t>(features[f]) * rows + begin;
        const uint8_t* b1 = bins + static_cast<int64_t>(features[f + 1]) * rows + begin;
        const uint8_t* b2 = bins + static_cast<int64_t>(features[f + 2]) * rows + begin;
        const uint8_t* b3 = bins + static_cast<int64_t>(features[f + 3]) * rows + begin;
        const double* t0 = tables + static_cast<int64_t>(f) * kBins;
        const double *t1 = t0 + kBins, *t2 = t1 + kBins, *t3 = t2 + kBins;
        for (int64_t i = 0; i < n; ++i)
            out[i] = (((out[i] + t0[b0[i]]) + t1[b1[i]]) + t2[b2[i]]) + t3[b3[i]];
    }
    for (; f < n_features; ++f) {
        const uint8_t* b = bins + static_cast<int64_t>(features[f]) * rows + begin;
        const double* t = tables + static_cast<int64_t>(f) * kBins;
        for (int64_t i = 0; i < n; ++i) out[i] += t[b[i]];
    }
    if (sign)
        for (int64_t i = 0; i < n; ++i) out[i] *= sign[begin + i];
}

}  // namespace

void margins(const uint8_t* bins, int64_t rows, const int32_t* features, int n_features, const double* tables,
             double base, const int8_t* sign, int threads, double* out) {
    threads = worth_threads(threads, rows * (n_features + 1));
    const int64_t blocks = (rows + kBlock - 1) / kBlock;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t b = 0; b < blocks; ++b) {
        const int64_t begin = b * kBlock;
        block_margins(bins, rows, begin, std::min(kBlock, rows - begin), features, n_features, tables, base,
                      sign, out + begin);
    }
}

void signed_weights(const uint8_t* bins, int64_t rows, const int32_t* features, const int8_t* signs, int n,
                    const int64_t* q, int width, int threads, int64_t* out) {
    threads = worth_threads(threads, rows * n);
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t i = 0; i < rows; ++i) {
        for (int k = 0; k < width; ++k) out[i * width + k] = 0;
        for (int k = 0; k < n; ++k) {
            const int8_t sign = signs[k * kBins + bins[static_cast<int64_t>(features[k]) * rows + i]];
            out[i * width + k] = sign < 0 ? -q[i] : q[i];
        }
    }
}

void stump_bits(const uint8_t* bins, int64_t rows, const int32_t* features, const int8_t* signs, int n, int threads,
                uint64_t* out) {
    threads = worth_threads(threads, rows * n);
    const int64_t words = (rows + 63) / 64;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t g = 0; g < words; ++g) {
        const int own = static_cast<int>(std::min<int64_t>(64, rows - 64 * g));
        for (int k = 0; k < n; ++k) {
            const uint8_t* bin = bins + static_cast<int64_t>(features[k]) * rows + 64 * g;
            const int8_t* sign = signs + static_cast<int64_t>(k) * kBins;
            uint64_t word = 0;
            for (int r = 0; r < own; ++r) word |= static_cast<uint64_t>(sign[bin[r]] < 0) << r;
            out[g * n + k] = word;
        }
    }
}

}  // namespace cardboost
