// Margins, edges and Hessians of columns that are stored as such: one byte (or double) per row and column.
#include "dense.h"

#include "door.h"

namespace cardboost {

namespace {

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
    for_blocks(rows, worth_threads(threads, rows, n), [=](int64_t begin, int64_t size) {
        std::fill(out + begin, out + begin + size, 0.0);
        for (int k = 0; k < n; ++k) {
            const int64_t start = static_cast<int64_t>(columns[k]) * rows + begin;
            if (a8)
                add_scaled(size, weights[k], a8 + start, out + begin);
            else
                add_scaled(size, weights[k], a64 + start, out + begin);
        }
    });
}

void dense_edges(const int8_t* a, bool signs, int64_t rows, const int32_t* columns, int n, const int64_t* q,
                 int threads, int64_t* out) {
    threads = worth_threads(threads, rows, n);
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int k = 0; k < n; ++k)
        out[k] = (signs ? signed_sum : product_sum)(a + static_cast<int64_t>(columns[k]) * rows, q, rows);
}

void dense_edges_real(const double* a, int64_t rows, const int32_t* columns, int n, const double* value,
                      const int64_t* count, double scale, bool quick, int threads, int64_t* out) {
    threads = worth_threads(threads, rows, n);
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int k = 0; k < n; ++k)
        out[k] = real_sum(a + static_cast<int64_t>(columns[k]) * rows, value, count, scale, quick, rows);
}

