// What the bound of a node takes from the rows. One thread works, in a fixed order of operations.
#include "node_rows.h"

#include "fastmath.h"
#include "signs.h"

namespace cardboost {

namespace {

constexpr double kWider = 1e-6;  // for rounding, in widths that come from an inverse

// sums over eight signs, indexed by their byte
void fill_signs(const double* w, int size, double* table) {
    double total = 0.0;
    for (int k = 0; k < size; ++k) total += w[k];
    table[0] = total;
    for (int k = 0; k < 8; ++k) {
        const double twice = k < size ? 2.0 * w[k] : 0.0;
        for (int b = 0; b < (1 << k); ++b) table[(1 << k) + b] = table[b] - twice;
    }
}

// sums of a histogram over signed bits: out[k] = sum over b of h[b] * (bit k of b ? -1 : 1); h is used up
void fold_signs(double* h, double* out) {
    for (int k = 7; k >= 0; --k) {
        double difference = 0.0;
        for (int b = 0; b < (1 << k); ++b) {
            difference += h[b] - h[b + (1 << k)];
            h[b] += h[b + (1 << k)];
        }
        out[k] = difference;
    }
}

// risk; row weights and curvatures of every row
CARDBOOST_CLONES
double row_pass(LossKind loss, int64_t m, const double* F, const double* share, double* u, double* curve) {
    double sum[8] = {};
    if (loss == LossKind::exponential) {
        for (int64_t i = 0; i < m; ++i) curve[i] = u[i] = share[i] * exp_poly(-F[i]);
        int64_t i = 0;
        for (; i + 8 <= m; i += 8)
            for (int k = 0; k < 8; ++k) sum[k] += u[i + k];
        for (; i < m; ++i) sum[0] += u[i];
    } else {
        // logistic; curve holds the loss until it is summed
        for (int64_t i = 0; i < m; ++i) {
            const double z = F[i], e = exp_poly(z < 0.0 ? z : -z), inverse = 1.0 / (1.0 + e);
            u[i] = share[i] * (z < 0.0 ? inverse : e * inverse);
            curve[i] = share[i] * (log1p_poly(e) + (z < 0.0 ? -z : 0.0));
        }
        int64_t i = 0;
        for (; i + 8 <= m; i += 8)
            for (int k = 0; k < 8; ++k) sum[k] += curve[i + k];
        for (; i < m; ++i) sum[0] += curve[i];
        for (i = 0; i < m; ++i) {
            const double e = exp_poly(F[i] < 0.0 ? F[i] : -F[i]), inverse = 1.0 / (1.0 + e);
            curve[i] = share[i] * e * inverse * inverse;
        }
    }
    return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

// What is left of the curvature of every row on margins between its floor and its cap: the loss stays above its
// tangent at F plus so much curvature. With the distance x to an end it is 2 (loss(F + x) - loss(F) - loss'(F) x) / x^2
// there, and the least of that at both ends and of the curvature at F: on either side it rises and then falls.
// Near F, where this is a difference of equals, curvature falls at most by exp(-|x|).
CARDBOOST_CLONES
void cut_curvature(LossKind loss, int64_t m, const double* F, const double* floors, const double* caps,
                   const double* share, const double* u, double* left) {
    if (loss == LossKind::exponential) {  // falls all the way: caps count
        for (int64_t i = 0; i < m; ++i) {
            const double x = caps[i] - F[i];
            const bool near = x < 0.05 && x > -0.05;
            const double y = near ? 1.0 : x;
            const double far = 2.0 * (exp_poly(-y) - 1.0 + y) / (y * y);
            const double series =
                1.0 - x * (1.0 / 3.0 - x * (1.0 / 12.0 - x * (1.0 / 60.0 - x * (1.0 / 360.0 - x / 2520.0))));
            left[i] = u[i] * (near ? series : far) * (1.0 - 1e-9);
        }
        return;
    }
    for (int64_t i = 0; i < m; ++i) {
        const double z = F[i], e = exp_poly(z < 0.0 ? z : -z), inverse = 1.0 / (1.0 + e);
        const double here = log1p_poly(e) + (z < 0.0 ? -z : 0.0), slope = z < 0.0 ? inverse : e * inverse;
        const double curvature = e * inverse * inverse;
        double least = curvature;
        for (int side = 0; side < 2; ++side) {
            const double x = (side ? caps[i] : floors[i]) - z, size = x < 0.0 ? -x : x;
            const bool near = size < 0.05;
            const double y = near ? 1.0 : x, end = z + y;
            const double there = log1p_poly(exp_poly(end < 0.0 ? end : -end)) + (end < 0.0 ? -end : 0.0);
            const double far = 2.0 * (there - here + slope * y) / (y * y);
            const double close = curvature * (1.0 - size * (1.0 / 3.0)), mean = near ? close : far;
            least = mean < least ? mean : least;
        }
        left[i] = share[i] * (least > 0.0 ? least : 0.0) * (1.0 - 1e-9);
    }
}

constexpr int kRows = 128;  // of a block: forty columns of it are 40 kB

// the signs in one bit of each byte
CARDBOOST_CLONES
void unpack_signs(const uint8_t* bytes, int bit, int rows, double* out) {
    for (int i = 0; i < rows; ++i) out[i] = static_cast<double>(1 - 2 * (bytes[i] >> bit & 1));
}

CARDBOOST_CLONES
void scale_block(int size, const double* x, int rows, const double* block, double* scaled) {
    for (int a = 0; a < size; ++a)
        for (int i = 0; i < rows; ++i) scaled[a * kRows + i] = block[a * kRows + i] * x[i];
    for (int a = 0; a < size; ++a) std::fill(scaled + a * kRows + rows, scaled + (a + 1) * kRows, 0.0);
}

// gram += block scaled', its lower half; rows of the block beyond `size` may hold anything finite
CARDBOOST_CLONES
void gram_block(int size, const double* block, const double* scaled, double* gram) {
    for (int a = 0; a < size; a += 2) {
        const double *a0 = block + a * kRows, *a1 = a0 + kRows;
        for (int b = 0; b <= a + 1 && b < size; b += 3) {
            const double *b0 = scaled + b * kRows, *b1 = b0 + kRows, *b2 = b1 + kRows;
            double s0 = 0.0, s1 = 0.0, s2 = 0.0, t0 = 0.0, t1 = 0.0, t2 = 0.0;
#pragma omp simd reduction(+ : s0, s1, s2, t0, t1, t2)
            for (int i = 0; i < kRows; ++i) {
                s0 += a0[i] * b0[i];
                s1 += a0[i] * b1[i];
                s2 += a0[i] * b2[i];
                t0 += a1[i] * b0[i];
                t1 += a1[i] * b1[i];
                t2 += a1[i] * b2[i];
            }
            const double sums[6] = {s0, s1, s2, t0, t1, t2};
            for (int q = 0; q < 6; ++q) {
                const int j = a + q / 3, k = b + q % 3;
                if (j < size && k <= j) gram[j * size + k] += sums[q];
            }
        }
    }
}

// spans = a' P a of every row
CARDBOOST_CLONES
void block_spans(int size, int stride, const double* P, const double* block, double* spans) {
    std::fill(spans, spans + kRows, 0.0);
    for (int a = 0; a < size; ++a) {
        const double *column = block + a * kRows, *row = P + static_cast<size_t>(a) * stride;
        double sum[kRows];
        for (int i = 0; i < kRows; ++i) sum[i] = 0.5 * row[a] * column[i];
        int b = 0;
        for (; b + 4 <= a; b += 4) {
            const double *b0 = block + b * kRows, *b1 = b0 + kRows, *b2 = b1 + kRows, *b3 = b2 + kRows;
            const double p0 = row[b], p1 = row[b + 1], p2 = row[b + 2], p3 = row[b + 3];
            for (int i = 0; i < kRows; ++i) sum[i] += (p0 * b0[i] + p1 * b1[i]) + (p2 * b2[i] + p3 * b3[i]);
        }
        for (; b < a; ++b) {
            const double* other = block + b * kRows;
            for (int i = 0; i < kRows; ++i) sum[i] += row[b] * other[i];
        }
        for (int i = 0; i < kRows; ++i) spans[i] += 2.0 * column[i] * sum[i];
    }
}

double inner(int64_t m, const double* a, const double* x) {
    double sum[8] = {};
    int64_t i = 0;
    for (; i + 8 <= m; i += 8)
        for (int k = 0; k < 8; ++k) sum[k] += a[i + k] * x[i + k];
    for (; i < m; ++i) sum[0] += a[i] * x[i];
    return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

}  // namespace

NodeRows::NodeRows(const ChoiceProblem& problem)
    : p_(problem), groups_((problem.n + 7) / 8), F_(problem.m), u_(problem.m), curvature_(problem.m),
      floors_(problem.caps ? problem.m : 0), caps_(floors_.size()), left_(floors_.size()),
      gram_(checked_size(problem.n, problem.n)), block_(checked_size(problem.n, kRows) + 2 * kRows),
      scaled_(block_.size()) {}

double NodeRows::move(const double* w, const ColumnList& columns) {
    margins(w, columns);
    return row_pass(p_.loss, p_.m, F_.data(), p_.share, u_.data(), curvature_.data());
}

void NodeRows::margins(const double* w, const ColumnList& columns) {
    std::fill(F_.begin(), F_.end(), 0.0);
    if (p_.packed) {
        double table[256];
        for (int g = 0; g < groups_; ++g) {
            const int size = std::min(8, p_.n - 8 * g);
            if (std::all_of(w + 8 * g, w + 8 * g + size, [](double x) { return x == 0.0; })) continue;
            fill_signs(w + 8 * g, size, table);
            const uint8_t* bytes = p_.packed + static_cast<int64_t>(g) * p_.m;
            for (int64_t i = 0; i < p_.m; ++i) F_[i] += table[bytes[i]];
        }
    } else {
        for (int j : columns) {
            if (w[j] == 0.0) continue;
            const double* a = p_.dense + static_cast<int64_t>(j) * p_.m;
            for (int64_t i = 0; i < p_.m; ++i) F_[i] += w[j] * a[i];
        }
    }
}

void NodeRows::edges(const ColumnList& columns, double* c) const {
    if (p_.packed) {
        double sums[256], out[8];
        for (int g = 0; g < groups_; ++g) {
            byte_sums(p_.m, p_.packed + static_cast<int64_t>(g) * p_.m, u_.data(), sums);
            fold_signs(sums, out);
            std::copy_n(out, std::min(8, p_.n - 8 * g), c + 8 * g);
        }
    } else {
        for (int j : columns) c[j] = inner(p_.m, p_.dense + static_cast<int64_t>(j) * p_.m, u_.data());
    }
}

void NodeRows::hessian(const ColumnList& columns, double* H) { gram(columns, curvature_, H); }

void NodeRows::hessian_left(const ColumnList& columns, double* H) { gram(columns, left_, H); }

// a block of rows at a time
void NodeRows::gram(const ColumnList& columns, const std::vector<double>& x, double* H) {
    const int size = columns.size(), n = p_.n;
    std::fill_n(gram_.begin(), static_cast<size_t>(size) * size, 0.0);
    for (int64_t first = 0; first < p_.m; first += kRows) {
        const int rows = static_cast<int>(std::min<int64_t>(kRows, p_.m - first));
        load_block(columns, first, rows);
        scale_block(size, x.data() + first, rows, block_.data(), scaled_.data());
        gram_block(size, block_.data(), scaled_.data(), gram_.data());
    }
    for (int a = 0; a < size; ++a)
        for (int b = 0; b <= a; ++b) {
            const size_t j = columns[a], k = columns[b];
            H[j * n + k] = H[k * n + j] = gram_[static_cast<size_t>(a) * size + b];
        }
}

// block_: rows first .. first + rows of these columns, kRows numbers each; those left over are zero
void NodeRows::load_block(const ColumnList& columns, int64_t first, int rows) {
    const int size = columns.size();
    for (int a = 0; a < size; ++a) {
        double* entries = block_.data() + static_cast<size_t>(a) * kRows;
        const int j = columns[a];
        if (p_.packed)
            unpack_signs(p_.packed + static_cast<int64_t>(j >> 3) * p_.m + first, j & 7, rows, entries);
        else
            std::copy_n(p_.dense + static_cast<int64_t>(j) * p_.m + first, rows, entries);
        std::fill(entries + rows, entries + kRows, 0.0);
    }
}

void NodeRows::widen() {
    std::copy(p_.floors, p_.floors + p_.m, floors_.begin());
    std::copy(p_.caps, p_.caps + p_.m, caps_.begin());
}

void NodeRows::narrow(const ColumnList& columns, const double* P, double scale) {
    const int size = columns.size();
    double spans[kRows];
    for (int64_t first = 0; first < p_.m; first += kRows) {
        const int rows = static_cast<int>(std::min<int64_t>(kRows, p_.m - first));
        load_block(columns, first, rows);
        block_spans(size, p_.n, P, block_.data(), spans);
        for (int i = 0; i < rows; ++i) {
            const double width = std::sqrt(std::max(0.0, spans[i]) * scale) * (1.0 + kWider), margin = F_[first + i];
            caps_[first + i] = std::min(caps_[first + i], margin + width);
            floors_[first + i] = std::max(floors_[first + i], margin - width);
        }
    }
}

void NodeRows::cut() {
    cut_curvature(p_.loss, p_.m, F_.data(), floors_.data(), caps_.data(), p_.share, u_.data(), left_.data());
}

}  // namespace cardboost
