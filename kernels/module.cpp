// The door between Python and the kernels: checks every shape and range, releases the GIL, and hands flat
// arrays on. Nothing here computes.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <stdexcept>

#include "binning.h"
#include "decimals.h"
#include "dense.h"
#include "histogram.h"
#include "lbfgs.h"
#include "linear.h"
#include "loss.h"
#include "margins.h"
#include "nets.h"
#include "nodes.h"
#include "predict.h"
#include "quadratic.h"
#include "signs.h"
#include "simplex.h"
#include "tabu.h"

#ifdef _OPENMP
#include <omp.h>
#endif
#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#endif

namespace nb = nanobind;
using namespace nb::literals;

namespace cardboost {

static bool forked = false;

int usable_threads(int requested) {
#ifdef _OPENMP
    if (forked || omp_in_parallel()) return 1;
    return requested < 1 ? 1 : requested;
#else
    (void)requested;
    return 1;
#endif
}

// The limit that the OpenMP runtime is under now (environment, joblib's workers, threadpoolctl).
int max_threads() {
#ifdef _OPENMP
    return forked ? 1 : omp_get_max_threads();
#else
    return 1;
#endif
}

namespace {

template <class T, size_t N>
using In = nb::ndarray<const T, nb::ndim<N>, nb::c_contig, nb::device::cpu>;
template <class T, size_t N>
using InOut = nb::ndarray<T, nb::ndim<N>, nb::c_contig, nb::device::cpu>;
template <class T, size_t N>
using Maybe = std::optional<In<T, N>>;
template <class T>
using Out = nb::ndarray<nb::numpy, T>;

void require(bool holds, const char* message) {
    if (!holds) throw std::invalid_argument(message);
}

template <class T>
Out<T> make(std::initializer_list<size_t> shape) {
    size_t size = 1;
    for (size_t n : shape) size *= n;
    T* data = new T[size ? size : 1];
    nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<T*>(p); });
    return Out<T>(data, shape, owner);
}

std::vector<Column> read_columns(const nb::list& list, int64_t* rows) {
    std::vector<Column> columns;
    int64_t n = -1;
    for (nb::handle item : list) {
        nb::ndarray<nb::ro, nb::ndim<1>, nb::device::cpu> array;
        require(nb::try_cast(item, array), "a column is not a one-dimensional array of numbers");
        require(n < 0 || n == static_cast<int64_t>(array.shape(0)), "columns differ in length");
        n = static_cast<int64_t>(array.shape(0));
        const auto type = array.dtype();
        const auto code = static_cast<nb::dlpack::dtype_code>(type.code);
        Kind kind;
        if (code == nb::dlpack::dtype_code::Float && type.bits == 64) kind = Kind::f64;
        else if (code == nb::dlpack::dtype_code::Float && type.bits == 32) kind = Kind::f32;
        else if (code == nb::dlpack::dtype_code::Int && type.bits == 64) kind = Kind::i64;
        else if (code == nb::dlpack::dtype_code::Int && type.bits == 32) kind = Kind::i32;
        else if (code == nb::dlpack::dtype_code::Int && type.bits == 16) kind = Kind::i16;
        else if (code == nb::dlpack::dtype_code::Int && type.bits == 8) kind = Kind::i8;
        else if (code == nb::dlpack::dtype_code::UInt && type.bits == 64) kind = Kind::u64;
        else if (code == nb::dlpack::dtype_code::UInt && type.bits == 32) kind = Kind::u32;
        else if (code == nb::dlpack::dtype_code::UInt && type.bits == 16) kind = Kind::u16;
        else if (type.bits == 8) kind = Kind::u8;
        else throw std::invalid_argument("a column has a number type that the kernels do not read");
        columns.push_back({static_cast<const char*>(array.data()), array.stride(0) * (type.bits / 8), kind});
    }
    *rows = n < 0 ? 0 : n;
    return columns;
}

// Row weights as they arrive from Python: a count and a factor per row, either may be absent.
RowWeights row_weights(const Maybe<int64_t, 1>& count, const Maybe<double, 1>& factor, size_t rows) {
    require(!count || count->shape(0) == rows, "counts and rows differ in length");
    require(!factor || factor->shape(0) == rows, "factors and rows differ in length");
    RowWeights w{count ? count->data() : nullptr, factor ? factor->data() : nullptr, 0.0, 0.0, 1.0};
    return w;
}

struct Totals {
    double count, weight, largest_factor;
};
using TotalsTuple = std::tuple<double, double, double>;

RowWeights row_weights(const Maybe<int64_t, 1>& count, const Maybe<double, 1>& factor,
                       const TotalsTuple& totals, size_t rows) {
    RowWeights w = row_weights(count, factor, rows);
    w.total_count = std::get<0>(totals);
    w.total_weight = std::get<1>(totals);
    w.largest_factor = std::get<2>(totals);
    return w;
}

LossKind loss_kind(int code) {
    require(code >= 0 && code <= 4, "unknown loss code");
    return static_cast<LossKind>(code);
}

// The squared loss has a target for every row, the others have none.
const double* loss_target(LossKind kind, const Maybe<double, 1>& target, size_t rows) {
    require(target.has_value() == (kind == LossKind::squared), "a target belongs to the squared loss, and only to it");
    require(!target || target->shape(0) == rows, "targets and margins differ in length");
    return target ? target->data() : nullptr;
}

void check_features(const In<int32_t, 1>& features, size_t n_features) {
    for (size_t k = 0; k < features.shape(0); ++k)
        require(features.data()[k] >= 0 && static_cast<size_t>(features.data()[k]) < n_features,
                "a feature index is out of range");
}

auto py_bin_columns(const nb::list& list, Maybe<int64_t, 1> weights, int max_bins, int threads) {
    int64_t rows;
    const auto columns = read_columns(list, &rows);
    require(max_bins >= 2 && max_bins <= 255, "max_bins must be between 2 and 255");
    require(!weights || static_cast<int64_t>(weights->shape(0)) == rows, "weights and rows differ in length");
    const size_t n = columns.size();
    auto bins = make<uint8_t>({n, static_cast<size_t>(rows)});
    auto cuts = make<double>({n, static_cast<size_t>(kBins)});
    auto n_cuts = make<int32_t>({n});
    auto missing = make<int64_t>({n});
    int64_t first_infinite = -1;
    {
        nb::gil_scoped_release release;
        bin_columns(columns, weights ? weights->data() : nullptr, rows, max_bins, threads, bins.data(), cuts.data(),
                    n_cuts.data(), missing.data(), &first_infinite);
    }
    return std::make_tuple(bins, cuts, n_cuts, missing, first_infinite);
}

auto py_apply_cuts(const nb::list& list, In<double, 1> cuts, In<int64_t, 1> offsets, int threads) {
    int64_t rows;
    const auto columns = read_columns(list, &rows);
    require(offsets.shape(0) == columns.size() + 1, "offsets must have one entry more than columns");
    require(offsets.data()[0] == 0, "offsets must start at 0");
    for (size_t j = 0; j < columns.size(); ++j) {
        const int64_t n = offsets.data()[j + 1] - offsets.data()[j];
        require(n >= 0 && n <= 254, "a feature has more than 254 cuts");
    }
    require(offsets.data()[columns.size()] == static_cast<int64_t>(cuts.shape(0)), "offsets do not end at the cuts");
    auto bins = make<uint8_t>({columns.size(), static_cast<size_t>(rows)});
    {
        nb::gil_scoped_release release;
        apply_cuts(columns, rows, cuts.data(), offsets.data(), threads, bins.data());
    }
    return bins;
}

auto py_digest_rows(const nb::list& list, In<uint8_t, 1> positive, Maybe<int64_t, 1> count,
                    Maybe<double, 1> weight, int threads) {
    int64_t rows;
    const auto columns = read_columns(list, &rows);
    require(columns.empty() || static_cast<int64_t>(positive.shape(0)) == rows, "labels and rows differ in length");
    rows = static_cast<int64_t>(positive.shape(0));
    row_weights(count, weight, static_cast<size_t>(rows));
    uint64_t lanes[2];
    {
        nb::gil_scoped_release release;
        digest_rows(columns, rows, positive.data(), count ? count->data() : nullptr, weight ? weight->data() : nullptr,
                    threads, lanes);
    }
    return std::make_tuple(lanes[0], lanes[1]);
}

