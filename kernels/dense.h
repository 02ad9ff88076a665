#pragma once
#include "common.h"

namespace cardboost {

// Columns of any learner, stored one after the other: int8 (small whole numbers) or double.

// out[row] = sum over the listed columns, in their order, of weight * a[column][row]
void dense_margins(const int8_t* a8, const double* a64, int64_t rows, const int32_t* columns, int n,
                   const double* weights, int threads, double* out);

// out[k] = sum over rows of q * a[column k] (int8)
void dense_edges(const int8_t* a, bool signs, int64_t rows, const int32_t* columns, int n, const int64_t* q,
                 int threads, int64_t* out);

// out[k] = sum over rows of count * round(value * a * scale) (double)
void dense_edges_real(const double* a, int64_t rows, const int32_t* columns, int n, const double* value,
                      const int64_t* count, double scale, bool quick, int threads, int64_t* out);

}  // namespace cardboost
