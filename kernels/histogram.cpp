// Histograms of integer row weights over binned features, and the search for the best stump in them.
// Cost: one byte, one table entry and one addition per row and feature; the rows' weights are read once per
// four features from the first cache.
#include "door.h"

namespace cardboost {

namespace {

constexpr int64_t kRows = 512;  // read again for every four features: their weights stay in the first cache

// Sums are modulo 2^64: random words that stand for rows may pass the range of int64.
template <int W>
struct Lane {
    using type = Vector<uint64_t, W>;
};
template <>
struct Lane<1> {
    using type = uint64_t;
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

// Adds rows `range` to the tables of features `part`, the first of which is at `tables`.
template <int W>
CARDBOOST_INLINE void accumulate(const uint8_t* bins, int64_t rows, Range range, const int32_t* features,
                                 Range part, const int64_t* q, int64_t* tables) {
    for (int64_t begin = range.begin; begin < range.end; begin += kRows) {
        const int64_t n = std::min(kRows, range.end - begin);
        const int64_t* weights = q + begin * W;
        auto column = [&](int64_t f) { return bins + static_cast<int64_t>(features[f]) * rows + begin; };
        auto table = [&](int64_t f) { return tables + (f - part.begin) * kBins * W; };
        int64_t f = part.begin;
        for (; f + 4 <= part.end; f += 4) {
            const uint8_t* b[4] = {column(f), column(f + 1), column(f + 2), column(f + 3)};
            int64_t* h[4] = {table(f), table(f + 1), table(f + 2), table(f + 3)};
            add4<W>(b, weights, n, h);
        }
        for (; f < part.end; ++f) add1<W>(column(f), weights, n, table(f));
    }
}

CARDBOOST_CLONES
void accumulate_any(const uint8_t* bins, int64_t rows, Range range, const int32_t* features, Range part,
                    const int64_t* q, int width, int64_t* tables) {
    if (width == 1)
        accumulate<1>(bins, rows, range, features, part, q, tables);
    else if (width == 2)
        accumulate<2>(bins, rows, range, features, part, q, tables);
    else
        accumulate<4>(bins, rows, range, features, part, q, tables);
}

// Zeros that start on a boundary of eight numbers.
class AlignedTable {
public:
    explicit AlignedTable(size_t size) : storage_(size + 8) {
        const auto address = reinterpret_cast<uintptr_t>(storage_.data());
        begin_ = storage_.data() + (64 - address % 64) % 64 / sizeof(int64_t);
    }
    int64_t* data() { return begin_; }

private:
    std::vector<int64_t> storage_;
    int64_t* begin_;
};

// out[f][bin][c] = sum of q[row][c] over the rows of that bin, for every listed feature. width: 1, 2 or 4.
void histograms(const uint8_t* bins, int64_t rows, const int32_t* features, int n_features, const int64_t* q,
                int width, int threads, int64_t* out) {
    threads = worth_threads(threads, rows, n_features);
    const int64_t table = int64_t{kBins} * width;
    // Weights must start on a boundary of their width; NumPy promises 16 bytes, so wider ones are copied.
    const bool copied = reinterpret_cast<uintptr_t>(q) % (8u * width) != 0;
    AlignedTable copy(copied ? checked_size(rows, width) : 0);
    if (copied) q = std::copy(q, q + rows * width, copy.data()) - rows * width;
    // Whole groups of four features per thread; of few features each thread has all, and some of the rows.
    const bool few = threads > 1 && n_features < 4 * threads;
    const int groups = (n_features + 3) / 4, largest = few ? n_features : 4 * ((groups + threads - 1) / threads);
    std::vector<AlignedTable> tables;
    tables.reserve(threads);
    for (int t = 0; t < threads; ++t) tables.emplace_back(checked_size(largest, table));
    std::fill(out, out + n_features * table, 0);
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int t = 0; t < threads; ++t) {
        Range part = split(groups, t, threads);
        part = few ? Range{0, n_features} : Range{part.begin * 4, std::min<int64_t>(part.end * 4, n_features)};
        const Range range = few ? split(rows, t, threads) : Range{0, rows};
        accumulate_any(bins, rows, range, features, part, q, width, tables[t].data());
        if (!few) std::copy_n(tables[t].data(), (part.end - part.begin) * table, out + part.begin * table);
    }
    for (int t = 0; few && t < threads; ++t)
        for (int64_t i = 0; i < n_features * table; ++i)
            out[i] = static_cast<int64_t>(static_cast<uint64_t>(out[i]) + static_cast<uint64_t>(tables[t].data()[i]));
}

// out[row]: a hash of the row's bins in the listed features; equal rows have equal hashes.
void hash_bins(const uint8_t* bins, int64_t rows, const int32_t* features, int n_features, int threads,
               uint64_t* out) {
    for_blocks(rows, worth_threads(threads, rows, n_features), [=](int64_t begin, int64_t n) {
        uint64_t* hash = out + begin;
        std::fill(hash, hash + n, 0x9E3779B97F4A7C15ull);
        for (int f = 0; f < n_features; ++f) {
            const uint8_t* column = bins + static_cast<int64_t>(features[f]) * rows + begin;
            for (int64_t i = 0; i < n; ++i) hash[i] = (hash[i] ^ column[i]) * 0xBF58476D1CE4E5B9ull;
        }
        for (int64_t i = 0; i < n; ++i) {
            uint64_t h = hash[i] ^ (hash[i] >> 29);
            h *= 0x94D049BB133111EBull;
            hash[i] = h ^ (h >> 32);
        }
    });
}

struct SearchSettings {
    double edge_unit;       // value of one unit of the first histogram (1 / (scale * total weight))
    double curvature_unit;  // the same for the second one
    double l1, l2;
    bool gain;       // rank by the drop of the quadratic model, not by the edge
    bool intercept;  // the intercept moves along
    int width;       // numbers per bin: edge and curvature, or the edge alone (not with `gain`)
};

// Bits of `kind`: the feature has missing values; its stumps put one bin on the left, not all up to the cut.
constexpr uint8_t kHasMissing = 1, kCategorical = 2;

// The best stump of every feature.
struct BestStumps {
    double *score, *edge;
    int32_t* cut;
    int8_t* polarity;
    uint8_t* missing_left;
};

// Best allowed stump of every feature by docs/mathematics.md, "Which column next"; returns the largest edge of all
// allowed stumps. mask[f][cut] bits: 1 missing right & positive, 2 missing right & negative, 4 missing left &
// positive, 8 missing left & negative; a set bit forbids the stump.
double search(const int64_t* hist, int n_features, const int32_t* n_bins, const uint8_t* kind, const uint8_t* mask,
              const SearchSettings& s, const BestStumps& best) {
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
        best.score[f] = -std::numeric_limits<double>::infinity();
        best.edge[f] = 0.0;
        best.cut[f] = -1;
        best.polarity[f] = 0;
        best.missing_left[f] = 0;
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
                    if (value > best.score[f]) {
                        best.score[f] = value;
                        best.edge[f] = c;
                        best.cut[f] = b;
                        best.polarity[f] = p ? -1 : 1;
                        best.missing_left[f] = static_cast<uint8_t>(side);
                    }
                }
            }
        }
    }
    return largest;
}

