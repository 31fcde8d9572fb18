/* The hot loops of Tacit: counting supports, columns and histograms, transforms, and bit-sliced coins.
 *
 * Every function has a numpy twin in twin.py that gives the same integers; the tests compare them bit for bit.
 * All arrays belong to the caller. Nothing here allocates, prints, or keeps state, so the functions may run in
 * several threads on disjoint outputs.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "hash.h"

/* Candidates that are worked on at a time: the counters of a tile stay in the first-level cache. */
#define TILE 1024

/* Raised with every change of a signature, so that a library left over from older sources is not used. */
EXPORT int tacit_abi = 16;

/* The first hash value of bucket y among g: bucket(h) == y iff low(y) <= h < low(y + 1). */
static inline uint64_t bucket_low(uint64_t y, uint64_t g) {
    return ((y << 32) + g - 1) / g;
}

/* One report, ready to be compared with hash values: two mixed words of its seed, and the run of hash values that is its
 * bucket. With unsigned arithmetic, h - low < width is the whole test: an h below low wraps round to a huge number. */
typedef struct {
    uint32_t first, second, low, width;
} query;

static inline query make_query(uint32_t seed, uint32_t high, uint64_t y, uint64_t g) {
    uint64_t low = bucket_low(y, g);
    uint32_t first = mix32(seed ^ high);
    return (query){first, second_word(first), (uint32_t)low, (uint32_t)(bucket_low(y + 1, g) - low)};
}

/* Four reports against one tile of spread candidates whose upper halves are zero. Four share one load and one store of
 * the counters. */
CLONES static void support_tile(const query *q, const uint32_t *restrict spread, size_t d, uint32_t *restrict count) {
    const query a = q[0], b = q[1], c = q[2], e = q[3];
    for (size_t i = 0; i < d; i++) {
        uint32_t v = spread[i];
        count[i] += (uint32_t)(seeded(v, a.first, a.second) - a.low < a.width) +
                    (uint32_t)(seeded(v, b.first, b.second) - b.low < b.width) +
                    (uint32_t)(seeded(v, c.first, c.second) - c.low < c.width) +
                    (uint32_t)(seeded(v, e.first, e.second) - e.low < e.width);
    }
}

/* A column of a batch of reports: unsigned little-endian integers of 1, 2 or 4 bytes, `stride` bytes apart. */
typedef struct {
    const uint8_t *at;
    size_t stride, bytes;
} column;

static inline uint32_t column_get(column c, size_t i) {
    const uint8_t *at = c.at + i * c.stride;
    uint32_t value;
    if (c.bytes == 1) return *at;
    if (c.bytes == 2) return (uint32_t)at[0] | (uint32_t)at[1] << 8;
    memcpy(&value, at, 4);
    return value;
}

/* What a thread needs: everything but `out` is shared. `next` is the first report that no thread has taken yet. */
typedef struct {
    column seed, bucket;
    size_t n;
    const uint64_t *bound;
    const uint32_t *candidate, *high;
    const size_t *start;
    size_t runs;
    atomic_size_t *next;
    int64_t *out;
} support_job;

enum { GROUP = 1024 };

/* Count one group of reports for the candidates from .. to-1. 32-bit counters of a tile suffice, as a group adds at most
 * GROUP to each; they are added to the 64-bit result once per group. */
static void support_group(const support_job *job, const query *group, size_t made, size_t from, size_t to) {
    uint32_t count[TILE], spread[TILE];
    for (size_t tile = from; tile < to; tile += TILE) {
        size_t span = to - tile < TILE ? to - tile : TILE;
        memset(count, 0, sizeof count);
        for (size_t i = 0; i < span; i++) spread[i] = mix32(job->candidate[tile + i]);
        for (size_t i = 0; i < made; i += 4) support_tile(group + i, spread, span, count);
        for (size_t i = 0; i < span; i++) job->out[tile + i] += count[i];
    }
}

/* The words of the seeds of a group of reports for candidates with this upper half. */
CLONES static void mix_group(const uint32_t *restrict seed, size_t made, uint32_t high, query *restrict group) {
    for (size_t i = 0; i < made; i++) {
        uint32_t first = mix32(seed[i] ^ high);
        group[i].first = first;
        group[i].second = second_word(first);
    }
}

/* Take groups of reports until none is left: a thread that is held up does not hold up the others. */
static void *support_worker(void *argument) {
    const support_job *job = argument;
    query group[GROUP];
    uint32_t seed[GROUP];
    for (;;) {
        size_t start = atomic_fetch_add(job->next, GROUP);
        if (start >= job->n) return NULL;
        size_t made = job->n - start < GROUP ? job->n - start : GROUP;
        for (size_t i = 0; i < made; i++) {
            uint32_t y = column_get(job->bucket, start + i);
            uint64_t low = job->bound[y];
            seed[i] = column_get(job->seed, start + i);
            group[i] = (query){0, 0, (uint32_t)low, (uint32_t)(job->bound[y + 1] - low)};
        }
        /* Fill up to a multiple of four with buckets of width 0, which support nothing. */
        for (; made % 4; made++) seed[made] = 0, group[made] = (query){0, 0, 0, 0};
        for (size_t r = 0; r < job->runs; r++) {
            mix_group(seed, made, job->high[r], group);
            support_group(job, group, made, job->start[r], job->start[r + 1]);
        }
    }
}