auto py_histograms(In<uint8_t, 2> bins, In<int32_t, 1> features, In<int64_t, 2> q, int threads) {
    const size_t rows = bins.shape(1), width = q.shape(1);
    require(q.shape(0) == rows, "row weights and bins differ in length");
    require(width == 1 || width == 2 || width == 4, "row weights must have 1, 2 or 4 lanes");
    check_features(features, bins.shape(0));
    auto out = make<int64_t>({features.shape(0), static_cast<size_t>(kBins), width});
    {
        nb::gil_scoped_release release;
        histograms(bins.data(), rows, features.data(), static_cast<int>(features.shape(0)), q.data(),
                   static_cast<int>(width), threads, out.data());
    }
    return out;
}

auto py_hash_bins(In<uint8_t, 2> bins, In<int32_t, 1> features, int threads) {
    check_features(features, bins.shape(0));
    auto out = make<uint64_t>({bins.shape(1)});
    {
        nb::gil_scoped_release release;
        hash_bins(bins.data(), static_cast<int64_t>(bins.shape(1)), features.data(),
                  static_cast<int>(features.shape(0)), threads, out.data());
    }
    return out;
}

auto py_search(In<int64_t, 3> hist, In<int32_t, 1> n_bins, In<uint8_t, 1> kind, In<uint8_t, 2> mask,
               double edge_unit, double curvature_unit, double l1, double l2, bool gain, bool intercept) {
    const size_t n = hist.shape(0);
    const size_t width = hist.shape(2);
    require(hist.shape(1) == kBins && (width == 2 || (width == 1 && !gain)),
            "histograms must have shape (features, 256, 2), or (features, 256, 1) where only edges count");
    require(n_bins.shape(0) == n && kind.shape(0) == n && mask.shape(0) == n && mask.shape(1) == kBins,
            "search: arrays differ in length");
    for (size_t f = 0; f < n; ++f)
        require(n_bins.data()[f] >= 0 && n_bins.data()[f] <= 255, "a feature has more than 255 bins");
    auto score = make<double>({n}), edge = make<double>({n});
    auto cut = make<int32_t>({n});
    auto polarity = make<int8_t>({n});
    auto missing_left = make<uint8_t>({n});
    double largest;
    {
        nb::gil_scoped_release release;
        search(hist.data(), static_cast<int>(n), n_bins.data(), kind.data(), mask.data(),
               {edge_unit, curvature_unit, l1, l2, gain, intercept, static_cast<int>(width)}, score.data(), edge.data(), cut.data(),
               polarity.data(), missing_left.data(), &largest);
    }
    return std::make_tuple(score, edge, cut, polarity, missing_left, largest);
}

auto py_margins(In<uint8_t, 2> bins, In<int32_t, 1> features, In<double, 2> tables, double base,
                Maybe<int8_t, 1> sign, int threads) {
    const size_t rows = bins.shape(1);
    require(tables.shape(0) == features.shape(0) && tables.shape(1) == kBins, "tables must have shape (features, 256)");
    require(!sign || sign->shape(0) == rows, "signs and bins differ in length");
    check_features(features, bins.shape(0));
    auto out = make<double>({rows});
    {
        nb::gil_scoped_release release;
        margins(bins.data(), rows, features.data(), static_cast<int>(features.shape(0)), tables.data(), base,
                sign ? sign->data() : nullptr, threads, out.data());
    }
    return out;
}

auto py_signed_weights(In<uint8_t, 2> bins, In<int32_t, 1> features, In<int8_t, 2> signs, In<int64_t, 1> q,
                       int width, int threads) {
    const size_t rows = bins.shape(1), n = features.shape(0);
    require(q.shape(0) == rows, "row weights and bins differ in length");
    require(signs.shape(0) == n && signs.shape(1) == kBins, "signs must have shape (features, 256)");
    require((width == 1 || width == 2 || width == 4) && n <= static_cast<size_t>(width), "too many lanes");
    check_features(features, bins.shape(0));
    auto out = make<int64_t>({rows, static_cast<size_t>(width)});
    {
        nb::gil_scoped_release release;
        signed_weights(bins.data(), rows, features.data(), signs.data(), static_cast<int>(n), q.data(), width,
                       threads, out.data());
    }
    return out;
}

auto py_stump_bits(In<uint8_t, 2> bins, In<int32_t, 1> features, In<int8_t, 2> signs, int threads) {
    const size_t rows = bins.shape(1), n = features.shape(0);
    require(signs.shape(0) == n && signs.shape(1) == kBins, "signs must have shape (features, 256)");
    check_features(features, bins.shape(0));
    auto out = make<uint64_t>({(rows + 63) / 64, n});
    {
        nb::gil_scoped_release release;
        stump_bits(bins.data(), static_cast<int64_t>(rows), features.data(), signs.data(), static_cast<int>(n), threads,
                   out.data());
    }
    return out;
}

auto py_loss_pass(int loss, In<double, 1> F, Maybe<double, 1> target, Maybe<double, 1> D, double step,
                  Maybe<int64_t, 1> count, Maybe<double, 1> factor, TotalsTuple totals,
                  std::optional<InOut<double, 2>> rows_out, int threads) {
    const size_t rows = F.shape(0);
    require(!D || D->shape(0) == rows, "margins and direction differ in length");
    const RowWeights w = row_weights(count, factor, totals, rows);
    const LossKind kind = loss_kind(loss);
    const double* t = loss_target(kind, target, rows);
    require(!rows_out || (rows_out->shape(0) == 2 && rows_out->shape(1) == rows), "rows_out must have shape (2, rows)");
    double* v = rows_out ? rows_out->data() : nullptr;
    LossSums sums;
    {
        nb::gil_scoped_release release;
        sums =
            loss_pass(kind, F.data(), t, D ? D->data() : nullptr, step, rows, w, threads, v, v ? v + rows : nullptr);
    }
    return std::make_tuple(sums.shift, sums.loss, sums.derivative, sums.curvature, sums.slope, sums.bend,
                           sums.largest);
}

double py_dual_pass(int loss, In<double, 1> F, Maybe<double, 1> target, double theta, Maybe<int64_t, 1> count,
                    Maybe<double, 1> factor, TotalsTuple totals, int threads) {
    const RowWeights w = row_weights(count, factor, totals, F.shape(0));
    const LossKind kind = loss_kind(loss);
    const double* t = loss_target(kind, target, F.shape(0));
    require(theta > 0.0 && theta <= 1.0, "theta must be in (0, 1]");
    nb::gil_scoped_release release;
    return dual_pass(kind, F.data(), t, theta, F.shape(0), w, threads);
}

auto py_quantise(In<double, 2> values, Maybe<int8_t, 1> sign, Maybe<int64_t, 1> count, Maybe<double, 1> factor,
                 double largest_factor, In<double, 1> scales, In<double, 1> largest, In<uint8_t, 1> use_sign,
                 int threads) {
    const size_t width = values.shape(0), rows = values.shape(1);
    require(scales.shape(0) == width && largest.shape(0) == width && use_sign.shape(0) == width,
            "quantise: one scale per lane");
    require(!sign || sign->shape(0) == rows, "signs and values differ in length");
    RowWeights w = row_weights(count, factor, rows);
    w.largest_factor = largest_factor;
    auto out = make<int64_t>({rows, width});
    {
        nb::gil_scoped_release release;
        for (size_t c = 0; c < width; ++c)
            quantise(values.data() + c * rows, sign && use_sign.data()[c] ? sign->data() : nullptr, rows, w,
                     scales.data()[c], largest.data()[c], static_cast<int>(width), threads, out.data() + c);
    }
    return out;
}