Out<int64_t> py_histograms(In<uint8_t, 2> bins, In<int32_t, 1> features, In<int64_t, 2> q, int threads) {
    const size_t rows = bins.shape(1), n = features.shape(0), width = q.shape(1);
    require(q.shape(0) == rows, "row weights and bins differ in length");
    require(width == 1 || width == 2 || width == 4, "row weights must have 1, 2 or 4 lanes");
    require_indices(features, bins.shape(0));
    auto out = make<int64_t>({n, static_cast<size_t>(kBins), width});
    unlocked([&] {
        histograms(bins.data(), rows, features.data(), as_int(n), q.data(), as_int(width), threads, out.data());
    });
    return out;
}

Out<uint64_t> py_hash_bins(In<uint8_t, 2> bins, In<int32_t, 1> features, int threads) {
    require_indices(features, bins.shape(0));
    auto out = make<uint64_t>({bins.shape(1)});
    unlocked([&] {
        hash_bins(bins.data(), bins.shape(1), features.data(), as_int(features.shape(0)), threads, out.data());
    });
    return out;
}

auto py_search(In<int64_t, 3> hist, In<int32_t, 1> n_bins, In<uint8_t, 1> kind, In<uint8_t, 2> mask,
               double edge_unit, double curvature_unit, double l1, double l2, bool gain, bool intercept) {
    const size_t n = hist.shape(0), width = hist.shape(2);
    require(hist.shape(1) == kBins && (width == 2 || (width == 1 && !gain)),
            "histograms must have shape (features, 256, 2), or (features, 256, 1) where only edges count");
    require(have_length(n, n_bins, kind) && has_shape(mask, {n, kBins}), "search: arrays differ in length");
    require(all_entries(n_bins, [](int32_t b) { return b >= 0 && b <= 255; }), "a feature has more than 255 bins");
    auto score = make<double>({n}), edge = make<double>({n});
    auto cut = make<int32_t>({n});
    auto polarity = make<int8_t>({n});
    auto missing_left = make<uint8_t>({n});
    const double largest = unlocked([&] {
        return search(hist.data(), as_int(n), n_bins.data(), kind.data(), mask.data(),
                      {edge_unit, curvature_unit, l1, l2, gain, intercept, as_int(width)},
                      {score.data(), edge.data(), cut.data(), polarity.data(), missing_left.data()});
    });
    return std::make_tuple(score, edge, cut, polarity, missing_left, largest);
}

}  // namespace

void bind_histogram(nb::module_& m) {
    m.def("histograms", &py_histograms, "bins"_a, "features"_a, "q"_a, "threads"_a);
    m.def("hash_bins", &py_hash_bins, "bins"_a, "features"_a, "threads"_a);
    m.def("search", &py_search, "hist"_a, "n_bins"_a, "kind"_a, "mask"_a, "edge_unit"_a, "curvature_unit"_a,
          "l1"_a, "l2"_a, "gain"_a, "intercept"_a);
}

}  // namespace cardboost
