"""Other protocols for heavy hitters, simulated in aggregate for comparison with PEM: no device runs them.

    channels        MCM / HASH, Bassily and Smith        hash to channels, spell each channel's value
    segment_pairs   SPM, Fanti et al.                    frequent pairs of segments, joined to values
    tree_histogram  TreeHist, Bassily et al.             prefixes, one bit per report
    fragments       SFP                                  fragments with a tag that says which belong together
    private_trie    PrivTrie                             an interactive trie with early stopping

The support of one candidate among the reports of a pure oracle is Binomial(n_i, p) + Binomial(n - n_i, q) exactly;
dependence between candidates (of the same reports) is ignored, which was checked not to matter for F1.
"""

from dataclasses import dataclass
from itertools import combinations, pairwise
from math import exp, sqrt

import numpy as np
import numpy.typing as npt

from tacit.arrays import F64, I64, U64
from tacit.core.statistics.normal import normal_isf
from tacit.errors import InvalidSpec
from tacit.oracles.local_hash import OLH

_LARGEST_JOIN = 20_000
"""Joins are cut at so many values: noise can make them exponential, and the simulation must end."""
_TESTERS = 0.1
"""Part of the respondents who only test the candidates, where respondents are split and not the budget."""


@dataclass(frozen=True, eq=False)
class TrueCounts:
    """The truth of a simulation: numbers of respondents by value, values being bit strings of one length."""

    values: U64
    counts: I64
    bits: int

    @property
    def n(self) -> int:
        """The number of respondents."""
        return int(self.counts.sum())

    def split(self, shares: "list[float]", rng: np.random.Generator) -> "list[TrueCounts]":
        """Split the respondents at random into groups of these shares."""
        groups = rng.multinomial(self.counts, np.array(shares) / sum(shares))
        return [TrueCounts(self.values, column, self.bits) for column in groups.T]

    def piece(self, start: int, stop: int) -> U64:
        """Return bits `start` up to `stop` of every value; bit 0 is the most significant."""
        mask = np.uint64((1 << (stop - start)) - 1)
        return (self.values >> np.uint64(self.bits - stop)) & mask

    def among(self, codes: U64, candidates: U64) -> I64:
        """Count the respondents whose code is each candidate; `codes` has one entry per value."""
        known, places = np.unique(codes, return_inverse=True)
        sums = np.bincount(places, self.counts, len(known)).astype(np.int64)
        # A candidate beyond the last code would be out of range; the comparison below finds it absent.
        at = np.minimum(np.searchsorted(known, candidates), len(known) - 1)
        return np.where(known[at] == candidates, sums[at], 0)


@dataclass(frozen=True, eq=False)
class HitterList:
    """The result of a protocol, most frequent first, with standard deviations."""

    values: U64
    share: F64
    deviation: F64


def _nothing() -> HitterList:
    return HitterList(np.zeros(0, np.uint64), np.zeros(0), np.zeros(0))


def _best(values: U64, share: F64, deviation: F64, k: int) -> HitterList:
    order = np.argsort(-share, kind="stable")[:k]
    return HitterList(values[order], share[order], deviation[order])


@dataclass(frozen=True)
class Hashing:
    """Local hashing in aggregate: the probabilities of support for a value that is held (p), or not (q)."""

    p: float
    q: float

    @classmethod
    def at(cls, epsilon: float) -> "Hashing":
        """Return the probabilities at some epsilon, with the integer number of buckets that the mechanism takes."""
        oracle = OLH(size=1 << 16, epsilon=f"{epsilon:.9f}", state="log")
        return cls(float(oracle.p), float(oracle.q))

    @property
    def other(self) -> float:
        """Vq: the variance of a respondent's contribution to a value it does not hold."""
        return self.q * (1 - self.q) / (self.p - self.q) ** 2

    @property
    def own(self) -> float:
        """Vp: the variance of a respondent's contribution to its own value."""
        return self.p * (1 - self.p) / (self.p - self.q) ** 2

    def estimate(self, held: I64, n: int, rng: np.random.Generator) -> F64:
        """Draw estimated shares of candidates that are held by so many of n respondents."""
        if not n:
            return np.zeros(held.shape)
        support = rng.binomial(held, self.p) + rng.binomial(n - held, self.q)
        return (support / n - self.q) / (self.p - self.q)

    def test(self, group: TrueCounts, candidates: U64, k: int, rng: np.random.Generator) -> HitterList:
        """Return the k best candidates by reports on whole values."""
        if not len(candidates) or not group.n:
            return _nothing()
        share = self.estimate(group.among(group.values, candidates), group.n, rng)
        # Variance per respondent: Vq, plus f (Vp - Vq) for holders, plus f for sampling (f^2 is neglected).
        noise = np.sqrt((self.other + np.clip(share, 0, 1) * (self.own - self.other + 1)) / group.n)
        return _best(candidates, share, noise, k)


