// Shared by all kernels: extensions of the compilers, threads that survive a fork, blocks of rows, and fixed-point
// rounding.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <stdexcept>

#ifdef _OPENMP
#include <omp.h>
#endif

#if !defined(__GNUC__)
#error "The kernels are written for GCC and Clang: they use vectors and 128-bit integers."
#endif
#define CARDBOOST_INLINE inline __attribute__((always_inline))
#define CARDBOOST_RESTRICT __restrict
#define CARDBOOST_VECTOR(bytes) __attribute__((vector_size(bytes)))
#define CARDBOOST_POPCOUNT(word) __builtin_popcountll(word)
#define CARDBOOST_WIDE_INTEGER __int128
// Hot loops are compiled for several processors, where the compiler can choose among them at run time.
#if defined(__x86_64__) && !defined(__clang__) && defined(__linux__) && !defined(__SANITIZE_ADDRESS__)
#define CARDBOOST_CLONES __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define CARDBOOST_CLONES
#endif
// Vectors are handed over between functions that are always inlined, so how processors would pass them does not matter.
#pragma GCC diagnostic ignored "-Wpsabi"
// Lookups: collecting them in vectors costs more than it saves.
#if !defined(__clang__)
#define CARDBOOST_SCALAR __attribute__((optimize("no-tree-vectorize")))
#else
#define CARDBOOST_SCALAR
#endif

namespace cardboost {

using WideInteger = CARDBOOST_WIDE_INTEGER;

// N numbers that are added or multiplied at once.
template <class T, int N>
struct VectorOf {
    typedef T type CARDBOOST_VECTOR(N * sizeof(T));
};
template <class T, int N>
using Vector = typename VectorOf<T, N>::type;

template <int N, class T>
CARDBOOST_INLINE Vector<T, N> load(const T* p) {
    Vector<T, N> v;
    std::memcpy(&v, p, sizeof v);
    return v;
}
template <int N, class T>
CARDBOOST_INLINE void store(T* p, const Vector<T, N>& v) {
    std::memcpy(p, &v, sizeof v);
}

// The sum of four lanes, in a fixed order.
CARDBOOST_INLINE double add_lanes(const Vector<double, 4>& v) { return (v[0] + v[1]) + (v[2] + v[3]); }

// a'b, in four lanes
double dot(const double* a, const double* b, int64_t n);

// y += factor x
void add_scaled(int64_t n, double factor, const double* x, double* y);
void add_scaled(int64_t n, double factor, const float* x, double* y);
void add_scaled(int64_t n, double factor, const int8_t* x, double* y);

constexpr int kBins = 256;         // table entries per feature
constexpr int kMissing = 255;      // the bin of missing values
constexpr int64_t kBlock = 1024;   // rows handled together; a block's working set stays in the first cache

// The product of sizes of an array, or an exception where no array can be that large.
template <class... Size>
size_t checked_size(Size... sizes) {
    size_t product = 1;
    for (const size_t size : {static_cast<size_t>(sizes)...}) {
        if (size && product > (size_t{1} << 60) / size) throw std::length_error("an array is too large");
        product *= size;
    }
    return product;
}

// Threads to use for a requested number. After a fork the OpenMP runtime's pool is gone, so a child runs
// on one thread.
int usable_threads(int requested);

// The same, but no more than the work (the product of `sizes`, in simple row operations) is worth: starting threads
// costs microseconds.
template <class... Size>
int worth_threads(int requested, Size... sizes) {
    const double worth = (1.0 * ... * static_cast<double>(sizes)) / 250000 + 1;
    return usable_threads(requested > worth ? static_cast<int>(worth) : requested);
}

// Which thread of a parallel region this is: the index of its scratch space, allocated before the region. Nothing is
// allocated inside one: an exception there would end the interpreter.
inline int thread_index() {
#ifdef _OPENMP
    return omp_get_thread_num();
#else
    return 0;
#endif
}

// Calls work(first row, number of rows) for every block of rows.
template <class Work>
void for_blocks(int64_t rows, int threads, const Work& work) {
    const int64_t blocks = (rows + kBlock - 1) / kBlock;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t b = 0; b < blocks; ++b) work(b * kBlock, std::min(kBlock, rows - b * kBlock));
}

// The same with a result: every thread has a `Result` of its own for work(first row, number of rows, result), and
// `result.merge` puts them together.
template <class Result, class Work>
Result reduce_blocks(int64_t rows, int threads, const Work& work) {
    Result all;
    const int64_t blocks = (rows + kBlock - 1) / kBlock;
#pragma omp parallel num_threads(threads)
    {
        Result part;
#pragma omp for schedule(static)
        for (int64_t b = 0; b < blocks; ++b) work(b * kBlock, std::min(kBlock, rows - b * kBlock), part);
#pragma omp critical
        all.merge(part);
    }
    return all;
}

// Rows split into equal contiguous ranges, one per thread. Sums are integers, so the split never shows.
struct Range {
    int64_t begin, end;
};
inline Range split(int64_t n, int part, int parts) {
    return {n * part / parts, n * (part + 1) / parts};
}

// round-half-even to int64. The quick form holds for |x| < 2^51 and vectorises; both give equal results.
constexpr double kMagic = 6755399441055744.0;  // 1.5 * 2^52
CARDBOOST_INLINE int64_t fix_quick(double x) {
    double shifted = x + kMagic;
    int64_t bits;
    std::memcpy(&bits, &shifted, 8);
    return bits - 0x4338000000000000LL;
}
inline int64_t fix_any(double x) { return std::llrint(x); }
constexpr double kQuickLimit = 2251799813685248.0;  // 2^51

// Sums over an int64, as reduce_blocks takes them.
struct FixedSum {
    int64_t value = 0;
    void merge(const FixedSum& other) { value += other.value; }
};

}  // namespace cardboost
