/* SHA-256 (FIPS 180-4) of many short messages of one length: a first byte and a row.
 *
 * Eight messages are hashed side by side, one in each lane of a vector, so that nothing moves between lanes and no
 * processor needs instructions of its own for it. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "hash.h"

#define LANES 8

/* GCC and Clang keep such a vector in registers, one or several, whatever the width of the processor's. */
typedef uint32_t lanes __attribute__((vector_size(4 * LANES)));

static const uint32_t start_of_hash[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                          0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

static const uint32_t constant[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be,
    0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa,
    0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85,
    0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3,
    0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f,
    0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

#define ROTATED(x, n) ((x) >> (n) | (x) << (32 - (n)))

/* One step of section 6.2.2. Instead of moving every variable into the next one, callers rename them. */
#define STEP(a, b, c, d, e, f, g, h, t)                                                                             \
    {                                                                                                               \
        lanes mixed = h + (ROTATED(e, 6) ^ ROTATED(e, 11) ^ ROTATED(e, 25)) + (g ^ (e & (f ^ g))) + constant[t] +   \
                      w[(t) % 16];                                                                                  \
        d += mixed;                                                                                                 \
        h = mixed + (ROTATED(a, 2) ^ ROTATED(a, 13) ^ ROTATED(a, 22)) + ((a & b) | (c & (a | b)));                  \
    }

#define EIGHT_STEPS(t)                  \
    STEP(a, b, c, d, e, f, g, h, t)     \
    STEP(h, a, b, c, d, e, f, g, t + 1) \
    STEP(g, h, a, b, c, d, e, f, t + 2) \
    STEP(f, g, h, a, b, c, d, e, t + 3) \
    STEP(e, f, g, h, a, b, c, d, t + 4) \
    STEP(d, e, f, g, h, a, b, c, t + 5) \
    STEP(c, d, e, f, g, h, a, b, t + 6) \
    STEP(b, c, d, e, f, g, h, a, t + 7)

/* Take one block of every message into its state; the block is used up. */
CLONES static void compress(lanes *restrict state, lanes *restrict w) {
    lanes a = state[0], b = state[1], c = state[2], d = state[3], e = state[4], f = state[5], g = state[6], h = state[7];
    for (int t = 0; t < 64; t += 16) {
        for (int j = 0; t > 0 && j < 16; j++) {
            lanes x = w[(j + 1) % 16], y = w[(j + 14) % 16];
            w[j] += (ROTATED(x, 7) ^ ROTATED(x, 18) ^ x >> 3) + w[(j + 9) % 16] + (ROTATED(y, 17) ^ ROTATED(y, 19) ^ y >> 10);
        }
        EIGHT_STEPS(t)
        EIGHT_STEPS(t + 8)
    }
    state[0] += a, state[1] += b, state[2] += c, state[3] += d, state[4] += e, state[5] += f, state[6] += g, state[7] += h;
}

static uint32_t word_at(const uint8_t *at) {
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* Block `number` of a message of `length` bytes: first, unless it is negative, then the row; then the padding of section 5.1.1. */
static void write_block(uint8_t *block, size_t number, int32_t first, const uint8_t *row, size_t length) {
    size_t from = 64 * number, rest = length > from ? length - from : 0, taken = rest < 64 ? rest : 64, firsts = first >= 0;
    memset(block, 0, 64);
    if (number == 0) {
        if (firsts) block[0] = (uint8_t)first;
        memcpy(block + firsts, row, taken - firsts);
    } else if (taken > 0) {
        memcpy(block, row + from - firsts, taken);
    }
    if (taken < 64 && length >= from) block[taken] = 0x80;
    if (from + 64 >= length + 9)
        for (int i = 0; i < 8; i++) block[63 - i] = (uint8_t)((uint64_t)length * 8 >> 8 * i);
}

/* Write the hash of (first, row), or of the row if first is negative, for each of n rows to out, 32 bytes each. */
EXPORT void tacit_sha256_rows(int32_t first, const uint8_t *rows, size_t n, size_t width, uint8_t *out) {
    size_t length = width + (first >= 0), blocks = (length + 8) / 64 + 1;
    for (size_t done = 0; done < n; done += LANES) {
        size_t made = n - done < LANES ? n - done : LANES;
        lanes state[8], w[16];
        uint8_t block[64];
        for (int j = 0; j < 8; j++)
            for (int i = 0; i < LANES; i++) state[j][i] = start_of_hash[j];
        memset(w, 0, sizeof w);
        for (size_t number = 0; number < blocks; number++) {
            for (size_t i = 0; i < made; i++) {
                write_block(block, number, first, rows + (done + i) * width, length);
                for (int j = 0; j < 16; j++) w[j][i] = word_at(block + 4 * j);
            }
            compress(state, w);
        }
        for (size_t i = 0; i < made; i++)
            for (int j = 0; j < 32; j++) out[32 * (done + i) + j] = (uint8_t)(state[j / 4][i] >> (24 - 8 * (j % 4)));
    }
}
