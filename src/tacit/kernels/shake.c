/* SHAKE128 (FIPS 202) of keys of 32 bytes, four at a time: the coins of large batches.
 *
 * The 25 words of four sponges lie side by side in vectors, so that one pass of the permutation works on all four. The
 * bytes are those of the standard library's shake_128, one key after the other. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "hash.h"

typedef uint64_t four __attribute__((vector_size(32)));

enum { KEY = 4, RATE = 21, WORDS = 25 };

static const uint64_t ROUND[24] = {
    0x0000000000000001, 0x0000000000008082, 0x800000000000808a, 0x8000000080008000, 0x000000000000808b,
    0x0000000080000001, 0x8000000080008081, 0x8000000000008009, 0x000000000000008a, 0x0000000000000088,
    0x0000000080008009, 0x000000008000000a, 0x000000008000808b, 0x800000000000008b, 0x8000000000008089,
    0x8000000000008003, 0x8000000000008002, 0x8000000000000080, 0x000000000000800a, 0x800000008000000a,
    0x8000000080008081, 0x8000000000008080, 0x0000000080000001, 0x8000000080008008};

#define ROTATE(x, n) ((x) << (n) | (x) >> (64 - (n)))

/* Rho and pi: the word at `from`, with theta's column added and rotated, moves to `to`. */
#define MOVE(to, from, n) b[to] = ROTATE(s[from] ^ d[(from) % 5], n)

/* Chi on one row of five words. */
#define CHI(y)                                   \
    do {                                         \
        s[y] = b[y] ^ (~b[y + 1] & b[y + 2]);     \
        s[y + 1] = b[y + 1] ^ (~b[y + 2] & b[y + 3]); \
        s[y + 2] = b[y + 2] ^ (~b[y + 3] & b[y + 4]); \
        s[y + 3] = b[y + 3] ^ (~b[y + 4] & b[y]); \
        s[y + 4] = b[y + 4] ^ (~b[y] & b[y + 1]); \
    } while (0)

CLONES static void permute(four *s) {
    four b[WORDS], c[5], d[5];
    for (size_t r = 0; r < 24; r++) {
        for (size_t x = 0; x < 5; x++) c[x] = s[x] ^ s[x + 5] ^ s[x + 10] ^ s[x + 15] ^ s[x + 20];
        for (size_t x = 0; x < 5; x++) d[x] = c[(x + 4) % 5] ^ ROTATE(c[(x + 1) % 5], 1);
        b[0] = s[0] ^ d[0];
        MOVE(1, 6, 44), MOVE(2, 12, 43), MOVE(3, 18, 21), MOVE(4, 24, 14);
        MOVE(5, 3, 28), MOVE(6, 9, 20), MOVE(7, 10, 3), MOVE(8, 16, 45), MOVE(9, 22, 61);
        MOVE(10, 1, 1), MOVE(11, 7, 6), MOVE(12, 13, 25), MOVE(13, 19, 8), MOVE(14, 20, 18);
        MOVE(15, 4, 27), MOVE(16, 5, 36), MOVE(17, 11, 10), MOVE(18, 17, 15), MOVE(19, 23, 56);
        MOVE(20, 2, 62), MOVE(21, 8, 55), MOVE(22, 14, 39), MOVE(23, 15, 41), MOVE(24, 21, 2);
        CHI(0);
        CHI(5);
        CHI(10);
        CHI(15);
        CHI(20);
        s[0] ^= ROUND[r];
    }
}

/* `words` words of output for each of n keys, one after the other. */
EXPORT void tacit_shake128(const uint64_t *key, size_t n, size_t words, uint64_t *out) {
    for (size_t first = 0; first < n; first += 4) {
        size_t keys = n - first < 4 ? n - first : 4;
        four s[WORDS];
        memset(s, 0, sizeof s);
        for (size_t j = 0; j < keys; j++)
            for (size_t i = 0; i < KEY; i++) s[i][j] = key[(first + j) * KEY + i];
        /* The bits 1111 of an extendable output and the padding, which ends with the last byte of the rate. */
        s[KEY] ^= 0x1full;
        s[RATE - 1] ^= 1ull << 63;
        for (size_t at = 0; at < words; at += RATE) {
            permute(s);
            size_t span = words - at < RATE ? words - at : RATE;
            for (size_t j = 0; j < keys; j++)
                for (size_t i = 0; i < span; i++) out[(first + j) * words + at + i] = s[i][j];
        }
    }
}