def _phases(
    truth: TrueCounts, epsilon: float, partitioned: bool, rng: np.random.Generator
) -> tuple[TrueCounts, TrueCounts, float]:
    """Return who finds candidates, who tests them, and at which epsilon: split respondents, or split the budget."""
    if not partitioned:
        return truth, truth, epsilon / 2
    finders, testers = truth.split([1 - _TESTERS, _TESTERS], rng)
    return finders, testers, epsilon


def channels(
    truth: TrueCounts, epsilon: float, k: int, rng: np.random.Generator, *, block: int = 8, partitioned: bool = True
) -> HitterList:
    """Run MCM / HASH (Bassily and Smith): a public hash sends values to k^1.5 channels, each spelt block by block.

    With so many channels, hitters rarely share one; each channel then spells its most frequent value.
    """
    count = max(1, round(k**1.5))
    finders, testers, budget = _phases(truth, epsilon, partitioned, rng)
    hashing, places = Hashing.at(budget), range(0, truth.bits, block)
    channel = rng.integers(0, count, len(truth.values), dtype=np.uint64)
    spelt = np.zeros(count, np.uint64)
    for group, start in zip(finders.split([1.0] * len(places), rng), places, strict=True):
        stop = min(start + block, truth.bits)
        patterns = 1 << (stop - start)
        # Code = channel * patterns + the block's bits, so all channels are estimated at once.
        held = group.among(channel * np.uint64(patterns) + group.piece(start, stop),
                           np.arange(count * patterns, dtype=np.uint64))  # fmt: skip
        best = hashing.estimate(held, group.n, rng).reshape(count, patterns).argmax(axis=1)
        spelt = spelt << np.uint64(stop - start) | best.astype(np.uint64)
    return hashing.test(testers, np.unique(spelt), k, rng)


def segment_pairs(
    truth: TrueCounts, epsilon: float, k: int, rng: np.random.Generator, *, block: int = 8, partitioned: bool = True
) -> HitterList:
    """Run SPM (Fanti et al.): pairs of segments are reported, frequent pairs joined to values, and values tested."""
    if truth.bits <= block:
        raise InvalidSpec(f"spm: values have {truth.bits} bits, must be longer than a segment of {block}")
    finders, testers, _ = _phases(truth, epsilon, partitioned, rng)
    # A finder reports two segments. Without groups of testers it also reports the whole value: thirds of epsilon.
    each = Hashing.at(epsilon / 2 if partitioned else epsilon / 3)
    final = Hashing.at(epsilon if partitioned else epsilon / 3)
    edges = [*range(0, truth.bits, block), truth.bits]
    pieces = list(pairwise(edges))
    pairs = list(combinations(range(len(pieces)), 2))
    groups = dict(zip(pairs, finders.split([1.0] * len(pairs), rng), strict=True))
    patterns = [_segment(i, pieces[i], groups, each, k, rng) for i in range(len(pieces))]
    scores = {pair: _pair(groups[pair], pieces, pair, patterns, each, rng) for pair in pairs}
    return final.test(testers, _join(scores, patterns, [stop - start for start, stop in pieces], k), k, rng)


def _segment(
    i: int, piece: tuple[int, int], groups: dict[tuple[int, int], TrueCounts], each: Hashing, k: int,
    rng: np.random.Generator,
) -> U64:  # fmt: skip
    """Return the k most frequent patterns of a segment, by all groups whose pair contains it."""
    counts = np.sum([group.counts for pair, group in groups.items() if i in pair], axis=0)
    some = next(iter(groups.values()))
    pooled = TrueCounts(some.values, counts, some.bits)
    patterns = np.arange(1 << (piece[1] - piece[0]), dtype=np.uint64)
    share = each.estimate(pooled.among(pooled.piece(*piece), patterns), pooled.n, rng)
    return np.sort(patterns[np.argsort(-share, kind="stable")[:k]])


def _pair(
    group: TrueCounts, pieces: list[tuple[int, int]], pair: tuple[int, int], kept: list[U64], each: Hashing,
    rng: np.random.Generator,
) -> F64:  # fmt: skip
    """Draw the estimated share of every combination of kept patterns: products of two debiased supports per respondent.

    n11 hold both patterns, n10 and n01 one of them, n00 none. The variance is
    n11((1 + Vp)^2 - 1) + (n10 + n01)(1 + Vp) Vq + n00 Vq^2.
    """
    a, b = pair
    width = np.uint64(pieces[b][1] - pieces[b][0])
    first, second = group.piece(*pieces[a]), group.piece(*pieces[b])
    both = (kept[a][:, None] << width | kept[b]).reshape(-1)
    n11 = group.among(first << width | second, both).reshape(len(kept[a]), len(kept[b])).astype(np.float64)
    n1, n2 = group.among(first, kept[a])[:, None], group.among(second, kept[b])[None, :]
    one, none = n1 + n2 - 2 * n11, group.n - n1 - n2 + n11
    inside = 1 + each.own
    variance = n11 * (inside**2 - 1) + one * inside * each.other + none * each.other**2
    return (n11 + rng.standard_normal(n11.shape) * np.sqrt(variance)) / max(1, group.n)


