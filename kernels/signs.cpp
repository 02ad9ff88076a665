// A product with signs needs one table of 256 sums per eight entries, then one lookup for each result; eight
// tables at a time stay in the first cache and are looked up with one word of 64 signs.
#include "signs.h"

#include "door.h"

namespace cardboost {

namespace {

// A matrix of signs as bits, a set one for -1: vector after vector, each padded with zeros to whole words.
struct SignBits {
    SignBits(int64_t vectors, int64_t length)
        : vectors(vectors), length(length), words((length + 63) / 64), bits(checked_size(vectors, words)) {}
    int64_t vectors, length, words;
    std::vector<uint64_t> bits;
    const uint64_t* vector(int64_t k) const { return bits.data() + k * words; }
    uint64_t* vector(int64_t k) { return bits.data() + k * words; }
};

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
CARDBOOST_INLINE bool pack_vector(const T* x, int64_t n, uint64_t* out) {
    uint64_t wrong = 0;
    for (int64_t k = 0; k < n; k += 64) out[k / 64] = word_of(x + k, std::min<int64_t>(64, n - k), wrong);
    return wrong == 0;
}

CARDBOOST_CLONES
bool pack(const double* x, int64_t n, uint64_t* out) { return pack_vector(x, n, out); }

CARDBOOST_CLONES
bool pack(const int8_t* x, int64_t n, uint64_t* out) { return pack_vector(x, n, out); }

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
        T entry[8] = {};
        for (int k = 0; k < 8 && 8 * g + k < n; ++k) entry[k] = x[8 * g + k];
        T two[4][4];  // of every two entries, by their signs
        for (int p = 0; p < 4; ++p) {
            two[p][0] = entry[2 * p] + entry[2 * p + 1];
            two[p][1] = entry[2 * p + 1] - entry[2 * p];
            two[p][2] = -two[p][1];
            two[p][3] = -two[p][0];
        }
        Vector<T, 4> low[4];
        for (int b = 0; b < 4; ++b) low[b] = load<4>(two[0]) + two[1][b];
        for (int a = 0; a < 16; ++a) {
            const T high = two[2][a % 4] + two[3][a / 4];
            for (int b = 0; b < 4; ++b) store<4>(table[g] + 16 * a + 4 * b, low[b] + high);
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

// sums `range` of `size`
template <class T>
CARDBOOST_SCALAR void sums_by_table(const uint64_t* CARDBOOST_RESTRICT grouped, int64_t size, Range range, int64_t n,
                                    const T* x, T* CARDBOOST_RESTRICT out) {
    T table[kGroups][256];
    std::fill(out + range.begin, out + range.end, T(0));
    for (int64_t first = 0; first < n; first += 64) {
        const int entries = static_cast<int>(std::min<int64_t>(64, n - first));
        if (std::all_of(x + first, x + first + entries, [](T v) { return v == 0; })) continue;
        fill_tables(x + first, entries, table);
        const uint64_t* words = grouped + first / 64 * size;
        for (int64_t i = range.begin; i < range.end; ++i) out[i] += table_sum(table, words[i]);
    }
}

// The product of two signs is the sign of their bits' sum, so one set of tables serves all pairs of columns; the
// sums of columns j < i, i >= done, are added to `sums` one after the other.
CARDBOOST_SCALAR void pairs_by_table(const uint64_t* CARDBOOST_RESTRICT grouped, int size, int done, Range words,
                                     int64_t n, const int64_t* q, int64_t* CARDBOOST_RESTRICT sums) {
    int64_t table[kGroups][256];
    for (int64_t g = words.begin; g < words.end; ++g) {
        fill_tables(q + 64 * g, static_cast<int>(std::min<int64_t>(64, n - 64 * g)), table);
        const uint64_t* word = grouped + g * size;
        int64_t* sum = sums;
        for (int i = done; i < size; ++i)
            for (int j = 0; j < i; ++j) *sum++ += table_sum(table, word[i] ^ word[j]);
    }
}

// How often the signs of columns j < i, i >= done, differ
CARDBOOST_CLONES
void pairs_by_count(const uint64_t* CARDBOOST_RESTRICT grouped, int size, int done, Range words,
                    int64_t* CARDBOOST_RESTRICT sums) {
    for (int64_t g = words.begin; g < words.end; ++g) {
        const uint64_t* word = grouped + g * size;
        int64_t* sum = sums;
        for (int i = done; i < size; ++i) {
            for (int j = 0; j < i; ++j) sum[j] += CARDBOOST_POPCOUNT(word[i] ^ word[j]);
            sum += i;
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

// Fills `out` from its vectors x length entries, each vector contiguous. False when one is neither 1 nor -1.
template <class T>
bool pack_signs(const T* a, SignBits& out) {
    for (int64_t k = 0; k < out.vectors; ++k)
        if (!pack(a + k * out.length, out.length, out.vector(k))) return false;
    return true;
}

SignBits transpose(const SignBits& a) {
    SignBits out(a.length, a.vectors);
    for (int64_t g = 0; 8 * g < a.vectors; ++g) {
        const int64_t present = std::min<int64_t>(8, a.vectors - 8 * g);
        const int shift = static_cast<int>(g % 8 * 8);
        for (int64_t word = 0; word < a.words; ++word) {
            uint64_t eight[8] = {};
            for (int64_t k = 0; k < present; ++k) eight[k] = a.vector(8 * g + k)[word];
            for (int64_t h = 0; h < 8 && 64 * word + 8 * h < a.length; ++h) {
                uint64_t square = 0;
                for (int k = 0; k < 8; ++k) square |= (eight[k] >> (8 * h) & 255) << (8 * k);
                square = transpose_square(square);
                const int64_t first = 64 * word + 8 * h, columns = std::min<int64_t>(8, a.length - first);
                for (int64_t i = 0; i < columns; ++i)
                    out.vector(first + i)[g / 8] |= (square >> (8 * i) & 255) << shift;
            }
        }
    }
    return out;
}

// Two opposite vectors are kept once, with 1 as the first entry: vector k of the result is vector plus[k] of `a` and
// the opposite of vector minus[k], -1 standing for none. Of several equal vectors each is kept.
SignBits distinct_vectors(const SignBits& a, std::vector<int32_t>& plus, std::vector<int32_t>& minus) {
    size_t slots = 16;
    while (slots < 2 * static_cast<size_t>(a.vectors)) slots *= 2;
    std::vector<int32_t> table(slots, -1);  // the last vector kept of every content
    SignBits out(a.vectors, a.length);
    const uint64_t rest = a.length % 64 ? (uint64_t{1} << (a.length % 64)) - 1 : ~uint64_t{0};
    int32_t kept = 0;
    for (int32_t j = 0; j < a.vectors; ++j) {
        uint64_t* vector = out.vector(kept);
        const bool opposite = a.vector(j)[0] & 1;
        uint64_t hash = 0;
        for (int64_t k = 0; k < a.words; ++k) {
            vector[k] = opposite ? ~a.vector(j)[k] : a.vector(j)[k];
            if (k + 1 == a.words) vector[k] &= rest;
            hash = (hash ^ vector[k]) * 0x9e3779b97f4a7c15ull;
            hash ^= hash >> 32;
        }
        size_t slot = hash & (slots - 1);
        while (table[slot] >= 0 && !std::equal(vector, vector + a.words, out.vector(table[slot])))
            slot = (slot + 1) & (slots - 1);
        std::vector<int32_t>&side = opposite ? minus : plus, &other = opposite ? plus : minus;
        if (table[slot] >= 0 && side[table[slot]] < 0) {
            side[table[slot]] = j;
            continue;
        }
        table[slot] = kept++;
        side.push_back(j);
        other.push_back(-1);
    }
    out.vectors = kept;
    return out;
}

// Word k of group g has entries 64g .. 64g + 63 of vector k.
void group_signs(const SignBits& a, uint64_t* out) {
    for (int64_t k = 0; k < a.vectors; ++k)
        for (int64_t g = 0; g < a.words; ++g) out[g * a.vectors + k] = a.vector(k)[g];
}

// sign_sums for whole numbers, the sums split among threads
void sign_edges(const uint64_t* grouped, int64_t size, int64_t n, const int64_t* q, int threads, int64_t* out) {
    threads = worth_threads(threads, size, n / 8 + 1);
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int t = 0; t < threads; ++t) sums_by_table(grouped, size, split(size, t, threads), n, q, out);
}

// Both triangles, base + times * sum over a pair, and the diagonal; add(words, sums) adds the sums of some words. 0
// where both columns are among the first `done`, which are not computed.
template <class Add>
void gram_of_pairs(int size, int done, int64_t n, int threads, int64_t diagonal, int64_t base, int64_t times,
                   int64_t* out, const Add& add) {
    auto below = [](int64_t i) { return i * (i - 1) / 2; };  // pairs of the columns before i
    const int64_t words = (n + 63) / 64, pairs = below(size) - below(done);
    threads = worth_threads(threads, pairs + 256, n / 8 + 1);
    std::vector<int64_t> sums(checked_size(pairs, threads));
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int t = 0; t < threads; ++t) add(split(words, t, threads), sums.data() + t * pairs);
    for (int64_t i = 0; i < size; ++i) {
        out[i * size + i] = i < done ? 0 : diagonal;
        for (int64_t j = 0; j < i; ++j) {
            int64_t sum = 0;
            for (int t = 0; i >= done && t < threads; ++t) sum += sums[t * pairs + below(i) - below(done) + j];
            out[i * size + j] = out[j * size + i] = i < done ? 0 : base + times * sum;
        }
    }
}

// out[i * size + j] = sum over the n rows of q times the product of the signs of columns i and j
void sign_gram(const uint64_t* grouped, int size, int done, int64_t n, const int64_t* q, int threads, int64_t* out) {
    int64_t total = 0;
    for (int64_t r = 0; r < n; ++r) total += q[r];
    gram_of_pairs(size, done, n, threads, total, 0, 1, out, [=](Range words, int64_t* sums) {
        pairs_by_table(grouped, size, done, words, n, q, sums);
    });
}

// The same with all q = 1; bits beyond the rows must be 0
void sign_counts(const uint64_t* grouped, int size, int done, int64_t n, int threads, int64_t* out) {
    gram_of_pairs(size, done, n, threads, n, n, -2, out, [=](Range words, int64_t* sums) {
        pairs_by_count(grouped, size, done, words, sums);
    });
}

// out[row] = sum over columns, in their order, of +-weight
void sign_margins(const uint64_t* grouped, int size, int64_t n, const double* weights, int threads, double* out) {
    threads = worth_threads(threads, n, size + 1.0);
    const int64_t words = (n + 63) / 64;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t g = 0; g < words; ++g) {
        double sums[64] = {};
        add_signed(grouped + g * size, weights, size, sums);
        std::copy(sums, sums + std::min<int64_t>(64, n - 64 * g), out + 64 * g);
    }
}

Out<uint64_t> grouped_array(const SignBits& bits) {
    auto out = make<uint64_t>({static_cast<size_t>(bits.words), static_cast<size_t>(bits.vectors)});
    unlocked([&] { group_signs(bits, out.data()); });
    return out;
}

auto py_pack_signs(AnyMatrix a, bool by_column) {
    const DenseArray entries = dense_array(a);
    require(a.shape(0) && a.shape(1), "pack_signs: no entries");
    as_int(a.shape(by_column ? 0 : 1));
    SignBits packed(static_cast<int64_t>(a.shape(0)), static_cast<int64_t>(a.shape(1)));
    SignBits columns(0, 0), rows(0, 0);
    std::vector<int32_t> plus, minus;
    const bool signs = unlocked([&] {
        if (!(entries.real ? pack_signs(entries.real, packed) : pack_signs(entries.small, packed))) return false;
        columns = distinct_vectors(by_column ? packed : transpose(packed), plus, minus);
        rows = transpose(columns);
        return true;
    });
    auto sides = make<int32_t>({2, plus.size()});
    std::copy(minus.begin(), minus.end(), std::copy(plus.begin(), plus.end(), sides.data()));
    return std::make_tuple(signs, grouped_array(columns), grouped_array(rows), sides);
}

// The number of columns that are grouped for these rows, the first `done` of which are among them.
int grouped_columns(const In<uint64_t, 2>& grouped, size_t rows, int done = 0) {
    require(rows < (size_t{1} << 48) && grouped.shape(0) == (rows + 63) / 64,
            "packed signs and rows differ in length");
    const int size = as_int(grouped.shape(1));
    require(done >= 0 && done <= size, "more columns are done than there are");
    return size;
}

Out<int64_t> py_sign_edges(In<uint64_t, 2> grouped, In<int64_t, 1> q, int threads) {
    const int size = grouped_columns(grouped, q.shape(0));
    auto out = make<int64_t>({grouped.shape(1)});
    unlocked([&] {
        sign_edges(grouped.data(), size, static_cast<int64_t>(q.shape(0)), q.data(), threads, out.data());
    });
    return out;
}

Out<int64_t> py_sign_gram(In<uint64_t, 2> grouped, int done, In<int64_t, 1> q, int threads) {
    const int size = grouped_columns(grouped, q.shape(0), done);
    auto out = make<int64_t>({grouped.shape(1), grouped.shape(1)});
    unlocked([&] {
        sign_gram(grouped.data(), size, done, static_cast<int64_t>(q.shape(0)), q.data(), threads, out.data());
    });
    return out;
}

Out<int64_t> py_sign_counts(In<uint64_t, 2> grouped, int done, size_t rows, int threads) {
    const int size = grouped_columns(grouped, rows, done);
    auto out = make<int64_t>({grouped.shape(1), grouped.shape(1)});
    unlocked([&] {
        sign_counts(grouped.data(), size, done, static_cast<int64_t>(rows), threads, out.data());
    });
    return out;
}

Out<double> py_sign_margins(In<uint64_t, 2> grouped, In<double, 1> weights, size_t rows, int threads) {
    const int size = grouped_columns(grouped, rows);
    require(have_length(grouped.shape(1), weights), "one weight per column");
    auto out = make<double>({rows});
    unlocked([&] {
        sign_margins(grouped.data(), size, static_cast<int64_t>(rows), weights.data(), threads, out.data());
    });
    return out;
}

}  // namespace

void sign_sums(const uint64_t* grouped, int64_t size, int64_t n, const double* x, double* out) {
    sums_by_table(grouped, size, {0, size}, n, x, out);
}

void sign_sums(const uint64_t* grouped, int64_t size, int64_t n, const int64_t* x, int64_t* out) {
    sums_by_table(grouped, size, {0, size}, n, x, out);
}

void bind_signs(nb::module_& m) {
    m.def("pack_signs", &py_pack_signs, "a"_a, "by_column"_a);
    m.def("sign_edges", &py_sign_edges, "grouped"_a, "q"_a, "threads"_a);
    m.def("sign_gram", &py_sign_gram, "grouped"_a, "done"_a, "q"_a, "threads"_a);
    m.def("sign_counts", &py_sign_counts, "grouped"_a, "done"_a, "rows"_a, "threads"_a);
    m.def("sign_margins", &py_sign_margins, "grouped"_a, "weights"_a, "rows"_a, "threads"_a);
}

}  // namespace cardboost
