// A network with one hidden layer: activations, normal equations of the last layer, errors and gradient.
//
// Rows stand side by side: tables are (blocks, columns, kNetRows), so that what is done to one row is done to
// eight at once. The last block is filled up with rows of weight 0. Sums run over chunks of blocks, in eight
// lanes each, and the chunks are added in their order: the number of threads changes no bit.
#include "door.h"
#include "fastmath.h"

namespace cardboost {

namespace {

constexpr int64_t kNetRows = 64;  // rows of a block

enum class Activation : int { tanh = 0, relu = 1, logistic = 2 };

struct NetShape {
    int64_t blocks, inputs, hidden, outputs;  // inputs: with the column of ones
};

using Eight = Vector<double, 8>;
constexpr int64_t kEights = kNetRows / 8;  // of a block
constexpr int64_t kChunk = 8;              // blocks whose sums are added up lane by lane

CARDBOOST_INLINE void add_to(double* p, const Eight& v) { store<8>(p, load<8>(p) + v); }
CARDBOOST_INLINE double add_up(const double* p) {
    return ((p[0] + p[1]) + (p[2] + p[3])) + ((p[4] + p[5]) + (p[6] + p[7]));
}

// e = exp(-2 |x|): the absolute error is that of a rounding, which is all that sums of activations need
CARDBOOST_INLINE double tanh_poly(double x) {
    const double size = x < 0.0 ? -x : x;
    const double e = exp_poly(-2.0 * size);
    const double value = (1.0 - e) / (1.0 + e);
    return x < 0.0 ? -value : value;
}

CARDBOOST_INLINE void activate(double* a, int64_t n, Activation kind) {
    if (kind == Activation::tanh) {
        for (int64_t i = 0; i < n; ++i) a[i] = tanh_poly(a[i]);
    } else if (kind == Activation::relu) {
        for (int64_t i = 0; i < n; ++i) a[i] = a[i] > 0.0 ? a[i] : 0.0;
    } else {
        for (int64_t i = 0; i < n; ++i) a[i] = 0.5 * (tanh_poly(0.5 * a[i]) + 1.0);
    }
}

// d becomes d times the derivative of the activation whose value is a
CARDBOOST_INLINE void times_slope(double* d, const double* a, Activation kind) {
    if (kind == Activation::tanh) {
        for (int64_t i = 0; i < kNetRows; ++i) d[i] *= 1.0 - a[i] * a[i];
    } else if (kind == Activation::relu) {
        for (int64_t i = 0; i < kNetRows; ++i) d[i] = a[i] > 0.0 ? d[i] : 0.0;
    } else {
        for (int64_t i = 0; i < kNetRows; ++i) d[i] *= a[i] * (1.0 - a[i]);
    }
}

// out_k = sum_j w_jk x_j for `Units` columns k of w, from k on; x and out are columns of one block
template <int Units>
CARDBOOST_INLINE void combine(const double* x, int64_t inputs, const double* w, int64_t stride, int64_t k,
                              double* out) {
    for (int64_t r = 0; r < kEights; ++r) {
        Eight sum[Units] = {};
        for (int64_t j = 0; j < inputs; ++j) {
            const Eight entry = load<8>(x + j * kNetRows + 8 * r);
            for (int u = 0; u < Units; ++u) sum[u] += entry * w[j * stride + k + u];
        }
        for (int u = 0; u < Units; ++u) store<8>(out + (k + u) * kNetRows + 8 * r, sum[u]);
    }
}

// sums_jk += sum over rows of x_j d_k, lane by lane, for `Units` columns k from k on
template <int Units>
CARDBOOST_INLINE void correlate(const double* x, int64_t inputs, const double* d, int64_t units, int64_t k,
                                double* sums) {
    for (int64_t j = 0; j < inputs; ++j) {
        Eight sum[Units] = {};
        for (int64_t r = 0; r < kEights; ++r) {
            const Eight entry = load<8>(x + j * kNetRows + 8 * r);
            for (int u = 0; u < Units; ++u) sum[u] += entry * load<8>(d + (k + u) * kNetRows + 8 * r);
        }
        for (int u = 0; u < Units; ++u) add_to(sums + 8 * (j * units + k + u), sum[u]);
    }
}

CARDBOOST_CLONES
void combine_all(const double* x, int64_t inputs, const double* w, int64_t units, double* out) {
    int64_t k = 0;
    for (; k + 4 <= units; k += 4) combine<4>(x, inputs, w, units, k, out);
    for (; k < units; ++k) combine<1>(x, inputs, w, units, k, out);
}

CARDBOOST_CLONES
void correlate_all(const double* x, int64_t inputs, const double* d, int64_t units, double* sums) {
    int64_t k = 0;
    for (; k + 4 <= units; k += 4) correlate<4>(x, inputs, d, units, k, sums);
    for (; k < units; ++k) correlate<1>(x, inputs, d, units, k, sums);
}

CARDBOOST_CLONES
void activate_block(double* a, int64_t hidden, Activation kind) {
    activate(a, hidden * kNetRows, kind);
    for (int64_t i = 0; i < kNetRows; ++i) a[hidden * kNetRows + i] = 1.0;
}

// gram (lower half) and right, lane by lane; `weighted` is room for one block
CARDBOOST_CLONES
void normal_block(const NetShape& shape, const double* a, const double* t, const double* q, bool shared,
                  double* weighted, double* gram, double* right) {
    const int64_t width = shape.hidden + 1;
    for (int64_t o = 0; o < (shared ? 1 : shape.outputs); ++o) {
        for (int64_t i = 0; i < width; ++i) {
            for (int64_t r = 0; r < kNetRows; ++r) weighted[r] = q[o * kNetRows + r] * a[i * kNetRows + r];
            double* row = gram + 8 * width * (o * width + i);
            for (int64_t c = 0; c <= i; ++c) {
                Eight sum = {};
                for (int64_t r = 0; r < kNetRows; r += 8) sum += load<8>(weighted + r) * load<8>(a + c * kNetRows + r);
                add_to(row + 8 * c, sum);
            }
            for (int64_t p = shared ? 0 : o; p < (shared ? shape.outputs : o + 1); ++p) {
                Eight sum = {};
                for (int64_t r = 0; r < kNetRows; r += 8) sum += load<8>(weighted + r) * load<8>(t + p * kNetRows + r);
                add_to(right + 8 * (i * shape.outputs + p), sum);
            }
        }
    }
}

// weighted errors e = q (a v - t) of a block, and their loss in eight lanes
CARDBOOST_CLONES
void error_block(const NetShape& shape, const double* t, const double* q, double* e, double* loss) {
    Eight sum = {};
    for (int64_t i = 0; i < shape.outputs * kNetRows; i += 8) {
        const Eight error = load<8>(e + i) - load<8>(t + i), weighted = load<8>(q + i) * error;
        sum += weighted * error;
        store<8>(e + i, weighted);
    }
    add_to(loss, sum);
}

// d = (v e) times the slopes of the activations
CARDBOOST_CLONES
void back_block(const NetShape& shape, const double* a, const double* e, const double* v, Activation kind, double* d) {
    for (int64_t k = 0; k < shape.hidden; ++k) {
        double* unit = d + k * kNetRows;
        for (int64_t r = 0; r < kNetRows; r += 8) {
            Eight sum = {};
            for (int64_t o = 0; o < shape.outputs; ++o) sum += load<8>(e + o * kNetRows + r) * v[k * shape.outputs + o];
            store<8>(unit + r, sum);
        }
        times_slope(unit, a + k * kNetRows, kind);
    }
}

// Runs work(block, sums, room) over the blocks of every chunk, where it adds to `numbers` sums of eight lanes each and
// has `scratch` numbers of room; the sums of the chunks are added up in their order.
template <class Work>
std::vector<double> sum_chunks(int64_t blocks, int64_t numbers, int64_t scratch, int threads, const Work& work) {
    const int64_t chunks = (blocks + kChunk - 1) / kChunk, space = 8 * numbers + scratch;
    std::vector<double> sums(checked_size(chunks, numbers)), spaces(checked_size(threads, space));
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
        double *eights = spaces.data() + thread_index() * space, *room = eights + 8 * numbers;
        std::fill(eights, room, 0.0);
        for (int64_t b = chunk * kChunk; b < std::min(blocks, (chunk + 1) * kChunk); ++b) work(b, eights, room);
        for (int64_t i = 0; i < numbers; ++i) sums[chunk * numbers + i] = add_up(eights + 8 * i);
    }
    std::vector<double> totals(numbers);
    for (int64_t chunk = 0; chunk < chunks; ++chunk)
        for (int64_t i = 0; i < numbers; ++i) totals[i] += sums[chunk * numbers + i];
    return totals;
}

int net_threads(const NetShape& shape, int requested) {
    return worth_threads(requested, shape.blocks, kNetRows, shape.inputs, shape.hidden, 0.25);
}

// Activations act(z w) of all rows, `a` (blocks, hidden + 1, 64), whose last column is made of ones; and the normal
// equations of the last layer: `gram` (shared ? 1 : outputs, hidden + 1, hidden + 1) = sum q a a' and `right`
// (hidden + 1, outputs) = sum q a t. `shared`: all outputs of a row have the weight of the first.
void net_hidden(const NetShape& shape, const double* z, const double* w, Activation activation, const double* t,
                const double* q, bool shared, int threads, double* a, double* gram, double* right) {
    const int64_t width = shape.hidden + 1, grams = shared ? 1 : shape.outputs;
    const int64_t squares = grams * width * width, numbers = squares + width * shape.outputs;
    auto block = [&](int64_t b, double* sums, double* room) {
        double* units = a + b * width * kNetRows;
        combine_all(z + b * shape.inputs * kNetRows, shape.inputs, w, shape.hidden, units);
        activate_block(units, shape.hidden, activation);
        const int64_t first = b * shape.outputs * kNetRows;
        normal_block(shape, units, t + first, q + first, shared, room, sums, sums + 8 * squares);
    };
    const auto totals = sum_chunks(shape.blocks, numbers, kNetRows, net_threads(shape, threads), block);
    for (int64_t o = 0; o < grams; ++o)
        for (int64_t i = 0; i < width; ++i)
            for (int64_t c = 0; c <= i; ++c)
                gram[(o * width + i) * width + c] = gram[(o * width + c) * width + i] =
                    totals[(o * width + i) * width + c];
    std::copy(totals.begin() + squares, totals.end(), right);
}

// 1/2 sum q (a v - t)^2, its gradient by w in `gradient` (inputs, hidden), and by v in `last` (hidden + 1, outputs).
double net_errors(const NetShape& shape, const double* z, const double* a, Activation activation, const double* t,
                  const double* q, const double* v, int threads, double* gradient, double* last) {
    const int64_t width = shape.hidden + 1, first = shape.inputs * shape.hidden;
    const int64_t numbers = first + width * shape.outputs + 1;
    auto block = [&](int64_t b, double* sums, double* room) {
        const double* units = a + b * width * kNetRows;
        double *e = room, *d = room + shape.outputs * kNetRows;
        const int64_t row = b * shape.outputs * kNetRows;
        combine_all(units, width, v, shape.outputs, e);
        error_block(shape, t + row, q + row, e, sums + 8 * (numbers - 1));
        back_block(shape, units, e, v, activation, d);
        correlate_all(z + b * shape.inputs * kNetRows, shape.inputs, d, shape.hidden, sums);
        correlate_all(units, width, e, shape.outputs, sums + 8 * first);
    };
    const int64_t scratch = (shape.hidden + shape.outputs) * kNetRows;
    const auto totals = sum_chunks(shape.blocks, numbers, scratch, net_threads(shape, threads), block);
    std::copy(totals.begin(), totals.begin() + first, gradient);
    std::copy(totals.begin() + first, totals.end() - 1, last);
    return 0.5 * totals.back();
}

NetShape net_shape(const In<double, 3>& z, size_t hidden, const In<double, 3>& t, const In<double, 3>& q) {
    const size_t blocks = z.shape(0), inputs = z.shape(1), outputs = t.shape(1), rows = static_cast<size_t>(kNetRows);
    require(z.shape(2) == rows && t.shape(2) == rows && q.shape(2) == rows, "nets: blocks hold 64 rows");
    require(t.shape(0) == blocks && has_shape(q, {blocks, outputs}),
            "nets: inputs, targets and weights differ in shape");
    require(inputs >= 1 && hidden >= 1 && outputs >= 1, "nets: inputs, units and outputs are needed");
    require(hidden <= 100000 && checked_size(inputs, hidden) <= 100000000 &&
                checked_size(outputs, hidden) <= 10000000,
            "nets: too many units");
    return {static_cast<int64_t>(blocks), static_cast<int64_t>(inputs), static_cast<int64_t>(hidden),
            static_cast<int64_t>(outputs)};
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
    require(has_shape(a, {z.shape(0), width, z.shape(2)}),
            "net_hidden: a must have room for every unit and a column of ones");
    const Activation kind = net_activation(activation);
    auto gram = make<double>({shared ? size_t{1} : t.shape(1), width, width});
    auto right = make<double>({width, t.shape(1)});
    unlocked([&] {
        net_hidden(shape, z.data(), w.data(), kind, t.data(), q.data(), shared, threads, a.data(), gram.data(),
                   right.data());
    });
    return std::make_tuple(gram, right);
}

auto py_net_errors(In<double, 3> z, In<double, 3> a, int activation, In<double, 3> t, In<double, 3> q,
                   In<double, 2> v, int threads) {
    const size_t width = a.shape(1);
    require(width >= 1, "net_errors: a must have a column of ones");
    const NetShape shape = net_shape(z, width - 1, t, q);
    require(has_shape(a, {z.shape(0), width, z.shape(2)}), "net_errors: inputs and activations differ");
    require(has_shape(v, {width, t.shape(1)}), "net_errors: v does not fit");
    const Activation kind = net_activation(activation);
    auto gradient = make<double>({z.shape(1), width - 1});
    auto last = make<double>({width, t.shape(1)});
    const double loss = unlocked([&] {
        return net_errors(shape, z.data(), a.data(), kind, t.data(), q.data(), v.data(), threads, gradient.data(),
                          last.data());
    });
    return std::make_tuple(loss, gradient, last);
}

}  // namespace

void bind_nets(nb::module_& m) {
    m.def("net_hidden", &py_net_hidden, "z"_a, "w"_a, "activation"_a, "t"_a, "q"_a, "shared"_a, "a"_a.noconvert(),
          "threads"_a);
    m.def("net_errors", &py_net_errors, "z"_a, "a"_a, "activation"_a, "t"_a, "q"_a, "v"_a, "threads"_a);
}

}  // namespace cardboost
