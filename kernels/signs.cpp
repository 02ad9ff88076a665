// A product with signs needs one table of 256 sums per eight entries, then one lookup for each result; eight
// tables at a time stay in the first cache and are asked with one word of 64 signs.
#include "signs.h"

#include <algorithm>

namespace cardboost {

namespace {

constexpr uint64_t kOne = 0x3ff0000000000000ull;  // the bits of 1.0

// The signs of up to 64 entries; `wrong` keeps a bit of every entry that is not +-1.
CARDBOOST_INLINE uint64_t word_of(const double* x, int64_t n, uint64_t& wrong) {
    uint64_t word = 0;
    for (int64_t k = 0; k < n; ++k) {
        uint64_t bits;
        std::memcpy(&bits, x + k, 8);
        wrong |= (bits << 1) ^ (kOne << 1);
        word |= (bits >> 63) << k;
    }
    return word;
}

CARDBOOST_INLINE uint64_t word_of(const int8_t* x, int64_t n, uint64_t& wrong) {
    uint64_t word = 0;
    for (int64_t k = 0; k < n; ++k) {
        wrong |= static_cast<uint64_t>(x[k] != 1 && x[k] != -1);
        word |= static_cast<uint64_t>(x[k] < 0) << k;
    }
    return word;
}

template <class T>
CARDBOOST_INLINE bool pack_line(const T* x, int64_t n, uint64_t* out) {
    uint64_t wrong = 0;
    int64_t k = 0;
    for (; k + 64 <= n; k += 64) *out++ = word_of(x + k, 64, wrong);
    if (k < n) *out = word_of(x + k, n - k, wrong);
    return wrong == 0;
}

CARDBOOST_CLONES
bool pack_line64(const double* x, int64_t n, uint64_t* out) { return pack_line(x, n, out); }

CARDBOOST_CLONES
bool pack_line8(const int8_t* x, int64_t n, uint64_t* out) { return pack_line(x, n, out); }

// byte r of the result holds bit r of each of the eight bytes
CARDBOOST_INLINE uint64_t transpose_square(uint64_t x) {
    uint64_t t = (x ^ (x >> 7)) & 0x00aa00aa00aa00aaull;
    x ^= t ^ (t << 7);
    t = (x ^ (x >> 14)) & 0x0000cccc0000ccccull;
    x ^= t ^ (t << 14);
    t = (x ^ (x >> 28)) & 0x00000000f0f0f0f0ull;
    return x ^ t ^ (t << 28);
}

constexpr int kGroups = 8;  // of eight entries in a word

// For each group all sums of +-x over its entries (those beyond n count 0), by the byte of their signs
template <class T>
CARDBOOST_INLINE void fill(const T* x, int n, T (*table)[256]) {
    for (int g = 0; g < kGroups; ++g) {
        T own[8] = {};
        for (int k = 0; k < 8 && 8 * g + k < n; ++k) own[k] = x[8 * g + k];
        T two[4][4];  // of every two entries, by their signs
        for (int p = 0; p < 4; ++p) {
            two[p][0] = own[2 * p] + own[2 * p + 1];
            two[p][1] = own[2 * p + 1] - own[2 * p];
            two[p][2] = -two[p][1];
            two[p][3] = -two[p][0];
        }
        Four<T> first, low[4];
        std::memcpy(&first, two[0], sizeof first);
        for (int b = 0; b < 4; ++b) low[b] = first + two[1][b];
        T* out = table[g];
        for (int a = 0; a < 16; ++a) {
            const T high = two[2][a % 4] + two[3][a / 4];
            for (int b = 0; b < 4; ++b, out += 4) {
                const Four<T> sum = low[b] + high;
                std::memcpy(out, &sum, sizeof sum);
            }
        }
    }
}

CARDBOOST_CLONES
void fill_tables(const double* x, int n, double (*table)[256]) { fill(x, n, table); }

CARDBOOST_CLONES
void fill_tables(const int64_t* x, int n, int64_t (*table)[256]) { fill(x, n, table); }

template <class T>
CARDBOOST_INLINE T table_sum(const T (*table)[256], uint64_t w) {
    auto sum = [&](int g) { return table[g][w >> (8 * g) & 255] + table[g + 1][w >> (8 * g + 8) & 255]; };
    return (sum(0) + sum(2)) + (sum(4) + sum(6));
}

// sums [0, size) of lines that hold `stride` words
template <class T>
CARDBOOST_SCALAR void sums_by_table(const uint64_t* __restrict grouped, int64_t stride, int64_t size, int64_t n,
                                    const T* x, T* __restrict out) {
    T table[kGroups][256];
    std::fill(out, out + size, T(0));
    for (int64_t at = 0; at < n; at += 64, grouped += stride) {
        const int own = static_cast<int>(std::min<int64_t>(64, n - at));
        if (std::all_of(x + at, x + at + own, [](T v) { return v == 0; })) continue;
        fill_tables(x + at, own, table);
        for (int64_t i = 0; i < size; ++i) out[i] += table_sum(table, grouped[i]);
    }
}

// The product of two signs is the sign of their bits' sum, so one set of tables serves all pairs of columns; the
// sums of columns j < i, i >= known, are added to `sums` one after the other.
CARDBOOST_SCALAR void pairs_by_table(const uint64_t* __restrict grouped, int size, int known, int64_t begin,
                                     int64_t end, int64_t n, const int64_t* q, int64_t* __restrict sums) {
    int64_t table[kGroups][256];
    for (int64_t g = begin; g < end; ++g) {
        const int own = static_cast<int>(std::min<int64_t>(64, n - 64 * g));
        fill_tables(q + 64 * g, own, table);
        const uint64_t* line = grouped + g * size;
        int64_t* at = sums;
        for (int i = known; i < size; ++i) {
            const uint64_t mine = line[i];
            for (int j = 0; j < i; ++j) *at++ += table_sum(table, mine ^ line[j]);
        }
    }
}

// How often the signs of columns j < i, i >= known, differ
CARDBOOST_CLONES
void pairs_by_count(const uint64_t* __restrict grouped, int size, int known, int64_t begin, int64_t end,
                    int64_t* __restrict sums) {
    for (int64_t g = begin; g < end; ++g) {
        const uint64_t* line = grouped + g * size;
        int64_t* at = sums;
        for (int i = known; i < size; ++i) {
            const uint64_t mine = line[i];
            for (int j = 0; j < i; ++j) at[j] += __builtin_popcountll(mine ^ line[j]);
            at += i;
        }
    }
}

// 64 rows of all columns; a sign bit that is set turns the weight's
CARDBOOST_CLONES
void add_signed(const uint64_t* words, const double* weights, int size, double* out) {
    for (int k = 0; k < size; ++k) {
        if (weights[k] == 0.0) continue;
        uint64_t bits;
        std::memcpy(&bits, weights + k, 8);
        const uint64_t word = words[k];
        for (uint64_t r = 0; r < 64; ++r) {
            const uint64_t turned = bits ^ ((word >> r) << 63);
            double value;
            std::memcpy(&value, &turned, 8);
            out[r] += value;
        }
    }
}

}  // namespace

bool pack_signs(const double* a64, const int8_t* a8, SignBits& out) {
    for (int64_t k = 0; k < out.lines; ++k) {
        const int64_t at = k * out.length;
        if (!(a64 ? pack_line64(a64 + at, out.length, out.line(k)) : pack_line8(a8 + at, out.length, out.line(k))))
            return false;
    }
    return true;
}

SignBits transpose(const SignBits& a) {
    SignBits out(a.length, a.lines);
    for (int64_t g = 0; 8 * g < a.lines; ++g) {
        const int64_t own = std::min<int64_t>(8, a.lines - 8 * g);
        const int shift = static_cast<int>(g % 8 * 8);
        for (int64_t word = 0; word < a.words; ++word) {
            uint64_t eight[8] = {};
            for (int64_t k = 0; k < own; ++k) eight[k] = a.line(8 * g + k)[word];
            for (int64_t h = 0; h < 8 && 64 * word + 8 * h < a.length; ++h) {
                uint64_t square = 0;
                for (int k = 0; k < 8; ++k) square |= (eight[k] >> (8 * h) & 255) << (8 * k);
                square = transpose_square(square);
                const int64_t first = 64 * word + 8 * h, columns = std::min<int64_t>(8, a.length - first);
                for (int64_t i = 0; i < columns; ++i)
                    out.line(first + i)[g / 8] |= (square >> (8 * i) & 255) << shift;
            }
        }
    }
    return out;
}

SignBits distinct_lines(const SignBits& a, std::vector<int32_t>& plus, std::vector<int32_t>& minus) {
    size_t slots = 16;
    while (slots < 2 * static_cast<size_t>(a.lines)) slots *= 2;
    std::vector<int32_t> table(slots, -1);  // the last line kept of every content
    SignBits out(a.lines, a.length);
    const uint64_t rest = a.length % 64 ? (uint64_t{1} << (a.length % 64)) - 1 : ~uint64_t{0};
    int32_t kept = 0;
    for (int32_t j = 0; j < a.lines; ++j) {
        uint64_t* line = out.line(kept);
        const bool opposite = a.line(j)[0] & 1;
        uint64_t hash = 0;
        for (int64_t k = 0; k < a.words; ++k) {
            line[k] = opposite ? ~a.line(j)[k] : a.line(j)[k];
            if (k + 1 == a.words) line[k] &= rest;
            hash = (hash ^ line[k]) * 0x9e3779b97f4a7c15ull;
            hash ^= hash >> 32;
        }
        size_t slot = hash & (slots - 1);
        while (table[slot] >= 0 && !std::equal(line, line + a.words, out.line(table[slot])))
            slot = (slot + 1) & (slots - 1);
        std::vector<int32_t>&own = opposite ? minus : plus, &other = opposite ? plus : minus;
        if (table[slot] >= 0 && own[table[slot]] < 0) {
            own[table[slot]] = j;
            continue;
        }
        table[slot] = kept++;
        own.push_back(j);
        other.push_back(-1);
    }
    out.lines = kept;
    return out;
}

void group_signs(const SignBits& a, uint64_t* out) {
    for (int64_t k = 0; k < a.lines; ++k)
        for (int64_t g = 0; g < a.words; ++g) out[g * a.lines + k] = a.line(k)[g];
}

void sign_sums(const uint64_t* grouped, int64_t size, int64_t n, const double* x, double* out) {
    sums_by_table(grouped, size, size, n, x, out);
}

void sign_sums(const uint64_t* grouped, int64_t size, int64_t n, const int64_t* x, int64_t* out) {
    sums_by_table(grouped, size, size, n, x, out);
}

void sign_edges(const uint64_t* grouped, int64_t size, int64_t n, const int64_t* q, int threads, int64_t* out) {
    threads = worth_threads(threads, size * (n / 8 + 1));
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int t = 0; t < threads; ++t) {
        const Range own = split(size, t, threads);
        sums_by_table(grouped + own.begin, size, own.end - own.begin, n, q, out + own.begin);
    }
}

