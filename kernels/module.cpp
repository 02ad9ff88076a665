// The module: threads, what several bindings read, and the list of all files with bindings.
#include "door.h"

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#endif

namespace cardboost {

static bool forked = false;

int usable_threads(int requested) {
#ifdef _OPENMP
    return forked || omp_in_parallel() ? 1 : std::max(1, requested);
#else
    (void)requested;
    return 1;
#endif
}

// The limit that the OpenMP runtime is under now (environment, joblib's workers, threadpoolctl).
static int max_threads() {
#ifdef _OPENMP
    return forked ? 1 : omp_get_max_threads();
#else
    return 1;
#endif
}

CARDBOOST_CLONES
double dot(const double* a, const double* b, int64_t n) {
    Vector<double, 4> s0{}, s1{}, s2{}, s3{};
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        s0 += load<4>(a + i) * load<4>(b + i);
        s1 += load<4>(a + i + 4) * load<4>(b + i + 4);
        s2 += load<4>(a + i + 8) * load<4>(b + i + 8);
        s3 += load<4>(a + i + 12) * load<4>(b + i + 12);
    }
    double sum = add_lanes((s0 + s1) + (s2 + s3));
    for (; i < n; ++i) sum += a[i] * b[i];
    return sum;
}

CARDBOOST_CLONES
void add_scaled(int64_t n, double factor, const double* x, double* y) {
    for (int64_t i = 0; i < n; ++i) y[i] += factor * x[i];
}

CARDBOOST_CLONES
void add_scaled(int64_t n, double factor, const float* x, double* y) {
    for (int64_t i = 0; i < n; ++i) y[i] += factor * static_cast<double>(x[i]);
}

CARDBOOST_CLONES
void add_scaled(int64_t n, double factor, const int8_t* x, double* y) {
    for (int64_t i = 0; i < n; ++i) y[i] += factor * x[i];
}

static Kind number_kind(nb::dlpack::dtype type) {
    using Code = nb::dlpack::dtype_code;
    static constexpr struct {
        Code code;
        int bits;
        Kind kind;
    } kinds[] = {
        {Code::Float, 64, Kind::f64}, {Code::Float, 32, Kind::f32}, {Code::Int, 64, Kind::i64},
        {Code::Int, 32, Kind::i32},   {Code::Int, 16, Kind::i16},   {Code::Int, 8, Kind::i8},
        {Code::UInt, 64, Kind::u64},  {Code::UInt, 32, Kind::u32},  {Code::UInt, 16, Kind::u16},
        {Code::UInt, 8, Kind::u8},    {Code::Bool, 8, Kind::u8},
    };
    for (const auto& entry : kinds)
        if (type.code == static_cast<uint8_t>(entry.code) && type.bits == entry.bits) return entry.kind;
    throw std::invalid_argument("a column has a number type that the kernels do not read");
}

std::vector<Column> read_columns(const nb::list& list, int64_t* rows) {
    std::vector<Column> columns;
    *rows = 0;
    for (nb::handle item : list) {
        nb::ndarray<nb::ro, nb::ndim<1>, nb::device::cpu> array;
        require(nb::try_cast(item, array), "a column is not a one-dimensional array of numbers");
        const auto length = static_cast<int64_t>(array.shape(0));
        require(columns.empty() || *rows == length, "columns differ in length");
        *rows = length;
        columns.push_back({static_cast<const char*>(array.data()), array.stride(0) * (array.dtype().bits / 8),
                           number_kind(array.dtype())});
    }
    as_int(columns.size());
    return columns;
}

DenseArray dense_array(const AnyMatrix& a) {
    const bool small = a.dtype() == nb::dtype<int8_t>();
    require(small || a.dtype() == nb::dtype<double>(), "columns must be int8 or float64");
    return {small ? static_cast<const int8_t*>(a.data()) : nullptr,
            small ? nullptr : static_cast<const double*>(a.data())};
}

RowWeights row_weights(const Maybe<int64_t, 1>& count, const Maybe<double, 1>& factor, const TotalsTuple& totals,
                       size_t rows) {
    require(have_length(rows, count, factor), "row weights and rows differ in length");
    const auto [total_count, total_weight, largest_factor] = totals;
    return {data_or_null(count), data_or_null(factor), total_count, total_weight, largest_factor};
}

LossKind loss_kind(int code) {
    require(code >= 0 && code <= 4, "unknown loss code");
    return static_cast<LossKind>(code);
}

}  // namespace cardboost

NB_MODULE(_kernels, m) {
    using namespace cardboost;
#if defined(__unix__) || defined(__APPLE__)
    pthread_atfork(nullptr, nullptr, [] { forked = true; });
#endif
    m.def("max_threads", &max_threads);
    for (auto bind : {bind_binning, bind_dense, bind_digest, bind_histogram, bind_lbfgs, bind_linear, bind_loss, bind_margins,
                      bind_nets, bind_nodes, bind_predict, bind_quadratic, bind_signs, bind_simplex,
                      bind_sweeps, bind_tabu})
        bind(m);
}
