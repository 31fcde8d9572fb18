/* The hot loops of Tacit: counting supports, columns and histograms, transforms, and bit-sliced coins.
 *
 * Every function has a numpy twin in twin.py that gives the same integers; the tests compare them bit for bit.
 * All arrays are contiguous and belong to the caller. Nothing here allocates, prints, or keeps state, so the
 * functions may run in several threads on disjoint outputs.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(TACIT_PLAIN)
#define CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define CLONES
#endif
#define EXPORT __attribute__((visibility("default")))
#define TILE 1024

/* Murmur3's 32-bit finaliser: two multiplications, full avalanche. */
static inline uint32_t mix32(uint32_t x) {
    x ^= x >> 16;
    x *= 0x85ebca6bu;
    x ^= x >> 13;
    x *= 0xc2b2ae35u;
    return x ^ (x >> 16);
}

/* The first hash value of bucket y among g: bucket(h) == y iff low(y) <= h < low(y + 1). */
static inline uint64_t bucket_low(uint64_t y, uint64_t g) {
    return ((y << 32) + g - 1) / g;
}

/* Four reports against one tile of candidates whose upper halves are zero. */
CLONES static void support_tile(const uint32_t *restrict salt, const uint32_t *restrict low,
                                const uint32_t *restrict width, const uint32_t *restrict candidate,
                                size_t d, uint32_t *restrict count) {
    const uint32_t s0 = salt[0], s1 = salt[1], s2 = salt[2], s3 = salt[3];
    const uint32_t l0 = low[0], l1 = low[1], l2 = low[2], l3 = low[3];
    const uint32_t w0 = width[0], w1 = width[1], w2 = width[2], w3 = width[3];
    for (size_t i = 0; i < d; i++) {
        uint32_t v = candidate[i];
        count[i] += (uint32_t)(mix32(s0 ^ v) - l0 < w0) + (uint32_t)(mix32(s1 ^ v) - l1 < w1) +
                    (uint32_t)(mix32(s2 ^ v) - l2 < w2) + (uint32_t)(mix32(s3 ^ v) - l3 < w3);
    }
}

/* How many of n reports (seed, bucket) support each candidate below 2^32. A width of 0 is no report. */
EXPORT void tacit_hash_support32(const uint32_t *seed, const uint32_t *bucket, size_t n, uint64_t g,
                                 const uint32_t *candidate, size_t d, int64_t *out) {
    enum { GROUP = 4096 };
    uint32_t salt[GROUP], low[GROUP], width[GROUP], count[TILE];
    for (size_t start = 0; start < n; start += GROUP) {
        size_t group = n - start < GROUP ? n - start : GROUP;
        for (size_t i = 0; i < group; i++) {
            uint64_t y = bucket[start + i], from = bucket_low(y, g);
            salt[i] = mix32(seed[start + i]);
            low[i] = (uint32_t)from;
            width[i] = (uint32_t)(bucket_low(y + 1, g) - from);
        }
        size_t padded = (group + 3) & ~(size_t)3;
        for (size_t i = group; i < padded; i++) salt[i] = low[i] = width[i] = 0;
        for (size_t tile = 0; tile < d; tile += TILE) {
            size_t span = d - tile < TILE ? d - tile : TILE;
            memset(count, 0, sizeof count);
            for (size_t i = 0; i < padded; i += 4)
                support_tile(salt + i, low + i, width + i, candidate + tile, span, count);
            for (size_t i = 0; i < span; i++) out[tile + i] += count[i];
        }
    }
}

/* The same for candidates up to 2^64: the upper half is mixed with the seed first. */
CLONES static void support64(uint32_t seed, uint32_t low, uint32_t width, const uint32_t *restrict hi,
                             const uint32_t *restrict lo, size_t d, int64_t weight, int64_t *restrict out) {
    for (size_t i = 0; i < d; i++) {
        uint32_t h = mix32(mix32(seed ^ hi[i]) ^ lo[i]);
        out[i] += h - low < width ? weight : 0;
    }
}

EXPORT void tacit_hash_support64(const uint32_t *seed, const uint32_t *bucket, const int64_t *weight, size_t n,
                                 uint64_t g, const uint32_t *hi, const uint32_t *lo, size_t d, int64_t *out) {
    for (size_t tile = 0; tile < d; tile += TILE) {
        size_t span = d - tile < TILE ? d - tile : TILE;
        for (size_t i = 0; i < n; i++) {
            uint64_t from = bucket_low(bucket[i], g);
            support64(seed[i], (uint32_t)from, (uint32_t)(bucket_low(bucket[i] + 1ull, g) - from), hi + tile,
                      lo + tile, span, weight ? weight[i] : 1, out + tile);
        }
    }
}

/* Sum over public hash functions of the table cell a candidate falls into: out[i] += table[row][bucket]. */
EXPORT void tacit_pooled_support(const uint32_t *seed, const int64_t *table, size_t rows, uint64_t g,
                                 const uint32_t *hi, const uint32_t *lo, size_t d, int64_t *out) {
    for (size_t r = 0; r < rows; r++) {
        const int64_t *cells = table + r * g;
        for (size_t i = 0; i < d; i++) {
            uint64_t h = mix32(mix32(seed[r] ^ hi[i]) ^ lo[i]);
            out[i] += cells[h * g >> 32];
        }
    }
}