void check_columns(const In<int32_t, 1>& columns, size_t n) { check_features(columns, n); }

auto py_dense_margins(nb::ndarray<nb::ro, nb::ndim<2>, nb::c_contig, nb::device::cpu> a, In<int32_t, 1> columns,
                      In<double, 1> weights, int threads) {
    const bool small = a.dtype() == nb::dtype<int8_t>();
    require(small || a.dtype() == nb::dtype<double>(), "columns must be int8 or float64");
    require(weights.shape(0) == columns.shape(0), "one weight per column");
    check_columns(columns, a.shape(0));
    auto out = make<double>({a.shape(1)});
    {
        nb::gil_scoped_release release;
        dense_margins(small ? static_cast<const int8_t*>(a.data()) : nullptr,
                      small ? nullptr : static_cast<const double*>(a.data()), a.shape(1), columns.data(),
                      static_cast<int>(columns.shape(0)), weights.data(), threads, out.data());
    }
    return out;
}

auto py_dense_edges(In<int8_t, 2> a, bool signs, In<int32_t, 1> columns, In<int64_t, 1> q, int threads) {
    require(q.shape(0) == a.shape(1), "row weights and columns differ in length");
    check_columns(columns, a.shape(0));
    auto out = make<int64_t>({columns.shape(0)});
    {
        nb::gil_scoped_release release;
        dense_edges(a.data(), signs, a.shape(1), columns.data(), static_cast<int>(columns.shape(0)), q.data(), threads,
                    out.data());
    }
    return out;
}

auto py_dense_edges_real(In<double, 2> a, In<int32_t, 1> columns, In<double, 1> value, Maybe<int64_t, 1> count,
                         double scale, bool quick, int threads) {
    require(value.shape(0) == a.shape(1), "row weights and columns differ in length");
    require(!count || count->shape(0) == a.shape(1), "counts and columns differ in length");
    check_columns(columns, a.shape(0));
    auto out = make<int64_t>({columns.shape(0)});
    {
        nb::gil_scoped_release release;
        dense_edges_real(a.data(), a.shape(1), columns.data(), static_cast<int>(columns.shape(0)), value.data(),
                         count ? count->data() : nullptr, scale, quick, threads, out.data());
    }
    return out;
}

auto py_dense_gram(In<int8_t, 2> a, bool signs, In<int32_t, 1> left, In<int32_t, 1> columns, In<int64_t, 1> q,
                   int threads) {
    require(q.shape(0) == a.shape(1), "row weights and columns differ in length");
    check_columns(left, a.shape(0));
    check_columns(columns, a.shape(0));
    auto out = make<int64_t>({left.shape(0), columns.shape(0)});
    {
        nb::gil_scoped_release release;
        dense_gram(a.data(), signs, a.shape(1), left.data(), static_cast<int>(left.shape(0)), columns.data(),
                   static_cast<int>(columns.shape(0)), q.data(), threads, out.data());
    }
    return out;
}

auto py_dense_gram_real(In<double, 2> a, In<int32_t, 1> left, In<int32_t, 1> columns, In<double, 1> value,
                        Maybe<int64_t, 1> count, double scale, bool quick, int threads) {
    require(value.shape(0) == a.shape(1), "row weights and columns differ in length");
    require(!count || count->shape(0) == a.shape(1), "counts and columns differ in length");
    check_columns(left, a.shape(0));
    check_columns(columns, a.shape(0));
    auto out = make<int64_t>({left.shape(0), columns.shape(0)});
    {
        nb::gil_scoped_release release;
        dense_gram_real(a.data(), a.shape(1), left.data(), static_cast<int>(left.shape(0)), columns.data(),
                        static_cast<int>(columns.shape(0)), value.data(), count ? count->data() : nullptr, scale,
                        quick, threads, out.data());
    }
    return out;
}

auto py_pack_signs(nb::ndarray<nb::ndim<2>, nb::c_contig, nb::device::cpu, nb::ro> a, bool by_column) {
    const bool real = a.dtype() == nb::dtype<double>();
    require(real || a.dtype() == nb::dtype<int8_t>(), "pack_signs: int8 or float64");
    require(a.shape(0) && a.shape(1), "pack_signs: no entries");
    require(a.shape(by_column ? 0 : 1) <= static_cast<size_t>(std::numeric_limits<int32_t>::max()),
            "pack_signs: too many columns");
    SignBits lines(static_cast<int64_t>(a.shape(0)), static_cast<int64_t>(a.shape(1)));
    SignBits columns(0, 0), rows(0, 0);
    std::vector<int32_t> plus, minus;
    bool signs;
    {
        nb::gil_scoped_release release;
        signs = pack_signs(real ? static_cast<const double*>(a.data()) : nullptr,
                           real ? nullptr : static_cast<const int8_t*>(a.data()), lines);
        if (signs) {
            columns = distinct_lines(by_column ? lines : transpose(lines), plus, minus);
            rows = transpose(columns);
        }
    }
    auto grouped = [](const SignBits& bits) {
        auto out = make<uint64_t>({static_cast<size_t>(bits.words), static_cast<size_t>(bits.lines)});
        nb::gil_scoped_release release;
        group_signs(bits, out.data());
        return out;
    };
    auto sides = make<int32_t>({2, plus.size()});
    std::copy(plus.begin(), plus.end(), sides.data());
    std::copy(minus.begin(), minus.end(), sides.data() + plus.size());
    return std::make_tuple(signs, grouped(columns), grouped(rows), sides);
}

void check_grouped(const In<uint64_t, 2>& grouped, size_t rows) {
    require(rows < (size_t{1} << 48) && grouped.shape(0) == (rows + 63) / 64,
            "packed signs and rows differ in length");
    require(grouped.shape(1) <= static_cast<size_t>(std::numeric_limits<int32_t>::max()), "too many columns");
}

auto py_sign_edges(In<uint64_t, 2> grouped, In<int64_t, 1> q, int threads) {
    check_grouped(grouped, q.shape(0));
    auto out = make<int64_t>({grouped.shape(1)});
    {
        nb::gil_scoped_release release;
        sign_edges(grouped.data(), static_cast<int64_t>(grouped.shape(1)), static_cast<int64_t>(q.shape(0)), q.data(),
                   threads, out.data());
    }
    return out;
}

auto py_sign_gram(In<uint64_t, 2> grouped, int known, In<int64_t, 1> q, int threads) {
    check_grouped(grouped, q.shape(0));
    require(known >= 0 && static_cast<size_t>(known) <= grouped.shape(1), "more columns are known than there are");
    auto out = make<int64_t>({grouped.shape(1), grouped.shape(1)});
    {
        nb::gil_scoped_release release;
        sign_gram(grouped.data(), static_cast<int>(grouped.shape(1)), known, static_cast<int64_t>(q.shape(0)),
                  q.data(), threads, out.data());
    }
    return out;
}

auto py_sign_counts(In<uint64_t, 2> grouped, int known, size_t rows, int threads) {
    check_grouped(grouped, rows);
    require(known >= 0 && static_cast<size_t>(known) <= grouped.shape(1), "more columns are known than there are");
    auto out = make<int64_t>({grouped.shape(1), grouped.shape(1)});
    {
        nb::gil_scoped_release release;
        sign_counts(grouped.data(), static_cast<int>(grouped.shape(1)), known, static_cast<int64_t>(rows), threads,
                    out.data());
    }
    return out;
}

auto py_sign_margins(In<uint64_t, 2> grouped, In<double, 1> weights, size_t rows, int threads) {
    check_grouped(grouped, rows);
    require(weights.shape(0) == grouped.shape(1), "one weight per column");
    auto out = make<double>({rows});
    {
        nb::gil_scoped_release release;
        sign_margins(grouped.data(), static_cast<int>(grouped.shape(1)), static_cast<int64_t>(rows), weights.data(),
                     threads, out.data());
    }
    return out;
}

