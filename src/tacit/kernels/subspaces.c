/* Subspaces of bit vectors, for Hadamard response with several independent rows: draw them, check them, count them. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "hash.h"

/* Rows of a report; the device allows no more. */
enum { MOST = 6 };

/* A vector outside the span of a reduced basis, numbered by `code`: 1 + code mod (order/2^r - 1) is spread, lowest bit
 * first, over the places that are no pivots, and bit i of the quotient adds basis vector i. */
static uint64_t outside(uint64_t code, const uint64_t *basis, size_t r, uint64_t order) {
    uint64_t spread = (order >> r) - 1, inside = code / spread, row = code - inside * spread + 1;
    /* The last vector has the lowest pivot; a zero is put in at every pivot, from below. */
    for (size_t i = r; i-- > 0;) {
        uint64_t below = (1ull << (63 - __builtin_clzll(basis[i]))) - 1;
        row = (row & ~below) << 1 | (row & below);
    }
    for (size_t i = 0; i < r; i++) row ^= -(inside >> i & 1) & basis[i];
    return row;
}

/* Put a vector outside its span into a reduced basis of r vectors, highest pivot first. */
static void extend(uint64_t *basis, size_t r, uint64_t row) {
    /* x ^ v is below x exactly where x has the highest bit of v. */
    for (size_t i = 0; i < r; i++) row = (row ^ basis[i]) < row ? row ^ basis[i] : row;
    uint64_t pivot = 1ull << (63 - __builtin_clzll(row));
    size_t at = r;
    for (size_t i = 0; i < r; i++) basis[i] ^= -(uint64_t)((basis[i] & pivot) != 0) & row;
    for (; at > 0 && basis[at - 1] < row; at--) basis[at] = basis[at - 1];
    basis[at] = row;
}

/* t independent rows below the order for each of n values, from t words each, `stride` words apart, and the parities of
 * the value with them, row i in bit i. The order is a power of two above 2^(t - 1). */
EXPORT void tacit_draw_subspaces(const uint64_t *word, size_t stride, const uint64_t *value, size_t n, size_t t,
                                 uint64_t order, uint64_t *rows, uint64_t *parities) {
    for (size_t i = 0; i < n; i++) {
        uint64_t basis[MOST], pattern = 0;
        for (size_t r = 0; r < t; r++) {
            uint64_t choices = order - (1ull << r);
            uint64_t code = (uint64_t)((unsigned __int128)word[i * stride + r] * choices >> 64);
            uint64_t row = outside(code, basis, r, order);
            extend(basis, r, row);
            rows[i * t + r] = row;
            pattern |= (uint64_t)__builtin_parityll(row & value[i]) << r;
        }
        parities[i] = pattern;
    }
}

/* A report is t rows of `width` bytes, little-endian, and a byte with their signs. Reads it into 2 row + sign each;
 * false if a row is not below the order, the rows depend on each other, or the signs are of more rows than t. */
static inline int read_rows(const uint8_t *report, size_t t, size_t width, uint64_t order, uint64_t *code) {
    uint64_t basis[MOST], pattern = report[t * width];
    int good = pattern >> t == 0;
    for (size_t r = 0; r < t; r++) {
        uint64_t row = 0;
        memcpy(&row, report + r * width, width);
        code[r] = row << 1 | (pattern >> r & 1);
        good &= row < order;
        for (size_t i = 0; i < r; i++) row = (row ^ basis[i]) < row ? row ^ basis[i] : row;
        basis[r] = row;
        good &= row != 0;
    }
    return good;
}

EXPORT void tacit_valid_spans(const uint8_t *report, size_t n, size_t t, size_t width, uint64_t order, uint8_t *out) {
    uint64_t code[MOST];
    for (size_t i = 0; i < n; i++) out[i] = (uint8_t)read_rows(report + i * (t * width + 1), t, width, order, code);
}

/* Add to the cell 2 row + sign of every row of the span but row 0. A Gray code passes all combinations and changes one
 * row at a time: that of the lowest set bit of the step. Rows are below the order, so that no cell is out of bounds.
 * Returns how many reports were no possible ones; they are not counted. */
#define SPANS(name, type, WEIGHT)                                                                      \
    EXPORT size_t name(const uint8_t *report, const int64_t *weight, size_t n, size_t t, size_t width, \
                       uint64_t order, type *out) {                                                    \
        size_t bad = 0;                                                                                \
        uint64_t code[MOST];                                                                           \
        (void)weight;                                                                                  \
        for (size_t i = 0; i < n; i++) {                                                               \
            if (!read_rows(report + i * (t * width + 1), t, width, order, code)) {                     \
                bad++;                                                                                 \
                continue;                                                                              \
            }                                                                                          \
            uint64_t at = 0;                                                                           \
            for (uint32_t step = 1; step < 1u << t; step++) {                                          \
                at ^= code[__builtin_ctz(step)];                                                       \
                out[at] += WEIGHT;                                                                     \
            }                                                                                          \
        }                                                                                              \
        return bad;                                                                                    \
    }
SPANS(tacit_count_spans, uint32_t, 1)
SPANS(tacit_weigh_spans, uint64_t, (uint64_t)weight[i])
