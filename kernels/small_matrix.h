// Factors of small symmetric matrices, row-major lower triangles with `stride` numbers a row.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>

namespace cardboost {

// What becomes of a matrix that is not positive definite: it is refused, or gets a little where it has nothing.
enum class Flat { refuse, lift };

// The Cholesky factor in place of the matrix f. Refused (false) where a pivot is no more than `least` of its entry.
inline bool factorise(int size, int stride, double* f, Flat flat, double least = 0.0) {
    for (int a = 0; a < size; ++a) {
        double* row = f + static_cast<size_t>(a) * stride;
        for (int b = 0; b < a; ++b) {
            const double* other = f + static_cast<size_t>(b) * stride;
            double sum = row[b];
            for (int k = 0; k < b; ++k) sum -= row[k] * other[k];
            row[b] = sum / other[b];
        }
        const double diagonal = row[a];
        double rest = diagonal;
        for (int k = 0; k < a; ++k) rest -= row[k] * row[k];
        if (flat == Flat::lift)
            rest = std::max(rest, 1e-12 * diagonal + 1e-300);
        else if (!(rest > least * diagonal))
            return false;
        row[a] = std::sqrt(rest);
    }
    return true;
}

// The inverse of the factor f; row a of x holds its column a, from the diagonal on.
inline void invert_factor(int size, int stride, const double* f, double* x) {
    for (int a = 0; a < size; ++a) {
        double* column = x + static_cast<size_t>(a) * stride;
        for (int b = a; b < size; ++b) {
            const double* row = f + static_cast<size_t>(b) * stride;
            double sum = a == b ? 1.0 : 0.0;
            for (int k = a; k < b; ++k) sum -= row[k] * column[k];
            column[b] = sum / row[b];
        }
    }
}

// One entry, a >= b, of the inverse of the matrix whose factor's inverse is x.
inline double inverse_entry(int size, int stride, const double* x, int a, int b) {
    const double *u = x + static_cast<size_t>(a) * stride, *v = x + static_cast<size_t>(b) * stride;
    double sum = 0.0;
    for (int k = a; k < size; ++k) sum += u[k] * v[k];
    return sum;
}

// The whole inverse P, both triangles, of the matrix with the factor f; x is scratch space of the same shape.
inline void invert(int size, int stride, const double* f, double* x, double* P) {
    invert_factor(size, stride, f, x);
    for (int a = 0; a < size; ++a)
        for (int b = 0; b <= a; ++b)
            P[static_cast<size_t>(a) * stride + b] = P[static_cast<size_t>(b) * stride + a] =
                inverse_entry(size, stride, x, a, b);
}

// x becomes the inverse of the matrix with the factor f, times x.
inline void substitute(int size, int stride, const double* f, double* x) {
    for (int a = 0; a < size; ++a) {
        const double* row = f + static_cast<size_t>(a) * stride;
        for (int k = 0; k < a; ++k) x[a] -= row[k] * x[k];
        x[a] /= row[a];
    }
    for (int a = size - 1; a >= 0; --a) {
        const double* row = f + static_cast<size_t>(a) * stride;
        x[a] /= row[a];
        for (int k = 0; k < a; ++k) x[k] -= row[k] * x[a];
    }
}

}  // namespace cardboost