// What both kinds of matrices share: prices and limits of the two sides of zero, and the state.
struct BoxArrays {
    In<double, 2> l1, l2, limit;
    InOut<double, 1> z, F, edges;
    InOut<double, 3> pairs;
    InOut<double, 1> numbers;
    InOut<int64_t, 1> counts;
};

auto run_lbfgs(Products& A, LossKind kind, const RowWeights& w, const BoxArrays& on, double tolerance, int most,
               int threads) {
    const size_t n = on.z.shape(0), capacity = on.pairs.shape(1);
    require(kind != LossKind::squared, "lbfgs: the loss must be one of the margin");
    for (const auto& side : {on.l1, on.l2, on.limit})
        require(side.shape(0) == 2 && side.shape(1) == n, "lbfgs: prices and limits must have shape (2, columns)");
    require(on.edges.shape(0) == n, "lbfgs: edges and weights differ in length");
    require(on.pairs.shape(0) == 2 && capacity >= 1 && on.pairs.shape(2) == n, "lbfgs: pairs of another size");
    require(on.numbers.shape(0) == 2 && on.counts.shape(0) == 4, "lbfgs: a state of another size");
    int64_t* counts = on.counts.data();
    require(counts[1] >= 0 && counts[1] < static_cast<int64_t>(capacity) && counts[2] >= 0 &&
                counts[2] <= static_cast<int64_t>(capacity),
            "lbfgs: more pairs than there is room for");
    require(most >= 1 && most <= 1000000, "lbfgs: between 1 and 1000000 points");
    for (size_t k = 0; k < 2 * n; ++k)
        require(on.l1.data()[k] >= 0.0 && on.limit.data()[k] >= 0.0 &&
                    (on.l2.data()[k] > 0.0 || on.limit.data()[k] == 0.0),
                "lbfgs: l1 and limits must be at least 0, and l2 above 0 on every side that is open");
    auto side = [&](size_t k) { return Side{on.l1.data() + k * n, on.l2.data() + k * n, on.limit.data() + k * n}; };
    const BoxProblem problem{A, kind, w, side(0), side(1), static_cast<int>(n),
                             static_cast<int64_t>(on.F.shape(0)), threads};
    const BoxState state{on.z.data(), on.F.data(), on.edges.data(), on.pairs.data(), on.pairs.data() + capacity * n,
                         on.numbers.data(), on.numbers.data() + 1, counts, counts + 1, counts + 2, counts + 3,
                         static_cast<int>(capacity)};
    auto records = make<double>({static_cast<size_t>(most), static_cast<size_t>(kRecord)});
    BoxEnd end;
    int points;
    {
        nb::gil_scoped_release release;
        points = lbfgs_steps(problem, state, tolerance, most, records.data(), &end);
    }
    return std::make_tuple(static_cast<int>(end), points, records);
}

auto py_lbfgs_signs(In<uint64_t, 2> by_column, In<uint64_t, 2> by_row, int loss, Maybe<int64_t, 1> count,
                    Maybe<double, 1> factor, TotalsTuple totals, In<double, 2> l1, In<double, 2> l2,
                    In<double, 2> limit, InOut<double, 1> z, InOut<double, 1> F, InOut<double, 1> edges,
                    InOut<double, 3> pairs, InOut<double, 1> numbers, InOut<int64_t, 1> counts, double tolerance,
                    int most, int threads) {
    const size_t rows = F.shape(0), n = z.shape(0);
    require(by_column.shape(0) == (rows + 63) / 64 && by_column.shape(1) == n && by_row.shape(0) == (n + 63) / 64 &&
                by_row.shape(1) == rows,
            "lbfgs_signs: packed signs of another size");
    const RowWeights w = row_weights(count, factor, totals, rows);
    const auto A = sign_products(by_column.data(), by_row.data(), static_cast<int>(n), static_cast<int64_t>(rows), w);
    return run_lbfgs(*A, loss_kind(loss), w, {l1, l2, limit, z, F, edges, pairs, numbers, counts}, tolerance, most,
                     threads);
}

auto py_lbfgs_dense(nb::ndarray<nb::ro, nb::ndim<2>, nb::c_contig, nb::device::cpu> a, bool signs, double largest,
                    int loss, Maybe<int64_t, 1> count, Maybe<double, 1> factor, TotalsTuple totals, In<double, 2> l1,
                    In<double, 2> l2, In<double, 2> limit, InOut<double, 1> z, InOut<double, 1> F,
                    InOut<double, 1> edges, InOut<double, 3> pairs, InOut<double, 1> numbers,
                    InOut<int64_t, 1> counts, double tolerance, int most, int threads) {
    const bool small = a.dtype() == nb::dtype<int8_t>();
    require(small || a.dtype() == nb::dtype<double>(), "columns must be int8 or float64");
    const size_t rows = F.shape(0), n = z.shape(0);
    require(a.shape(0) == n && a.shape(1) == rows, "lbfgs_dense: a matrix of another size");
    const RowWeights w = row_weights(count, factor, totals, rows);
    const auto A = dense_products(small ? static_cast<const int8_t*>(a.data()) : nullptr,
                                  small ? nullptr : static_cast<const double*>(a.data()), signs, largest,
                                  static_cast<int>(n), static_cast<int64_t>(rows), w, threads);
    return run_lbfgs(*A, loss_kind(loss), w, {l1, l2, limit, z, F, edges, pairs, numbers, counts}, tolerance, most,
                     threads);
}

auto py_minimise_quadratic(In<double, 2> q, In<double, 1> gradient, In<double, 1> x0, In<double, 1> slope,
                           In<double, 1> knee, In<double, 1> curve, In<double, 1> upper, double tolerance,
                           int max_iterations) {
    const size_t n = gradient.shape(0);
    require(q.shape(0) == n && q.shape(1) == n && x0.shape(0) == n && slope.shape(0) == n && knee.shape(0) == n &&
                curve.shape(0) == n && upper.shape(0) == n,
            "minimise_quadratic: sizes differ");
    auto x = make<double>({n});
    int iterations = 0;
    double drop;
    {
        nb::gil_scoped_release release;
        drop = minimise_quadratic(static_cast<int>(n), q.data(), gradient.data(), x0.data(), slope.data(), knee.data(),
                                  curve.data(), upper.data(), tolerance, max_iterations, x.data(), &iterations);
    }
    return std::make_tuple(x, drop, iterations);
}

auto py_minimise_on_simplex(In<double, 2> q, In<double, 1> gradient, In<double, 1> x0, double tolerance,
                            int most_changes) {
    const size_t n = gradient.shape(0);
    require(q.shape(0) == n && q.shape(1) == n && x0.shape(0) == n, "minimise_on_simplex: sizes differ");
    for (size_t j = 0; j < n; ++j) require(x0.data()[j] >= 0.0, "minimise_on_simplex: x0 must not be negative");
    auto x = make<double>({n});
    int changes = 0;
    double drop;
    {
        nb::gil_scoped_release release;
        drop = minimise_on_simplex(static_cast<int>(n), q.data(), gradient.data(), x0.data(), tolerance, most_changes,
                                   x.data(), &changes);
    }
    return std::make_tuple(x, drop, changes);
}

auto py_score_supports(In<double, 2> q, In<double, 1> gradient, In<double, 1> x0, In<double, 1> slope,
                       In<double, 1> curve, In<double, 1> upper, In<int32_t, 1> members, In<int64_t, 1> offsets,
                       double tolerance, int threads) {
    const size_t n = gradient.shape(0);
    require(q.shape(0) == n && q.shape(1) == n && x0.shape(0) == n && slope.shape(0) == n && curve.shape(0) == n &&
                upper.shape(0) == n,
            "score_supports: sizes differ");
    require(offsets.shape(0) >= 1 && offsets.data()[0] == 0, "score_supports: offsets must start at 0");
    const size_t candidates = offsets.shape(0) - 1;
    for (size_t c = 0; c < candidates; ++c)
        require(offsets.data()[c] <= offsets.data()[c + 1], "score_supports: offsets must ascend");
    require(offsets.data()[candidates] == static_cast<int64_t>(members.shape(0)),
            "score_supports: offsets do not end at the members");
    check_features(members, n);
    auto drop = make<double>({candidates});
    {
        nb::gil_scoped_release release;
        score_supports(static_cast<int>(n), q.data(), gradient.data(), x0.data(), slope.data(), curve.data(),
                       upper.data(), members.data(), offsets.data(), static_cast<int64_t>(candidates), tolerance,
                       threads, drop.data());
    }
    return drop;
}