namespace {

// out[i][k] = product_sum(column k, weight times column left[i]); `Weight` is int64 or double
template <class Entry, class Weight, class Sum>
void gram(const Entry* a, int64_t rows, const int32_t* left, int n_left, const int32_t* columns, int n,
          const Weight* weight, bool symmetric, int threads, int64_t* out, const Sum& sum) {
    threads = worth_threads(threads, rows, n, n_left);
    std::vector<Weight> scratch(checked_size(rows, threads));
#pragma omp parallel for schedule(dynamic, 4) num_threads(threads)
    for (int i = 0; i < n_left; ++i) {
        Weight* weighted = scratch.data() + thread_index() * rows;
        const Entry* column = a + static_cast<int64_t>(left[i]) * rows;
        for (int64_t r = 0; r < rows; ++r) weighted[r] = column[r] * weight[r];
        for (int k = 0; k < (symmetric ? i + 1 : n); ++k)
            out[static_cast<int64_t>(i) * n + k] = sum(a + static_cast<int64_t>(columns[k]) * rows, weighted);
    }
    for (int i = 0; symmetric && i < n; ++i)
        for (int k = i + 1; k < n; ++k) out[static_cast<int64_t>(i) * n + k] = out[static_cast<int64_t>(k) * n + i];
}

// out[i * n + k] = sum over rows of q * a[column left[i]] * a[column k] (int8)
void dense_gram(const int8_t* a, bool signs, int64_t rows, const int32_t* left, int n_left, const int32_t* columns,
                int n, const int64_t* q, int threads, int64_t* out) {
    const bool symmetric = n_left == n && std::equal(left, left + n, columns);  // half is enough
    gram(a, rows, left, n_left, columns, n, q, symmetric, threads, out, [=](const int8_t* column, const int64_t* x) {
        return (signs ? signed_sum : product_sum)(column, x, rows);
    });
}

// The same with products that are rounded (double): count * round(value * a * a * scale)
void dense_gram_real(const double* a, int64_t rows, const int32_t* left, int n_left, const int32_t* columns, int n,
                     const double* value, const int64_t* count, double scale, bool quick, int threads, int64_t* out) {
    gram(a, rows, left, n_left, columns, n, value, false, threads, out, [=](const double* column, const double* x) {
        return real_sum(column, x, count, scale, quick, rows);
    });
}

Out<double> py_dense_margins(AnyMatrix a, In<int32_t, 1> columns, In<double, 1> weights, int threads) {
    const DenseArray entries = dense_array(a);
    const size_t rows = a.shape(1), n = columns.shape(0);
    require(have_length(n, weights), "one weight per column");
    require_indices(columns, a.shape(0));
    auto out = make<double>({rows});
    unlocked([&] {
        dense_margins(entries.small, entries.real, rows, columns.data(), as_int(n), weights.data(), threads,
                      out.data());
    });
    return out;
}

Out<int64_t> py_dense_edges(In<int8_t, 2> a, bool signs, In<int32_t, 1> columns, In<int64_t, 1> q, int threads) {
    const size_t rows = a.shape(1), n = columns.shape(0);
    require(have_length(rows, q), "row weights and columns differ in length");
    require_indices(columns, a.shape(0));
    auto out = make<int64_t>({n});
    unlocked([&] { dense_edges(a.data(), signs, rows, columns.data(), as_int(n), q.data(), threads, out.data()); });
    return out;
}

Out<int64_t> py_dense_edges_real(In<double, 2> a, In<int32_t, 1> columns, In<double, 1> value,
                                 Maybe<int64_t, 1> count, double scale, bool quick, int threads) {
    const size_t rows = a.shape(1), n = columns.shape(0);
    require(have_length(rows, value, count), "row weights and columns differ in length");
    require_indices(columns, a.shape(0));
    auto out = make<int64_t>({n});
    unlocked([&] {
        dense_edges_real(a.data(), rows, columns.data(), as_int(n), value.data(), data_or_null(count), scale, quick,
                         threads, out.data());
    });
    return out;
}

Out<int64_t> py_dense_gram(In<int8_t, 2> a, bool signs, In<int32_t, 1> left, In<int32_t, 1> columns,
                           In<int64_t, 1> q, int threads) {
    require(have_length(a.shape(1), q), "row weights and columns differ in length");
    require_indices(left, a.shape(0));
    require_indices(columns, a.shape(0));
    auto out = make<int64_t>({left.shape(0), columns.shape(0)});
    unlocked([&] {
        dense_gram(a.data(), signs, a.shape(1), left.data(), as_int(left.shape(0)), columns.data(),
                   as_int(columns.shape(0)), q.data(), threads, out.data());
    });
    return out;
}

Out<int64_t> py_dense_gram_real(In<double, 2> a, In<int32_t, 1> left, In<int32_t, 1> columns, In<double, 1> value,
                                Maybe<int64_t, 1> count, double scale, bool quick, int threads) {
    require(have_length(a.shape(1), value, count), "row weights and columns differ in length");
    require_indices(left, a.shape(0));
    require_indices(columns, a.shape(0));
    auto out = make<int64_t>({left.shape(0), columns.shape(0)});
    unlocked([&] {
        dense_gram_real(a.data(), a.shape(1), left.data(), as_int(left.shape(0)), columns.data(),
                        as_int(columns.shape(0)), value.data(), data_or_null(count), scale, quick, threads,
                        out.data());
    });
    return out;
}

}  // namespace

void bind_dense(nb::module_& m) {
    m.def("dense_margins", &py_dense_margins, "a"_a, "columns"_a, "weights"_a, "threads"_a);
    m.def("dense_edges", &py_dense_edges, "a"_a, "signs"_a, "columns"_a, "q"_a, "threads"_a);
    m.def("dense_edges_real", &py_dense_edges_real, "a"_a, "columns"_a, "value"_a, "count"_a.none(), "scale"_a,
          "quick"_a, "threads"_a);
    m.def("dense_gram", &py_dense_gram, "a"_a, "signs"_a, "left"_a, "columns"_a, "q"_a, "threads"_a);
    m.def("dense_gram_real", &py_dense_gram_real, "a"_a, "left"_a, "columns"_a, "value"_a, "count"_a.none(), "scale"_a,
          "quick"_a, "threads"_a);
}

}  // namespace cardboost
