// Histograms of integer row weights over binned features, and the search for the best stump in them.
// Cost: one byte, one table entry and one addition per row and feature; the rows' weights are read once per
// four features from the first cache.
#include "histogram.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace cardboost {

namespace {

constexpr int64_t kRows = 512;

// Sums are modulo 2^64: random words that stand for rows may pass the range of int64.
template <int W>
struct Lane {
    typedef uint64_t type __attribute__((vector_size(8 * W)));
};
template <>
struct Lane<1> {
    typedef uint64_t type;
};

template <int W>
CARDBOOST_INLINE void add4(const uint8_t* const* b, const int64_t* q, int64_t n, int64_t* const* h) {
    using V = typename Lane<W>::type;
    const V* weights = reinterpret_cast<const V*>(q);
    V* h0 = reinterpret_cast<V*>(h[0]);
    V* h1 = reinterpret_cast<V*>(h[1]);
    V* h2 = reinterpret_cast<V*>(h[2]);
    V* h3 = reinterpret_cast<V*>(h[3]);
    const uint8_t *b0 = b[0], *b1 = b[1], *b2 = b[2], *b3 = b[3];
    for (int64_t i = 0; i < n; ++i) {
        const V w = weights[i];
        h0[b0[i]] += w;
        h1[b1[i]] += w;
        h2[b2[i]] += w;
        h3[b3[i]] += w;
    }
}

template <int W>
CARDBOOST_INLINE void add1(const uint8_t* b, const int64_t* q, int64_t n, int64_t* h) {
    using V = typename Lane<W>::type;
    const V* weights = reinterpret_cast<const V*>(q);
    V* table = reinterpret_cast<V*>(h);
    for (int64_t i = 0; i < n; ++i) table[b[i]] += weights[i];
}

template <int W>
CARDBOOST_INLINE void accumulate(const uint8_t* bins, int64_t rows, Range range, const int32_t* features,
                                 Range part, const int64_t* q, int64_t* out) {
    for (int64_t begin = range.begin; begin < range.end; begin += kRows) {
        const int64_t n = std::min(kRows, range.end - begin);
        const int64_t* weights = q + begin * W;
        int64_t f = part.begin;
        for (; f + 4 <= part.end; f += 4) {
            const uint8_t* b[4];
            int64_t* h[4];
            for (int k = 0; k < 4; ++k) {
                b[k] = bins + static_cast<int64_t>(features[f + k]) * rows + begin;
                h[k] = out + (f + k) * kBins * W;
            }
            add4<W>(b, weights, n, h);
        }
        for (; f < part.end; ++f)
            add1<W>(bins + static_cast<int64_t>(features[f]) * rows + begin, weights, n, out + f * kBins * W);
    }
}

CARDBOOST_CLONES
void accumulate_any(const uint8_t* bins, int64_t rows, Range range, const int32_t* features, Range part,
                    const int64_t* q, int width, int64_t* out) {
    if (width == 1)
        accumulate<1>(bins, rows, range, features, part, q, out);
    else if (width == 2)
        accumulate<2>(bins, rows, range, features, part, q, out);
    else
        accumulate<4>(bins, rows, range, features, part, q, out);
}

int64_t* aligned(std::vector<int64_t>& storage, int64_t n) {
    storage.assign(static_cast<size_t>(n) + 8, 0);
    auto address = reinterpret_cast<uintptr_t>(storage.data());
    return reinterpret_cast<int64_t*>((address + 63) & ~uintptr_t{63});
}

}  // namespace

void histograms(const uint8_t* bins, int64_t rows, const int32_t* features, int n_features, const int64_t* q,
                int width, int threads, int64_t* out) {
    threads = worth_threads(threads, rows * n_features);
    const int64_t size = static_cast<int64_t>(n_features) * kBins * width;
    // Weights must start on a boundary of their width; NumPy promises 16 bytes, so wider ones are copied.
    std::vector<int64_t> copy;
    if (reinterpret_cast<uintptr_t>(q) % (8u * width)) {
        int64_t* moved = aligned(copy, rows * width);
        std::copy(q, q + rows * width, moved);
        q = moved;
    }
    std::fill(out, out + size, 0);
    if (threads > 1 && n_features < 4 * threads) {
        // few features: split the rows, each thread with tables of its own
#pragma omp parallel num_threads(threads)
        {
            std::vector<int64_t> storage;
            int64_t* own = aligned(storage, size);
#pragma omp for schedule(static)
            for (int t = 0; t < threads; ++t)
                accumulate_any(bins, rows, split(rows, t, threads), features, {0, n_features}, q, width, own);
#pragma omp critical
            for (int64_t i = 0; i < size; ++i)
                out[i] = static_cast<int64_t>(static_cast<uint64_t>(out[i]) + static_cast<uint64_t>(own[i]));
        }
        return;
    }
#pragma omp parallel num_threads(threads)
    {
        std::vector<int64_t> storage;
#pragma omp for schedule(static)
        for (int t = 0; t < threads; ++t) {
            // whole groups of four features per thread
            Range part = split((n_features + 3) / 4, t, threads);
            part = {part.begin * 4, std::min<int64_t>(part.end * 4, n_features)};
            const int64_t from = part.begin * kBins * width, count = (part.end - part.begin) * kBins * width;
            if (count <= 0) continue;
            int64_t* own = aligned(storage, count);
            accumulate_any(bins, rows, {0, rows}, features, part, q, width, own - from);
            std::copy(own, own + count, out + from);
        }
    }
}

