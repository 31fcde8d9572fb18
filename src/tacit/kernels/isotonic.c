/* Isotonic regression by pooling adjacent violators, in one pass.
 *
 * The twin in twin.py does the same additions and divisions in the same order, so that the doubles are equal too.
 */
#include <stddef.h>

#define EXPORT __attribute__((visibility("default")))

/* A block of several values that were pooled. */
typedef struct {
    size_t first, last;
    double sum, weight;
} pool;

/* The non-decreasing sequence nearest to y in (weighted) squares; weights may be NULL.
 *
 * The mean of every block stands in out at its first value. Blocks of one value are nowhere else; those of several
 * are kept in `pools`, of which there are at most n / 2. Input that is nearly in order then touches little memory,
 * and since only a strict descent is pooled, input that is in order comes back bit for bit.
 */
EXPORT void tacit_isotonic(const double *y, const double *weights, size_t n, pool *pools, double *out) {
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        pool now = {i, i, weights ? y[i] * weights[i] : y[i], weights ? weights[i] : 1.0};
        double mean = y[i];
        while (now.first > 0) {
            size_t before = now.first - 1;
            int pooled = count && pools[count - 1].last == before;
            size_t first = pooled ? pools[count - 1].first : before;
            if (!(out[first] > mean)) break;
            if (pooled) {
                count--;
                now.sum = pools[count].sum + now.sum;
                now.weight = pools[count].weight + now.weight;
            } else {
                double weight = weights ? weights[before] : 1.0;
                now.sum = out[before] * weight + now.sum;
                now.weight = weight + now.weight;
            }
            now.first = first;
            mean = now.sum / now.weight;
        }
        out[now.first] = mean;
        if (now.first < i) pools[count++] = now;
    }
    for (size_t b = 0; b < count; b++) {
        double mean = out[pools[b].first];
        for (size_t i = pools[b].first + 1; i <= pools[b].last; i++) out[i] = mean;
    }
}
