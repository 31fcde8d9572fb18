/* Affine block response: how many reports (w, c) support each candidate i, (w i - c) mod m below k.
 *
 * Nothing here divides per report and candidate. The residue w i mod m is read off a fraction: with F = w 2^64/m rounded
 * up, F i mod 2^64 lies in the part [x 2^64/m, (x + 1) 2^64/m) of the word that belongs to x = w i mod m, because the
 * rounding adds less than i < m <= 2^64/m. The block is then a run of words, and one subtraction and one comparison say
 * whether F i lies in it; see `query` in tacit.c. Below m = 2^16, 32 bits do, by the same argument.
 *
 * Where reports are many, those with the same multiplier are counted together: support is a sum over a window of k
 * neighbouring shifts, which a running sum gives for all residues at once.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "hash.h"

/* Candidates that are worked on at a time, and reports between two additions to the 64-bit counters. */
enum { TILE = 1024, GROUP = 512 };

/* A report as a multiplier of fractions and the run of fractions that is its block. */
typedef struct {
    uint32_t step, low, width;
} block32;

typedef struct {
    uint64_t step, low, width;
} block64;

/* x 2^32/m, rounded up; x is below 2 m. */
static inline uint32_t fraction32(uint64_t x, uint64_t m) {
    return (uint32_t)(((x << 32) + m - 1) / m);
}

/* x 2^64/m modulo 2^64, rounded up, for x below m <= 2^32. With 2^64 = whole m + rest, x rest fits into 64 bits. */
static inline uint64_t fraction64(uint64_t x, uint64_t m) {
    uint64_t whole = ~0ull / m, rest = ~0ull % m + 1;
    if (rest == m) whole++, rest = 0;
    return x * whole + (x * rest + m - 1) / m;
}

/* Four reports share one load and one store of the counters. */
CLONES static void affine_tile(const block32 *q, const uint32_t *restrict candidate, size_t d,
                               uint32_t *restrict count) {
    const block32 a = q[0], b = q[1], c = q[2], e = q[3];
    for (size_t i = 0; i < d; i++) {
        uint32_t v = candidate[i];
        count[i] += (uint32_t)(v * a.step - a.low < a.width) + (uint32_t)(v * b.step - b.low < b.width) +
                    (uint32_t)(v * c.step - c.low < c.width) + (uint32_t)(v * e.step - e.low < e.width);
    }
}

/* Support of candidates below m < 2^16, k < m. */
EXPORT void tacit_affine_support32(const uint32_t *multiplier, const uint32_t *shift, size_t n, uint32_t m, uint32_t k,
                                   const uint32_t *candidate, size_t d, int64_t *out) {
    block32 group[GROUP];
    uint32_t count[TILE];
    for (size_t start = 0; start < n; start += GROUP) {
        size_t made = n - start < GROUP ? n - start : GROUP;
        for (size_t r = 0; r < made; r++) {
            uint32_t c = shift[start + r] % m, low = fraction32(c, m);
            group[r] = (block32){fraction32(multiplier[start + r] % m, m), low, fraction32((uint64_t)c + k, m) - low};
        }
        /* Blocks of width 0 support nothing. */
        for (; made % 4; made++) group[made] = (block32){0, 0, 0};
        for (size_t tile = 0; tile < d; tile += TILE) {
            size_t span = d - tile < TILE ? d - tile : TILE;
            memset(count, 0, sizeof count);
            for (size_t r = 0; r < made; r += 4) affine_tile(group + r, candidate + tile, span, count);
            for (size_t i = 0; i < span; i++) out[tile + i] += count[i];
        }
    }
}

/* A product of 64 and 32 bits in two halves, each of which is one instruction for a whole vector. */
CLONES static void affine_row(block64 q, const uint32_t *restrict candidate, size_t d, uint64_t weight,
                              uint64_t *restrict out) {
    uint64_t lower = q.step & 0xffffffff, upper = q.step >> 32;
    for (size_t i = 0; i < d; i++) {
        uint64_t v = candidate[i], at = lower * v + (upper * v << 32);
        out[i] += at - q.low < q.width ? weight : 0;
    }
}

