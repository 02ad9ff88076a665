// Shared by all kernels: threads that survive a fork, fixed-point rounding, and spans of flat arrays.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__linux__) && \
    !defined(__SANITIZE_ADDRESS__)
#define CARDBOOST_CLONES __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define CARDBOOST_CLONES
#endif
// Lookups: collecting them in vectors costs more than it saves.
#if defined(__GNUC__) && !defined(__clang__)
#define CARDBOOST_SCALAR __attribute__((optimize("no-tree-vectorize")))
#else
#define CARDBOOST_SCALAR
#endif
#define CARDBOOST_INLINE inline __attribute__((always_inline))

namespace cardboost {

// Four numbers that are added or multiplied at once.
template <class T>
struct FourOf {
    typedef T type __attribute__((vector_size(4 * sizeof(T))));
};
template <class T>
using Four = typename FourOf<T>::type;

constexpr int kBins = 256;         // table entries per feature
constexpr int kMissing = 255;      // the bin of missing values
constexpr int64_t kBlock = 1024;   // rows handled together; a block's working set stays in the first cache

// Threads to use for a requested number. After a fork the OpenMP runtime's pool is gone, so a child runs
// on one thread.
int usable_threads(int requested);

// The same, but no more than the work (in simple row operations) is worth: starting threads costs microseconds.
inline int worth_threads(int requested, int64_t work) {
    const int64_t worth = work / 250000 + 1;
    return requested > worth ? usable_threads(static_cast<int>(worth)) : usable_threads(requested);
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

}  // namespace cardboost
