/* Packed bits, one row per report: how often each column is set, and how many bits each row has. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "hash.h"

/* Bytes of a row that are worked on at a time: their counters stay in the first-level cache. */
enum { TILE = 1024, ROWS = 15, GROUPS = 17 };

/* Adds three bits in every place: `high` counts two, `low` one. */
#define FULL_ADD(high, low, a, b, c)                         \
    do {                                                     \
        uint8_t x_ = (a), y_ = (b), z_ = (c), u_ = x_ ^ y_;  \
        (high) = (uint8_t)((x_ & y_) | (u_ & z_));           \
        (low) = (uint8_t)(u_ ^ z_);                          \
    } while (0)

/* Fifteen rows at once, by carry-save adders: every bit of a byte is a counter of its own.
 *
 *     15 rows                                -> 7 bits of one, 7 of two, ...  -> planes of one, two, four and eight
 *     the four planes, two bits of each byte -> a nibble 0 .. 15              -> added to lane[k][b], as bytes
 *
 * lane[k][b] counts bit k of byte b, which is column 8 b + k; all b of one k lie side by side, as vector lanes do. */
CLONES static void columns_15(const uint8_t *const row[ROWS], size_t span, uint8_t (*restrict lane)[TILE]) {
    const uint8_t *r0 = row[0], *r1 = row[1], *r2 = row[2], *r3 = row[3], *r4 = row[4], *r5 = row[5], *r6 = row[6],
                  *r7 = row[7], *r8 = row[8], *r9 = row[9], *r10 = row[10], *r11 = row[11], *r12 = row[12],
                  *r13 = row[13], *r14 = row[14];
    /* The lanes overlap no row. */
#pragma GCC ivdep
    for (size_t b = 0; b < span; b++) {
        uint8_t one, two, four, eight, t0, t1, t2, t3, t4, t5, t6, f0, f1, f2;
        FULL_ADD(t0, one, r0[b], r1[b], r2[b]);
        FULL_ADD(t1, one, one, r3[b], r4[b]);
        FULL_ADD(t2, one, one, r5[b], r6[b]);
        FULL_ADD(t3, one, one, r7[b], r8[b]);
        FULL_ADD(t4, one, one, r9[b], r10[b]);
        FULL_ADD(t5, one, one, r11[b], r12[b]);
        FULL_ADD(t6, one, one, r13[b], r14[b]);
        FULL_ADD(f0, two, t0, t1, t2);
        FULL_ADD(f1, two, two, t3, t4);
        FULL_ADD(f2, two, two, t5, t6);
        FULL_ADD(eight, four, f0, f1, f2);
        /* Pairs of bits of the even and the odd places, then nibbles of every fourth place. */
        uint8_t even = (uint8_t)((one & 0x55) | (two & 0x55) << 1), odd = (uint8_t)((one >> 1 & 0x55) | (two & 0xaa));
        uint8_t Even = (uint8_t)((four & 0x55) | (eight & 0x55) << 1),
                Odd = (uint8_t)((four >> 1 & 0x55) | (eight & 0xaa));
        uint8_t n0 = (uint8_t)((even & 0x33) | (Even & 0x33) << 2), n2 = (uint8_t)((even >> 2 & 0x33) | (Even & 0xcc));
        uint8_t n1 = (uint8_t)((odd & 0x33) | (Odd & 0x33) << 2), n3 = (uint8_t)((odd >> 2 & 0x33) | (Odd & 0xcc));
        lane[0][b] += n0 & 15;
        lane[1][b] += n1 & 15;
        lane[2][b] += n2 & 15;
        lane[3][b] += n3 & 15;
        lane[4][b] += n0 >> 4;
        lane[5][b] += n1 >> 4;
        lane[6][b] += n2 >> 4;
        lane[7][b] += n3 >> 4;
    }
}

EXPORT void tacit_bit_columns(const uint8_t *packed, size_t n, size_t bytes, size_t size, int64_t *out) {
    static const uint8_t nothing[TILE];
    uint8_t lane[8][TILE];
    const uint8_t *row[ROWS];
    for (size_t from = 0; from < bytes; from += TILE) {
        size_t span = bytes - from < TILE ? bytes - from : TILE;
        /* 17 groups of 15 rows add at most 255 to a byte. */
        for (size_t start = 0; start < n; start += ROWS * GROUPS) {
            for (size_t k = 0; k < 8; k++) memset(lane[k], 0, span);
            for (size_t at = start; at < n && at < start + ROWS * GROUPS; at += ROWS) {
                for (size_t r = 0; r < ROWS; r++) row[r] = at + r < n ? packed + (at + r) * bytes + from : nothing;
                columns_15(row, span, lane);
            }
            for (size_t b = 0; b < span; b++)
                for (size_t k = 0; k < 8; k++)
                    if ((from + b) * 8 + k < size) out[(from + b) * 8 + k] += lane[k][b];
        }
    }
}

/* Minus the bit is a mask of all ones or none, so that no branch depends on random bits. */
CLONES static void add_weighted(const uint8_t *restrict bits, size_t size, int64_t weight, int64_t *restrict out) {
    for (size_t i = 0; i < size; i++) out[i] += -(int64_t)(bits[i >> 3] >> (i & 7) & 1) & weight;
}

EXPORT void tacit_bit_columns_weighted(const uint8_t *row, const int64_t *weight, size_t n, size_t bytes,
                                       size_t size, int64_t *out) {
    for (size_t r = 0; r < n; r++) add_weighted(row + r * bytes, size, weight[r], out);
}

/* How many bits a row has set. */
static inline int64_t bits_of(const uint8_t *row, size_t bytes) {
    uint64_t word = 0;
    int64_t set = 0;
    size_t b = 0;
    for (; b + 8 <= bytes; b += 8) {
        memcpy(&word, row + b, 8);
        set += __builtin_popcountll(word);
    }
    word = 0;
    memcpy(&word, row + b, bytes - b);
    return set + __builtin_popcountll(word);
}

/* How many bits each row has set. */
EXPORT CLONES void tacit_bit_counts(const uint8_t *packed, size_t n, size_t bytes, int64_t *out) {
    for (size_t r = 0; r < n; r++) out[r] = bits_of(packed + r * bytes, bytes);
}

/* Rows with another number of bits than `set`, or with one beyond the size. */
CLONES static size_t wrong_sets(const uint8_t *packed, size_t n, size_t bytes, size_t size, int64_t set) {
    size_t wrong = 0;
    uint8_t spare = size % 8 ? (uint8_t)(0xff << size % 8) : 0;
    for (size_t r = 0; r < n; r++) {
        const uint8_t *row = packed + r * bytes;
        wrong += bits_of(row, bytes) != set || (row[bytes - 1] & spare) != 0;
    }
    return wrong;
}

/* Columns of sets of one size; returns how many rows are no such sets. Both passes go over as many rows as the cache
 * holds before the next ones are read. */
EXPORT size_t tacit_set_columns(const uint8_t *packed, size_t n, size_t bytes, size_t size, int64_t set, int64_t *out) {
    size_t wrong = 0;
    for (size_t start = 0; start < n; start += ROWS * GROUPS) {
        size_t rows = n - start < ROWS * GROUPS ? n - start : ROWS * GROUPS;
        wrong += wrong_sets(packed + start * bytes, rows, bytes, size, set);
        tacit_bit_columns(packed + start * bytes, rows, bytes, size, out);
    }
    return wrong;
}
