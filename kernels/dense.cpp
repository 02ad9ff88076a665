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

namespace {

CARDBOOST_CLONES
void scale_add(int n, double factor, const double* x, double* y) {
    for (int j = 0; j < n; ++j) y[j] += factor * x[j];
}

double inner(int n, const double* x, const double* y) {
    double sum = 0.0;
    for (int j = 0; j < n; ++j) sum += x[j] * y[j];
    return sum;
}

// Signs in bytes of eight, so that a product takes one table lookup for eight entries.
// by_row[g][i]: signs of row i in the g-th eight columns; by_column[g][j]: signs of column j in the g-th eight rows.
struct PackedSigns {
    int64_t rows;
    int n, column_groups, row_groups;
    std::vector<uint8_t> by_row, by_column;

    PackedSigns(const int8_t* a, int64_t m, const int32_t* columns, int count)
        : rows(m), n(count), column_groups((count + 7) / 8), row_groups(static_cast<int>((m + 7) / 8)),
          by_row(static_cast<size_t>(column_groups) * m, 0), by_column(static_cast<size_t>(row_groups) * count, 0) {
        for (int j = 0; j < n; ++j) {
            const int8_t* own = a + static_cast<int64_t>(columns[j]) * rows;
            uint8_t* across = by_row.data() + static_cast<int64_t>(j / 8) * rows;
            for (int64_t i = 0; i < rows; ++i)
                across[i] = static_cast<uint8_t>(across[i] | ((own[i] < 0 ? 1u : 0u) << (j % 8)));
            int64_t i = 0;
            for (; i + 8 <= rows; i += 8) {
                // the sign bits of eight bytes, gathered into one by a multiplication
                uint64_t eight;
                std::memcpy(&eight, own + i, 8);
                eight = (eight >> 7) & 0x0101010101010101ull;
                by_column[(i / 8) * n + j] = static_cast<uint8_t>((eight * 0x0102040810204080ull) >> 56);
            }
            for (; i < rows; ++i)
                by_column[(i / 8) * n + j] |= static_cast<uint8_t>((own[i] < 0 ? 1u : 0u) << (i % 8));
        }
    }

    // all sums of +-x over eight entries (missing ones count 0), indexed by the byte of signs
    template <class T>
    static void table(const T* x, int size, T* out) {
        out[0] = 0;
        for (int k = 0; k < size; ++k) out[0] += x[k];
        for (int k = 0; k < 8; ++k)
            for (int b = 0; b < (1 << k); ++b) out[(1 << k) + b] = k < size ? out[b] - 2 * x[k] : out[b];
    }

    // z[i] = sum over columns of a * p
    void times(const double* p, double* z) const {
        double sums[256];
        std::fill(z, z + rows, 0.0);
        for (int g = 0; g < column_groups; ++g) {
            table(p + 8 * g, std::min(8, n - 8 * g), sums);
            const uint8_t* bytes = by_row.data() + static_cast<int64_t>(g) * rows;
            for (int64_t i = 0; i < rows; ++i) z[i] += sums[bytes[i]];
        }
    }

    // out[j] = sum over rows of a * q
    void transposed(const int64_t* q, int64_t* out) const {
        int64_t sums[256];
        std::fill(out, out + n, 0);
        for (int g = 0; g < row_groups; ++g) {
            table(q + 8 * g, static_cast<int>(std::min<int64_t>(8, rows - 8 * g)), sums);
            const uint8_t* bytes = by_column.data() + static_cast<int64_t>(g) * n;
            for (int j = 0; j < n; ++j) out[j] += sums[bytes[j]];
        }
    }
};

}  // namespace

int dense_newton_direction(const int8_t* a, int64_t rows, const int32_t* columns, int n, const double* h,
                           const int64_t* count, double total_count, const double* l2, const double* gradient,
                           double tolerance, int max_iterations, double* d) {
    const PackedSigns signs(a, rows, columns, n);
    std::vector<double> residual(n), p(n), hp(n), z(rows);
    std::vector<int64_t> q(rows), sums(n);
    for (int j = 0; j < n; ++j) {
        d[j] = 0.0;
        p[j] = residual[j] = -gradient[j];
    }
    double square = inner(n, residual.data(), residual.data());
    const double stop = tolerance * tolerance * square;
    int iteration = 0;
    for (; iteration < max_iterations && square > stop; ++iteration) {
        signs.times(p.data(), z.data());
        // sums over rows are integers: the same in every order of the rows
        double largest = 0.0;
        for (int64_t i = 0; i < rows; ++i) {
            z[i] *= h[i];
            largest = std::max(largest, std::fabs(z[i]));
        }
        const double scale = fixed_scale(largest * total_count, total_count);
        const bool quick = largest * scale < kQuickLimit;
        for (int64_t i = 0; i < rows; ++i) {
            const double x = z[i] * scale;
            q[i] = (count ? count[i] : 1) * (quick ? fix_quick(x) : fix_any(x));
        }
        signs.transposed(q.data(), sums.data());
        for (int j = 0; j < n; ++j) hp[j] = static_cast<double>(sums[j]) / scale + l2[j] * p[j];
        const double bend = inner(n, p.data(), hp.data());
        if (!(bend > 0.0)) break;
        const double step = square / bend;
        scale_add(n, step, p.data(), d);
        scale_add(n, -step, hp.data(), residual.data());
        const double next = inner(n, residual.data(), residual.data());
        const double ratio = next / square;
        for (int j = 0; j < n; ++j) p[j] = residual[j] + ratio * p[j];
        square = next;
    }
    return iteration;
}

}  // namespace cardboost
