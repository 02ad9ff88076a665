// From numbers to bins: exact weighted quantile cuts (never sketched) and one byte per value.
// Cost per row and column: four light passes; only the neighbourhood of a cut is ever sorted.
#include "binning.h"

#include <atomic>
#include <limits>
#include <memory>
#include <type_traits>

#include "decimals.h"

namespace cardboost {

namespace {

constexpr int kBuckets = 8192;

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
            cuts_[made_++] = simplest_decimal(last_, value);
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
    int made() const { return made_; }

private:
    bool wants_cut(__int128 held, int64_t next) const {
        if (made_ >= max_bins_ - 1) return false;
        const __int128 bins_left = max_bins_ - made_;
        return (2 * held + next) * bins_left > 2 * left_;
    }
    __int128 left_, held_ = 0;
    int max_bins_, made_ = 0;
    double* cuts_;
    double last_ = 0.0;
    bool any_ = false;
};

// A monotone map from values to buckets of equal width.
struct BucketMap {
    double low = 0.0, factor = 0.0;  // halves, so that the widest range does not overflow
    BucketMap() = default;
    BucketMap(double least, double most) : low(least * 0.5), factor((kBuckets - 1) / (most * 0.5 - least * 0.5)) {}
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

// Buffers of one thread, reused from column to column.
template <class Item>
struct Work {
    // arrays that are written before they are read: not cleared first
    std::unique_ptr<double[]> values;
    std::unique_ptr<uint16_t[]> index;
    std::unique_ptr<Item[]> items, spare;
    std::vector<Distinct> distinct;
    Work(int64_t rows, int columns)
        : values(new double[rows * columns]), index(new uint16_t[rows]), items(new Item[rows]),
          spare(new Item[rows]) {}
};

// Distinct values with their weights while there are at most `limit` of them: an open hash table, left as
// soon as it is too full, so that columns with many values cost next to nothing.
template <class Item>
bool few_distinct(const Item* items, int64_t n, int limit, std::vector<Distinct>& out) {
    constexpr int kSlots = 1024;
    double keys[kSlots];
    int64_t weights[kSlots];
    bool used[kSlots] = {};
    int found = 0;
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
                if (found == limit) return false;
                ++found;
                used[slot] = true;
                keys[slot] = folded;
                weights[slot] = 0;
            }
        }
        weights[slot] += items[i].weight();
    }
    out.clear();
    for (int k = 0; k < kSlots; ++k)
        if (used[k]) out.push_back({keys[k], weights[k]});
    std::sort(out.begin(), out.end(), [](const Distinct& a, const Distinct& b) { return a.value < b.value; });
    return true;
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
// `index`, if given, holds the bucket of every item.
template <class Item>
void feed(Item* items, Item* spare, int64_t n, BucketMap map, const uint16_t* index, GreedyBins& greedy) {
    std::vector<uint32_t> start(kBuckets + 1, 0);
    if (index)
        for (int64_t i = 0; i < n; ++i) ++start[index[i] + 1];
    else
        for (int64_t i = 0; i < n; ++i) ++start[map(items[i].x) + 1];
    for (int b = 0; b < kBuckets; ++b) start[b + 1] += start[b];
    std::vector<uint32_t> at(start.begin(), start.end() - 1);
    if (index)
        for (int64_t i = 0; i < n; ++i) spare[at[index[i]]++] = items[i];
    else
        for (int64_t i = 0; i < n; ++i) spare[at[map(items[i].x)]++] = items[i];
    auto weigh = [&](int b) {
        int64_t weight = start[b + 1] - start[b];
        if constexpr (std::is_same_v<Item, Weighted>) {
            weight = 0;
            for (uint32_t i = start[b]; i < start[b + 1]; ++i) weight += spare[i].w;
        }
        return weight;
    };
    int following = 0;
    int64_t weight = -1;
    for (int b = 0; b < kBuckets; b = following) {
        if (start[b + 1] == start[b]) {
            following = b + 1;
            continue;
        }
        if (weight < 0) weight = weigh(b);
        following = b + 1;
        while (following < kBuckets && start[following + 1] == start[following]) ++following;
        const int64_t next = following < kBuckets ? weigh(following) : 0;
        Item* own = spare + start[b];
        const int64_t size = start[b + 1] - start[b];
        if (greedy.can_skip(weight, std::max(weight, next))) {
            double largest = own[0].x;
            for (int64_t i = 1; i < size; ++i) largest = std::max(largest, own[i].x);
            greedy.skip(weight, largest);
        } else if (size <= 512) {
            feed_sorted(own, size, greedy);
        } else {
            double low = own[0].x, high = own[0].x;
            for (int64_t i = 1; i < size; ++i) {
                low = std::min(low, own[i].x);
                high = std::max(high, own[i].x);
            }
            const BucketMap finer(low, high);
            if (low == high)
                greedy.add(low, weight);
            else if (finer.usable())
                feed(own, items + start[b], size, finer, nullptr, greedy);
            else
                feed_sorted(own, size, greedy);
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
    int at = 0;
    at += padded[at + 127] < x ? 128 : 0;
    at += padded[at + 63] < x ? 64 : 0;
    at += padded[at + 31] < x ? 32 : 0;
    at += padded[at + 15] < x ? 16 : 0;
    at += padded[at + 7] < x ? 8 : 0;
    at += padded[at + 3] < x ? 4 : 0;
    at += padded[at + 1] < x ? 2 : 0;
    at += padded[at] < x ? 1 : 0;
    return at;
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
        const int at = search_bin(x, padded);
        out[i] = x == x ? static_cast<uint8_t>(at) : static_cast<uint8_t>(kMissing);
    }
}

// The same where every value's bucket is known: only buckets that hold a cut need a search.
void assign_by_bucket(const double* values, const uint16_t* index, int64_t n, BucketMap map, const double* cuts,
                      int n_cuts, uint8_t* out) {
    double padded[kBins];
    pad(cuts, n_cuts, padded);
    std::vector<uint8_t> bin(kBuckets);
    int k = 0;
    for (int b = 0; b < kBuckets; ++b) {
        bin[b] = static_cast<uint8_t>(k);
        while (k < n_cuts && map(cuts[k]) == b) {
            bin[b] = kMissing;
            ++k;
        }
    }
    for (int64_t i = 0; i < n; ++i) {
        const uint8_t known = bin[index[i]];
        out[i] = known != kMissing ? known : static_cast<uint8_t>(search_bin(values[i], padded));
    }
}

// Integers in a narrow range: the weight of each is counted, nothing is sorted, and a table gives the bins.
int bin_whole(const double* values, const int64_t* weights, int64_t rows, int max_bins, Scan range, uint16_t* index,
              double* cuts, uint8_t* bins) {
    const int size = static_cast<int>(range.high - range.low) + 1;
    offsets_from(values, rows, range.low, index);
    constexpr int kWays = 4;  // neighbouring rows often hold the same value: they count in different places
    const int ways = size <= 4096 ? kWays : 1;
    std::vector<int64_t> weight(static_cast<size_t>(size) * ways, 0);
    if (weights) {
        for (int64_t i = 0; i < rows; ++i) weight[(i % ways) * size + index[i]] += weights[i];
    } else if (ways == kWays) {
        int64_t *a = weight.data(), *b = a + size, *c = b + size, *d = c + size;
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
    int made = 0;
    if (distinct <= max_bins) {
        double last = range.low;
        for (int k = 1; k < size; ++k) {
            if (weight[k] == 0) continue;
            cuts[made++] = simplest_decimal(last, range.low + k);
            last = range.low + k;
        }
    } else {
        GreedyBins greedy(total, max_bins, cuts);
        for (int k = 0; k < size; ++k)
            if (weight[k] > 0) greedy.add(range.low + k, weight[k]);
        made = greedy.made();
    }
    std::vector<uint8_t> bin(size);
    for (int k = 0, below = 0; k < size; ++k) {
        while (below < made && cuts[below] < range.low + k) ++below;
        bin[k] = static_cast<uint8_t>(below);
    }
    for (int64_t i = 0; i < rows; ++i) bins[i] = bin[index[i]];
    return made;
}

// Cuts and bins of one column; returns the number of cuts, or -1 when a value is infinite.
template <class Item>
int bin_column(const double* values, const int64_t* weights, int64_t rows, int max_bins, Work<Item>& work,
               double* cuts, int64_t* missing, uint8_t* bins) {
    const Scan range = scan(values, rows);
    *missing = 0;
    if (range.infinite) return -1;
    if (range.whole && range.high - range.low < 65536.0)
        return bin_whole(values, weights, rows, max_bins, range, work.index.get(), cuts, bins);
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
    bool few;
    if (plain) {
        // a bare item is just its value
        static_assert(sizeof(Bare) == sizeof(double));
        few = few_distinct(reinterpret_cast<const Bare*>(values), rows, max_bins, work.distinct);
        if (!few) collect();
    } else {
        collect();
        *missing = rows - n;
        few = few_distinct(work.items.get(), n, max_bins, work.distinct);
    }
    int made = 0;
    if (few) {
        for (size_t i = 0; i + 1 < work.distinct.size(); ++i)
            cuts[made++] = simplest_decimal(work.distinct[i].value, work.distinct[i + 1].value);
        assign_bins(values, rows, cuts, made, bins);
        return made;
    }
    int64_t total = n;
    if constexpr (std::is_same_v<Item, Weighted>) {
        total = 0;
        for (int64_t i = 0; i < n; ++i) total += work.items[i].w;
    }
    GreedyBins greedy(total, max_bins, cuts);
    const BucketMap map(range.low, range.high);
    if (!map.usable()) {
        feed_sorted(work.items.get(), n, greedy);
        assign_bins(values, rows, cuts, greedy.made(), bins);
    } else if (range.missing) {
        feed(work.items.get(), work.spare.get(), n, map, nullptr, greedy);
        assign_bins(values, rows, cuts, greedy.made(), bins);
    } else {
        bucket_indices(values, rows, map, work.index.get());
        feed(work.items.get(), work.spare.get(), n, map, work.index.get(), greedy);
        assign_by_bucket(values, work.index.get(), rows, map, cuts, greedy.made(), bins);
    }
    return greedy.made();
}

int group_size(int64_t rows, int columns, int threads) {
    int64_t fit = std::max<int64_t>(1, (int64_t{40} << 20) / (8 * std::max<int64_t>(rows, 1)));
    return static_cast<int>(std::max<int64_t>(1, std::min<int64_t>({8, fit, (columns + threads - 1) / threads})));
}

template <class Item>
void bin_columns_as(const std::vector<Column>& columns, const int64_t* weights, int64_t rows, int max_bins,
                    int threads, uint8_t* bins, double* cuts, int32_t* n_cuts, int64_t* missing,
                    int64_t* first_infinite) {
    const int n = static_cast<int>(columns.size());
    const int group = group_size(rows, n, threads);
    const int groups = (n + group - 1) / group;
    std::atomic<int64_t> bad{n};
#pragma omp parallel num_threads(threads)
    {
        Work<Item> work(rows, group);
        double* buffer = work.values.get();
#pragma omp for schedule(dynamic, 1)
        for (int g = 0; g < groups; ++g) {
            const int begin = g * group, count = std::min(group, n - begin);
            gather_group(columns.data() + begin, count, rows, buffer);
            for (int c = 0; c < count; ++c) {
                const int j = begin + c;
                n_cuts[j] = bin_column<Item>(buffer + static_cast<size_t>(c) * rows, weights, rows, max_bins,
                                             work, cuts + static_cast<size_t>(j) * kBins, missing + j,
                                             bins + static_cast<size_t>(j) * rows);
                if (n_cuts[j] < 0) {
                    int64_t seen = bad.load();
                    while (j < seen && !bad.compare_exchange_weak(seen, j)) {
                    }
                }
            }
        }
    }
    *first_infinite = bad.load() == n ? -1 : bad.load();
}

}  // namespace

void bin_columns(const std::vector<Column>& columns, const int64_t* weights, int64_t rows, int max_bins,
                 int threads, uint8_t* bins, double* cuts, int32_t* n_cuts, int64_t* missing,
                 int64_t* first_infinite) {
    threads = worth_threads(threads, 4 * rows * static_cast<int64_t>(columns.size()));
    if (weights)
        bin_columns_as<Weighted>(columns, weights, rows, max_bins, threads, bins, cuts, n_cuts, missing,
                                 first_infinite);
    else
        bin_columns_as<Bare>(columns, weights, rows, max_bins, threads, bins, cuts, n_cuts, missing,
                             first_infinite);
}

void apply_cuts(const std::vector<Column>& columns, int64_t rows, const double* cuts, const int64_t* offsets,
                int threads, uint8_t* bins) {
    threads = worth_threads(threads, rows * static_cast<int64_t>(columns.size()));
    const int n = static_cast<int>(columns.size());
    const int64_t blocks = (rows + kBlock - 1) / kBlock;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t b = 0; b < blocks; ++b) {
        double values[kBlock];
        const int64_t begin = b * kBlock, end = std::min(rows, begin + kBlock);
        for (int j = 0; j < n; ++j) {
            gather(columns[j], begin, end, values);
            assign_bins(values, end - begin, cuts + offsets[j], static_cast<int>(offsets[j + 1] - offsets[j]),
                        bins + static_cast<size_t>(j) * rows + begin);
        }
    }
}