auto py_bound_nodes(int loss, Maybe<uint8_t, 2> packed, Maybe<double, 2> dense, In<double, 1> share, In<double, 1> l1,
                    In<double, 1> l2, In<double, 1> l0, In<double, 1> upper, In<uint8_t, 1> charged, int max_terms,
                    In<int8_t, 2> state, In<double, 2> start, In<double, 1> tau, double cutoff, int max_steps,
                    int threads, Maybe<double, 1> floors, Maybe<double, 1> caps, Maybe<uint8_t, 1> role,
                    Maybe<int32_t, 1> twin, double objective,
                    Maybe<double, 2> curve, Maybe<uint8_t, 1> curved) {
    const size_t n = l1.shape(0), m = share.shape(0), nodes = state.shape(0);
    require(loss == 0 || loss == 1, "bound_nodes: exponential or logistic loss only");
    require(packed.has_value() != dense.has_value(), "bound_nodes: give packed signs or dense columns");
    require(!packed || (packed->shape(0) == (n + 7) / 8 && packed->shape(1) == m), "bound_nodes: packed has another shape");
    require(!dense || (dense->shape(0) == n && dense->shape(1) == m), "bound_nodes: dense has another shape");
    require(l2.shape(0) == n && l0.shape(0) == n && upper.shape(0) == n && charged.shape(0) == n,
            "bound_nodes: sizes differ");
    require(state.shape(1) == n && start.shape(0) == nodes && start.shape(1) == n && tau.shape(0) == nodes,
            "bound_nodes: nodes differ in size");
    for (size_t j = 0; j < n; ++j)
        require(l1.data()[j] >= 0 && l2.data()[j] >= 0 && l0.data()[j] >= 0 && upper.data()[j] >= 0 &&
                    std::isfinite(l1.data()[j] + l2.data()[j] + l0.data()[j] + upper.data()[j]),
                "bound_nodes: prices must be at least 0 and boxes finite");
    for (size_t k = 0; k < nodes * n; ++k)
        require(state.data()[k] >= 0 && state.data()[k] <= 2 && std::isfinite(start.data()[k]),
                "bound_nodes: states must be 0, 1 or 2 and weights finite");
    for (size_t k = 0; k < nodes; ++k) require(tau.data()[k] >= 0, "bound_nodes: tau must be at least 0");
    require(!caps || (floors && caps->shape(0) == m && floors->shape(0) == m), "bound_nodes: caps and floors are for rows");
    require(caps.has_value() == floors.has_value(), "bound_nodes: caps come with floors");
    for (size_t i = 0; caps && i < m; ++i)
        require(std::isfinite(caps->data()[i]) && std::isfinite(floors->data()[i]), "bound_nodes: caps must be finite");
    require(caps.has_value() == role.has_value() && (!role || role->shape(0) == n), "bound_nodes: caps need roles");
    require(role.has_value() == twin.has_value() && (!twin || twin->shape(0) == n), "bound_nodes: roles need twins");
    for (size_t j = 0; twin && j < n; ++j)
        require(twin->data()[j] >= 0 && twin->data()[j] <= static_cast<int32_t>(j),
                "bound_nodes: a twin is the column itself or an earlier one");
    require(!caps || std::isfinite(objective), "bound_nodes: caps need an objective");
    require(!curve || caps, "bound_nodes: a curve needs caps");
    require(curve.has_value() == curved.has_value() && (!curved || curved->shape(0) == nodes),
            "bound_nodes: a curve is for nodes that say if they use it");
    require(!curve || (curve->shape(0) == nodes && curve->shape(1) == n), "bound_nodes: nodes differ in size");
    for (size_t k = 0; curve && k < nodes * n; ++k)
        require(curve->data()[k] >= 0.0 && std::isfinite(curve->data()[k]), "bound_nodes: a curve must be finite");
    ChoiceProblem problem{static_cast<LossKind>(loss), static_cast<int>(n), static_cast<int64_t>(m),
                          packed ? packed->data() : nullptr, dense ? dense->data() : nullptr, share.data(), l1.data(),
                          l2.data(), l0.data(), upper.data(), charged.data(), max_terms,
                          floors ? floors->data() : nullptr, caps ? caps->data() : nullptr, role ? role->data() : nullptr,
                          twin ? twin->data() : nullptr};
    auto bound = make<double>({nodes}), weights = make<double>({nodes, n}), tau_out = make<double>({nodes}),
         value = make<double>({nodes});
    auto fixed = make<int8_t>({nodes, n});
    auto branch = make<int32_t>({nodes});
    auto centre_out = make<double>({nodes, n}), curve_out = make<double>({nodes, n}), plain = make<double>({nodes});
    {
        nb::gil_scoped_release release;
        bound_nodes(problem, static_cast<int64_t>(nodes),
                    {state.data(), start.data(), tau.data(), curve ? curve->data() : nullptr,
                     curved ? curved->data() : nullptr, cutoff, objective, max_steps},
                    threads,
                    {bound.data(), weights.data(), tau_out.data(), value.data(), fixed.data(), branch.data(),
                     centre_out.data(), curve_out.data(), plain.data()});
    }
    return std::make_tuple(bound, weights, tau_out, value, fixed, branch, centre_out, curve_out, plain);
}

LevelProblem level_problem(const In<uint8_t, 2>& packed, const In<double, 1>& s, const In<double, 1>& l1,
                           const In<double, 1>& l2, const In<double, 1>& l0, const In<double, 1>& step,
                           const In<int32_t, 1>& top, const int32_t* levels, size_t n_levels) {
    const size_t n = l1.shape(0);
    require(packed.shape(0) == (n + 7) / 8, "levels: one line of bytes for eight columns");
    require(s.shape(0) == packed.shape(1), "levels: weights and rows differ in length");
    require( l2.shape(0) == n && l0.shape(0) == n && step.shape(0) == n && top.shape(0) == n &&
                n_levels == n,
            "levels: sizes differ");
    for (size_t j = 0; j < n; ++j) {
        require(top.data()[j] >= 0 && top.data()[j] <= 1 << 24, "levels: a top is out of range");
        require(levels[j] >= 0 && levels[j] <= top.data()[j], "levels: a level is out of range");
        require(step.data()[j] >= 0.0 && step.data()[j] * top.data()[j] <= 700.0, "levels: a step is out of range");
    }
    return {packed.data(), static_cast<int64_t>(packed.shape(1)), static_cast<int>(n), s.data(), l1.data(),
            l2.data(), l0.data(), step.data(), top.data(), nullptr, -1};
}

auto py_price_levels(In<uint8_t, 2> packed, In<double, 1> s, In<double, 1> l1, In<double, 1> l2, In<double, 1> l0,
                     In<double, 1> step, In<int32_t, 1> top, In<int32_t, 1> levels) {
    const size_t n = l1.shape(0);
    auto best = make<int32_t>({n});
    auto rise = make<double>({n}), drop = make<double>({n});
    const LevelProblem problem = level_problem(packed, s, l1, l2, l0, step, top, levels.data(), levels.shape(0));
    double value;
    {
        nb::gil_scoped_release release;
        value = price_levels(problem, levels.data(), best.data(), rise.data(), drop.data());
    }
    return std::make_tuple(value, best, rise, drop);
}

