// The door between Python and the kernels. A binding checks every shape and range, releases the GIL and hands flat
// arrays on; it computes nothing.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <limits>
#include <optional>
#include <vector>

#include "columns.h"
#include "loss.h"

namespace cardboost {

namespace nb = nanobind;
using namespace nb::literals;

template <class T, size_t N>
using In = nb::ndarray<const T, nb::ndim<N>, nb::c_contig, nb::device::cpu>;
template <class T, size_t N>
using InOut = nb::ndarray<T, nb::ndim<N>, nb::c_contig, nb::device::cpu>;
template <class T, size_t N>
using Maybe = std::optional<In<T, N>>;
template <class T>
using Out = nb::ndarray<nb::numpy, T>;

inline void require(bool holds, const char* message) {
    if (!holds) throw std::invalid_argument(message);
}

template <class Array>
bool has_shape(const Array& array, std::initializer_list<size_t> shape) {
    size_t axis = 0;
    for (const size_t length : shape)
        if (array.shape(axis++) != length) return false;
    return true;
}
template <class Array>
bool has_shape(const std::optional<Array>& array, std::initializer_list<size_t> shape) {
    return !array || has_shape(*array, shape);
}

// Whether all of these one-dimensional arrays, as far as they are there, have n entries.
template <class... Arrays>
bool have_length(size_t n, const Arrays&... arrays) {
    return (has_shape(arrays, {n}) && ...);
}

template <class Array, class Holds>
bool all_entries(const Array& array, Holds holds) {
    return std::all_of(array.data(), array.data() + array.size(), holds);
}

template <class Array>
auto data_or_null(const std::optional<Array>& array) {
    return array ? array->data() : nullptr;
}

// A number of columns, features or nodes, which kernels count as int.
inline int as_int(size_t n) {
    require(n <= static_cast<size_t>(std::numeric_limits<int>::max()), "an array has too many entries");
    return static_cast<int>(n);
}

inline void require_indices(const In<int32_t, 1>& index, size_t n) {
    as_int(index.shape(0));
    require(all_entries(index, [n](int32_t k) { return k >= 0 && static_cast<size_t>(k) < n; }),
            "an index is out of range");
}

// Offsets into `entries` entries for `parts` parts, one after the other and none longer than `most`.
inline void require_offsets(const In<int64_t, 1>& offsets, size_t parts, size_t entries,
                            int64_t most = std::numeric_limits<int>::max()) {
    require(parts + 1 == offsets.shape(0), "offsets must have one entry more than there are parts");
    const int64_t* from = offsets.data();
    require(from[0] == 0 && from[parts] == static_cast<int64_t>(entries), "offsets do not fit what they point to");
    for (size_t k = 0; k < parts; ++k)
        require(from[k] <= from[k + 1] && from[k + 1] - from[k] <= most, "offsets must ascend, with no part too long");
}

template <class T>
Out<T> make(std::initializer_list<size_t> shape) {
    size_t size = 1;
    for (const size_t n : shape) size = checked_size(size, n);
    T* data = new T[size ? size : 1];
    nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<T*>(p); });
    return Out<T>(data, shape, owner);
}

// What `work` returns, computed while other Python threads run.
template <class Work>
auto unlocked(const Work& work) {
    nb::gil_scoped_release release;
    return work();
}

// One-dimensional arrays of any number type, and their common length.
std::vector<Column> read_columns(const nb::list& list, int64_t* rows);

// Columns of int8 or float64, contiguous one after the other: one of the two pointers is null.
struct DenseArray {
    const int8_t* small;
    const double* real;
};
using AnyMatrix = nb::ndarray<nb::ro, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
DenseArray dense_array(const AnyMatrix& a);

// Sum of counts, sum of weights, largest factor: of all rows, those of other processes too.
using TotalsTuple = std::tuple<double, double, double>;

// Row weights: a count and a factor per row, either may be absent.
RowWeights row_weights(const Maybe<int64_t, 1>& count, const Maybe<double, 1>& factor, const TotalsTuple& totals,
                       size_t rows);

LossKind loss_kind(int code);

// One function for each file of kernels: it adds their bindings to the module.
void bind_binning(nb::module_& m);
void bind_dense(nb::module_& m);
void bind_digest(nb::module_& m);
void bind_histogram(nb::module_& m);
void bind_lbfgs(nb::module_& m);
void bind_linear(nb::module_& m);
void bind_loss(nb::module_& m);
void bind_margins(nb::module_& m);
void bind_nets(nb::module_& m);
void bind_nodes(nb::module_& m);
void bind_predict(nb::module_& m);
void bind_quadratic(nb::module_& m);
void bind_signs(nb::module_& m);
void bind_simplex(nb::module_& m);
void bind_sweeps(nb::module_& m);
void bind_tabu(nb::module_& m);

}  // namespace cardboost
