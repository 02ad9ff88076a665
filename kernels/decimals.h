// The simplest decimal in a gap [x, y): what a person would write between two neighbouring values.
#pragma once
#include <cfloat>
#include <charconv>
#include <cmath>
#include <limits>

namespace cardboost {

// The multiple of `step` in [x, y) that lies nearest to the middle, or NaN.
inline double multiple_in_gap(double x, double y, double step) {
    double middle = x * 0.5 + y * 0.5;
    double e = std::nearbyint(middle / step) * step;
    if (e >= y) e -= step;
    if (e < x) e += step;
    return (e >= x && e < y) ? e : std::numeric_limits<double>::quiet_NaN();
}

inline bool exact_in_float(double e) {
    return std::fabs(e) <= FLT_MAX && static_cast<double>(static_cast<float>(e)) == e;
}

inline double shortest_double(double x, double y) {
    double middle = x * 0.5 + y * 0.5;
    char text[40];
    for (int digits = 0; digits < 17; ++digits) {
        for (double from : {middle, x}) {
            auto done = std::to_chars(text, text + sizeof text, from, std::chars_format::scientific, digits);
            double e = 0.0;
            std::from_chars(text, done.ptr, e, std::chars_format::scientific);
            if (e >= x && e < y) return e;
        }
    }
    return x;
}

// x <= result < y. First choice: zero; then the fewest significant digits among whole numbers, then the
// fewest decimals, always exact in float32. A number with b binary places has b decimals, so fewest decimals
// means fewest binary places. Where float32 has no number in the gap: the fewest digits in float64.
inline double simplest_decimal(double x, double y) {
    if (x <= 0.0 && y > 0.0) return 0.0;
    double largest = std::max(std::fabs(x), std::fabs(y));
    if (largest >= 1.0 && largest <= FLT_MAX) {
        // whole numbers exact in float32 are multiples of 2^j at this size
        int j = std::max(0, std::ilogb(largest) - 23);
        int j_small = std::max(0, std::ilogb(std::max(1.0, std::min(std::fabs(x), std::fabs(y)))) - 23);
        int k = static_cast<int>(std::floor(std::log10(largest))) + 1;
        for (; k >= 0; --k) {
            for (int spacing : {j, j_small}) {
                double step = std::ldexp(std::pow(5.0, k), std::max(k, spacing));
                double e = multiple_in_gap(x, y, step);
                if (exact_in_float(e)) return e;
                if (j == j_small) break;
            }
        }
    }
    if (largest <= FLT_MAX) {
        // A gap that holds a multiple of a step holds one of every finer step: search by halving.
        int low = std::max(1, -std::ilogb(largest) - 1), high = 149;
        if (std::isnan(multiple_in_gap(x, y, std::ldexp(1.0, -high)))) return shortest_double(x, y);
        const double gap = y - x;
        if (gap > 0x1p-140) high = std::min(high, std::max(low, 1 - std::ilogb(gap)));
        while (low < high) {
            const int middle = (low + high) / 2;
            if (std::isnan(multiple_in_gap(x, y, std::ldexp(1.0, -middle))))
                low = middle + 1;
            else
                high = middle;
        }
        const double e = multiple_in_gap(x, y, std::ldexp(1.0, -low));
        if (exact_in_float(e)) return e;
    }
    return shortest_double(x, y);
}

}  // namespace cardboost