int64_t py_tabu_moves(In<uint8_t, 2> packed, In<double, 1> s, In<double, 1> l1, In<double, 1> l2, In<double, 1> l0,
                      In<double, 1> step, In<int32_t, 1> top, In<uint8_t, 1> counted, int64_t max_terms,
                      In<int64_t, 1> tenure, int64_t moves, double tolerance, InOut<int32_t, 1> levels,
                      InOut<int64_t, 1> until, InOut<int64_t, 1> state, InOut<int32_t, 2> elite,
                      InOut<double, 1> values) {
    LevelProblem problem = level_problem(packed, s, l1, l2, l0, step, top, levels.data(), levels.shape(0));
    const size_t n = l1.shape(0);
    require(counted.shape(0) == n, "tabu_moves: sizes differ");
    problem.counted = counted.data();
    problem.max_terms = max_terms;
    require(until.shape(0) == n && state.shape(0) == 2, "tabu_moves: sizes of the state differ");
    const int64_t clock = state.data()[0];
    require(clock >= 0 && clock < int64_t{1} << 40 && moves < int64_t{1} << 40, "tabu_moves: too many moves");
    require(elite.shape(0) == values.shape(0) && elite.shape(1) == n, "tabu_moves: sizes of the elite differ");
    require(tenure.shape(0) == 4, "tabu_moves: four tenures are needed");
    const int64_t* t = tenure.data();
    for (int k = 0; k < 4; ++k) require(t[k] >= 0 && t[k] < 1 << 30, "tabu_moves: a tenure is out of range");
    require(t[0] <= t[1] && t[2] <= t[3], "tabu_moves: tenures must ascend");
    require(tolerance >= 0.0, "tabu_moves: the tolerance is negative");
    nb::gil_scoped_release release;
    return tabu_moves(problem, {t[0], t[1], t[2], t[3]}, moves, tolerance, levels.data(), until.data(), state.data(),
                      elite.data(), values.data(), static_cast<int>(values.shape(0)));
}

auto py_predict_steps(const nb::list& list, size_t rows, In<double, 1> cuts, In<int64_t, 1> offsets,
                      In<double, 1> levels, In<double, 1> missing, double base, bool with_contributions,
                      int threads) {
    int64_t found;
    const auto columns = read_columns(list, &found);
    require(columns.empty() || static_cast<size_t>(found) == rows, "columns and rows differ in length");
    const size_t n = columns.size();
    require(offsets.shape(0) == n + 1 && missing.shape(0) == n, "predict: arrays differ in length");
    require(offsets.data()[0] == 0 && offsets.data()[n] == static_cast<int64_t>(cuts.shape(0)) &&
                levels.shape(0) == cuts.shape(0) + n,
            "predict: offsets do not fit the cuts");
    for (size_t k = 0; k < n; ++k) require(offsets.data()[k] <= offsets.data()[k + 1], "predict: offsets must ascend");
    auto score = make<double>({rows});
    auto contributions = make<double>({with_contributions ? n : 0, rows});
    int64_t first_infinite;
    {
        nb::gil_scoped_release release;
        first_infinite = predict_steps(columns, rows, cuts.data(), offsets.data(), levels.data(), missing.data(), base,
                                       threads, score.data(), with_contributions ? contributions.data() : nullptr);
    }
    return std::make_tuple(score, contributions, first_infinite);
}

int64_t py_find_infinite(const nb::list& list, int threads) {
    int64_t rows;
    const auto columns = read_columns(list, &rows);
    nb::gil_scoped_release release;
    return find_infinite(columns, rows, threads);
}

// ---- networks with one hidden layer

NetShape net_shape(In<double, 3>& z, size_t hidden, In<double, 3>& t, In<double, 3>& q) {
    const size_t rows = static_cast<size_t>(kNetRows);
    require(z.shape(2) == rows && t.shape(2) == rows && q.shape(2) == rows, "nets: blocks hold 64 rows");
    require(t.shape(0) == z.shape(0) && q.shape(0) == z.shape(0) && q.shape(1) == t.shape(1),
            "nets: inputs, targets and weights differ in shape");
    require(z.shape(1) >= 1 && hidden >= 1 && t.shape(1) >= 1, "nets: inputs, units and outputs are needed");
    require(hidden <= 100000 && z.shape(1) * hidden <= 100000000 && t.shape(1) * hidden <= 10000000,
            "nets: too many units");
    return {static_cast<int64_t>(z.shape(0)), static_cast<int64_t>(z.shape(1)), static_cast<int64_t>(hidden),
            static_cast<int64_t>(t.shape(1))};
}

Activation net_activation(int code) {
    require(code >= 0 && code <= 2, "nets: unknown activation");
    return static_cast<Activation>(code);
}

auto py_net_hidden(In<double, 3> z, In<double, 2> w, int activation, In<double, 3> t, In<double, 3> q, bool shared,
                   InOut<double, 3> a, int threads) {
    const NetShape shape = net_shape(z, w.shape(1), t, q);
    const size_t width = w.shape(1) + 1;
    require(w.shape(0) == z.shape(1), "net_hidden: one row of w per input is needed");
    require(a.shape(0) == z.shape(0) && a.shape(1) == width && a.shape(2) == z.shape(2),
            "net_hidden: a must have room for every unit and a column of ones");
    const Activation kind = net_activation(activation);
    auto gram = make<double>({shared ? size_t{1} : t.shape(1), width, width});
    auto right = make<double>({width, t.shape(1)});
    {
        nb::gil_scoped_release release;
        net_hidden(shape, z.data(), w.data(), kind, t.data(), q.data(), shared, threads, a.data(), gram.data(),
                   right.data());
    }
    return std::make_tuple(gram, right);
}

auto py_net_errors(In<double, 3> z, In<double, 3> a, int activation, In<double, 3> t, In<double, 3> q,
                   In<double, 2> v, int threads) {
    require(a.shape(1) >= 1, "net_errors: a must have a column of ones");
    const NetShape shape = net_shape(z, a.shape(1) - 1, t, q);
    require(a.shape(0) == z.shape(0) && a.shape(2) == z.shape(2), "net_errors: inputs and activations differ");
    require(v.shape(0) == a.shape(1) && v.shape(1) == t.shape(1), "net_errors: v does not fit");
    const Activation kind = net_activation(activation);
    auto gradient = make<double>({z.shape(1), a.shape(1) - 1});
    auto last = make<double>({a.shape(1), t.shape(1)});
    double loss;
    {
        nb::gil_scoped_release release;
        loss = net_errors(shape, z.data(), a.data(), kind, t.data(), q.data(), v.data(), threads, gradient.data(),
                          last.data());
    }
    return std::make_tuple(loss, gradient, last);
}

// ---- linear models

auto py_logistic_rows(In<double, 1> f, In<double, 1> y, In<double, 1> s, InOut<double, 1> pull,
                      InOut<double, 1> curvature) {
    const size_t rows = f.shape(0);
    require(y.shape(0) == rows && s.shape(0) == rows && pull.shape(0) == rows && curvature.shape(0) == rows,
            "logistic_rows: arrays differ in length");
    nb::gil_scoped_release release;
    return logistic_rows(f.data(), y.data(), s.data(), static_cast<int64_t>(rows), pull.data(), curvature.data());
}

auto py_logistic_dual(In<double, 1> pull, In<double, 1> s, double theta) {
    require(pull.shape(0) == s.shape(0), "logistic_dual: arrays differ in length");
    require(theta >= 0.0 && theta <= 1.0, "logistic_dual: theta must be between 0 and 1");
    nb::gil_scoped_release release;
    return logistic_dual(pull.data(), s.data(), static_cast<int64_t>(s.shape(0)), theta);
}

auto py_rows_pass(In<double, 2> x, In<double, 1> coef, double intercept, bool squared, In<double, 1> y,
                  In<double, 1> s, InOut<double, 2> out, int threads) {
    const size_t rows = x.shape(0), columns = x.shape(1);
    require(coef.shape(0) == columns, "rows_pass: one coefficient per column is needed");
    require(y.shape(0) == rows && s.shape(0) == rows && out.shape(0) == 3 && out.shape(1) == rows,
            "rows_pass: arrays differ in length");
    auto sums = make<double>({columns});
    double loss;
    {
        nb::gil_scoped_release release;
        loss = rows_pass(x.data(), static_cast<int64_t>(rows), static_cast<int64_t>(columns), coef.data(), intercept,
                         squared, y.data(), s.data(), threads, out.data(), out.data() + rows, out.data() + 2 * rows,
                         sums.data());
    }
    return std::make_tuple(loss, sums);
}

