// Columns of any number type and stride, read as double without a copy of the whole table.
#pragma once
#include "common.h"

namespace cardboost {

enum class Kind : int { f64, f32, i64, i32, i16, i8, u64, u32, u16, u8 };

struct Column {
    const char* data;
    int64_t stride;  // bytes from a row to the next
    Kind kind;
};

template <class Visit>
CARDBOOST_INLINE void with_kind(Kind kind, Visit visit) {
    switch (kind) {
        case Kind::f64: visit(double{}); break;
        case Kind::f32: visit(float{}); break;
        case Kind::i64: visit(int64_t{}); break;
        case Kind::i32: visit(int32_t{}); break;
        case Kind::i16: visit(int16_t{}); break;
        case Kind::i8: visit(int8_t{}); break;
        case Kind::u64: visit(uint64_t{}); break;
        case Kind::u32: visit(uint32_t{}); break;
        case Kind::u16: visit(uint16_t{}); break;
        case Kind::u8: visit(uint8_t{}); break;
    }
}

// out[r] = value of rows begin..end as double
inline void gather(const Column& column, int64_t begin, int64_t end, double* out) {
    with_kind(column.kind, [&](auto zero) {
        using T = decltype(zero);
        for (int64_t r = 0; r < end - begin; ++r) {
            T value;
            std::memcpy(&value, column.data + (begin + r) * column.stride, sizeof(T));
            out[r] = static_cast<double>(value);
        }
    });
}

// Several columns at once, tile by tile, so that a row-major table is read one cache line per row.
inline void gather_group(const Column* columns, int n, int64_t rows, double* out) {
    for (int64_t begin = 0; begin < rows; begin += 256) {
        int64_t end = std::min(rows, begin + 256);
        for (int c = 0; c < n; ++c) gather(columns[c], begin, end, out + c * rows + begin);
    }
}

// The first of the columns that something holds of, or -1.
struct FirstColumn {
    int64_t index = -1;
    void note(int64_t column) { index = index < 0 ? column : std::min(index, column); }
    void merge(const FirstColumn& other) {
        if (other.index >= 0) note(other.index);
    }
};

}  // namespace cardboost
