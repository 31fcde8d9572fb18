/* How many reports support two values at once, for every pair of some values.
 *
 * Supports are turned by 90 degrees first: a plane per value with one bit per report. Two values are then supported
 * together by the bits that both planes have, 64 reports per word.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "hash.h"

/* Words of every plane that are worked on at a time: 1 kB each, so that the planes of 512 values stay in the second-level
 * cache. */
#define SPAN 128

/* Counting bits is one instruction of every processor with popcnt, and a table without. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(TACIT_PLAIN)
#define COUNTING __attribute__((target_clones("popcnt", "default")))
#else
#define COUNTING
#endif

/* Bits that plane a has in common with four planes, `stride` words apart: one load of a serves all of them. */
COUNTING static void common_four(const uint64_t *restrict a, const uint64_t *restrict b, size_t stride, size_t words,
                                 int64_t *restrict out) {
    const uint64_t *c = b + stride, *d = c + stride, *e = d + stride;
    uint64_t sum[4] = {0, 0, 0, 0};
    for (size_t i = 0; i < words; i++) {
        uint64_t x = a[i];
        sum[0] += (uint64_t)__builtin_popcountll(x & b[i]);
        sum[1] += (uint64_t)__builtin_popcountll(x & c[i]);
        sum[2] += (uint64_t)__builtin_popcountll(x & d[i]);
        sum[3] += (uint64_t)__builtin_popcountll(x & e[i]);
    }
    for (size_t k = 0; k < 4; k++) out[k] += (int64_t)sum[k];
}

COUNTING static int64_t common(const uint64_t *restrict a, const uint64_t *restrict b, size_t words) {
    int64_t sum = 0;
    for (size_t i = 0; i < words; i++) sum += __builtin_popcountll(a[i] & b[i]);
    return sum;
}

/* Add the common bits of planes i and j to out[i * d + j] for i <= j; a plane has `words` words, of which from .. to - 1
 * are looked at. */
EXPORT void tacit_co_support(const uint64_t *plane, size_t d, size_t words, size_t from, size_t to, int64_t *out) {
    for (size_t at = from; at < to; at += SPAN) {
        size_t span = to - at < SPAN ? to - at : SPAN;
        const uint64_t *here = plane + at;
        for (size_t i = 0; i < d; i++) {
            size_t j = i;
            for (; j + 4 <= d; j += 4)
                common_four(here + i * words, here + j * words, words, span, out + i * d + j);
            for (; j < d; j++) out[i * d + j] += common(here + i * words, here + j * words, span);
        }
    }
}

/* Planes of packed bits: bit r of word w of plane c is bit value[c] of row 64 w + r. */
EXPORT void tacit_bit_planes(const uint8_t *packed, size_t n, size_t width, const uint32_t *value, size_t d, size_t words,
                             size_t from, size_t to, uint64_t *plane) {
    for (size_t w = from; w < to; w++) {
        size_t rows = n - 64 * w < 64 ? n - 64 * w : 64;
        const uint8_t *block = packed + 64 * w * width;
        for (size_t c = 0; c < d; c++) {
            const uint8_t *at = block + (value[c] >> 3);
            uint32_t shift = value[c] & 7;
            uint64_t word = 0;
            for (size_t r = 0; r < rows; r++) word |= (uint64_t)(at[r * width] >> shift & 1) << r;
            plane[c * words + w] = word;
        }
    }
}

/* The same for reports of local hashing: report 64 w + r supports value c if its hash falls into the reported bucket,
 * whose hash values are low[i] .. low[i] + span[i] - 1. Values are below 2^32. */
EXPORT void tacit_hash_planes(const uint32_t *seed, const uint32_t *low, const uint32_t *span, size_t n,
                              const uint32_t *value, size_t d, size_t words, size_t from, size_t to, uint64_t *plane) {
    for (size_t w = from; w < to; w++) {
        size_t rows = n - 64 * w < 64 ? n - 64 * w : 64;
        uint32_t first[64], second[64];
        for (size_t r = 0; r < rows; r++) {
            first[r] = mix32(seed[64 * w + r]);
            second[r] = second_word(first[r]);
        }
        for (size_t c = 0; c < d; c++) {
            uint32_t spread = mix32(value[c]);
            uint64_t word = 0;
            for (size_t r = 0; r < rows; r++)
                word |= (uint64_t)(seeded(spread, first[r], second[r]) - low[64 * w + r] < span[64 * w + r]) << r;
            plane[c * words + w] = word;
        }
    }
}