def _join(scores: dict[tuple[int, int], F64], kept: list[U64], widths: list[int], k: int) -> U64:
    """Return values all of whose pairs are frequent; the lists of pairs grow until more than k values are found."""
    size = k
    while True:
        frequent = {pair: _top(score, size) for pair, score in scores.items()}
        rows = _cliques(frequent, [len(patterns) for patterns in kept])
        if len(rows) > k or len(rows) >= _LARGEST_JOIN or size >= k * k:
            break
        size *= 2
    values = np.zeros(len(rows), np.uint64)
    for i, width in enumerate(widths):
        values = values << np.uint64(width) | kept[i][rows[:, i]]
    return np.unique(values)


def _top(score: F64, size: int) -> npt.NDArray[np.bool_]:
    least = np.sort(score, axis=None)[::-1][min(size, score.size) - 1]
    return score >= least


def _cliques(frequent: dict[tuple[int, int], npt.NDArray[np.bool_]], sizes: list[int]) -> I64:
    """Return rows of one pattern per segment with all pairs frequent (cliques), grown segment by segment."""
    rows = np.arange(sizes[0], dtype=np.int64)[:, None]
    for j in range(1, len(sizes)):
        allowed = np.ones((len(rows), sizes[j]), np.bool_)
        for i in range(j):
            allowed &= frequent[i, j][rows[:, i]]
        at, new = np.nonzero(allowed)
        rows = np.column_stack([rows[at], new])[:_LARGEST_JOIN]
    return rows


def tree_histogram(
    truth: TrueCounts, epsilon: float, k: int, rng: np.random.Generator, *, block: int = 8
) -> HitterList:
    """Run TreeHist (Bassily et al.): a prefix of random length and the whole word, half of epsilon and one bit each."""
    noise = _one_bit(epsilon / 2)
    lengths = [*range(block, truth.bits, block), truth.bits]
    prefixes, length = np.zeros(1, np.uint64), 0
    for group, to in zip(truth.split([1.0] * len(lengths), rng), lengths, strict=True):
        step = to - length
        candidates = (prefixes[:, None] << np.uint64(step) | np.arange(1 << step, dtype=np.uint64)).reshape(-1)
        share = group.among(group.piece(0, to), candidates) / max(1, group.n)
        share = share + rng.standard_normal(len(share)) * noise / sqrt(max(1, group.n))
        prefixes, length = np.sort(candidates[np.argsort(-share, kind="stable")[:k]]), to
    # Everybody also reported the whole word, so the final estimates are from all respondents.
    share = truth.among(truth.values, prefixes) / truth.n
    deviation = np.full(len(prefixes), noise / sqrt(truth.n))
    return _best(prefixes, share + rng.standard_normal(len(share)) * deviation, deviation, k)


def _one_bit(epsilon: float) -> float:
    """Return the standard deviation of one respondent's contribution to a one-bit sketch."""
    return (exp(epsilon) + 1) / (exp(epsilon) - 1)


def _sketch(epsilon: float) -> float:
    """Return the same for a count-mean sketch of noisy bits at epsilon/2 each: sqrt(H)/(H - 1), H = e^(epsilon/2)."""
    half = exp(epsilon / 2)
    return sqrt(half) / (half - 1)


def fragments(
    truth: TrueCounts, epsilon: float, k: int, rng: np.random.Generator, *, block: int = 8, kept: int = 20,
    partitioned: bool = True,
) -> HitterList:  # fmt: skip
    """Run SFP: fragments are tagged with a byte of the word's hash; fragments with the same tag make words.

    position    0       1       2
    tag 17     "he"    "ll"    "o "     ->  "hello "
    tag 99     "wo"    "rl"    (none)   ->  no word
    """
    finders, testers, budget = _phases(truth, epsilon, partitioned, rng)
    noise = _sketch(budget)
    tag = rng.integers(0, 256, len(truth.values), dtype=np.uint64)
    starts = range(0, truth.bits, block)
    fragments_by_position: list[U64] = []
    for group, start in zip(finders.split([1.0] * len(starts), rng), starts, strict=True):
        patterns = np.uint64(1 << block)
        candidates = np.arange(256 << block, dtype=np.uint64)
        share = group.among(tag * patterns + group.piece(start, start + block), candidates) / max(1, group.n)
        share = share + rng.standard_normal(len(share)) * noise / sqrt(max(1, group.n))
        # The best of 65,536 are picked before they are sorted, which takes a fraction of sorting all.
        best = np.argpartition(-share, kept)[:kept]
        fragments_by_position.append(candidates[best[np.argsort(-share[best])]])
    words = np.unique(_puzzle(fragments_by_position, block))
    if not len(words):
        return _nothing()
    deviation = np.full(len(words), noise / sqrt(max(1, testers.n)))
    share = testers.among(testers.values, words) / max(1, testers.n)
    return _best(words, share + rng.standard_normal(len(words)) * deviation, deviation, k)


