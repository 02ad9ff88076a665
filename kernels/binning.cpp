// From numbers to bins: exact weighted quantile cuts (never sketched) and one byte per value.
// Cost per row and column: four light passes; only the neighbourhood of a cut is ever sorted.
#include <memory>
#include <type_traits>

#include "decimals.h"
#include "door.h"

namespace cardboost {

namespace {

constexpr int kBuckets = 8192;     // of a column
constexpr int kFinerBuckets = 512;  // of a bucket that holds too many values to be sorted
constexpr int64_t kSorted = 512;    // values of a bucket that are sorted at once
constexpr int64_t kWholeRange = 65536;  // integers are counted one by one up to this range

// A value with the weight it stands for; without weights every value counts once.
struct Bare {
    double x;
    int64_t weight() const { return 1; }
};
struct Weighted {
    double x;
    int64_t w;
    int64_t weight() const { return w; }
};

struct Distinct {
    double value;
    int64_t weight;
};

// Closes bins greedily where their weight comes nearest to an equal share of what is left, so that a heavy
// value does not waste its neighbours' bins. Integers only: the order of the rows cannot show.
class GreedyBins {
public:
    GreedyBins(int64_t total, int max_bins, double* cuts) : left_(total), max_bins_(max_bins), cuts_(cuts) {}

    // The next distinct value, in ascending order.
    void add(double value, int64_t weight) {
        if (any_ && wants_cut(held_, weight)) {
            cuts_[n_cuts_++] = shortest_decimal(last_, value);
            left_ -= held_;
            held_ = 0;
        }
        held_ += weight;
        last_ = value;
        any_ = true;
    }