void hash_bins(const uint8_t* bins, int64_t rows, const int32_t* features, int n_features, int threads,
               uint64_t* out) {
    threads = worth_threads(threads, rows * n_features);
    const int64_t blocks = (rows + kBlock - 1) / kBlock;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t b = 0; b < blocks; ++b) {
        const int64_t begin = b * kBlock, n = std::min(kBlock, rows - begin);
        uint64_t* hash = out + begin;
        std::fill(hash, hash + n, 0x9E3779B97F4A7C15ull);
        for (int f = 0; f < n_features; ++f) {
            const uint8_t* own = bins + static_cast<int64_t>(features[f]) * rows + begin;
            for (int64_t i = 0; i < n; ++i) hash[i] = (hash[i] ^ own[i]) * 0xBF58476D1CE4E5B9ull;
        }
        for (int64_t i = 0; i < n; ++i) {
            uint64_t h = hash[i] ^ (hash[i] >> 29);
            h *= 0x94D049BB133111EBull;
            hash[i] = h ^ (h >> 32);
        }
    }
}

void search(const int64_t* hist, int n_features, const int32_t* n_bins, const uint8_t* kind, const uint8_t* mask,
            const SearchSettings& s, double* score, double* edge, int32_t* cut,
            int8_t* polarity, uint8_t* missing_left, double* largest_edge) {
    const int width = s.width, last_lane = width - 1;  // with one lane curvature is the edge again, and unused
    double largest = -std::numeric_limits<double>::infinity();
    for (int f = 0; f < n_features; ++f) {
        const int64_t* h = hist + static_cast<int64_t>(f) * kBins * width;
        const uint8_t* forbidden = mask + static_cast<int64_t>(f) * kBins;
        int64_t total_g = 0, total_h = 0;
        for (int b = 0; b < kBins; ++b) {
            total_g += h[width * b];
            total_h += h[width * b + last_lane];
        }
        const double all_h = static_cast<double>(total_h) * s.curvature_unit;
        const double intercept_edge = static_cast<double>(total_g) * s.edge_unit;
        // where nearly all curvature is on one side the quadratic model promises too much: keep it away from 0
        const double floor_h = 1e-4 * all_h;
        score[f] = -std::numeric_limits<double>::infinity();
        edge[f] = 0.0;
        cut[f] = -1;
        polarity[f] = 0;
        missing_left[f] = 0;
        int64_t left_g = 0, left_h = 0;
        const bool missing = kind[f] & kHasMissing, one_bin = kind[f] & kCategorical;
        const int last = missing || one_bin ? n_bins[f] : n_bins[f] - 1;
        for (int b = 0; b < last; ++b) {
            left_g = h[width * b] + (one_bin ? 0 : left_g);
            left_h = h[width * b + last_lane] + (one_bin ? 0 : left_h);
            for (int side = 0; side <= (missing && (one_bin || b + 1 < n_bins[f]) ? 1 : 0); ++side) {
                const int64_t g = left_g + (side ? h[width * kMissing] : 0);
                const int64_t k = left_h + (side ? h[width * kMissing + last_lane] : 0);
                const double signed_edge = static_cast<double>(2 * g - total_g) * s.edge_unit;
                const double cross = static_cast<double>(2 * k - total_h) * s.curvature_unit;
                for (int p = 0; p < 2; ++p) {
                    if (forbidden[b] & (1 << (2 * side + p))) continue;
                    const double c = p ? -signed_edge : signed_edge;
                    if (c > largest) largest = c;
                    double value = c;
                    if (s.gain) {
                        double slope = c - s.l1, curvature = all_h + s.l2;
                        if (s.intercept && all_h > 0.0) {
                            const double x = p ? -cross : cross;
                            slope -= x / all_h * intercept_edge;
                            curvature = std::max(all_h - x * x / all_h, floor_h) + s.l2;
                        }
                        value = slope > 0.0 && curvature > 0.0 ? slope * slope / curvature : slope;
                    }
                    if (value > score[f]) {
                        score[f] = value;
                        edge[f] = c;
                        cut[f] = b;
                        polarity[f] = p ? -1 : 1;
                        missing_left[f] = static_cast<uint8_t>(side);
                    }
                }
            }
        }
    }
    *largest_edge = largest;
}

}  // namespace cardboost