/* Column sums of packed bits, at most 255 rows: byte lanes that cannot overflow. */
CLONES static void columns_255(const uint8_t *restrict row, size_t rows, size_t bytes, size_t from, size_t span,
                               uint8_t (*restrict lane)[TILE]) {
    for (size_t r = 0; r < rows; r++) {
        const uint8_t *restrict at = row + r * bytes + from;
        for (size_t b = 0; b < span; b++) {
            uint8_t x = at[b];
            lane[0][b] += x & 1;
            lane[1][b] += x >> 1 & 1;
            lane[2][b] += x >> 2 & 1;
            lane[3][b] += x >> 3 & 1;
            lane[4][b] += x >> 4 & 1;
            lane[5][b] += x >> 5 & 1;
            lane[6][b] += x >> 6 & 1;
            lane[7][b] += x >> 7;
        }
    }
}

EXPORT void tacit_bit_columns(const uint8_t *row, size_t n, size_t bytes, size_t size, int64_t *out) {
    uint8_t lane[8][TILE];
    for (size_t from = 0; from < bytes; from += TILE) {
        size_t span = bytes - from < TILE ? bytes - from : TILE;
        for (size_t start = 0; start < n; start += 255) {
            size_t rows = n - start < 255 ? n - start : 255;
            memset(lane, 0, sizeof lane);
            columns_255(row + start * bytes, rows, bytes, from, span, lane);
            for (size_t b = 0; b < span; b++)
                for (size_t k = 0; k < 8; k++)
                    if ((from + b) * 8 + k < size) out[(from + b) * 8 + k] += lane[k][b];
        }
    }
}

CLONES static void add_weighted(const uint8_t *restrict bits, size_t size, int64_t weight, int64_t *restrict out) {
    for (size_t i = 0; i < size; i++) out[i] += -(int64_t)(bits[i >> 3] >> (i & 7) & 1) & weight;
}

EXPORT void tacit_bit_columns_weighted(const uint8_t *row, const int64_t *weight, size_t n, size_t bytes,
                                       size_t size, int64_t *out) {
    for (size_t r = 0; r < n; r++) add_weighted(row + r * bytes, size, weight[r], out);
}

/* Histogram of codes; returns how many codes were not below `cells` (they are not counted). */
#define HISTOGRAM(name, type)                                                                            \
    EXPORT size_t name(const type *code, const int64_t *weight, size_t n, uint64_t cells, int64_t *out) { \
        size_t bad = 0;                                                                                  \
        for (size_t i = 0; i < n; i++) {                                                                 \
            if (code[i] < cells)                                                                         \
                out[code[i]] += weight ? weight[i] : 1;                                                  \
            else                                                                                         \
                bad++;                                                                                   \
        }                                                                                                \
        return bad;                                                                                      \
    }
HISTOGRAM(tacit_histogram8, uint8_t)
HISTOGRAM(tacit_histogram16, uint16_t)
HISTOGRAM(tacit_histogram32, uint32_t)
HISTOGRAM(tacit_histogram64, uint64_t)

CLONES static void butterfly(int64_t *restrict a, int64_t *restrict b, size_t n) {
    for (size_t i = 0; i < n; i++) {
        int64_t x = a[i], y = b[i];
        a[i] = x + y;
        b[i] = x - y;
    }
}

/* Two levels at once halve the passes over memory. */
CLONES static void butterfly4(int64_t *restrict a, int64_t *restrict b, int64_t *restrict c, int64_t *restrict d,
                              size_t n) {
    for (size_t i = 0; i < n; i++) {
        int64_t s = a[i] + b[i], t = a[i] - b[i], u = c[i] + d[i], v = c[i] - d[i];
        a[i] = s + u;
        b[i] = t + v;
        c[i] = s - u;
        d[i] = t - v;
    }
}

CLONES static void small_transform(int64_t *restrict x, size_t n) {
    for (size_t i = 0; i < n; i += 8) {
        int64_t *restrict y = x + i, z[8];
        for (size_t k = 0; k < 4; k++) z[k] = y[2 * k] + y[2 * k + 1], z[k + 4] = y[2 * k] - y[2 * k + 1];
        int64_t a0 = z[0] + z[1], a1 = z[2] + z[3], b0 = z[4] + z[5], b1 = z[6] + z[7];
        int64_t c0 = z[0] - z[1], c1 = z[2] - z[3], d0 = z[4] - z[5], d1 = z[6] - z[7];
        y[0] = a0 + a1, y[1] = b0 + b1, y[2] = c0 + c1, y[3] = d0 + d1;
        y[4] = a0 - a1, y[5] = b0 - b1, y[6] = c0 - c1, y[7] = d0 - d1;
    }
}

