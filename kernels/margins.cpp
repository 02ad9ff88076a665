// Margins of any number of stumps: per feature they add up to one lookup table over its bins.
#include "door.h"

namespace cardboost {

namespace {

CARDBOOST_CLONES
void block_margins(const uint8_t* bins, int64_t rows, int64_t begin, int64_t n, const int32_t* features,
                   int n_features, const double* tables, double base, const int8_t* sign, double* out) {
    for (int64_t i = 0; i < n; ++i) out[i] = base;
    int f = 0;
    for (; f + 4 <= n_features; f += 4) {
        const uint8_t* b0 = bins + static_cast<int64_t>(features[f]) * rows + begin;
        const uint8_t* b1 = bins + static_cast<int64_t>(features[f + 1]) * rows + begin;
        const uint8_t* b2 = bins + static_cast<int64_t>(features[f + 2]) * rows + begin;
        const uint8_t* b3 = bins + static_cast<int64_t>(features[f + 3]) * rows + begin;
        const double* t0 = tables + static_cast<int64_t>(f) * kBins;
        const double *t1 = t0 + kBins, *t2 = t1 + kBins, *t3 = t2 + kBins;
        for (int64_t i = 0; i < n; ++i)
            out[i] = (((out[i] + t0[b0[i]]) + t1[b1[i]]) + t2[b2[i]]) + t3[b3[i]];
    }
    for (; f < n_features; ++f) {
        const uint8_t* b = bins + static_cast<int64_t>(features[f]) * rows + begin;
        const double* t = tables + static_cast<int64_t>(f) * kBins;
        for (int64_t i = 0; i < n; ++i) out[i] += t[b[i]];
    }
    if (sign)
        for (int64_t i = 0; i < n; ++i) out[i] *= sign[begin + i];
}

// out[row] = sign[row] * (base + sum over listed features of table[f][bin]); sign may be null (all +1).
// The sum runs over the features in their order, so the result does not depend on threads or shards.
void margins(const uint8_t* bins, int64_t rows, const int32_t* features, int n_features, const double* tables,
             double base, const int8_t* sign, int threads, double* out) {
    for_blocks(rows, worth_threads(threads, rows, n_features + 1.0), [=](int64_t begin, int64_t n) {
        block_margins(bins, rows, begin, n, features, n_features, tables, base, sign, out + begin);
    });
}

// out[row][k] = q[row] * signs[k][bin of feature k], k < width; unused lanes are 0
void signed_weights(const uint8_t* bins, int64_t rows, const int32_t* features, const int8_t* signs, int n,
                    const int64_t* q, int width, int threads, int64_t* out) {
    threads = worth_threads(threads, rows, n);
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t i = 0; i < rows; ++i) {
        for (int k = 0; k < width; ++k) out[i * width + k] = 0;
        for (int k = 0; k < n; ++k) {
            const int8_t sign = signs[k * kBins + bins[static_cast<int64_t>(features[k]) * rows + i]];
            out[i * width + k] = sign < 0 ? -q[i] : q[i];
        }
    }
}

// A bit for every row and stump, set where signs[k][bin of feature k] is negative: word k of group g has rows
// 64g .. 64g + 63 of stump k
void stump_bits(const uint8_t* bins, int64_t rows, const int32_t* features, const int8_t* signs, int n, int threads,
                uint64_t* out) {
    threads = worth_threads(threads, rows, n);
    const int64_t words = (rows + 63) / 64;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t g = 0; g < words; ++g) {
        const int size = static_cast<int>(std::min<int64_t>(64, rows - 64 * g));
        for (int k = 0; k < n; ++k) {
            const uint8_t* bin = bins + static_cast<int64_t>(features[k]) * rows + 64 * g;
            const int8_t* sign = signs + static_cast<int64_t>(k) * kBins;
            uint64_t word = 0;
            for (int r = 0; r < size; ++r) word |= static_cast<uint64_t>(sign[bin[r]] < 0) << r;
            out[g * n + k] = word;
        }
    }
}

Out<double> py_margins(In<uint8_t, 2> bins, In<int32_t, 1> features, In<double, 2> tables, double base,
                       Maybe<int8_t, 1> sign, int threads) {
    const size_t rows = bins.shape(1), n = features.shape(0);
    require(has_shape(tables, {n, kBins}), "tables must have shape (features, 256)");
    require(have_length(rows, sign), "signs and bins differ in length");
    require_indices(features, bins.shape(0));
    auto out = make<double>({rows});
    unlocked([&] {
        margins(bins.data(), rows, features.data(), as_int(n), tables.data(), base, data_or_null(sign), threads,
                out.data());
    });
    return out;
}

Out<int64_t> py_signed_weights(In<uint8_t, 2> bins, In<int32_t, 1> features, In<int8_t, 2> signs, In<int64_t, 1> q,
                               int width, int threads) {
    const size_t rows = bins.shape(1), n = features.shape(0);
    require(have_length(rows, q), "row weights and bins differ in length");
    require(has_shape(signs, {n, kBins}), "signs must have shape (features, 256)");
    require((width == 1 || width == 2 || width == 4) && n <= static_cast<size_t>(width), "too many lanes");
    require_indices(features, bins.shape(0));
    auto out = make<int64_t>({rows, static_cast<size_t>(width)});
    unlocked([&] {
        signed_weights(bins.data(), rows, features.data(), signs.data(), as_int(n), q.data(), width, threads,
                       out.data());
    });
    return out;
}

Out<uint64_t> py_stump_bits(In<uint8_t, 2> bins, In<int32_t, 1> features, In<int8_t, 2> signs, int threads) {
    const size_t rows = bins.shape(1), n = features.shape(0);
    require(has_shape(signs, {n, kBins}), "signs must have shape (features, 256)");
    require_indices(features, bins.shape(0));
    auto out = make<uint64_t>({(rows + 63) / 64, n});
    unlocked([&] {
        stump_bits(bins.data(), rows, features.data(), signs.data(), as_int(n), threads, out.data());
    });
    return out;
}

}  // namespace

void bind_margins(nb::module_& m) {
    m.def("margins", &py_margins, "bins"_a, "features"_a, "tables"_a, "base"_a, "sign"_a.none(), "threads"_a);
    m.def("signed_weights", &py_signed_weights, "bins"_a, "features"_a, "signs"_a, "q"_a, "width"_a, "threads"_a);
    m.def("stump_bits", &py_stump_bits, "bins"_a, "features"_a, "signs"_a, "threads"_a);
}

}  // namespace cardboost
