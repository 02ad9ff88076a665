// Products with a matrix of signs, eight entries at a time.
#pragma once
#include "common.h"

namespace cardboost {

// out[i] = sum over k of +-x[k], the signs in grouped[(k / 64) * size + i]; n entries of x, `size` sums
void sign_sums(const uint64_t* grouped, int64_t size, int64_t n, const double* x, double* out);
void sign_sums(const uint64_t* grouped, int64_t size, int64_t n, const int64_t* x, int64_t* out);

// sums[b] = sum of x over the rows whose byte is b. Two tables, since neighbouring rows are often alike and would wait
// for each other.
inline void byte_sums(int64_t rows, const uint8_t* bytes, const double* x, double* sums) {
    double others[256] = {};
    std::fill(sums, sums + 256, 0.0);
    int64_t i = 0;
    for (; i + 2 <= rows; i += 2) {
        sums[bytes[i]] += x[i];
        others[bytes[i + 1]] += x[i + 1];
    }
    if (i < rows) sums[bytes[i]] += x[i];
    for (int b = 0; b < 256; ++b) sums[b] += others[b];
}

}  // namespace cardboost