namespace {

// Both triangles, base + times * sum over a pair, and the diagonal; `add` adds the sums of some words.
template <class Add>
void gram_of_pairs(int size, int known, int64_t n, int threads, int64_t diagonal, int64_t base, int64_t times,
                   int64_t* out, Add add) {
    auto below = [](int64_t i) { return i * (i - 1) / 2; };  // pairs of the columns before i
    const int64_t words = (n + 63) / 64, pairs = below(size) - below(known);
    threads = worth_threads(threads, (pairs + 256) * (n / 8 + 1));
    std::vector<int64_t> sums(static_cast<size_t>(pairs) * threads);
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int t = 0; t < threads; ++t) {
        const Range own = split(words, t, threads);
        add(own, sums.data() + t * pairs);
    }
    for (int64_t i = 0; i < size; ++i) {
        out[i * size + i] = i < known ? 0 : diagonal;
        for (int64_t j = 0; j < i; ++j) {
            int64_t sum = 0;
            for (int t = 0; i >= known && t < threads; ++t) sum += sums[t * pairs + below(i) - below(known) + j];
            out[i * size + j] = out[j * size + i] = i < known ? 0 : base + times * sum;
        }
    }
}

}  // namespace

void sign_gram(const uint64_t* grouped, int size, int known, int64_t n, const int64_t* q, int threads, int64_t* out) {
    int64_t total = 0;
    for (int64_t r = 0; r < n; ++r) total += q[r];
    gram_of_pairs(size, known, n, threads, total, 0, 1, out, [&](Range own, int64_t* sums) {
        pairs_by_table(grouped, size, known, own.begin, own.end, n, q, sums);
    });
}

void sign_counts(const uint64_t* grouped, int size, int known, int64_t n, int threads, int64_t* out) {
    gram_of_pairs(size, known, n, threads, n, n, -2, out, [&](Range own, int64_t* sums) {
        pairs_by_count(grouped, size, known, own.begin, own.end, sums);
    });
}

void sign_margins(const uint64_t* grouped, int size, int64_t n, const double* weights, int threads, double* out) {
    threads = worth_threads(threads, n * (size + 1));
    const int64_t words = (n + 63) / 64;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t g = 0; g < words; ++g) {
        double own[64] = {};
        add_signed(grouped + g * size, weights, size, own);
        std::copy(own, own + std::min<int64_t>(64, n - 64 * g), out + 64 * g);
    }
}

}  // namespace cardboost