/* Support, or total weight, of candidates below m <= 2^32, k < m. Sums are formed modulo 2^64, as numpy's are. */
EXPORT void tacit_affine_support64(const uint32_t *multiplier, const uint32_t *shift, const int64_t *weight, size_t n,
                                   uint64_t m, uint64_t k, const uint32_t *candidate, size_t d, int64_t *out) {
    for (size_t r = 0; r < n; r++) {
        uint64_t c = shift[r] % m, low = fraction64(c, m), end = c + k < m ? c + k : c + k - m;
        block64 q = {fraction64(multiplier[r] % m, m), low, fraction64(end, m) - low};
        affine_row(q, candidate, d, weight ? (uint64_t)weight[r] : 1, (uint64_t *)out);
    }
}

/* The block of (w, c) is that of (m - w, 1 - k - c), read from its other end: multipliers up to m/2 do. */
static inline uint32_t fold(uint32_t w, uint32_t c, uint32_t m, uint32_t k, uint32_t *folded) {
    w %= m, c %= m;
    if (w <= m / 2) return *folded = c, w;
    uint64_t shift = 2 * (uint64_t)m + 1 - k - c;
    return *folded = (uint32_t)(shift % m), m - w;
}

/* Sort n reports by folded multiplier: those of multiplier w are start[w] .. start[w + 1] - 1 afterwards. `start` has
 * m/2 + 2 places, all zero at first. Weights may be NULL. m < 2^31. */
EXPORT void tacit_affine_sort(const uint32_t *multiplier, const uint32_t *shift, const int64_t *weight, size_t n,
                              uint32_t m, uint32_t k, uint64_t *start, uint32_t *sorted, int64_t *sorted_weight) {
    uint32_t c;
    for (size_t r = 0; r < n; r++) start[fold(multiplier[r], shift[r], m, k, &c) + 1]++;
    for (size_t w = 0; w <= m / 2; w++) start[w + 1] += start[w];
    /* Every start moves on to the next one while its reports are written, and back again at the end. */
    for (size_t r = 0; r < n; r++) {
        size_t at = start[fold(multiplier[r], shift[r], m, k, &c)]++;
        sorted[at] = c;
        if (weight) sorted_weight[at] = weight[r];
    }
    for (size_t w = m / 2 + 1; w > 0; w--) start[w] = start[w - 1];
    start[0] = 0;
}

/* window[x] is the sum of row[x - j mod m] over j < k: the reports of this multiplier whose block holds residue x. */
static void windows(const uint64_t *row, uint32_t m, uint32_t k, uint64_t *window) {
    uint64_t sum = 0;
    for (uint32_t j = 1; j <= k; j++) sum += row[m - j];
    for (uint32_t x = 0; x < k; x++) window[x] = sum += row[x] - row[m + x - k];
    for (uint32_t x = k; x < m; x++) window[x] = sum += row[x] - row[x - k];
}

/* Add window[w i mod m] to the sums of the candidates i = 0 .. d-1, in four strands of which none waits for another. */
static void gather(const uint64_t *window, uint32_t w, uint32_t m, size_t d, uint64_t *out) {
    uint32_t x[4], step = (uint32_t)(4ull * w % m);
    size_t i = 0;
    for (uint32_t s = 0; s < 4; s++) x[s] = (uint32_t)((uint64_t)w * s % m);
    for (; i + 4 <= d; i += 4)
        for (size_t s = 0; s < 4; s++) {
            out[i + s] += window[x[s]];
            x[s] += step;
            x[s] -= m & -(uint32_t)(x[s] >= m);
        }
    for (size_t s = 0; i < d; i++, s++) out[i] += window[x[s]];
}

/* Support of the candidates 0 .. d-1 by the sorted reports of the multipliers from .. to-1; `scratch` has 2 m places. */
EXPORT void tacit_affine_windows(const uint64_t *start, const uint32_t *sorted, const int64_t *weight, size_t from,
                                 size_t to, uint32_t m, uint32_t k, uint64_t *scratch, size_t d, int64_t *out) {
    uint64_t *row = scratch, *window = scratch + m;
    for (size_t w = from; w < to; w++) {
        if (start[w] == start[w + 1]) continue;
        memset(row, 0, m * sizeof *row);
        for (size_t r = start[w]; r < start[w + 1]; r++) row[sorted[r]] += weight ? (uint64_t)weight[r] : 1;
        windows(row, m, k, window);
        gather(window, (uint32_t)w, m, d, (uint64_t *)out);
    }
}
