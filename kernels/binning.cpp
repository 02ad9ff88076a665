// From numbers to bins: exact weighted quantile cuts (never sketched) and one byte per value.
// Cost per row and column: three light passes for the cuts and one search of eight steps.
#include "binning.h"

#include <atomic>

#include "decimals.h"

namespace cardboost {

namespace {

constexpr int kPasses = 3;
constexpr int kDigitBits[kPasses] = {11, 11, 10};
constexpr int kDigitShift[kPasses] = {32, 43, 54};

CARDBOOST_INLINE uint64_t ordered_bits(double x) {
    x += 0.0;  // -0.0 becomes 0.0
    uint64_t bits;
    std::memcpy(&bits, &x, 8);
    return bits ^ ((bits >> 63) ? ~uint64_t{0} : (uint64_t{1} << 63));
}

inline double from_ordered_bits(uint64_t key) {
    uint64_t bits = key ^ ((key >> 63) ? (uint64_t{1} << 63) : ~uint64_t{0});
    double x;
    std::memcpy(&x, &bits, 8);
    return x;
}

struct Bare {
    uint64_t key;
    int64_t weight() const { return 1; }
};
struct Weighted {
    uint64_t key;
    int64_t w;
    int64_t weight() const { return w; }
};

// Sorts by the upper 32 bits of the key in three stable passes, then mends runs that agree there.
template <class Item>
Item* sort_items(Item* items, Item* spare, int64_t n) {
    static thread_local std::vector<int64_t> counts;
    counts.assign(kPasses * 2048, 0);
    for (int64_t i = 0; i < n; ++i)
        for (int p = 0; p < kPasses; ++p)
            ++counts[p * 2048 + ((items[i].key >> kDigitShift[p]) & ((1u << kDigitBits[p]) - 1))];
    for (int p = 0; p < kPasses; ++p) {
        int64_t* count = counts.data() + p * 2048;
        const int size = 1 << kDigitBits[p];
        const uint64_t mask = size - 1;
        if (n == 0 || count[(items[0].key >> kDigitShift[p]) & mask] == n) continue;
        int64_t start = 0;
        for (int d = 0; d < size; ++d) {
            int64_t c = count[d];
            count[d] = start;
            start += c;
        }
        for (int64_t i = 0; i < n; ++i) spare[count[(items[i].key >> kDigitShift[p]) & mask]++] = items[i];
        std::swap(items, spare);
    }
    for (int64_t i = 0; i < n;) {
        uint64_t high = items[i].key >> 32;
        int64_t end = i + 1;
        bool ordered = true;
        while (end < n && (items[end].key >> 32) == high) {
            ordered &= items[end].key >= items[end - 1].key;
            ++end;
        }
        if (!ordered)
            std::sort(items + i, items + end, [](const Item& a, const Item& b) { return a.key < b.key; });
        i = end;
    }
    return items;
}

struct Distinct {
    double value;
    int64_t weight;
};

// Distinct values with their weights while there are at most `limit` of them: an open hash table, left as
// soon as it is too full, so that columns with many values cost next to nothing.
template <class Item>
bool few_distinct(const Item* items, int64_t n, int limit, std::vector<Distinct>& out) {
    constexpr int kSlots = 1024;
    uint64_t keys[kSlots];
    int64_t weights[kSlots];
    bool used[kSlots] = {};
    int found = 0;
    for (int64_t i = 0; i < n; ++i) {
        const uint64_t key = items[i].key;
        unsigned slot = static_cast<unsigned>((key * 0x9E3779B97F4A7C15ull) >> 54);
        while (used[slot] && keys[slot] != key) slot = (slot + 1) % kSlots;
        if (!used[slot]) {
            if (found == limit) return false;
            ++found;
            used[slot] = true;
            keys[slot] = key;
            weights[slot] = 0;
        }
        weights[slot] += items[i].weight();
    }
    out.clear();
    for (int slot = 0; slot < kSlots; ++slot)
        if (used[slot]) out.push_back({from_ordered_bits(keys[slot]), weights[slot]});
    std::sort(out.begin(), out.end(), [](const Distinct& a, const Distinct& b) { return a.value < b.value; });
    return true;
}

template <class Item>
void sorted_distinct(const Item* sorted, int64_t n, std::vector<Distinct>& out) {
    for (int64_t i = 0; i < n;) {
        int64_t end = i, weight = 0;
        for (; end < n && sorted[end].key == sorted[i].key; ++end) weight += sorted[end].weight();
        out.push_back({from_ordered_bits(sorted[i].key), weight});
        i = end;
    }
}

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

