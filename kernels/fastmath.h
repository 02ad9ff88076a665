// exp and log1p as plain polynomials: the same bits on every processor and for every vector width, which
// libm and vector libraries do not promise. Coefficients interpolate at Chebyshev nodes; errors are below 2
// units in the last place.
#pragma once
#include "common.h"

namespace cardboost {

// e^x for x <= 0 (and moderately above); 0 below -708.
CARDBOOST_INLINE double exp_poly(double x) {
    const double log2e = 1.4426950408889634074;
    const double ln2_hi = 6.93147180369123816490e-01, ln2_lo = 1.90821492927058770002e-10;
    double clamped = x < -708.0 ? -708.0 : (x > 709.0 ? 709.0 : x);
    double shifted = clamped * log2e + kMagic;
    double k = shifted - kMagic;
    double r = (clamped - k * ln2_hi) - k * ln2_lo;
    double p = 0x1.af38a9b0ec855p-26;
    p = p * r + 0x1.289185613a3d6p-22;
    p = p * r + 0x1.71de0dae63bb3p-19;
    p = p * r + 0x1.a019b90d2ae7ap-16;
    p = p * r + 0x1.a01a01a7c41d5p-13;
    p = p * r + 0x1.6c16c1788bd90p-10;
    p = p * r + 0x1.11111111109b3p-7;
    p = p * r + 0x1.5555555553d63p-5;
    p = p * r + 0x1.5555555555556p-3;
    p = p * r + 0x1.0000000000001p-1;
    p = (p * r) * r + r + 1.0;
    int64_t bits;
    std::memcpy(&bits, &shifted, 8);
    uint64_t scale_bits = (static_cast<uint64_t>(bits) + 1023u) << 52;
    double scale;
    std::memcpy(&scale, &scale_bits, 8);
    double value = p * scale;
    return x < -708.0 ? 0.0 : value;
}

// 2 atanh(s) / s as a polynomial of q = s^2 <= 1/9
CARDBOOST_INLINE double atanh_poly(double q);

// ln(1 + e) for 0 <= e <= 1, by 2 atanh(e / (2 + e)): no cancellation for small e.
CARDBOOST_INLINE double log1p_poly(double e) {
    const double s = e / (2.0 + e);
    return s * atanh_poly(s * s);
}

// ln(1 - v) for 0 <= v < 1
CARDBOOST_INLINE double log_one_minus(double v) {
    const double x = 1.0 - v;
    uint64_t bits;
    std::memcpy(&bits, &x, 8);
    // x = m 2^k with 3/4 <= m < 3/2, where 1 - v has lost nothing; v <= 1/2 needs no such split
    const int64_t k = static_cast<int64_t>((bits + 0x0008000000000000ull) >> 52) - 1023;
    const uint64_t m_bits = bits - (static_cast<uint64_t>(k) << 52);
    double m;
    std::memcpy(&m, &m_bits, 8);
    const bool near = v <= 0.5;
    const double top = near ? -v : m - 1.0, bottom = near ? 2.0 - v : m + 1.0;
    const double s = top / bottom;
    // the exponent as a double without an integer conversion, which older vector units lack
    const uint64_t k_bits = static_cast<uint64_t>(k) + 0x4338000000000000ull;
    double k_real;
    std::memcpy(&k_real, &k_bits, 8);
    k_real -= kMagic;
    return s * atanh_poly(s * s) + (near ? 0.0 : k_real * 0.69314718055994530942);
}

CARDBOOST_INLINE double atanh_poly(double q) {
    double p = 0x1.5d1081172f887p-4;
    p = p * q + 0x1.54f8c703ce149p-5;
    p = p * q + 0x1.f00852a5c69fap-5;
    p = p * q + 0x1.106443d797a85p-4;
    p = p * q + 0x1.3b1e2bc8a12dep-4;
    p = p * q + 0x1.745caf74cbe5ep-4;
    p = p * q + 0x1.c71c7445b2127p-4;
    p = p * q + 0x1.249249201beacp-3;
    p = p * q + 0x1.99999999a1c4fp-3;
    p = p * q + 0x1.5555555555527p-2;
    p = p * q + 0x1.0000000000000p+0;
    return 2.0 * p;
}

}  // namespace cardboost
