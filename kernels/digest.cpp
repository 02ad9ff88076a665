// A digest of a table that does not depend on the order of its rows: docs/certificate.md, "The digest of the data".
#include "door.h"

namespace cardboost {

namespace {

// Two sums over the rows, each of a hash of the row's values, label and weight.
std::tuple<uint64_t, uint64_t> digest_rows(const std::vector<Column>& columns, int64_t rows, const uint8_t* positive,
                                           const int64_t* counts, const double* weights, int threads) {
    threads = worth_threads(threads, rows, columns.size());
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
    return {lane1, lane2};
}

auto py_digest_rows(const nb::list& list, In<uint8_t, 1> positive, Maybe<int64_t, 1> count, Maybe<double, 1> weight,
                    int threads) {
    int64_t length;
    const auto columns = read_columns(list, &length);
    const auto rows = static_cast<int64_t>(positive.shape(0));
    require(columns.empty() || length == rows, "labels and rows differ in length");
    require(have_length(rows, count, weight), "row weights and rows differ in length");
    return unlocked([&] {
        return digest_rows(columns, rows, positive.data(), data_or_null(count), data_or_null(weight), threads);
    });
}

}  // namespace

void bind_digest(nb::module_& m) {
    m.def("digest_rows", &py_digest_rows, "columns"_a, "positive"_a, "count"_a.none(), "weight"_a.none(), "threads"_a);
}

}  // namespace cardboost