    // Whether no cut can fall among values of this total weight, of which one weighs at most `heaviest`.
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

constexpr int kBuckets = 4096;

// Quantile cuts without a full sort: values fall into equal-width buckets (any monotone map gives the same
// cuts), and only buckets in which a cut may fall are sorted.
template <class Item>
int quantile_cuts(Item* items, Item* spare, int64_t n, int max_bins, std::vector<Distinct>& distinct,
                  double* cuts) {
    double low = std::numeric_limits<double>::infinity(), high = -low;
    int64_t total = 0;
    for (int64_t i = 0; i < n; ++i) {
        const double x = from_ordered_bits(items[i].key);
        low = x < low ? x : low;
        high = x > high ? x : high;
        total += items[i].weight();
    }
    const double width = (high * 0.5 - low * 0.5) * 2.0;
    const double factor = std::isfinite(width) ? (kBuckets - 1) / width : 0.0;
    auto bucket = [&](double x) { return static_cast<int>((x - low) * factor); };
    std::vector<int64_t> count(kBuckets + 1, 0), weight(kBuckets, 0);
    std::vector<double> largest(kBuckets, -std::numeric_limits<double>::infinity());
    for (int64_t i = 0; i < n; ++i) {
        const double x = from_ordered_bits(items[i].key);
        const int b = bucket(x);
        ++count[b + 1];
        weight[b] += items[i].weight();
        largest[b] = x > largest[b] ? x : largest[b];
    }
    for (int b = 0; b < kBuckets; ++b) count[b + 1] += count[b];
    std::vector<int64_t> at(count.begin(), count.end() - 1);
    for (int64_t i = 0; i < n; ++i) spare[at[bucket(from_ordered_bits(items[i].key))]++] = items[i];
    GreedyBins greedy(total, max_bins, cuts);
    int next_full = 0;
    for (int b = 0; b < kBuckets; ++b) {
        const int64_t size = count[b + 1] - count[b];
        if (size == 0) continue;
        next_full = std::max(next_full, b + 1);
        while (next_full < kBuckets && count[next_full + 1] == count[next_full]) ++next_full;
        const int64_t following = next_full < kBuckets ? weight[next_full] : 0;
        if (greedy.can_skip(weight[b], std::max(weight[b], following))) {
            greedy.skip(weight[b], largest[b]);
            continue;
        }
        Item* own = spare + count[b];
        if (size > 4096) {
            own = sort_items(own, items, size);
        } else {
            std::sort(own, own + size, [](const Item& a, const Item& c) { return a.key < c.key; });
        }
        distinct.clear();
        sorted_distinct(own, size, distinct);
        for (const auto& d : distinct) greedy.add(d.value, d.weight);
    }
    return greedy.made();
}

template <class Item>
int column_cuts(const double* values, const int64_t* weights, int64_t rows, int max_bins, Item* items,
                Item* spare, std::vector<Distinct>& distinct, double* cuts, int64_t* missing, bool* infinite) {
    int64_t n = 0;
    bool any_infinite = false;
    for (int64_t i = 0; i < rows; ++i) {
        double x = values[i];
        if (std::isnan(x)) continue;
        any_infinite |= std::isinf(x);
        if constexpr (std::is_same_v<Item, Weighted>)
            items[n++] = {ordered_bits(x), weights[i]};
        else
            items[n++] = {ordered_bits(x)};
    }
    *missing = rows - n;
    *infinite = any_infinite;
    if (any_infinite) return 0;
    if (few_distinct(items, n, max_bins, distinct)) {
        int made = 0;
        for (size_t i = 0; i + 1 < distinct.size(); ++i)
            cuts[made++] = simplest_decimal(distinct[i].value, distinct[i + 1].value);
        return made;
    }
    return quantile_cuts(items, spare, n, max_bins, distinct, cuts);
}

// bin = number of cuts below the value; `padded` holds 255 cuts, the unused ones infinite
CARDBOOST_CLONES
void assign_bins(const double* values, int64_t n, const double* padded, uint8_t* out) {
    for (int64_t i = 0; i < n; ++i) {
        double x = values[i];
        int at = 0;
        at += padded[at + 127] < x ? 128 : 0;
        at += padded[at + 63] < x ? 64 : 0;
        at += padded[at + 31] < x ? 32 : 0;
        at += padded[at + 15] < x ? 16 : 0;
        at += padded[at + 7] < x ? 8 : 0;
        at += padded[at + 3] < x ? 4 : 0;
        at += padded[at + 1] < x ? 2 : 0;
        at += padded[at] < x ? 1 : 0;
        out[i] = x == x ? static_cast<uint8_t>(at) : static_cast<uint8_t>(kMissing);
    }
}

void pad(const double* cuts, int n, double* padded) {
    std::copy(cuts, cuts + n, padded);
    std::fill(padded + n, padded + kBins, std::numeric_limits<double>::infinity());
}

int group_size(int64_t rows, int columns, int threads) {
    int64_t fit = std::max<int64_t>(1, (int64_t{16} << 20) / (8 * std::max<int64_t>(rows, 1)));
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
        std::vector<double> buffer(static_cast<size_t>(group) * rows);
        std::vector<Item> items(rows), spare(rows);
        std::vector<Distinct> distinct;
        double padded[kBins];
#pragma omp for schedule(dynamic, 1)
        for (int g = 0; g < groups; ++g) {
            const int begin = g * group, count = std::min(group, n - begin);
            gather_group(columns.data() + begin, count, rows, buffer.data());
            for (int c = 0; c < count; ++c) {
                const int j = begin + c;
                const double* values = buffer.data() + static_cast<size_t>(c) * rows;
                bool infinite = false;
                n_cuts[j] = column_cuts<Item>(values, weights, rows, max_bins, items.data(), spare.data(), distinct,
                                              cuts + static_cast<size_t>(j) * kBins, missing + j, &infinite);
                if (infinite) {
                    int64_t seen = bad.load();
                    while (j < seen && !bad.compare_exchange_weak(seen, j)) {
                    }
                    continue;
                }
                pad(cuts + static_cast<size_t>(j) * kBins, n_cuts[j], padded);
                assign_bins(values, rows, padded, bins + static_cast<size_t>(j) * rows);
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
        double values[kBlock], padded[kBins];
        const int64_t begin = b * kBlock, end = std::min(rows, begin + kBlock);
        for (int j = 0; j < n; ++j) {
            pad(cuts + offsets[j], static_cast<int>(offsets[j + 1] - offsets[j]), padded);
            gather(columns[j], begin, end, values);
            assign_bins(values, end - begin, padded, bins + static_cast<size_t>(j) * rows + begin);
        }
    }
}

// Order-free digest of a table: see certificate/checker.py for the definition.
void digest_rows(const std::vector<Column>& columns, int64_t rows, const uint8_t* positive,
                 const int64_t* counts, const double* weights, int threads, uint64_t* lanes) {
    threads = worth_threads(threads, rows * static_cast<int64_t>(columns.size()));
    uint64_t lane1 = 0, lane2 = 0;
    const int64_t blocks = (rows + kBlock - 1) / kBlock;
    const int n = static_cast<int>(columns.size());
#pragma omp parallel for schedule(static) num_threads(threads) reduction(+ : lane1, lane2)
    for (int64_t b = 0; b < blocks; ++b) {
        double values[kBlock];
        uint64_t hash[kBlock];
        const int64_t begin = b * kBlock, size = std::min(rows, begin + kBlock) - begin;
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
