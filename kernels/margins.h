#pragma once
#include "common.h"

namespace cardboost {

// out[row] = sign[row] * (base + sum over listed features of table[f][bin]); sign may be null (all +1).
// The sum runs over the features in their order, so the result does not depend on threads or shards.
void margins(const uint8_t* bins, int64_t rows, const int32_t* features, int n_features, const double* tables,
             double base, const int8_t* sign, int threads, double* out);

// out[row][k] = q[row] * signs[k][bin of feature k], k < width; unused lanes are 0
void signed_weights(const uint8_t* bins, int64_t rows, const int32_t* features, const int8_t* signs, int n,
                    const int64_t* q, int width, int threads, int64_t* out);

// A bit for every row and stump, set where signs[k][bin of feature k] is negative: word k of line g has rows
// 64g .. 64g + 63 of stump k
void stump_bits(const uint8_t* bins, int64_t rows, const int32_t* features, const int8_t* signs, int n, int threads,
                uint64_t* out);

}  // namespace cardboost
