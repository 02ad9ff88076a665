// The simplest decimal in a gap [x, y): what a person would write between two neighbouring values.
#pragma once
#include <algorithm>
#include <cfloat>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <limits>

namespace cardboost {

// The multiple of `step` in [x, y) that lies nearest to the middle, or NaN.
inline double multiple_in_gap(double x, double y, double step) {
    double middle = x * 0.5 + y * 0.5;
    double n = std::nearbyint(middle / step);
    if (n * step >= y) n -= 1.0;
    if (n * step < x) n += 1.0;
    const double e = n * step;
    const bool exact = std::fma(n, step, -e) == 0.0;
    return (exact && e >= x && e < y) ? e : std::numeric_limits<double>::quiet_NaN();
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
    const double wide_x = x, wide_y = y;
    // float32 ends here; what lies beyond is for float64
    x = std::max(x, -static_cast<double>(FLT_MAX));
    y = std::min(y, std::nextafter(static_cast<double>(FLT_MAX), HUGE_VAL));
    if (!(x < y)) return shortest_double(wide_x, wide_y);
    double largest = std::max(std::fabs(x), std::fabs(y));
    if (largest >= 1.0) {
        // whole numbers exact in float32 are multiples of 2^j at this size
        int j = std::max(0, std::ilogb(largest) - 23);
        int j_small = std::max(0, std::ilogb(std::max(1.0, std::min(std::fabs(x), std::fabs(y)))) - 23);
        // 5^k must fit into 24 bits, so no more than ten trailing zeros
        int k = std::min(10, static_cast<int>(std::floor(std::log10(largest))) + 1);
        for (; k >= 0; --k) {
            // the finest spacing whose multiple is exact; coarser ones matter where the gap spans many sizes
            for (int spacing = j_small; spacing <= j; ++spacing) {
                double step = std::ldexp(std::pow(5.0, k), std::max(k, spacing));
                double e = multiple_in_gap(x, y, step);
                if (exact_in_float(e)) return e;
            }
        }
    }
    // A gap that holds a multiple of a step holds one of every finer step: search by halving.
    int low = std::max(1, -std::ilogb(largest) - 1), high = 149;
    if (std::isnan(multiple_in_gap(x, y, std::ldexp(1.0, -high)))) return shortest_double(wide_x, wide_y);
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
    return shortest_double(wide_x, wide_y);
}

}  // namespace cardboost
