// Products with a matrix of signs, eight entries at a time.
#pragma once
#include <vector>

#include "common.h"

namespace cardboost {

// A matrix of signs as bits, a set one for -1: line after line, each padded with zeros to whole words.
struct SignBits {
    SignBits(int64_t lines, int64_t length)
        : lines(lines), length(length), words((length + 63) / 64), bits(lines * words) {}
    int64_t lines, length, words;
    std::vector<uint64_t> bits;
    const uint64_t* line(int64_t k) const { return bits.data() + k * words; }
    uint64_t* line(int64_t k) { return bits.data() + k * words; }
};

// Fills `out` from its lines x length entries, the lines contiguous. False when one is neither 1 nor -1.
bool pack_signs(const double* a64, const int8_t* a8, SignBits& out);

SignBits transpose(const SignBits& a);

// Two opposite lines are kept once, with 1 as the first entry: line k of the result is line plus[k] of `a` and the
// opposite of line minus[k], -1 standing for none. Of several equal lines each is kept.
SignBits distinct_lines(const SignBits& a, std::vector<int32_t>& plus, std::vector<int32_t>& minus);

// For every 64 entries a line of words: word k of line g has entries 64g .. 64g + 63 of line k.
void group_signs(const SignBits& a, uint64_t* out);

// out[i] = sum over k of +-x[k], the signs in grouped[(k / 64) * size + i]; n entries of x, `size` sums
void sign_sums(const uint64_t* grouped, int64_t size, int64_t n, const double* x, double* out);
void sign_sums(const uint64_t* grouped, int64_t size, int64_t n, const int64_t* x, int64_t* out);

// The same for whole numbers, the sums split among threads
void sign_edges(const uint64_t* grouped, int64_t size, int64_t n, const int64_t* q, int threads, int64_t* out);

// out[i * size + j] = sum over the n rows of q times the product of the signs of columns i and j; 0 where both are
// among the first `known`, which are not asked for
void sign_gram(const uint64_t* grouped, int size, int known, int64_t n, const int64_t* q, int threads, int64_t* out);

// The same with all q = 1; bits beyond the rows must be 0
void sign_counts(const uint64_t* grouped, int size, int known, int64_t n, int threads, int64_t* out);

// out[row] = sum over columns, in their order, of +-weight
void sign_margins(const uint64_t* grouped, int size, int64_t n, const double* weights, int threads, double* out);

}  // namespace cardboost
