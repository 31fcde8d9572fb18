/* Counting reports of many members in one pass: a report is its member (u32) and a code of `width` bytes, little-endian.
 *
 * Member m owns the cells from starts[m] up to starts[m + 1]. Padding behind a narrow code is part of the number that is
 * read, so that padding other than zeros makes it too large, and it is found with all other codes out of range.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

/* Reports whose cells are computed before they are counted: 8 KiB, which stay in the first-level cache. */
#define BLOCK 1024

static inline uint64_t code_of(const uint8_t *at, size_t width) {
    uint64_t code = 0;
    switch (width) { /* Known widths become one load. */
    case 1: return *at;
    case 2: memcpy(&code, at, 2); return code;
    case 4: memcpy(&code, at, 4); return code;
    default: memcpy(&code, at, width); return code;
    }
}

/* The cells of n reports of 4 + width bytes; those out of range get the cell behind the last one, and are returned.
 *
 * Cells are found for a block of reports before any is touched. Finding and adding in one loop makes the processor
 * guess whether a cell is still being written, and few cells of the coarse members are, most of the time.
 */
static size_t find_cells(const uint8_t *at, size_t n, size_t width, const uint64_t *starts, size_t members,
                         uint64_t *cell) {
    size_t bad = 0;
    for (size_t i = 0; i < n; i++, at += 4 + width) {
        uint32_t member;
        memcpy(&member, at, 4);
        uint64_t code = code_of(at + 4, width);
        size_t safe = member < members ? member : 0;
        int good = (member < members) & (code < starts[safe + 1] - starts[safe]);
        cell[i] = good ? starts[safe] + code : starts[members];
        bad += !good;
    }
    return bad;
}

/* Count fewer than 2^32 reports into one cell more than there are; returns how many were out of range. */
EXPORT size_t tacit_count_members(const uint8_t *reports, size_t n, size_t width, const uint64_t *starts,
                                size_t members, uint32_t *cells) {
    uint64_t cell[BLOCK];
    size_t bad = 0;
    for (size_t done = 0; done < n; done += BLOCK) {
        size_t block = n - done < BLOCK ? n - done : BLOCK;
        bad += find_cells(reports + done * (4 + width), block, width, starts, members, cell);
        for (size_t i = 0; i < block; i++) cells[cell[i]]++;
    }
    return bad;
}

/* Add the weights of reports, likewise. */
EXPORT size_t tacit_weigh_members(const uint8_t *reports, size_t n, size_t width, const uint64_t *starts,
                                size_t members, const int64_t *weights, int64_t *cells) {
    uint64_t cell[BLOCK];
    size_t bad = 0;
    for (size_t done = 0; done < n; done += BLOCK) {
        size_t block = n - done < BLOCK ? n - done : BLOCK;
        bad += find_cells(reports + done * (4 + width), block, width, starts, members, cell);
        for (size_t i = 0; i < block; i++) cells[cell[i]] += weights[done + i];
    }
    return bad;
}

/* The starts of at most `most` reports in a window of coin words, behind the word that draws the member of each.
 *
 * step[i] is how many words a report takes that starts at word i. A report that would reach beyond the window is left
 * to the next one; *used is where it starts.
 */
EXPORT size_t tacit_follow(const int64_t *step, size_t words, size_t most, int64_t *starts, size_t *used) {
    size_t at = 0, found = 0;
    while (found < most && at < words && (size_t)step[at] <= words - at) {
        starts[found++] = (int64_t)(at + 1);
        at += (size_t)step[at];
    }
    *used = at;
    return found;
}