// Order-free digest of a table: see docs/certificate.md, "The digest of the data".
void digest_rows(const std::vector<Column>& columns, int64_t rows, const uint8_t* positive,
                 const int64_t* counts, const double* weights, int threads, uint64_t* lanes) {
    threads = worth_threads(threads, rows * static_cast<int64_t>(columns.size()));
    constexpr int64_t kTile = 128;  // few rows at a time: a row-major table is read once
    uint64_t lane1 = 0, lane2 = 0;
    const int64_t blocks = (rows + kTile - 1) / kTile;
    const int n = static_cast<int>(columns.size());
#pragma omp parallel for schedule(static) num_threads(threads) reduction(+ : lane1, lane2)
    for (int64_t b = 0; b < blocks; ++b) {
        double values[kTile];
        uint64_t hash[kTile];
        const int64_t begin = b * kTile, size = std::min(rows, begin + kTile) - begin;
        for (int64_t i = 0; i < size; ++i) hash[i] = 0x9E3779B97F4A7C15ull;
        for (int j = 0; j < n; ++j) {
            gather(columns[j], begin, begin + size, values);
            for (int64_t i = 0; i < size; ++i) {
                double x = values[i] + 0.0;
                uint64_t bits;
                std::memcpy(&bits, &x, 8);
                if (x != x) bits = 0x7ff8000000000000ull;
                uint64_t h = (hash[i] ^ bits) * 0xBF58476D1CE4E5B9ull;
                hash[i] = h ^ (h >> 29);
            }
        }
        for (int64_t i = 0; i < size; ++i) {
            const int64_t row = begin + i;
            uint64_t h = (hash[i] ^ static_cast<uint64_t>(positive[row] ? 1 : 0)) * 0x94D049BB133111EBull;
            h ^= h >> 32;
            uint64_t times = 1;
            if (counts) {
                times = static_cast<uint64_t>(counts[row]);
            } else if (weights) {
                uint64_t bits;
                std::memcpy(&bits, weights + row, 8);
                h = (h ^ bits) * 0x9E3779B97F4A7C15ull;
                h ^= h >> 30;
            }
            lane1 += h * times;
            lane2 += ((h ^ (h >> 31)) * 0xD6E8FEB86659FD93ull) * times;
        }
    }
    lanes[0] = lane1;
    lanes[1] = lane2;
}

}  // namespace cardboost