def _puzzle(found: list[U64], block: int) -> U64:
    """Return the words made of fragments with the same tag: their product over positions, cut where it is large."""
    words: list[U64] = [np.zeros(0, np.uint64)]
    mask = np.uint64((1 << block) - 1)
    for tag in range(256):
        parts = [codes[codes >> np.uint64(block) == tag] & mask for codes in found]
        combined = np.zeros(1, np.uint64)
        for part in parts:
            combined = (combined[:, None] << np.uint64(block) | part).reshape(-1)[:_LARGEST_JOIN]
        words.append(combined)
    return np.concatenate(words)


def private_trie(
    truth: TrueCounts, epsilon: float, k: int, rng: np.random.Generator, *, threshold: float, block: int = 8
) -> HitterList:
    """Run PrivTrie, an interactive trie: the nodes of a level are put to one batch of fresh respondents after another.

    A respondent answers nodes of which none is above another, one noisy bit each (OUE); at most one of them is true,
    so the whole costs epsilon. Nodes are accepted or rejected as soon as their interval allows.
    """
    lengths = [*range(block, truth.bits, block), truth.bits]
    odds, batch = exp(epsilon), max(truth.n / 1000, 800 / epsilon**2)
    oue = Hashing(0.5, 1 / (odds + 1))
    prefixes, length, left = np.zeros(1, np.uint64), 0, truth
    share = deviation = np.zeros(0)
    for i, to in enumerate(lengths):
        step = to - length
        nodes = (prefixes[:, None] << np.uint64(step) | np.arange(1 << step, dtype=np.uint64)).reshape(-1)
        if not len(nodes) or len(nodes) > _LARGEST_JOIN:
            return _nothing()
        # Respondents that a level does not need, because its nodes are decided early, are left to the levels below.
        budget = left.n / (len(lengths) - i)
        left, accepted, share, deviation = _level(left, nodes, to, oue, batch, budget, threshold,
                                                         i == len(lengths) - 1, rng)  # fmt: skip
        prefixes, length = nodes[accepted], to
        share, deviation = share[accepted], deviation[accepted]
    # The rule above looks at noise alone; an interval needs the variance of those who hold the value, and of sampling.
    held = 1 + np.clip(share, 0, 1) * (oue.own - oue.other + 1) / oue.other
    return _best(prefixes, share, deviation * np.sqrt(held), max(k, len(prefixes)))


def _level(
    left: TrueCounts, nodes: U64, to: int, oue: Hashing, batch: float, budget: float, threshold: float, last: bool,
    rng: np.random.Generator,
) -> tuple[TrueCounts, npt.NDArray[np.bool_], F64, F64]:  # fmt: skip
    """Ask batches until every node is accepted or rejected, or the level's respondents are used up."""
    batches = max(1, int(budget / batch))
    # Bonferroni over the nodes and over the looks at the data after every batch.
    z = normal_isf(0.05 / (len(nodes) * batches))
    open_nodes, accepted = np.ones(len(nodes), np.bool_), np.zeros(len(nodes), np.bool_)
    sums, reports = np.zeros(len(nodes)), 0
    share = deviation = np.zeros(len(nodes))
    for round_ in range(batches):
        part = min(1.0, batch / max(1, left.n))
        some, left = (
            left.split([part, 1 - part], rng)
            if part < 1
            else (left, TrueCounts(left.values, 0 * left.counts, left.bits))
        )
        held = some.among(some.piece(0, to), nodes)
        # Decided nodes are not asked any more; scaling their sums keeps their share where it was.
        sums = sums + np.where(open_nodes, oue.estimate(held, some.n, rng) * some.n, sums * some.n / max(1, reports))
        reports += some.n
        share, deviation = sums / max(1, reports), np.full(len(nodes), sqrt(oue.other / max(1, reports)))
        sure = share - z * deviation > (threshold if last else threshold / 2)
        done = (round_ == batches - 1) & (share > threshold)
        accepted |= open_nodes & (sure | done)
        open_nodes &= ~accepted & (share + z * deviation >= threshold)
        if not open_nodes.any():
            break
    return left, accepted, share, deviation
