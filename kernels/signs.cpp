// A product with signs needs one table of 256 sums per eight entries, then one lookup for each result.
#include "signs.h"

#include <algorithm>

namespace cardboost {

namespace {

constexpr uint64_t kOne = 0x3ff0000000000000ull;  // the bits of 1.0

// Adds the sign bits of one line at position k of `bytes`; returns whether all entries were +-1.
CARDBOOST_CLONES
bool add_line64(const double* line, int64_t n, int k, uint8_t* bytes) {
    uint64_t wrong = 0;
    for (int64_t i = 0; i < n; ++i) {
        uint64_t bits;
        std::memcpy(&bits, line + i, 8);
        wrong |= (bits << 1) ^ (kOne << 1);
        bytes[i] = static_cast<uint8_t>(bytes[i] | ((bits >> 63) << k));
    }
    return wrong == 0;
}

CARDBOOST_CLONES
bool add_line8(const int8_t* line, int64_t n, int k, uint8_t* bytes) {
    uint8_t wrong = 0;
    for (int64_t i = 0; i < n; ++i) {
        const uint8_t bits = static_cast<uint8_t>(line[i]);
        const uint8_t negative = bits >> 7;
        wrong = static_cast<uint8_t>(wrong | ((bits ^ (negative ? 0xff : 0)) + negative) ^ 1);
        bytes[i] = static_cast<uint8_t>(bytes[i] | (negative << k));
    }
    return wrong == 0;
}

// byte r of the result holds bit r of each of the eight bytes
CARDBOOST_INLINE uint64_t transpose(uint64_t x) {
    uint64_t t = (x ^ (x >> 7)) & 0x00aa00aa00aa00aaull;
    x ^= t ^ (t << 7);
    t = (x ^ (x >> 14)) & 0x0000cccc0000ccccull;
    x ^= t ^ (t << 14);
    t = (x ^ (x >> 28)) & 0x00000000f0f0f0f0ull;
    return x ^ t ^ (t << 28);
}

// all sums of +-x over eight entries (absent ones count 0), indexed by the byte of signs
template <class T>
void fill_table(const T* x, int size, T* out) {
    out[0] = 0;
    for (int k = 0; k < size; ++k) out[0] += x[k];
    for (int k = 0; k < 8; ++k)
        for (int b = 0; b < (1 << k); ++b) out[(1 << k) + b] = k < size ? out[b] - 2 * x[k] : out[b];
}

// Four groups of eight entries share one pass over the sums.
template <class T>
void sums_by_table(const uint8_t* __restrict packed, int64_t size, int64_t n, const T* x, T* __restrict out) {
    T table[4][256];
    const uint8_t* bytes[4];
    std::fill(out, out + size, T(0));
    const int64_t groups = (n + 7) / 8;
    for (int64_t g = 0; g < groups;) {
        int filled = 0;
        for (; g < groups && filled < 4; ++g) {
            const int own = static_cast<int>(std::min<int64_t>(8, n - 8 * g));
            if (std::all_of(x + 8 * g, x + 8 * g + own, [](T v) { return v == 0; })) continue;
            fill_table(x + 8 * g, own, table[filled]);
            bytes[filled++] = packed + g * size;
        }
        if (filled == 4) {
            const uint8_t *a = bytes[0], *b = bytes[1], *c = bytes[2], *d = bytes[3];
            for (int64_t i = 0; i < size; ++i)
                out[i] += (table[0][a[i]] + table[1][b[i]]) + (table[2][c[i]] + table[3][d[i]]);
        } else {
            for (int k = 0; k < filled; ++k)
                for (int64_t i = 0; i < size; ++i) out[i] += table[k][bytes[k][i]];
        }
    }
}

}  // namespace

bool pack_signs(const double* a64, const int8_t* a8, int64_t lines, int64_t length, uint8_t* packed) {
    for (int64_t line = 0; line < lines; ++line) {
        uint8_t* bytes = packed + line / 8 * length;
        const int k = static_cast<int>(line % 8);
        const int64_t at = line * length;
        if (!(a64 ? add_line64(a64 + at, length, k, bytes) : add_line8(a8 + at, length, k, bytes))) return false;
    }
    return true;
}

void transpose_signs(const uint8_t* packed, int64_t lines, int64_t length, uint8_t* out) {
    for (int64_t g = 0; 8 * g < lines; ++g)
        for (int64_t h = 0; 8 * h < length; ++h) {
            uint8_t square[8] = {};
            std::copy_n(packed + g * length + 8 * h, std::min<int64_t>(8, length - 8 * h), square);
            uint64_t bits = 0;
            for (int i = 0; i < 8; ++i) bits |= static_cast<uint64_t>(square[i]) << (8 * i);
            bits = transpose(bits);
            const int64_t own = std::min<int64_t>(8, lines - 8 * g);
            for (int64_t k = 0; k < own; ++k) out[h * lines + 8 * g + k] = static_cast<uint8_t>(bits >> (8 * k));
        }
}

void sign_sums(const uint8_t* packed, int64_t size, int64_t n, const double* x, double* out) {
    sums_by_table(packed, size, n, x, out);
}

void sign_sums(const uint8_t* packed, int64_t size, int64_t n, const int64_t* x, int64_t* out) {
    sums_by_table(packed, size, n, x, out);
}

}  // namespace cardboost
