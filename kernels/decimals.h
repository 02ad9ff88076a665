// The shortest decimal in a gap [x, y): what a person would write between two neighbouring values.
#pragma once
#include <charconv>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>

namespace cardboost {

// Powers of ten that a double holds exactly: a whole number below 2^53 times or over one of them is rounded once.
constexpr int kExactPowers = 22;
constexpr double kPowers[kExactPowers + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                              1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
constexpr int kExactDigits = 15;  // of the whole numbers used so

// digits * 10^exponent, for exponents from -22 to 22
inline double scaled(double digits, int exponent) {
    return exponent < 0 ? digits / kPowers[-exponent] : digits * kPowers[exponent];
}

// The decimal of the gap that lies nearest to its middle, of those offered; of two as near, the lower one.
class NearestToMiddle {
public:
    NearestToMiddle(double x, double y)
        : x_(x), y_(y), sum_(exact_sum(x, y)), best_(std::numeric_limits<double>::quiet_NaN()) {}

    void offer(double c) {
        if (!(c >= x_ && c < y_) || c == best_) return;
        if (std::isnan(best_) || nearer(c)) best_ = c;
    }
    bool any() const { return !std::isnan(best_); }
    double best() const { return best_; }

private:
    struct Sum {
        double high, low;  // high + low is the sum, high its nearest double
        bool operator<(const Sum& other) const { return high < other.high || (high == other.high && low < other.low); }
    };

    // Quarters do not overflow; what is tiny beside a sum of this size only has to keep its sign.
    static double quarter(double a) { return std::fabs(a) > 1e-290 ? 0.25 * a : a; }

    Sum exact_sum(double a, double b) const {
        if (std::fabs(x_) > 1e300 || std::fabs(y_) > 1e300) a = quarter(a), b = quarter(b);
        const double high = a + b, part = high - a;
        return {high, (a - (high - part)) + (b - part)};
    }

    // a < b: a is as near as b if a + b >= x + y
    bool nearer(double c) const {
        const Sum pair = exact_sum(c, best_);
        return c < best_ ? !(pair < sum_) : pair < sum_;
    }

    const double x_, y_;
    const Sum sum_;
    double best_;
};

// For numbers of any size, by their text; from `digits` significant digits on.
inline double shortest_decimal_by_text(double x, double y, int digits) {
    const double sign = y > 0.0 ? 1.0 : -1.0, middle = x * 0.5 + y * 0.5;
    NearestToMiddle nearest(x, y);
    char text[64];
    for (; digits <= 17; ++digits) {
        // the middle as a double is off by half a step of the doubles: its neighbours make up for that
        for (double start : {std::nextafter(middle, -HUGE_VAL), middle, std::nextafter(middle, HUGE_VAL)}) {
            auto end = std::to_chars(text, text + sizeof text, std::fabs(start), std::chars_format::scientific, digits - 1);
            int64_t whole = 0;
            char* p = text;
            for (; p != end.ptr && *p != 'e'; ++p)
                if (*p != '.') whole = 10 * whole + (*p - '0');
            int exponent = 0;
            if (p != end.ptr) std::from_chars(p[1] == '+' ? p + 2 : p + 1, end.ptr, exponent);
            for (int64_t n = whole > 0 ? whole - 1 : 0; n <= whole + 1; ++n) {
                char* out = std::to_chars(text, text + 32, n).ptr;
                *out++ = 'e';
                out = std::to_chars(out, text + sizeof text, exponent + 1 - digits).ptr;
                double c = 0.0;
                if (std::from_chars(text, out, c).ec == std::errc()) nearest.offer(sign * c);
            }
        }
        if (nearest.any()) return nearest.best();
    }
    return x;
}

// Whether the shortest text of a positive number is that of a power of ten.
inline bool power_of_ten(double a) {
    char text[40];
    std::to_chars(text, text + sizeof text, a, std::chars_format::scientific);
    return text[0] == '1' && text[1] == 'e';
}

// x <= result < y: the double whose decimal has the fewest significant digits, then the one nearest to the middle.
// Zero is the shortest of all. In a gap that ends at 0 no decimal place is added to those of x: [-1, 0) gives -1.
inline double shortest_decimal(double x, double y) {
    if (x <= 0.0 && y > 0.0) return 0.0;
    if (y == 0.0 && x >= -1.0 && power_of_ten(-x)) return x;
    const double sign = y > 0.0 ? 1.0 : -1.0, top = y > 0.0 ? y : -x;
    if (!(top > 1e-7 && top < 1e22)) return shortest_decimal_by_text(x, y, 1);
    NearestToMiddle nearest(x, y);
    // A gap that holds a power of ten has numbers of one digit. Any other lies between two of them, where the
    // decimals of as many digits are equally far from each other.
    auto in_reach = [&](int k) { return y > 0.0 ? scaled(1.0, k) < y : -scaled(1.0, k) >= x; };
    int power = static_cast<int>(std::floor(std::log10(top)));
    while (!in_reach(power)) --power;
    while (power < kExactPowers && in_reach(power + 1)) ++power;
    const double middle = x * 0.5 + y * 0.5, size = std::fabs(middle);
    if (const double c = sign * scaled(1.0, power); c >= x && c < y)
        while (power > -kExactPowers && scaled(1.0, power) > size) --power;
    for (int digits = 1; digits <= kExactDigits; ++digits) {
        const int exponent = power + 1 - digits;
        if (exponent < -kExactPowers) return shortest_decimal_by_text(x, y, digits);
        const double whole = std::nearbyint(exponent < 0 ? size * kPowers[-exponent] : size / kPowers[exponent]);
        for (double n : {whole - 1.0, whole, whole + 1.0}) nearest.offer(sign * scaled(n, exponent));
        if (nearest.any()) return nearest.best();
    }
    return shortest_decimal_by_text(x, y, kExactDigits + 1);
}

}  // namespace cardboost
