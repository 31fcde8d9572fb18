/* Bit-sliced coins: 64 noisy bits at a time, and reports that take as many words as their coins happen to need. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "hash.h"

/* Words of a block that are passed without asking whether all lanes are decided; 15 of 16 blocks need no more. */
enum { AHEAD = 10 };

/* Two thresholds, and the bits 63 .. 54 of each spread over a word: bits of t0, and where t1 differs from them. */
typedef struct {
    uint64_t t1, t0, zero[AHEAD], differ[AHEAD];
} threshold_pair;

static inline threshold_pair spread_thresholds(uint64_t t1, uint64_t t0) {
    threshold_pair t = {.t1 = t1, .t0 = t0};
    for (int j = 0; j < AHEAD; j++) {
        t.zero[j] = -(t0 >> (63 - j) & 1);
        t.differ[j] = -(t1 >> (63 - j) & 1) ^ t.zero[j];
    }
    return t;
}

/* 64 independent bits, each 1 with probability t/2^64 where t is t1 for lanes that hold a 1 and t0 for the others.
 *
 * Every lane compares a 64-bit number with its threshold, most significant bit first; word number j holds bit 63 - j of
 * all 64 numbers. A lane is decided at the first bit in which the two differ: below if the threshold has the 1 there.
 * Each word decides about half of the lanes that are left, so that about 8 words do instead of 64.
 *
 *                lane  63 62 ..  1  0
 *     word 0            1  0 ..  0  1     bit 63 of the numbers
 *     word 1            0  0 ..  1  1     bit 62, and so on
 *
 * Where enough words are left, the first ones are passed without a branch that depends on them: once no lane is undecided
 * further words change nothing, and they are not counted as used. Replaces *lanes by the bits; returns 0 where the words
 * run out before all lanes are decided. */
static inline int draw_lanes(uint64_t live, uint64_t *lanes, const threshold_pair *t, const uint64_t *word, size_t words,
                             size_t *used) {
    uint64_t lane = *lanes, result = 0, undecided = live;
    int j = 63;
    if (words - *used >= AHEAD) {
        const uint64_t *at = word + *used;
        size_t taken = 0;
        for (size_t i = 0; i < AHEAD; i++) {
            uint64_t threshold = t->zero[i] ^ (t->differ[i] & lane);
            taken += undecided != 0;
            result |= undecided & (threshold & ~at[i]);
            undecided &= ~(threshold ^ at[i]);
        }
        *used += taken;
        j -= AHEAD;
    }
    for (; undecided && j >= 0; j--) {
        if (*used == words) return 0;
        uint64_t threshold = (-(t->t0 >> j & 1) & ~lane) | (-(t->t1 >> j & 1) & lane), w = word[(*used)++];
        result |= undecided & threshold & ~w;
        undecided &= ~(threshold ^ w);
    }
    *lanes = result;
    return 1;
}

/* Noisy bits of n vectors, perturbed layer by layer at thresholds (t1, t0) each. Without rows, the ones of vector
 * r are at ones[r][..] (-1: none). With rows, a report first draws its row, and its ones are the buckets of
 * value[r] under that row's `each` hash functions. Stops early when the coin words could run out. Returns the
 * reports made and sets *used to the words consumed. */
EXPORT size_t tacit_draw_layers(const int32_t *ones, const uint64_t *value, const uint32_t *seed, uint64_t rows,
                                size_t each, size_t n, size_t size, const uint64_t *threshold, size_t layers,
                                const uint64_t *word, size_t words, uint32_t *row, uint8_t *out, size_t *used) {
    enum { MAX_BLOCKS = 1 << 10 };
    uint64_t lane[MAX_BLOCKS];
    size_t blocks = (size + 63) / 64, bytes = (size + 7) / 8;
    uint64_t last = size % 64 ? (1ull << (size % 64)) - 1 : ~0ull;
    threshold_pair t = spread_thresholds(threshold[0], threshold[1]);
    *used = 0;
    for (size_t r = 0; r < n; r++) {
        if (words - *used < 64 * blocks * layers + 1) return r;
        memset(lane, 0, blocks * sizeof *lane);
        if (rows) row[r] = (uint32_t)((unsigned __int128)word[(*used)++] * rows >> 64);
        for (size_t k = 0; k < each; k++) {
            int64_t at = rows ? (int64_t)((uint64_t)hash32(seed[row[r] * each + k], value[r]) * size >> 32)
                              : ones[r * each + k];
            if (at >= 0) lane[at / 64] |= 1ull << (at % 64);
        }
        for (size_t l = 0; l < layers; l++) {
            if (layers > 1) t = spread_thresholds(threshold[2 * l], threshold[2 * l + 1]);
            for (size_t b = 0; b < blocks; b++)
                draw_lanes(b + 1 < blocks ? ~0ull : last, &lane[b], &t, word, words, used);
        }
        memcpy(out + r * bytes, lane, bytes);
    }
    return n;
}

/* A unary report from the words that start at *at: bit `one` is set with t1/2^64, the others with t0/2^64. Gives up, and
 * returns 0, where the words of the window run out. */
static int draw_report(const uint64_t *word, size_t words, size_t *at, size_t one, size_t size, uint64_t t1, uint64_t t0,
                       uint8_t *out) {
    const threshold_pair t = spread_thresholds(t1, t0);
    for (size_t first = 0; first < size; first += 64) {
        size_t bits = size - first < 64 ? size - first : 64;
        uint64_t lane = one / 64 == first / 64 ? 1ull << one % 64 : 0, live = bits < 64 ? (1ull << bits) - 1 : ~0ull;
        if (!draw_lanes(live, &lane, &t, word, words, at)) return 0;
        memcpy(out + first / 8, &lane, (bits + 7) / 8);
    }
    return 1;
}

/* The reports of a family in a window of coin words, the first word of each drawing its member. A report that starts at
 * word i takes step[i] words; where that is 0, it is drawn here, by the row (column, size, t1, t0) of member[i] in
 * `unary`, and its one is ones[report][column]. Report r is written to row r of `out`, `width` bytes of zeros before.
 * One that would reach beyond the window is left out, and all after it. Returns how many were found and sets *used. */
EXPORT size_t tacit_follow_lanes(const uint64_t *word, const int64_t *step, const int64_t *member, size_t words,
                                 size_t most, const uint64_t *unary, const int32_t *ones, size_t columns, size_t width,
                                 int64_t *start, uint8_t *out, uint64_t *used) {
    size_t at = 0, found = 0;
    while (found < most && at < words) {
        size_t next = at + 1;
        const uint64_t *u = unary + 4 * member[at];
        if (step[at]) {
            next = at + (size_t)step[at];
            if (next > words) break;
        } else if (!draw_report(word, words, &next, (size_t)ones[found * columns + u[0]], u[1], u[2], u[3],
                                out + found * width)) {
            memset(out + found * width, 0, width);
            break;
        }
        start[found++] = (int64_t)at + 1;
        at = next;
    }
    *used = at;
    return found;
}