/* How many of n reports (seed, bucket) support each candidate; bucket y is [bound[y], bound[y + 1]).
 * Candidates come in runs with one upper half each, for which the words of the seeds are mixed once: run r has the
 * lower halves candidate[start[r]] up to candidate[start[r + 1]]. `out` has one row of d counters per thread; their
 * sum is the answer. */
EXPORT void tacit_hash_support(const uint8_t *seed, size_t seed_stride, const uint8_t *bucket, size_t bucket_stride,
                               size_t bucket_bytes, size_t n, const uint64_t *bound, const uint32_t *candidate,
                               const uint32_t *high, const size_t *start, size_t runs, size_t threads, int64_t *out) {
    enum { MOST = 64 };
    pthread_t thread[MOST];
    support_job job[MOST];
    atomic_size_t next = 0;
    size_t started = 1;
    threads = threads > MOST ? MOST : threads;
    for (size_t t = 0; t < threads; t++)
        job[t] = (support_job){{seed, seed_stride, 4}, {bucket, bucket_stride, bucket_bytes}, n, bound, candidate,
                               high, start, runs, &next, out + t * start[runs]};
    /* Where the system refuses a thread, those that did start take its share of the groups as well. */
    while (started < threads && pthread_create(&thread[started], NULL, support_worker, &job[started]) == 0) started++;
    support_worker(&job[0]);
    for (size_t t = 1; t < started; t++) pthread_join(thread[t], NULL);
}

/* The same for candidates whose upper halves all differ, and for weighted reports. */
CLONES static void support64(uint32_t seed, uint32_t low, uint32_t width, const uint32_t *restrict high,
                             const uint32_t *restrict spread, size_t d, int64_t weight, int64_t *restrict out) {
    for (size_t i = 0; i < d; i++) {
        uint32_t first = mix32(seed ^ high[i]);
        out[i] += seeded(spread[i], first, second_word(first)) - low < width ? weight : 0;
    }
}

EXPORT void tacit_hash_support64(const uint32_t *seed, const uint32_t *bucket, const int64_t *weight, size_t n,
                                 uint64_t g, const uint32_t *high, const uint32_t *low, size_t d, int64_t *out) {
    uint32_t spread[TILE];
    for (size_t tile = 0; tile < d; tile += TILE) {
        size_t span = d - tile < TILE ? d - tile : TILE;
        for (size_t i = 0; i < span; i++) spread[i] = mix32(low[tile + i]);
        for (size_t i = 0; i < n; i++) {
            query q = make_query(seed[i], 0, bucket[i], g);
            support64(seed[i], q.low, q.width, high + tile, spread, span, weight ? weight[i] : 1, out + tile);
        }
    }
}

/* Buckets of spread candidates under one public hash function; split from the gather so that it vectorises. */
CLONES static void pooled_buckets(uint32_t seed, uint32_t g, const uint32_t *restrict high,
                                  const uint32_t *restrict spread, size_t d, uint32_t *restrict at) {
    for (size_t i = 0; i < d; i++) {
        uint32_t first = mix32(seed ^ high[i]);
        at[i] = (uint32_t)((uint64_t)seeded(spread[i], first, second_word(first)) * g >> 32);
    }
}

/* The same for candidates whose upper halves are all zero: the words of the seed are computed once. */
CLONES static void pooled_buckets32(uint32_t first, uint32_t second, uint32_t g, const uint32_t *restrict spread,
                                    size_t d, uint32_t *restrict at) {
    for (size_t i = 0; i < d; i++) at[i] = (uint32_t)((uint64_t)seeded(spread[i], first, second) * g >> 32);
}

/* And for a number of buckets that is 2^(32 - shift). */
CLONES static void pooled_shift32(uint32_t first, uint32_t second, int shift, const uint32_t *restrict spread,
                                  size_t d, uint32_t *restrict at) {
    for (size_t i = 0; i < d; i++) at[i] = seeded(spread[i], first, second) >> shift;
}

/* Candidates spread by the fixed bijection, once for all hash functions. */
EXPORT CLONES void tacit_spread(const uint32_t *restrict low, size_t d, uint32_t *restrict spread) {
    for (size_t i = 0; i < d; i++) spread[i] = mix32(low[i]);
}

