#pragma once
#include "columns.h"

namespace cardboost {

// bins: (columns, rows); cuts: (columns, 256), the first n_cuts[j] of row j in use.
// first_infinite: the first column that holds an infinite value, or -1.
void bin_columns(const std::vector<Column>& columns, const int64_t* weights, int64_t rows, int max_bins,
                 int threads, uint8_t* bins, double* cuts, int32_t* n_cuts, int64_t* missing,
                 int64_t* first_infinite);

void apply_cuts(const std::vector<Column>& columns, int64_t rows, const double* cuts, const int64_t* offsets,
                int threads, uint8_t* bins);

void digest_rows(const std::vector<Column>& columns, int64_t rows, const uint8_t* positive,
                 const int64_t* counts, const double* weights, int threads, uint64_t* lanes);

}  // namespace cardboost
