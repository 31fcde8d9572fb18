/* How many of some values every report of local hashing supports: the transpose of counting supports.
 *
 * Reports lie along the vector lanes and the values come one after the other, so that nothing is added across lanes.
 */
#include <stddef.h>
#include <stdint.h>

#include "hash.h"

#define TILE 512

/* Reports of a tile, one array per field, so that a vector load takes the same field of neighbouring reports. Bucket i
 * is the hash values low[i] .. low[i] + width[i] - 1. */
typedef struct {
    uint32_t first[TILE], second[TILE], low[TILE], width[TILE];
} tile;

CLONES static void mix_tile(const uint32_t *restrict seed, size_t n, uint32_t high, tile *restrict t) {
    for (size_t i = 0; i < n; i++) {
        uint32_t first = mix32(seed[i] ^ high);
        t->first[i] = first;
        t->second[i] = second_word(first);
    }
}

/* Four values against a tile of reports. */
CLONES static void match_four(const uint32_t *v, const tile *restrict t, size_t n, int32_t *restrict out) {
    const uint32_t a = v[0], b = v[1], c = v[2], e = v[3];
    for (size_t i = 0; i < n; i++) {
        uint32_t first = t->first[i], second = t->second[i], low = t->low[i], width = t->width[i];
        out[i] += (int32_t)(seeded(a, first, second) - low < width) + (int32_t)(seeded(b, first, second) - low < width) +
                  (int32_t)(seeded(c, first, second) - low < width) + (int32_t)(seeded(e, first, second) - low < width);
    }
}

CLONES static void match_one(uint32_t a, const tile *restrict t, size_t n, int32_t *restrict out) {
    for (size_t i = 0; i < n; i++)
        out[i] += (int32_t)(seeded(a, t->first[i], t->second[i]) - t->low[i] < t->width[i]);
}

static void match_run(const uint32_t *value, size_t d, const tile *t, size_t n, int32_t *out) {
    for (size_t j = 0; j + 4 <= d; j += 4) {
        uint32_t spread[4] = {mix32(value[j]), mix32(value[j + 1]), mix32(value[j + 2]), mix32(value[j + 3])};
        match_four(spread, t, n, out);
    }
    for (size_t j = d - d % 4; j < d; j++) match_one(mix32(value[j]), t, n, out);
}

/* Add to out[i] how many values report i supports. Values come in runs with one upper half each: run r has the lower
 * halves value[start[r]] up to value[start[r + 1]]. Bucket y is [bound[y], bound[y + 1]). */
EXPORT void tacit_hash_matches(const uint32_t *seed, const uint32_t *bucket, size_t n, const uint64_t *bound,
                               const uint32_t *value, const uint32_t *high, const uint64_t *start, size_t runs,
                               int32_t *out) {
    tile t;
    for (size_t done = 0; done < n; done += TILE) {
        size_t made = n - done < TILE ? n - done : TILE;
        for (size_t i = 0; i < made; i++) {
            uint64_t low = bound[bucket[done + i]];
            t.low[i] = (uint32_t)low;
            t.width[i] = (uint32_t)(bound[bucket[done + i] + 1] - low);
        }
        for (size_t r = 0; r < runs; r++) {
            mix_tile(seed + done, made, high[r], &t);
            match_run(value + start[r], start[r + 1] - start[r], &t, made, out + done);
        }
    }
}