SweepPrices sweep_prices(double l1, double l2, bool intercept, double g0, double tolerance, int most) {
    require(l1 >= 0.0 && l2 >= 0.0 && tolerance >= 0.0, "sweeps: prices and tolerance must be at least 0");
    require(most >= 0, "sweeps: most must be at least 0");
    return {l1, l2, intercept, g0, tolerance, most};
}

auto run_sweep(const LinearColumns& x, size_t columns, const In<int32_t, 1>& which, const In<double, 1>& w,
               const In<double, 1>& g, const SweepPrices& prices, const InOut<double, 1>& beta,
               const InOut<double, 1>& shift) {
    const size_t n = which.shape(0), rows = static_cast<size_t>(x.rows);
    check_columns(which, columns);
    require(g.shape(0) == n && beta.shape(0) == n, "sweeps: one number per column is needed");
    require(w.shape(0) == rows && shift.shape(0) == rows, "sweeps: one number per row is needed");
    SweepResult found;
    {
        nb::gil_scoped_release release;
        std::vector<double> weighted(rows), scratch(3 * n);
        found = sweep_columns(x, which.data(), static_cast<int>(n), w.data(), g.data(), prices, beta.data(),
                              shift.data(), weighted.data(), scratch.data());
    }
    return std::make_tuple(found.sweeps, found.intercept_change, found.largest);
}

LinearColumns dense_columns(const In<double, 2>& x) {
    return {x.data(), nullptr, nullptr, static_cast<int64_t>(x.shape(1))};
}

// Compressed columns whose entries in `which` lie within the rows.
LinearColumns csc_columns(const In<double, 1>& values, const In<int32_t, 1>& index, const In<int64_t, 1>& starts,
                          const In<int32_t, 1>& which, size_t rows) {
    const size_t entries = values.shape(0), n = starts.shape(0);
    require(n >= 1 && index.shape(0) == entries, "sparse columns: values and rows differ in length");
    check_columns(which, n - 1);
    for (size_t k = 0; k < which.shape(0); ++k) {
        const int64_t from = starts.data()[which.data()[k]], to = starts.data()[which.data()[k] + 1];
        require(from >= 0 && from <= to && static_cast<size_t>(to) <= entries, "sparse columns: starts do not fit");
        uint32_t largest = 0;  // a negative row becomes a large one
        for (int64_t e = from; e < to; ++e) largest = std::max(largest, static_cast<uint32_t>(index.data()[e]));
        require(from == to || largest < rows, "sparse columns: a row is out of range");
    }
    return {values.data(), index.data(), starts.data(), static_cast<int64_t>(rows)};
}

auto py_sweep_dense(In<double, 2> x, In<int32_t, 1> which, In<double, 1> w, In<double, 1> g, double l1, double l2,
                    bool intercept, double g0, double tolerance, int most, InOut<double, 1> beta,
                    InOut<double, 1> shift) {
    const SweepPrices prices = sweep_prices(l1, l2, intercept, g0, tolerance, most);
    return run_sweep(dense_columns(x), x.shape(0), which, w, g, prices, beta, shift);
}

auto py_sweep_csc(In<double, 1> values, In<int32_t, 1> index, In<int64_t, 1> starts, In<int32_t, 1> which,
                  In<double, 1> w, In<double, 1> g, double l1, double l2, bool intercept, double g0, double tolerance,
                  int most, InOut<double, 1> beta, InOut<double, 1> shift) {
    const LinearColumns x = csc_columns(values, index, starts, which, shift.shape(0));
    const SweepPrices prices = sweep_prices(l1, l2, intercept, g0, tolerance, most);
    return run_sweep(x, starts.shape(0) - 1, which, w, g, prices, beta, shift);
}

Out<double> sums_of(const LinearColumns& x, const In<int32_t, 1>& which, const In<double, 1>& pull, int threads) {
    auto out = make<double>({which.shape(0)});
    {
        nb::gil_scoped_release release;
        column_sums(x, which.data(), static_cast<int64_t>(which.shape(0)), pull.data(), threads, out.data());
    }
    return out;
}

auto py_column_sums_dense(In<double, 2> x, In<int32_t, 1> which, In<double, 1> pull, int threads) {
    check_columns(which, x.shape(0));
    require(pull.shape(0) == x.shape(1), "column_sums: one number per row is needed");
    return sums_of(dense_columns(x), which, pull, threads);
}

auto py_column_sums_csc(In<double, 1> values, In<int32_t, 1> index, In<int64_t, 1> starts, In<int32_t, 1> which,
                        In<double, 1> pull, int threads) {
    return sums_of(csc_columns(values, index, starts, which, pull.shape(0)), which, pull, threads);
}

auto py_column_scores_csc(In<double, 1> values, In<int32_t, 1> index, In<int64_t, 1> starts, In<int32_t, 1> which,
                          In<double, 1> coef, int64_t rows) {
    require(coef.shape(0) == which.shape(0), "column_scores: one coefficient per column is needed");
    require(rows >= 0, "column_scores: rows must be at least 0");
    const LinearColumns x = csc_columns(values, index, starts, which, static_cast<size_t>(rows));
    auto out = make<double>({static_cast<size_t>(rows)});
    {
        nb::gil_scoped_release release;
        column_scores(x, which.data(), static_cast<int64_t>(which.shape(0)), coef.data(), out.data());
    }
    return out;
}

template <typename Number>
auto py_sweep_gram(In<Number, 2> q, In<double, 1> a, double total, double l1, double l2, bool intercept, double g0,
                   double tolerance, int most, InOut<double, 1> beta, InOut<double, 1> g) {
    const size_t n = q.shape(0);
    require(q.shape(1) == n && a.shape(0) == n && beta.shape(0) == n && g.shape(0) == n,
            "sweep_gram: arrays differ in length");
    const SweepPrices prices = sweep_prices(l1, l2, intercept, g0, tolerance, most);
    SweepResult found;
    {
        nb::gil_scoped_release release;
        found = sweep_gram(q.data(), static_cast<int64_t>(n), a.data(), total, static_cast<int>(n), prices,
                           beta.data(), g.data());
    }
    return std::make_tuple(found.sweeps, found.intercept_change, found.largest);
}

}  // namespace
}  // namespace cardboost