/* Sum over public hash functions of the table cell a spread candidate falls into: out[i] += table[row][bucket].
 *
 *     for each block of candidates     [ tile | tile | ... | tile ]    BLOCK candidates and sums, 12 bytes each
 *       for each row of the table      [ g cells ]                     one row per hash function
 *         for each tile of the block   at[i] = bucket of candidate i   vectorises
 *                                      out[i] += row[at[i]]            a gather (name_add), which does not
 *
 * All rows go over a block before the next block begins, so that its candidates and sums stay in the cache. The buckets
 * come from one of three loops: with `high` for values of 64 bits, by a shift where g is a power of two, else by a
 * multiplication.
 *
 * The macro makes the function once per type of cell; 32-bit cells take half the cache. */
enum { BLOCK = 1 << 17 };
#define POOLED(name, type)                                                                               \
    CLONES static void name##_add(const type *restrict cells, const uint32_t *restrict at, size_t d,      \
                                  int64_t *restrict out) {                                               \
        for (size_t i = 0; i < d; i++) out[i] += cells[at[i]];                                           \
    }                                                                                                    \
    EXPORT void name(const uint32_t *seed, const type *table, size_t rows, uint32_t g, const uint32_t *high, \
                     const uint32_t *spread, size_t d, int64_t *out) {                                   \
        uint32_t at[TILE];                                                                               \
        int shift = g > 1 && (g & (g - 1)) == 0 ? 32 - __builtin_ctz(g) : 0;                             \
        for (size_t start = 0; start < d; start += BLOCK)                                                \
            for (size_t r = 0; r < rows; r++) {                                                          \
                const uint32_t first = mix32(seed[r]), second = second_word(first);                      \
                size_t stop = d - start < BLOCK ? d : start + BLOCK;                                     \
                for (size_t tile = start; tile < stop; tile += TILE) {                                   \
                    size_t span = stop - tile < TILE ? stop - tile : TILE;                               \
                    if (high)                                                                            \
                        pooled_buckets(seed[r], g, high + tile, spread + tile, span, at);                \
                    else if (shift)                                                                      \
                        pooled_shift32(first, second, shift, spread + tile, span, at);                   \
                    else                                                                                 \
                        pooled_buckets32(first, second, g, spread + tile, span, at);                     \
                    name##_add(table + r * g, at, span, out + tile);                                     \
                }                                                                                        \
            }                                                                                            \
    }
POOLED(tacit_pooled_support32, int32_t)
POOLED(tacit_pooled_support64, int64_t)

/* Histograms of codes, unweighted in 32 bits (half the cache) and weighted in 64; both return how many codes were
 * not below `cells` (they are not counted). */
#define HISTOGRAM(width)                                                                                     \
    EXPORT size_t tacit_count##width(const uint##width##_t *code, size_t n, uint64_t cells, uint32_t *out) { \
        size_t bad = 0;                                                                                      \
        for (size_t i = 0; i < n; i++) {                                                                     \
            if (__builtin_expect(code[i] < cells, 1))                                                        \
                out[code[i]]++;                                                                              \
            else                                                                                             \
                bad++;                                                                                       \
        }                                                                                                    \
        return bad;                                                                                          \
    }                                                                                                        \
    EXPORT size_t tacit_weigh##width(const uint##width##_t *code, const int64_t *weight, size_t n,           \
                                     uint64_t cells, int64_t *out) {                                         \
        size_t bad = 0;                                                                                      \
        for (size_t i = 0; i < n; i++) {                                                                     \
            if (code[i] < cells)                                                                             \
                out[code[i]] += weight[i];                                                                   \
            else                                                                                             \
                bad++;                                                                                       \
        }                                                                                                    \
        return bad;                                                                                          \
    }
HISTOGRAM(8)
HISTOGRAM(16)
HISTOGRAM(32)
HISTOGRAM(64)

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

/* The three lowest levels of every eight neighbours, in registers. */
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

/* One block of n = 2^k integers, depth first for the caches. */
static void walsh_hadamard(int64_t *x, size_t n) {
    if (n > 4096) {
        size_t quarter = n / 4;
        for (size_t k = 0; k < 4; k++) walsh_hadamard(x + k * quarter, quarter);
        butterfly4(x, x + quarter, x + 2 * quarter, x + 3 * quarter, quarter);
        return;
    }
    size_t h = 1;
    if (n >= 8) small_transform(x, n), h = 8;
    for (; h < n; h *= 2)
        for (size_t i = 0; i < n; i += 2 * h) butterfly(x + i, x + i + h, h);
}

/* In-place unscaled Walsh-Hadamard transform of every row of a matrix with n = 2^k columns. */
EXPORT void tacit_walsh_hadamard(int64_t *x, size_t rows, size_t n) {
    for (size_t r = 0; r < rows; r++) walsh_hadamard(x + r * n, n);
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
