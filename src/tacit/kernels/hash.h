/* What the files of the core share: how functions are exported and cloned, and the two halves of the seeded hash. */
#ifndef TACIT_HASH_H
#define TACIT_HASH_H

#include <stdint.h>

/* GCC compiles a function marked CLONES once per instruction set and the loader picks the one of this processor. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(TACIT_PLAIN)
#define CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define CLONES
#endif
#define EXPORT __attribute__((visibility("default")))

/* Murmur3's 32-bit finaliser: two multiplications, full avalanche. */
static inline uint32_t mix32(uint32_t x) {
    x ^= x >> 16;
    x *= 0x85ebca6bu;
    x ^= x >> 13;
    x *= 0xc2b2ae35u;
    return x ^ (x >> 16);
}

/* The second half of the hash: two words of the seed around two multiplications, on a value spread by mix32. */
static inline uint32_t seeded(uint32_t spread, uint32_t first, uint32_t second) {
    uint32_t x = (spread ^ first) * 0x85ebca6bu;
    return (x ^ (x >> 15) ^ second) * 0xc2b2ae35u;
}

/* The second word of a seed, from its first; the constant is 2^32 over the golden ratio, as in Knuth's hashing. */
static inline uint32_t second_word(uint32_t first) {
    return mix32(first + 0x9e3779b9u);
}

/* The whole seeded hash of a value below 2^64. */
static inline uint32_t hash32(uint32_t seed, uint64_t value) {
    uint32_t first = mix32(seed ^ (uint32_t)(value >> 32));
    return seeded(mix32((uint32_t)value), first, second_word(first));
}

#endif
