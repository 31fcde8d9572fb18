"""Losses of whole streams by enumeration: what a device sends over a few windows, for every stream it may hold.

A scheme is a function from a stream of values to the exact law of its transcript: reports and silences, window by
window. The loss over a class of pairs is the largest log-likelihood ratio. Exact fractions, from integer thresholds;
for few windows and values alone, since streams and transcripts are listed.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import inf, log

from tacit.device.numbers.exact import WORD
from tacit.oracles.grr import GRR

Stream = tuple[int, ...]
Transcript = tuple[int | None, ...]
StreamLaw = dict[Transcript, Fraction]
Scheme = Callable[[Stream], StreamLaw]
Pairs = Callable[[Stream, Stream], bool]


@dataclass(frozen=True)
class FreshChannel:
    """Randomised response that is no mechanism of its own, such as a fresh layer: p for the value, q for any other."""

    size: int
    p: Fraction
    q: Fraction

    @classmethod
    def of_cell(cls, size: int, low: int) -> "FreshChannel":
        """The one whose other values have `low` words each."""
        q = Fraction(low, WORD)
        return cls(size, 1 - (size - 1) * q, q)


def within_run(run: int) -> Pairs:
    """Pairs of streams that differ only inside `run` windows in a row; `run` 1 is a single event."""

    def related(one: Stream, other: Stream) -> bool:
        differ = [t for t, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]
        return not differ or differ[-1] - differ[0] < run

    return related


def any_pair(one: Stream, other: Stream) -> bool:
    """All pairs of streams: what holds for them holds for life."""
    return len(one) == len(other)


def same_pattern(one: Stream, other: Stream) -> bool:
    """Pairs that repeat their values in the same windows: the condition of memoised reports."""
    pattern = [one.index(value) for value in one]
    return pattern == [other.index(value) for value in other]


def stream_loss(scheme: Scheme, size: int, windows: int, related: Pairs) -> float:
    """Return the largest log-likelihood ratio over related pairs of streams of `size` values."""
    laws = {stream: scheme(stream) for stream in product(range(size), repeat=windows)}
    worst = Fraction(1)
    for one, other in product(laws, repeat=2):
        if not related(one, other):
            continue
        for transcript, probability in laws[one].items():
            against = laws[other].get(transcript, Fraction(0))
            if not against:
                return inf
            worst = max(worst, probability / against)
    return log(worst)


def _reported(
    mechanism: "GRR | FreshChannel", stream: Stream, taken: "set[int]"
) -> Iterator[tuple[Transcript, Fraction]]:
    """Transcripts of a device that reports on these windows, with fresh noise each time."""
    choices = [range(mechanism.size) if t in taken else (None,) for t in range(len(stream))]
    for transcript in product(*choices):
        probability = Fraction(1)
        for value, report in zip(stream, transcript, strict=True):
            if report is not None:
                probability *= mechanism.p if report == value else mechanism.q
        yield transcript, probability


def _mixed(mechanism: GRR, stream: Stream, takings: "list[set[int]]") -> StreamLaw:
    """The law of a device that takes part in one of several equally likely sets of windows."""
    law: StreamLaw = {}
    for taken in takings:
        for transcript, probability in _reported(mechanism, stream, taken):
            law[transcript] = law.get(transcript, Fraction(0)) + probability / len(takings)
    return law


def population_division(mechanism: GRR, per: int) -> Scheme:
    """LPU: one slot, drawn once, for all windows."""

    def scheme(stream: Stream) -> StreamLaw:
        slots = [{t for t in range(len(stream)) if t % per == slot} for slot in range(per)]
        return _mixed(mechanism, stream, slots)

    return scheme


def taking_part(mechanism: GRR, takings: "list[set[int]]") -> Scheme:
    """Fresh reports on one of several equally likely sets of windows, such as those that a real device decided on."""
    return lambda stream: _mixed(mechanism, stream, takings)


def every_window(mechanism: GRR) -> Scheme:
    """A fresh report in every window."""
    return population_division(mechanism, 1)


def redrawn_slots(mechanism: GRR, per: int) -> Scheme:
    """**Wrong**: a new slot in every block of `per` windows, which puts two reports into one run."""

    def scheme(stream: Stream) -> StreamLaw:
        blocks = [range(start, min(start + per, len(stream))) for start in range(0, len(stream), per)]
        return _mixed(mechanism, stream, [set(chosen) for chosen in product(*blocks)])

    return scheme


def made_up_reports(mechanism: GRR, per: int) -> Scheme:
    """**Wrong**: who misses the slot reports in the window after it, and in the next slot all the same."""

    def scheme(stream: Stream) -> StreamLaw:
        takings: list[set[int]] = []
        for slot, missed in product(range(per), (False, True)):
            taken = {t for t in range(len(stream)) if t % per == slot}
            takings.append({slot + 1} | (taken - {slot}) if missed and slot + 1 < len(stream) else taken)
        return _mixed(mechanism, stream, takings)

    return scheme


def memoised(inner: GRR, fresh: "GRR | FreshChannel | None" = None) -> Scheme:
    """One permanent noisy answer per value, sent in every window with fresh noise on top, or as it is."""

    def scheme(stream: Stream) -> StreamLaw:
        keys, law = sorted(set(stream)), StreamLaw()
        for memos in product(range(inner.size), repeat=len(keys)):
            memo = dict(zip(keys, memos, strict=True))
            weight = Fraction(1)
            for key in keys:
                weight *= inner.p if memo[key] == key else inner.q
            for transcript, probability in _shown(fresh, tuple(memo[value] for value in stream)):
                law[transcript] = law.get(transcript, Fraction(0)) + weight * probability
        return law

    return scheme


def _shown(fresh: "GRR | FreshChannel | None", permanent: Stream) -> Iterator[tuple[Transcript, Fraction]]:
    if fresh is None:
        yield permanent, Fraction(1)
        return
    yield from _reported(fresh, permanent, set(range(len(permanent))))
