#pragma once
#include "common.h"

namespace cardboost {

// out[f][bin][c] = sum of q[row][c] over the rows of that bin, for every listed feature. width: 1, 2 or 4.
void histograms(const uint8_t* bins, int64_t rows, const int32_t* features, int n_features, const int64_t* q,
                int width, int threads, int64_t* out);

// out[row]: a hash of the row's bins in the listed features; equal rows have equal hashes.
void hash_bins(const uint8_t* bins, int64_t rows, const int32_t* features, int n_features, int threads,
               uint64_t* out);

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

// Best allowed stump of every feature, and the largest edge among all allowed stumps.
// mask[f][cut] bits: 1 missing right & positive, 2 missing right & negative, 4 missing left & positive,
// 8 missing left & negative; a set bit forbids the stump.
void search(const int64_t* hist, int n_features, const int32_t* n_bins, const uint8_t* kind, const uint8_t* mask,
            const SearchSettings& settings, double* score, double* edge, int32_t* cut,
            int8_t* polarity, uint8_t* missing_left, double* largest_edge);

}  // namespace cardboost