    // Whether no cut can fall in or right after values of this total weight, none heavier than `heaviest`.
    bool can_skip(int64_t weight, int64_t heaviest) const { return any_ && !wants_cut(held_ + weight, heaviest); }
    void skip(int64_t weight, double last) {
        held_ += weight;
        last_ = last;
    }
    int cuts() const { return n_cuts_; }

private:
    bool wants_cut(WideInteger held, int64_t next) const {
        if (n_cuts_ >= max_bins_ - 1) return false;
        const WideInteger bins_left = max_bins_ - n_cuts_;
        return (2 * held + next) * bins_left > 2 * left_;
    }
    WideInteger left_, held_ = 0;
    int max_bins_, n_cuts_ = 0;
    double* cuts_;
    double last_ = 0.0;
    bool any_ = false;
};

// A monotone map from values to buckets of equal width.
struct BucketMap {
    double low = 0.0, factor = 0.0;  // halves, so that the widest range does not overflow
    BucketMap() = default;
    BucketMap(double least, double most, int buckets)
        : low(least * 0.5), factor((buckets - 1) / (most * 0.5 - least * 0.5)) {}
    bool usable() const { return factor < 1e290; }
    int operator()(double x) const { return static_cast<int>((x * 0.5 - low) * factor); }
};

struct Scan {
    double low = std::numeric_limits<double>::infinity(), high = -std::numeric_limits<double>::infinity();
    bool missing = false, infinite = false, whole = false;  // whole: every value is an integer, none is missing
};

// Extremes in eight lanes, so that they vectorise.
CARDBOOST_CLONES
Scan scan(const double* values, int64_t n) {
    constexpr int kLanes = 8;
    double low[kLanes], high[kLanes];
    int64_t missing[kLanes] = {}, broken[kLanes] = {};
    Scan out;
    for (int k = 0; k < kLanes; ++k) {
        low[k] = out.low;
        high[k] = out.high;
    }
    auto take = [&](int k, double x) {
        low[k] = x < low[k] ? x : low[k];
        high[k] = x > high[k] ? x : high[k];
        missing[k] |= x != x;
        broken[k] |= (x + kMagic) - kMagic != x;
    };
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes)
        for (int k = 0; k < kLanes; ++k) take(k, values[i + k]);
    for (; i < n; ++i) take(0, values[i]);
    for (int k = 0; k < kLanes; ++k) {
        out.low = std::min(out.low, low[k]);
        out.high = std::max(out.high, high[k]);
        out.missing |= missing[k] != 0;
    }
    out.whole = n > 0 && std::fabs(out.low) < kQuickLimit && std::fabs(out.high) < kQuickLimit;
    for (int k = 0; k < kLanes; ++k) out.whole &= broken[k] == 0;
    const double limit = std::numeric_limits<double>::max();
    out.infinite = n > 0 && (out.low < -limit || out.high > limit) && out.low <= out.high;
    return out;
}

CARDBOOST_CLONES
void bucket_indices(const double* values, int64_t n, BucketMap map, uint16_t* out) {
    for (int64_t i = 0; i < n; ++i) out[i] = static_cast<uint16_t>(map(values[i]));
}

CARDBOOST_CLONES
void offsets_from(const double* values, int64_t n, double low, uint16_t* out) {
    for (int64_t i = 0; i < n; ++i) out[i] = static_cast<uint16_t>(static_cast<int>(values[i] - low));
}

constexpr int kWays = 4;  // neighbouring rows often hold the same value: they are counted in different tables
constexpr int kFewWhole = 4096;  // as long as these stay in the cache

// Buffers of one thread, reused from column to column. They are written before they are read: not cleared first.
template <class Item>
struct Workspace {
    std::unique_ptr<double[]> values;    // of the columns that are read together
    std::unique_ptr<uint16_t[]> index;   // bucket, or offset from the smallest, of every row
    std::unique_ptr<Item[]> items, spare;
    std::unique_ptr<Distinct[]> distinct;   // kBins of them
    std::unique_ptr<uint32_t[]> bucket_end;  // kBuckets + 1
    std::unique_ptr<int64_t[]> weight;       // of whole numbers, by offset
    std::unique_ptr<uint8_t[]> bin;          // of a bucket or an offset
    Workspace(int64_t rows, int columns)
        : values(new double[checked_size(rows, columns)]), index(new uint16_t[rows]), items(new Item[rows]),
          spare(new Item[rows]), distinct(new Distinct[kBins]), bucket_end(new uint32_t[kBuckets + 1]),
          weight(new int64_t[kWholeRange]), bin(new uint8_t[kWholeRange]) {}
};

// Distinct values with their weights, and how many: -1 for more than `limit`. An open hash table, left as soon as it
// is too full, so that columns with many values cost next to nothing.
template <class Item>
int few_distinct(const Item* items, int64_t n, int limit, Distinct* out) {
    constexpr int kSlots = 1024;
    double keys[kSlots];
    int64_t weights[kSlots];
    bool used[kSlots] = {};
    int size = 0;
    unsigned slot = 0;
    for (int64_t i = 0; i < n; ++i) {
        const double x = items[i].x;
        if (!(used[slot] && keys[slot] == x)) {
            const double folded = x + 0.0;  // one zero
            uint64_t bits;
            std::memcpy(&bits, &folded, 8);
            slot = static_cast<unsigned>((bits * 0x9E3779B97F4A7C15ull) >> 54);
            while (used[slot] && keys[slot] != x) slot = (slot + 1) % kSlots;
            if (!used[slot]) {
                if (size == limit) return -1;
                ++size;
                used[slot] = true;
                keys[slot] = folded;
                weights[slot] = 0;
            }
        }
        weights[slot] += items[i].weight();
    }
    Distinct* end = out;
    for (int k = 0; k < kSlots; ++k)
        if (used[k]) *end++ = {keys[k], weights[k]};
    std::sort(out, end, [](const Distinct& a, const Distinct& b) { return a.value < b.value; });
    return size;
}

template <class Item>
void feed_sorted(Item* items, int64_t n, GreedyBins& greedy) {
    std::sort(items, items + n, [](const Item& a, const Item& b) { return a.x < b.x; });
    for (int64_t i = 0; i < n;) {
        int64_t end = i, weight = 0;
        for (; end < n && items[end].x == items[i].x; ++end) weight += items[end].weight();
        greedy.add(items[i].x, weight);
        i = end;
    }
}

// Feeds the distinct values of items to the bins in ascending order without a full sort: values fall into
// buckets (any monotone map gives the same cuts), and only buckets in which a cut may fall are looked into.
// `index`, if not null, holds the bucket of every item; `end` is room for one number more than there are buckets.
template <class Item>
void feed(Item* items, Item* spare, int64_t n, BucketMap map, const uint16_t* index, int buckets, uint32_t* end,
          GreedyBins& greedy) {
    std::fill(end, end + buckets + 1, 0);
    auto bucket = [&](int64_t i) { return index ? index[i] : map(items[i].x); };
    for (int64_t i = 0; i < n; ++i) ++end[bucket(i) + 1];
    for (int b = 0; b < buckets; ++b) end[b + 1] += end[b];
    for (int64_t i = 0; i < n; ++i) spare[end[bucket(i)]++] = items[i];
    // now end[b] is where bucket b ends
    auto start = [&](int b) { return b > 0 ? end[b - 1] : 0; };
    auto size = [&](int b) { return static_cast<int64_t>(end[b]) - start(b); };
    auto weigh = [&](int b) {
        if constexpr (std::is_same_v<Item, Bare>) return size(b);
        int64_t weight = 0;
        for (uint32_t i = start(b); i < end[b]; ++i) weight += spare[i].weight();
        return weight;
    };
    int following = 0;
    int64_t weight = -1;
    for (int b = 0; b < buckets; b = following) {
        following = b + 1;
        if (size(b) == 0) continue;
        if (weight < 0) weight = weigh(b);
        while (following < buckets && size(following) == 0) ++following;
        const int64_t next = following < buckets ? weigh(following) : 0;
        Item *first = spare + start(b), *last = spare + end[b];
        auto less = [](const Item& one, const Item& other) { return one.x < other.x; };
        if (greedy.can_skip(weight, std::max(weight, next))) {
            greedy.skip(weight, std::max_element(first, last, less)->x);
        } else if (size(b) <= kSorted) {
            feed_sorted(first, size(b), greedy);
        } else {
            const auto [low, high] = std::minmax_element(first, last, less);
            const BucketMap finer(low->x, high->x, kFinerBuckets);
            uint32_t finer_end[kFinerBuckets + 1];
            if (low->x == high->x)
                greedy.add(low->x, weight);
            else if (finer.usable())
                feed(first, items + start(b), size(b), finer, nullptr, kFinerBuckets, finer_end, greedy);
            else
                feed_sorted(first, size(b), greedy);
        }
        weight = next;
    }
}

// bin = number of cuts below the value
CARDBOOST_CLONES
void count_cuts(const double* values, int64_t n, const double* cuts, int n_cuts, uint8_t* out) {
    for (int64_t i = 0; i < n; ++i) out[i] = values[i] == values[i] ? 0 : kMissing;
    for (int k = 0; k < n_cuts; ++k) {
        const double e = cuts[k];
        for (int64_t i = 0; i < n; ++i) out[i] = static_cast<uint8_t>(out[i] + (e < values[i] ? 1 : 0));
    }
}

// `padded` holds 255 cuts, the unused ones infinite
CARDBOOST_INLINE int search_bin(double x, const double* padded) {
    int bin = 0;
    bin += padded[bin + 127] < x ? 128 : 0;
    bin += padded[bin + 63] < x ? 64 : 0;
    bin += padded[bin + 31] < x ? 32 : 0;
    bin += padded[bin + 15] < x ? 16 : 0;
    bin += padded[bin + 7] < x ? 8 : 0;
    bin += padded[bin + 3] < x ? 4 : 0;
    bin += padded[bin + 1] < x ? 2 : 0;
    bin += padded[bin] < x ? 1 : 0;
    return bin;
}

void pad(const double* cuts, int n, double* padded) {
    std::copy(cuts, cuts + n, padded);
    std::fill(padded + n, padded + kBins, std::numeric_limits<double>::infinity());
}

void assign_bins(const double* values, int64_t n, const double* cuts, int n_cuts, uint8_t* out) {
    if (n_cuts <= 4) return count_cuts(values, n, cuts, n_cuts, out);
    double padded[kBins];
    pad(cuts, n_cuts, padded);
    for (int64_t i = 0; i < n; ++i) {
        const double x = values[i];
        const int bin = search_bin(x, padded);
        out[i] = static_cast<uint8_t>(x == x ? bin : kMissing);
    }
}

// The same where `index` holds every value's bucket: only buckets with a cut, marked in `bin`, need a search.
void assign_by_bucket(const double* values, const uint16_t* index, int64_t n, BucketMap map, const double* cuts,
                      int n_cuts, uint8_t* bin, uint8_t* out) {
    double padded[kBins];
    pad(cuts, n_cuts, padded);
    int k = 0;
    for (int b = 0; b < kBuckets; ++b) {
        bin[b] = static_cast<uint8_t>(k);
        while (k < n_cuts && map(cuts[k]) == b) {
            bin[b] = kMissing;
            ++k;
        }
    }
    for (int64_t i = 0; i < n; ++i) {
        const uint8_t of_bucket = bin[index[i]];
        out[i] = of_bucket != kMissing ? of_bucket : static_cast<uint8_t>(search_bin(values[i], padded));
    }
}

// Integers in a narrow range: the weight of each is counted, nothing is sorted, and a table gives the bins.
template <class Item>
int bin_whole(const double* values, const int64_t* weights, int64_t rows, int max_bins, Scan range,
              Workspace<Item>& work, double* cuts, uint8_t* bins) {
    const int size = static_cast<int>(range.high - range.low) + 1;
    uint16_t* index = work.index.get();
    offsets_from(values, rows, range.low, index);
    const int ways = size <= kFewWhole ? kWays : 1;
    int64_t* weight = work.weight.get();
    std::fill(weight, weight + size * ways, 0);
    if (weights) {
        for (int64_t i = 0; i < rows; ++i) weight[(i % ways) * size + index[i]] += weights[i];
    } else if (ways == kWays) {
        int64_t *a = weight, *b = a + size, *c = b + size, *d = c + size;
        int64_t i = 0;
        for (; i + kWays <= rows; i += kWays) {
            ++a[index[i]];
            ++b[index[i + 1]];
            ++c[index[i + 2]];
            ++d[index[i + 3]];
        }
        for (; i < rows; ++i) ++a[index[i]];
    } else {
        for (int64_t i = 0; i < rows; ++i) ++weight[index[i]];
    }
    int64_t total = 0, distinct = 0;
    for (int k = 0; k < size; ++k) {
        for (int w = 1; w < ways; ++w) weight[k] += weight[static_cast<size_t>(w) * size + k];
        total += weight[k];
        distinct += weight[k] > 0;
    }
    int n_cuts = 0;
    if (distinct <= max_bins) {
        double last = range.low;
        for (int k = 1; k < size; ++k) {
            if (weight[k] == 0) continue;
            cuts[n_cuts++] = shortest_decimal(last, range.low + k);
            last = range.low + k;
        }
    } else {
        GreedyBins greedy(total, max_bins, cuts);
        for (int k = 0; k < size; ++k)
            if (weight[k] > 0) greedy.add(range.low + k, weight[k]);
        n_cuts = greedy.cuts();
    }
    uint8_t* bin = work.bin.get();
    for (int k = 0, below = 0; k < size; ++k) {
        while (below < n_cuts && cuts[below] < range.low + k) ++below;
        bin[k] = static_cast<uint8_t>(below);
    }
    for (int64_t i = 0; i < rows; ++i) bins[i] = bin[index[i]];
    return n_cuts;
}

// Cuts and bins of one column; returns the number of cuts, or -1 when a value is infinite.
template <class Item>
int bin_column(const double* values, const int64_t* weights, int64_t rows, int max_bins, Workspace<Item>& work,
               double* cuts, int64_t* missing, uint8_t* bins) {
    const Scan range = scan(values, rows);
    *missing = 0;
    if (range.infinite) return -1;
    if (range.whole && range.high - range.low < kWholeRange)
        return bin_whole(values, weights, rows, max_bins, range, work, cuts, bins);
    const bool plain = std::is_same_v<Item, Bare> && !range.missing;
    int64_t n = 0;
    auto collect = [&]() {
        for (int64_t i = 0; i < rows; ++i) {
            if (range.missing && std::isnan(values[i])) continue;
            if constexpr (std::is_same_v<Item, Weighted>)
                work.items[n++] = {values[i], weights[i]};
            else
                work.items[n++] = {values[i]};
        }
    };
    int distinct;
    if (plain) {
        // a bare item is just its value
        static_assert(sizeof(Bare) == sizeof(double));
        distinct = few_distinct(reinterpret_cast<const Bare*>(values), rows, max_bins, work.distinct.get());
        if (distinct < 0) collect();
    } else {
        collect();
        *missing = rows - n;
        distinct = few_distinct(work.items.get(), n, max_bins, work.distinct.get());
    }
    if (distinct >= 0) {
        for (int k = 0; k + 1 < distinct; ++k)
            cuts[k] = shortest_decimal(work.distinct[k].value, work.distinct[k + 1].value);
        const int n_cuts = std::max(0, distinct - 1);
        assign_bins(values, rows, cuts, n_cuts, bins);
        return n_cuts;
    }
    int64_t total = 0;
    for (int64_t i = 0; i < n; ++i) total += work.items[i].weight();
    GreedyBins greedy(total, max_bins, cuts);
    const BucketMap map(range.low, range.high, kBuckets);
    const bool indexed = map.usable() && !range.missing;
    if (indexed) bucket_indices(values, rows, map, work.index.get());
    if (map.usable())
        feed(work.items.get(), work.spare.get(), n, map, indexed ? work.index.get() : nullptr, kBuckets,
             work.bucket_end.get(), greedy);
    else
        feed_sorted(work.items.get(), n, greedy);
    if (indexed)
        assign_by_bucket(values, work.index.get(), rows, map, cuts, greedy.cuts(), work.bin.get(), bins);
    else
        assign_bins(values, rows, cuts, greedy.cuts(), bins);
    return greedy.cuts();
}

int group_size(int64_t rows, int columns, int threads) {
    int64_t fit = std::max<int64_t>(1, (int64_t{40} << 20) / (8 * std::max<int64_t>(rows, 1)));
    return static_cast<int>(std::max<int64_t>(1, std::min<int64_t>({8, fit, (columns + threads - 1) / threads})));
}

// The result of binning: bins (columns, rows); cuts (columns, 256), the first n_cuts[j] of row j in use; how many
// values are missing.
struct BinnedColumns {
    uint8_t* bins;
    double* cuts;
    int32_t* n_cuts;
    int64_t* missing;
};

// Returns the first column that holds an infinite value, or -1.
template <class Item>
int64_t bin_columns(const std::vector<Column>& columns, const int64_t* weights, int64_t rows, int max_bins,
                    int threads, const BinnedColumns& out) {
    const int n = static_cast<int>(columns.size());
    const int group = group_size(rows, n, threads), groups = (n + group - 1) / group;
    std::vector<Workspace<Item>> workspaces;
    workspaces.reserve(threads);
    for (int t = 0; t < threads; ++t) workspaces.emplace_back(rows, group);
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
    for (int g = 0; g < groups; ++g) {
        Workspace<Item>& work = workspaces[thread_index()];
        const int begin = g * group, count = std::min(group, n - begin);
        gather_group(columns.data() + begin, count, rows, work.values.get());
        for (int c = 0; c < count; ++c) {
            const int64_t j = begin + c;
            out.n_cuts[j] = bin_column<Item>(work.values.get() + c * rows, weights, rows, max_bins, work,
                                             out.cuts + j * kBins, out.missing + j, out.bins + j * rows);
        }
    }
    const int32_t* infinite = std::find_if(out.n_cuts, out.n_cuts + n, [](int32_t count) { return count < 0; });
    return infinite < out.n_cuts + n ? infinite - out.n_cuts : -1;
}

// bins (columns, rows) by cuts[offsets[j] .. offsets[j + 1]) of column j
void apply_cuts(const std::vector<Column>& columns, int64_t rows, const double* cuts, const int64_t* offsets,
                int threads, uint8_t* bins) {
    const int n = static_cast<int>(columns.size());
    for_blocks(rows, worth_threads(threads, rows, n), [&](int64_t begin, int64_t size) {
        double values[kBlock];
        for (int j = 0; j < n; ++j) {
            gather(columns[j], begin, begin + size, values);
            assign_bins(values, size, cuts + offsets[j], static_cast<int>(offsets[j + 1] - offsets[j]),
                        bins + static_cast<size_t>(j) * rows + begin);
        }
    });
}

auto py_bin_columns(const nb::list& list, Maybe<int64_t, 1> weights, int max_bins, int threads) {
    int64_t rows;
    const auto columns = read_columns(list, &rows);
    require(max_bins >= 2 && max_bins <= 255, "max_bins must be between 2 and 255");
    require(have_length(rows, weights), "weights and rows differ in length");
    require(rows <= std::numeric_limits<uint32_t>::max(), "too many rows to be binned");
    const size_t n = columns.size();
    auto bins = make<uint8_t>({n, static_cast<size_t>(rows)});
    auto cuts = make<double>({n, static_cast<size_t>(kBins)});
    auto n_cuts = make<int32_t>({n});
    auto missing = make<int64_t>({n});
    const int64_t first_infinite = unlocked([&] {
        const int used = worth_threads(threads, 4, rows, n);
        return (weights ? bin_columns<Weighted> : bin_columns<Bare>)(
            columns, data_or_null(weights), rows, max_bins, used,
            {bins.data(), cuts.data(), n_cuts.data(), missing.data()});
    });
    return std::make_tuple(bins, cuts, n_cuts, missing, first_infinite);
}

Out<uint8_t> py_apply_cuts(const nb::list& list, In<double, 1> cuts, In<int64_t, 1> offsets, int threads) {
    int64_t rows;
    const auto columns = read_columns(list, &rows);
    require_offsets(offsets, columns.size(), cuts.shape(0), 254);
    auto bins = make<uint8_t>({columns.size(), static_cast<size_t>(rows)});
    unlocked([&] { apply_cuts(columns, rows, cuts.data(), offsets.data(), threads, bins.data()); });
    return bins;
}

}  // namespace

void bind_binning(nb::module_& m) {
    m.def("bin_columns", &py_bin_columns, "columns"_a, "weights"_a.none(), "max_bins"_a, "threads"_a);
    m.def("apply_cuts", &py_apply_cuts, "columns"_a, "cuts"_a, "offsets"_a, "threads"_a);
    m.def("shortest_decimal", [](double x, double y) { return shortest_decimal(x, y); }, "x"_a, "y"_a);
}

}  // namespace cardboost
