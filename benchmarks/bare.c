/* What the mathematics costs when nothing else is done: the loops that Tacit's kernels are measured against.
 *
 * No tiling, no decoding, no checks: hash and add, count, transform, spin. The hash is the project's own, and
 * the harness compiles this file with the flags of the project.
 */
#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(TACIT_PLAIN)
#define CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define CLONES
#endif

static inline uint32_t mix32(uint32_t x) {
    x ^= x >> 16;
    x *= 0x85ebca6bu;
    x ^= x >> 13;
    x *= 0xc2b2ae35u;
    return x ^ (x >> 16);
}

/* The first hash value of bucket y among g: bucket(h) == y iff bound(y) <= h < bound(y + 1). */
static inline uint64_t bound(uint64_t y, uint64_t g) {
    return ((y << 32) + g - 1) / g;
}

/* Two words of the seed around two multiplications, on a candidate spread by mix32. */
static inline uint32_t seeded(uint32_t spread, uint32_t first, uint32_t second) {
    uint32_t x = (spread ^ first) * 0x85ebca6bu;
    return (x ^ (x >> 15) ^ second) * 0xc2b2ae35u;
}

/* One report against d candidates. A function of its own, because gcc would otherwise jam two reports into
 * one loop and then fail to vectorise it. */
CLONES static void hash_and_add(uint32_t first, uint32_t low, uint32_t width, uint32_t d,
                                const uint32_t *restrict spread, uint32_t *restrict count) {
    const uint32_t second = mix32(first + 0x9e3779b9u);
    for (uint32_t v = 0; v < d; v++) count[v] += seeded(spread[v], first, second) - low < width;
}

/* Local hashing: n reports times d candidates, one hash and one addition each. */
void bare_support(const uint32_t *seed, const uint32_t *bucket, size_t n, uint64_t g, uint32_t d,
                  uint32_t *count) {
    uint32_t spread[d];
    for (uint32_t v = 0; v < d; v++) spread[v] = mix32(v);
    for (size_t i = 0; i < n; i++) {
        const uint64_t low = bound(bucket[i], g), high = bound(bucket[i] + (uint64_t)1, g);
        hash_and_add(mix32(seed[i]), (uint32_t)low, (uint32_t)(high - low), d, spread, count);
    }
}

/* One pass of counting. */
void bare_bincount(const uint32_t *restrict code, size_t n, int32_t *restrict count) {
    for (size_t i = 0; i < n; i++) count[code[i]]++;
}

/* The Walsh-Hadamard transform in place, d a power of two, one pass over memory for each of its levels. */
#define WALSH_HADAMARD(NAME, INTEGER)                        \
    CLONES void NAME(INTEGER *restrict x, size_t d) {        \
        for (size_t h = 1; h < d; h *= 2)                    \
            for (size_t i = 0; i < d; i += 2 * h)            \
                for (size_t j = i; j < i + h; j++) {         \
                    const INTEGER a = x[j], b = x[j + h];    \
                    x[j] = a + b;                            \
                    x[j + h] = a - b;                        \
                }                                            \
    }

WALSH_HADAMARD(bare_walsh_hadamard32, int32_t)
WALSH_HADAMARD(bare_walsh_hadamard64, int64_t)

/* Unary encoding without a true value: blocks of 64 bits, each 1 with probability t/2^64, from words that never run out.
 * Returns the words used. */
size_t bare_lanes(const uint64_t *word, size_t blocks, uint64_t t, uint64_t *out) {
    size_t used = 0;
    for (size_t b = 0; b < blocks; b++) {
        uint64_t result = 0, undecided = ~0ull;
        for (int j = 63; undecided && j >= 0; j--) {
            const uint64_t bit = -(t >> j & 1), w = word[used++];
            result |= undecided & bit & ~w;
            undecided &= ~(bit ^ w);
        }
        out[b] = result;
    }
    return used;
}

/* A loop that touches no memory: two of them at once show how much a second core is worth here. */
uint32_t bare_spin(uint64_t rounds) {
    uint32_t x = 1;
    for (uint64_t i = 0; i < rounds; i++) x = mix32(x + (uint32_t)i);
    return x;
}
