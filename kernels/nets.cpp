// A network with one hidden layer: activations, normal equations of the last layer, errors and gradient.
#include "nets.h"

#include <algorithm>
#include <vector>

#include "fastmath.h"

namespace cardboost {

namespace {

using Eight = double __attribute__((vector_size(64)));
constexpr int64_t kEights = kNetRows / 8;  // of a block
constexpr int64_t kChunk = 8;              // blocks whose sums are added up lane by lane

CARDBOOST_INLINE Eight load(const double* p) {
    Eight v;
    std::memcpy(&v, p, sizeof v);
    return v;
}
CARDBOOST_INLINE void store(double* p, Eight v) { std::memcpy(p, &v, sizeof v); }
CARDBOOST_INLINE void add_to(double* p, Eight v) { store(p, load(p) + v); }
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
            const Eight own = load(x + j * kNetRows + 8 * r);
            for (int u = 0; u < Units; ++u) sum[u] += own * w[j * stride + k + u];
        }
        for (int u = 0; u < Units; ++u) store(out + (k + u) * kNetRows + 8 * r, sum[u]);
    }
}

// sums_jk += sum over rows of x_j d_k, lane by lane, for `Units` columns k from k on
template <int Units>
CARDBOOST_INLINE void correlate(const double* x, int64_t inputs, const double* d, int64_t units, int64_t k,
                                double* sums) {
    for (int64_t j = 0; j < inputs; ++j) {
        Eight sum[Units] = {};
        for (int64_t r = 0; r < kEights; ++r) {
            const Eight own = load(x + j * kNetRows + 8 * r);
            for (int u = 0; u < Units; ++u) sum[u] += own * load(d + (k + u) * kNetRows + 8 * r);
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
                for (int64_t r = 0; r < kNetRows; r += 8) sum += load(weighted + r) * load(a + c * kNetRows + r);
                add_to(row + 8 * c, sum);
            }
            for (int64_t p = shared ? 0 : o; p < (shared ? shape.outputs : o + 1); ++p) {
                Eight sum = {};
                for (int64_t r = 0; r < kNetRows; r += 8) sum += load(weighted + r) * load(t + p * kNetRows + r);
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
        const Eight error = load(e + i) - load(t + i), weighted = load(q + i) * error;
        sum += weighted * error;
        store(e + i, weighted);
    }
    add_to(loss, sum);
}

// d = (v e) times the slopes of the activations
CARDBOOST_CLONES
void back_block(const NetShape& shape, const double* a, const double* e, const double* v, Activation kind, double* d) {
    for (int64_t k = 0; k < shape.hidden; ++k) {
        double* own = d + k * kNetRows;
        for (int64_t r = 0; r < kNetRows; r += 8) {
            Eight sum = {};
            for (int64_t o = 0; o < shape.outputs; ++o) sum += load(e + o * kNetRows + r) * v[k * shape.outputs + o];
            store(own + r, sum);
        }
        times_slope(own, a + k * kNetRows, kind);
    }
}

// Runs `work(block, lanes)` over the blocks of every chunk and adds up the chunks' sums of eight lanes each in order.
template <class Work>
void over_chunks(int64_t blocks, int64_t numbers, int64_t scratch, int threads, double* totals, const Work& work) {
    const int64_t chunks = (blocks + kChunk - 1) / kChunk;
    std::vector<double> sums(static_cast<size_t>(chunks * numbers));
#pragma omp parallel num_threads(threads)
    {
        std::vector<double> lanes(static_cast<size_t>(8 * numbers)), room(static_cast<size_t>(scratch));
#pragma omp for schedule(static)
        for (int64_t chunk = 0; chunk < chunks; ++chunk) {
            std::fill(lanes.begin(), lanes.end(), 0.0);
            for (int64_t b = chunk * kChunk; b < std::min(blocks, (chunk + 1) * kChunk); ++b)
                work(b, lanes.data(), room.data());
            for (int64_t i = 0; i < numbers; ++i) sums[static_cast<size_t>(chunk * numbers + i)] = add_up(&lanes[static_cast<size_t>(8 * i)]);
        }
    }
    std::fill(totals, totals + numbers, 0.0);
    for (int64_t chunk = 0; chunk < chunks; ++chunk)
        for (int64_t i = 0; i < numbers; ++i) totals[i] += sums[static_cast<size_t>(chunk * numbers + i)];
}

int net_threads(const NetShape& shape, int requested) {
    return worth_threads(requested, shape.blocks * kNetRows * shape.inputs * shape.hidden / 4);
}

}  // namespace

void net_hidden(const NetShape& shape, const double* z, const double* w, Activation activation, const double* t,
                const double* q, bool shared, int threads, double* a, double* gram, double* right) {
    const int64_t width = shape.hidden + 1, grams = shared ? 1 : shape.outputs;
    const int64_t squares = grams * width * width, numbers = squares + width * shape.outputs;
    std::vector<double> totals(static_cast<size_t>(numbers));
    over_chunks(shape.blocks, numbers, kNetRows, net_threads(shape, threads), totals.data(),
                [&](int64_t b, double* lanes, double* room) {
                    double* own = a + b * width * kNetRows;
                    combine_all(z + b * shape.inputs * kNetRows, shape.inputs, w, shape.hidden, own);
                    activate_block(own, shape.hidden, activation);
                    const int64_t at = b * shape.outputs * kNetRows;
                    normal_block(shape, own, t + at, q + at, shared, room, lanes, lanes + 8 * squares);
                });
    for (int64_t o = 0; o < grams; ++o)
        for (int64_t i = 0; i < width; ++i)
            for (int64_t c = 0; c <= i; ++c)
                gram[(o * width + i) * width + c] = gram[(o * width + c) * width + i] =
                    totals[static_cast<size_t>((o * width + i) * width + c)];
    std::copy(totals.begin() + squares, totals.end(), right);
}

double net_errors(const NetShape& shape, const double* z, const double* a, Activation activation, const double* t,
                  const double* q, const double* v, int threads, double* gradient, double* last) {
    const int64_t width = shape.hidden + 1, first = shape.inputs * shape.hidden, numbers = first + width * shape.outputs + 1;
    std::vector<double> totals(static_cast<size_t>(numbers));
    over_chunks(shape.blocks, numbers, (shape.hidden + shape.outputs) * kNetRows, net_threads(shape, threads),
                totals.data(), [&](int64_t b, double* lanes, double* room) {
                    const double* own = a + b * width * kNetRows;
                    double *e = room, *d = room + shape.outputs * kNetRows;
                    const int64_t at = b * shape.outputs * kNetRows;
                    combine_all(own, width, v, shape.outputs, e);
                    error_block(shape, t + at, q + at, e, lanes + 8 * (numbers - 1));
                    back_block(shape, own, e, v, activation, d);
                    correlate_all(z + b * shape.inputs * kNetRows, shape.inputs, d, shape.hidden, lanes);
                    correlate_all(own, width, e, shape.outputs, lanes + 8 * first);
                });
    std::copy(totals.begin(), totals.begin() + first, gradient);
    std::copy(totals.begin() + first, totals.begin() + (numbers - 1), last);
    return 0.5 * totals[static_cast<size_t>(numbers - 1)];
}

}  // namespace cardboost