/* In-place Walsh-Hadamard transform of one block of n = 2^k integers, unscaled, depth first for the caches. */
EXPORT void tacit_walsh_hadamard(int64_t *x, size_t n) {
    if (n > 4096) {
        size_t quarter = n / 4;
        for (size_t k = 0; k < 4; k++) tacit_walsh_hadamard(x + k * quarter, quarter);
        butterfly4(x, x + quarter, x + 2 * quarter, x + 3 * quarter, quarter);
        return;
    }
    size_t h = 1;
    if (n >= 8) small_transform(x, n), h = 8;
    for (; h < n; h *= 2)
        for (size_t i = 0; i < n; i += 2 * h) butterfly(x + i, x + i + h, h);
}

/* Noisy bits of n vectors with ones at the given positions (-1: none), 64 lanes at a time. Stops early when the
 * coin words could run out. Returns the reports made and sets *used to the words consumed. */
static uint64_t draw_lanes(uint64_t live, uint64_t lane, uint64_t t1, uint64_t t0, const uint64_t *word,
                           size_t *used) {
    uint64_t result = 0, undecided = live;
    for (int j = 63; undecided && j >= 0; j--) {
        uint64_t threshold = (-(t0 >> j & 1) & ~lane) | (-(t1 >> j & 1) & lane), w = word[(*used)++];
        result |= undecided & threshold & ~w;
        undecided &= ~(threshold ^ w);
    }
    return result;
}

EXPORT size_t tacit_draw_bits(const int32_t *ones, size_t each, size_t n, size_t size, uint64_t t1, uint64_t t0,
                              const uint64_t *word, size_t words, uint8_t *out, size_t *used) {
    size_t blocks = (size + 63) / 64, bytes = (size + 7) / 8;
    *used = 0;
    for (size_t r = 0; r < n; r++) {
        if (words - *used < 64 * blocks) return r;
        for (size_t b = 0; b < blocks; b++) {
            size_t lanes = size - 64 * b < 64 ? size - 64 * b : 64;
            uint64_t lane = 0, live = lanes == 64 ? ~0ull : (1ull << lanes) - 1;
            for (size_t k = 0; k < each; k++) {
                int32_t at = ones[r * each + k];
                if (at >= 0 && (size_t)at / 64 == b) lane |= 1ull << (at % 64);
            }
            uint64_t bits = draw_lanes(live, lane, t1, t0, word, used);
            size_t room = bytes - 8 * b < 8 ? bytes - 8 * b : 8;
            memcpy(out + r * bytes + 8 * b, &bits, room);
        }
    }
    return n;
}

/* How many reports (w, c) of affine block response support each candidate: (w i - c) mod m below k. */
EXPORT void tacit_affine_support(const uint32_t *multiplier, const uint32_t *shift, const int64_t *weight, size_t n,
                                 uint64_t m, uint64_t k, const uint32_t *candidate, size_t d, int64_t *out) {
    for (size_t r = 0; r < n; r++) {
        uint64_t w = multiplier[r], c = m - shift[r];
        int64_t add = weight ? weight[r] : 1;
        for (size_t i = 0; i < d; i++) out[i] += (w * candidate[i] + c) % m < k ? add : 0;
    }
}

/* The same for the candidates 0 .. d-1, by a running sum in four independent strands: no division. */
EXPORT void tacit_affine_support_all(const uint32_t *multiplier, const uint32_t *shift, size_t n, uint32_t m,
                                     uint32_t k, size_t d, int64_t *out) {
    for (size_t r = 0; r < n; r++) {
        uint32_t x[4], w = multiplier[r], step = (uint32_t)(4ull * w % m);
        for (size_t s = 0; s < 4; s++) x[s] = (uint32_t)(((uint64_t)w * s + m - shift[r]) % m);
        size_t i = 0;
        for (; i + 4 <= d; i += 4)
            for (size_t s = 0; s < 4; s++) {
                out[i + s] += x[s] < k;
                x[s] += step;
                x[s] -= m & -(uint32_t)(x[s] >= m);
            }
        for (size_t s = 0; i < d; i++, s++) out[i] += x[s] < k;
    }
}

/* Floyd's sampler on bitmaps: `take` distinct values of [0, size - 1) per row, shifted past `skip`, with `keep`
 * deciding whether the skipped value itself is in the set (and then one value fewer is taken). */
EXPORT void tacit_draw_subsets(const uint32_t *skip, const uint8_t *keep, size_t n, uint64_t size, uint64_t take,
                               const uint64_t *word, uint8_t *out) {
    size_t bytes = (size + 7) / 8;
    for (size_t r = 0; r < n; r++) {
        uint8_t *set = out + r * bytes;
        uint64_t count = take - keep[r], v = skip[r];
        memset(set, 0, bytes);
        if (keep[r]) set[v >> 3] |= (uint8_t)(1 << (v & 7));
        for (uint64_t s = 0; s < count; s++) {
            uint64_t top = size - 1 - count + s;
            uint64_t t = (uint64_t)((unsigned __int128)word[r * take + s] * (top + 1) >> 64);
            uint64_t at = t + (t >= v);
            if (set[at >> 3] >> (at & 7) & 1) at = top + (top >= v);
            set[at >> 3] |= (uint8_t)(1 << (at & 7));
        }
    }
}