NB_MODULE(_kernels, m) {
    using namespace cardboost;
#if defined(__unix__) || defined(__APPLE__)
    pthread_atfork(nullptr, nullptr, [] { forked = true; });
#endif
    m.def("bin_columns", &py_bin_columns, "columns"_a, "weights"_a.none(), "max_bins"_a, "threads"_a);
    m.def("apply_cuts", &py_apply_cuts, "columns"_a, "cuts"_a, "offsets"_a, "threads"_a);
    m.def("digest_rows", &py_digest_rows, "columns"_a, "positive"_a, "count"_a.none(), "weight"_a.none(), "threads"_a);
    m.def("histograms", &py_histograms, "bins"_a, "features"_a, "q"_a, "threads"_a);
    m.def("hash_bins", &py_hash_bins, "bins"_a, "features"_a, "threads"_a);
    m.def("search", &py_search, "hist"_a, "n_bins"_a, "kind"_a, "mask"_a, "edge_unit"_a, "curvature_unit"_a,
          "l1"_a, "l2"_a, "gain"_a, "intercept"_a);
    m.def("margins", &py_margins, "bins"_a, "features"_a, "tables"_a, "base"_a, "sign"_a.none(), "threads"_a);
    m.def("signed_weights", &py_signed_weights, "bins"_a, "features"_a, "signs"_a, "q"_a, "width"_a, "threads"_a);
    m.def("stump_bits", &py_stump_bits, "bins"_a, "features"_a, "signs"_a, "threads"_a);
    m.def("loss_pass", &py_loss_pass, "loss"_a, "F"_a, "target"_a.none(), "D"_a.none(), "step"_a, "count"_a.none(),
          "factor"_a.none(), "totals"_a, "rows_out"_a.none().noconvert(), "threads"_a);
    m.def("dual_pass", &py_dual_pass, "loss"_a, "F"_a, "target"_a.none(), "theta"_a, "count"_a.none(),
          "factor"_a.none(), "totals"_a, "threads"_a);
    m.def("quantise", &py_quantise, "values"_a, "sign"_a.none(), "count"_a.none(), "factor"_a.none(),
          "largest_factor"_a, "scales"_a, "largest"_a, "use_sign"_a, "threads"_a);
    m.def("dense_margins", &py_dense_margins, "a"_a, "columns"_a, "weights"_a, "threads"_a);
    m.def("dense_edges", &py_dense_edges, "a"_a, "signs"_a, "columns"_a, "q"_a, "threads"_a);
    m.def("dense_edges_real", &py_dense_edges_real, "a"_a, "columns"_a, "value"_a, "count"_a.none(), "scale"_a,
          "quick"_a, "threads"_a);
    m.def("dense_gram", &py_dense_gram, "a"_a, "signs"_a, "left"_a, "columns"_a, "q"_a, "threads"_a);
    m.def("dense_gram_real", &py_dense_gram_real, "a"_a, "left"_a, "columns"_a, "value"_a, "count"_a.none(), "scale"_a,
          "quick"_a, "threads"_a);
    m.def("pack_signs", &py_pack_signs, "a"_a, "by_column"_a);
    m.def("sign_edges", &py_sign_edges, "grouped"_a, "q"_a, "threads"_a);
    m.def("sign_gram", &py_sign_gram, "grouped"_a, "known"_a, "q"_a, "threads"_a);
    m.def("sign_counts", &py_sign_counts, "grouped"_a, "known"_a, "rows"_a, "threads"_a);
    m.def("sign_margins", &py_sign_margins, "grouped"_a, "weights"_a, "rows"_a, "threads"_a);
    m.def("lbfgs_signs", &py_lbfgs_signs, "by_column"_a, "by_row"_a, "loss"_a, "count"_a.none(), "factor"_a.none(),
          "totals"_a, "l1"_a, "l2"_a, "limit"_a, "z"_a.noconvert(), "F"_a.noconvert(), "edges"_a.noconvert(),
          "pairs"_a.noconvert(), "numbers"_a.noconvert(), "counts"_a.noconvert(), "tolerance"_a, "most"_a,
          "threads"_a);
    m.def("lbfgs_dense", &py_lbfgs_dense, "a"_a, "signs"_a, "largest"_a, "loss"_a, "count"_a.none(), "factor"_a.none(),
          "totals"_a, "l1"_a, "l2"_a, "limit"_a, "z"_a.noconvert(), "F"_a.noconvert(), "edges"_a.noconvert(),
          "pairs"_a.noconvert(), "numbers"_a.noconvert(), "counts"_a.noconvert(), "tolerance"_a, "most"_a,
          "threads"_a);
    m.def("minimise_quadratic", &py_minimise_quadratic, "q"_a, "gradient"_a, "x0"_a, "slope"_a, "knee"_a, "curve"_a,
          "upper"_a, "tolerance"_a, "max_iterations"_a);
    m.def("minimise_on_simplex", &py_minimise_on_simplex, "q"_a, "gradient"_a, "x0"_a, "tolerance"_a,
          "most_changes"_a);
    m.def("score_supports", &py_score_supports, "q"_a, "gradient"_a, "x0"_a, "slope"_a, "curve"_a, "upper"_a,
          "members"_a, "offsets"_a, "tolerance"_a, "threads"_a);
    m.def("bound_nodes", &py_bound_nodes, "loss"_a, "packed"_a.none(), "dense"_a.none(), "share"_a, "l1"_a, "l2"_a,
          "l0"_a, "upper"_a, "charged"_a, "max_terms"_a, "state"_a, "start"_a, "tau"_a, "cutoff"_a, "max_steps"_a,
          "threads"_a, "floors"_a = nb::none(), "caps"_a = nb::none(), "role"_a = nb::none(), "twin"_a = nb::none(),
          "objective"_a = 0.0, "curve"_a = nb::none(), "curved"_a = nb::none());
    m.def("price_levels", &py_price_levels, "packed"_a, "s"_a, "l1"_a, "l2"_a, "l0"_a, "step"_a, "top"_a, "levels"_a);
    m.def("tabu_moves", &py_tabu_moves, "packed"_a, "s"_a, "l1"_a, "l2"_a, "l0"_a, "step"_a, "top"_a, "counted"_a,
          "max_terms"_a, "tenure"_a, "moves"_a, "tolerance"_a, "levels"_a.noconvert(), "until"_a.noconvert(),
          "state"_a.noconvert(), "elite"_a.noconvert(), "values"_a.noconvert());
    m.def("predict_steps", &py_predict_steps, "columns"_a, "rows"_a, "cuts"_a, "offsets"_a, "levels"_a, "missing"_a,
          "base"_a, "with_contributions"_a, "threads"_a);
    m.def("logistic_rows", &py_logistic_rows, "f"_a, "y"_a, "s"_a, "pull"_a.noconvert(), "curvature"_a.noconvert());
    m.def("logistic_dual", &py_logistic_dual, "pull"_a, "s"_a, "theta"_a);
    m.def("rows_pass", &py_rows_pass, "x"_a, "coef"_a, "intercept"_a, "squared"_a, "y"_a, "s"_a, "out"_a.noconvert(),
          "threads"_a);
    m.def("column_sums_dense", &py_column_sums_dense, "x"_a, "which"_a, "pull"_a, "threads"_a);
    m.def("column_sums_csc", &py_column_sums_csc, "values"_a, "index"_a, "starts"_a, "which"_a, "pull"_a, "threads"_a);
    m.def("column_scores_csc", &py_column_scores_csc, "values"_a, "index"_a, "starts"_a, "which"_a, "coef"_a,
          "rows"_a);
    m.def("sweep_dense", &py_sweep_dense, "x"_a, "which"_a, "w"_a, "g"_a, "l1"_a, "l2"_a, "intercept"_a, "g0"_a,
          "tolerance"_a, "most"_a, "beta"_a.noconvert(), "shift"_a.noconvert());
    m.def("sweep_csc", &py_sweep_csc, "values"_a, "index"_a, "starts"_a, "which"_a, "w"_a, "g"_a, "l1"_a, "l2"_a,
          "intercept"_a, "g0"_a, "tolerance"_a, "most"_a, "beta"_a.noconvert(), "shift"_a.noconvert());
    m.def("sweep_gram", &py_sweep_gram<double>, "q"_a, "a"_a, "total"_a, "l1"_a, "l2"_a, "intercept"_a, "g0"_a,
          "tolerance"_a, "most"_a, "beta"_a.noconvert(), "g"_a.noconvert());
    m.def("sweep_gram", &py_sweep_gram<float>, "q"_a, "a"_a, "total"_a, "l1"_a, "l2"_a, "intercept"_a, "g0"_a,
          "tolerance"_a, "most"_a, "beta"_a.noconvert(), "g"_a.noconvert());
    m.def("net_hidden", &py_net_hidden, "z"_a, "w"_a, "activation"_a, "t"_a, "q"_a, "shared"_a, "a"_a.noconvert(),
          "threads"_a);
    m.def("net_errors", &py_net_errors, "z"_a, "a"_a, "activation"_a, "t"_a, "q"_a, "v"_a, "threads"_a);
    m.def("find_infinite", &py_find_infinite, "columns"_a, "threads"_a);
    m.def("simplest_decimal", [](double x, double y) { return simplest_decimal(x, y); }, "x"_a, "y"_a);
    m.def("max_threads", &max_threads);
    m.def("fixed_scale", &fixed_scale, "total"_a, "total_count"_a);
}
