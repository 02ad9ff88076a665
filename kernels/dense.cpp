// Margins, edges and Hessians of columns that are stored as such: one byte (or double) per row and column.
#include "dense.h"

#include <algorithm>
#include <vector>

namespace cardboost {

namespace {

CARDBOOST_CLONES
void add_column8(const int8_t* a, double weight, int64_t n, double* out) {
    for (int64_t i = 0; i < n; ++i) out[i] += weight * a[i];
}

CARDBOOST_CLONES
void add_column64(const double* a, double weight, int64_t n, double* out) {
    for (int64_t i = 0; i < n; ++i) out[i] += weight * a[i];
}

// sum of +-q: the sign bit of the byte, spread out, negates
CARDBOOST_CLONES
int64_t signed_sum(const int8_t* a, const int64_t* q, int64_t n) {
    int64_t sum = 0;
    for (int64_t i = 0; i < n; ++i) {
        const int64_t s = a[i] >> 7;
        sum += (q[i] ^ s) - s;
    }
    return sum;
}

CARDBOOST_CLONES
int64_t product_sum(const int8_t* a, const int64_t* q, int64_t n) {
    int64_t sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += static_cast<int64_t>(a[i]) * q[i];
    return sum;
}

CARDBOOST_CLONES
int64_t real_sum_quick(const double* a, const double* value, const int64_t* count, double scale, int64_t n) {
    int64_t sum = 0;
    if (count)
        for (int64_t i = 0; i < n; ++i) sum += count[i] * fix_quick(value[i] * a[i] * scale);
    else
        for (int64_t i = 0; i < n; ++i) sum += fix_quick(value[i] * a[i] * scale);
    return sum;
}

int64_t real_sum(const double* a, const double* value, const int64_t* count, double scale, bool quick,
                 int64_t n) {
    if (quick) return real_sum_quick(a, value, count, scale, n);
    int64_t sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += (count ? count[i] : 1) * fix_any(value[i] * a[i] * scale);
    return sum;
}

}  // namespace

void dense_margins(const int8_t* a8, const double* a64, int64_t rows, const int32_t* columns, int n,
                   const double* weights, int threads, double* out) {
    threads = worth_threads(threads, rows * n);
    const int64_t blocks = (rows + kBlock - 1) / kBlock;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t b = 0; b < blocks; ++b) {
        const int64_t begin = b * kBlock, size = std::min(kBlock, rows - begin);
        std::fill(out + begin, out + begin + size, 0.0);
        for (int k = 0; k < n; ++k) {
            const int64_t at = static_cast<int64_t>(columns[k]) * rows + begin;
            if (a8)
                add_column8(a8 + at, weights[k], size, out + begin);
            else
                add_column64(a64 + at, weights[k], size, out + begin);
        }
    }
}

void dense_edges(const int8_t* a, bool signs, int64_t rows, const int32_t* columns, int n, const int64_t* q,
                 int threads, int64_t* out) {
    threads = worth_threads(threads, rows * n);
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int k = 0; k < n; ++k) {
        const int8_t* column = a + static_cast<int64_t>(columns[k]) * rows;
        out[k] = signs ? signed_sum(column, q, rows) : product_sum(column, q, rows);
    }
}

void dense_edges_real(const double* a, int64_t rows, const int32_t* columns, int n, const double* value,
                      const int64_t* count, double scale, bool quick, int threads, int64_t* out) {
    threads = worth_threads(threads, rows * n);
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int k = 0; k < n; ++k)
        out[k] = real_sum(a + static_cast<int64_t>(columns[k]) * rows, value, count, scale, quick, rows);
}

void dense_gram(const int8_t* a, bool signs, int64_t rows, const int32_t* left, int n_left,
                const int32_t* columns, int n, const int64_t* q, int threads, int64_t* out) {
    threads = worth_threads(threads, rows * n * n_left);
    const bool square = n_left == n && std::equal(left, left + n, columns);  // symmetric: half is enough
#pragma omp parallel num_threads(threads)
    {
        std::vector<int64_t> weighted(rows);
#pragma omp for schedule(dynamic, 4)
        for (int i = 0; i < n_left; ++i) {
            const int8_t* mine = a + static_cast<int64_t>(left[i]) * rows;
            for (int64_t r = 0; r < rows; ++r) weighted[r] = mine[r] * q[r];
            for (int k = 0; k < n; ++k) {
                if (square && k > i) break;
                const int8_t* other = a + static_cast<int64_t>(columns[k]) * rows;
                out[static_cast<int64_t>(i) * n + k] =
                    signs ? signed_sum(other, weighted.data(), rows) : product_sum(other, weighted.data(), rows);
            }
        }
    }
    if (square)
        for (int i = 0; i < n; ++i)
            for (int k = i + 1; k < n; ++k) out[static_cast<int64_t>(i) * n + k] = out[static_cast<int64_t>(k) * n + i];
}

void dense_gram_real(const double* a, int64_t rows, const int32_t* left, int n_left, const int32_t* columns,
                     int n, const double* value, const int64_t* count, double scale, bool quick, int threads,
                     int64_t* out) {
    threads = worth_threads(threads, rows * n * n_left);
#pragma omp parallel num_threads(threads)
    {
        std::vector<double> weighted(rows);
#pragma omp for schedule(dynamic, 4)
        for (int i = 0; i < n_left; ++i) {
            const double* mine = a + static_cast<int64_t>(left[i]) * rows;
            for (int64_t r = 0; r < rows; ++r) weighted[r] = mine[r] * value[r];
            for (int k = 0; k < n; ++k)
                out[static_cast<int64_t>(i) * n + k] =
                    real_sum(a + static_cast<int64_t>(columns[k]) * rows, weighted.data(), count, scale, quick, rows);
        }
    }
}

}  // namespace cardboost
