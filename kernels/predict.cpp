// Prediction from raw numbers: per feature a search among its own few cuts and one addition.
#include "door.h"

namespace cardboost {

namespace {

// position = number of cuts below the value
CARDBOOST_CLONES
void few_cuts(const double* x, int64_t n, const double* cuts, int n_cuts, int32_t* position) {
    for (int64_t i = 0; i < n; ++i) position[i] = 0;
    for (int k = 0; k < n_cuts; ++k) {
        const double cut = cuts[k];
        for (int64_t i = 0; i < n; ++i) position[i] += cut < x[i] ? 1 : 0;
    }
}

void many_cuts(const double* x, int64_t n, const double* cuts, int n_cuts, int32_t* position) {
    for (int64_t i = 0; i < n; ++i)
        position[i] = static_cast<int32_t>(std::lower_bound(cuts, cuts + n_cuts, x[i]) - cuts);
}

// Step functions straight from raw numbers. Feature k has cuts[offsets[k] .. offsets[k+1]) ascending and one
// more level than cuts, starting at levels[offsets[k] + k]; `missing[k]` is its level for missing values.
// score[row] = base + sum of levels in the order of the features. contributions (features, rows) may be null.
// Returns the first column that holds an infinite value, or -1.
int64_t predict_steps(const std::vector<Column>& columns, int64_t rows, const double* cuts, const int64_t* offsets,
                      const double* levels, const double* missing, double base, int threads, double* score,
                      double* contributions) {
    const int n = static_cast<int>(columns.size());
    auto predict_block = [&](int64_t begin, int64_t size, FirstColumn& first_infinite) {
        double values[kBlock];
        int32_t position[kBlock];
        double* out = score + begin;
        std::fill(out, out + size, base);
        for (int k = 0; k < n; ++k) {
            gather(columns[k], begin, begin + size, values);
            const int n_cuts = static_cast<int>(offsets[k + 1] - offsets[k]);
            (n_cuts <= 16 ? few_cuts : many_cuts)(values, size, cuts + offsets[k], n_cuts, position);
            const double* level = levels + offsets[k] + k;
            bool infinite = false;
            for (int64_t i = 0; i < size; ++i) {
                const double x = values[i];
                infinite |= std::isinf(x);
                const double value = x == x ? level[position[i]] : missing[k];
                out[i] += value;
                if (contributions) contributions[static_cast<int64_t>(k) * rows + begin + i] = value;
            }
            if (infinite) first_infinite.note(k);
        }
    };
    return reduce_blocks<FirstColumn>(rows, worth_threads(threads, rows, n), predict_block).index;
}

CARDBOOST_CLONES
bool any_infinite(const double* x, int64_t n) {
    int64_t infinite = 0;
    for (int64_t i = 0; i < n; ++i) infinite |= std::fabs(x[i]) == std::numeric_limits<double>::infinity();
    return infinite != 0;
}

// The first column that holds an infinite value, or -1.
int64_t find_infinite(const std::vector<Column>& columns, int64_t rows, int threads) {
    const auto n = static_cast<int64_t>(columns.size());
    auto search_block = [&](int64_t begin, int64_t size, FirstColumn& first) {
        double values[kBlock];
        const int64_t end = first.index < 0 ? n : first.index;
        for (int64_t j = 0; j < end; ++j) {
            if (columns[j].kind != Kind::f64 && columns[j].kind != Kind::f32) continue;
            gather(columns[j], begin, begin + size, values);
            if (any_infinite(values, size)) return first.note(j);
        }
    };
    return reduce_blocks<FirstColumn>(rows, worth_threads(threads, rows, n), search_block).index;
}

auto py_predict_steps(const nb::list& list, size_t rows, In<double, 1> cuts, In<int64_t, 1> offsets,
                      In<double, 1> levels, In<double, 1> missing, double base, bool with_contributions,
                      int threads) {
    int64_t length;
    const auto columns = read_columns(list, &length);
    const size_t n = columns.size();
    require(columns.empty() || static_cast<size_t>(length) == rows, "columns and rows differ in length");
    require_offsets(offsets, n, cuts.shape(0));
    require(have_length(n, missing) && have_length(cuts.shape(0) + n, levels), "predict: arrays differ in length");
    auto score = make<double>({rows});
    auto contributions = make<double>({with_contributions ? n : 0, rows});
    const int64_t first_infinite = unlocked([&] {
        return predict_steps(columns, static_cast<int64_t>(rows), cuts.data(), offsets.data(), levels.data(),
                             missing.data(), base, threads, score.data(),
                             with_contributions ? contributions.data() : nullptr);
    });
    return std::make_tuple(score, contributions, first_infinite);
}

int64_t py_find_infinite(const nb::list& list, int threads) {
    int64_t rows;
    const auto columns = read_columns(list, &rows);
    return unlocked([&] { return find_infinite(columns, rows, threads); });
}

}  // namespace

void bind_predict(nb::module_& m) {
    m.def("predict_steps", &py_predict_steps, "columns"_a, "rows"_a, "cuts"_a, "offsets"_a, "levels"_a, "missing"_a,
          "base"_a, "with_contributions"_a, "threads"_a);
    m.def("find_infinite", &py_find_infinite, "columns"_a, "threads"_a);
}

}  // namespace cardboost
