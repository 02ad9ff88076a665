// Products with a matrix of signs, eight entries at a time.
#pragma once
#include "common.h"

namespace cardboost {

// Signs of a lines x length matrix (the lines contiguous), a set bit where an entry is -1: bit k of
// packed[g * length + i] is entry i of line 8g + k. `packed` must be zero on entry. Returns false, and leaves it
// unfinished, when an entry is neither 1 nor -1.
bool pack_signs(const double* a64, const int8_t* a8, int64_t lines, int64_t length, uint8_t* packed);

// The same signs for the transposed matrix: bit i of out[h * lines + k] is entry 8h + i of line k.
void transpose_signs(const uint8_t* packed, int64_t lines, int64_t length, uint8_t* out);

// out[i] = sum over k of +-x[k], the signs in packed[(k / 8) * size + i]; n entries of x, `size` sums
void sign_sums(const uint8_t* packed, int64_t size, int64_t n, const double* x, double* out);
void sign_sums(const uint8_t* packed, int64_t size, int64_t n, const int64_t* x, int64_t* out);

}  // namespace cardboost
