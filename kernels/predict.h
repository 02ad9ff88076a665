#pragma once
#include "columns.h"

namespace cardboost {

// Step functions straight from raw numbers. Feature k has cuts[offsets[k] .. offsets[k+1]) ascending and one
// more level than cuts, starting at levels[offsets[k] + k]; `missing[k]` is its level for missing values.
// score[row] = base + sum of levels in the order of the features. contributions (features, rows) may be null.
// Returns the first column that holds an infinite value, or -1.
int64_t predict_steps(const std::vector<Column>& columns, int64_t rows, const double* cuts,
                      const int64_t* offsets, const double* levels, const double* missing, double base,
                      int threads, double* score, double* contributions);

// The first column that holds an infinite value, or -1.
int64_t find_infinite(const std::vector<Column>& columns, int64_t rows, int threads);

}  // namespace cardboost
