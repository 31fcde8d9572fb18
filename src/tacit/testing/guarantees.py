"""Privacy guarantees by enumeration: the largest likelihood ratio over all reports, without the kind's own formula.

For memoised mechanisms whole sequences of reports are enumerated. HMAC is modelled as a random function: a fresh,
uniform stream of coins for every key.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations, product
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.arrays import F64
from tacit.core.mechanism import Mechanism
from tacit.device.kinds.rappor import LayeredDevice
from tacit.errors import InvalidSpec
from tacit.numeric.bit_flip import DBitFlip
from tacit.numeric.layered import LayeredMemo
from tacit.numeric.mean import OneBit
from tacit.numeric.memo import Memoized
from tacit.testing.laws import enumerated_epsilon, values_of

Once = tuple[int, ...]
"""What a device draws once and keeps: sampled buckets, or the rounding offset of a number."""

# Entries of the largest table of probabilities that is enumerated: 128 megabytes.
_MOST_NUMBERS = 1 << 24


def enumerated_guarantees(mechanism: Mechanism) -> "list[float | None]":
    """Return the largest log-likelihood ratio behind each of `mechanism.guarantees()`; None if not enumerated."""
    losses = [enumerated_epsilon(mechanism)]
    if isinstance(mechanism, LayeredDevice):
        # Any number of reports is a function of the permanent bits, and tells them in the limit.
        losses.append(enumerated_epsilon(replace(mechanism, zero="", one="")))
    if isinstance(mechanism, LayeredMemo):
        # In the limit of many reports the fresh layer averages away.
        losses.append(enumerated_epsilon(mechanism.inner))
    if isinstance(mechanism, Memoized):
        losses = [_constant(mechanism), _same_pattern(mechanism)]
    stated = len(mechanism.guarantees())
    return (losses + [None] * stated)[:stated]


def _constant(mechanism: Memoized) -> float | None:
    """The loss of repeated reports on one value; two stand for any number, as all are equal."""
    return sequence_loss(mechanism, [(value, value) for value in values_of(mechanism)])


def _same_pattern(mechanism: Memoized) -> float | None:
    """The largest loss between sequences of values with the same pattern of repetition."""
    sequences = product(values_of(mechanism), repeat=mechanism.most_values)
    # The pattern of (7, 2, 7) is (0, 1, 0): where every value appeared first.
    groups: dict[Once, list[Sequence[int]]] = {}
    for sequence in sequences:
        groups.setdefault(tuple(sequence.index(value) for value in sequence), []).append(sequence)
    losses = [sequence_loss(mechanism, group) for group in groups.values()]
    return None if any(loss is None for loss in losses) else max(loss for loss in losses if loss is not None)


def sequence_loss(mechanism: Memoized, sequences: "Sequence[Sequence[int]]") -> float | None:
    """Return the largest log-likelihood ratio of any sequence of reports between any two of these value sequences.

    It is infinite where one of them can make reports that another cannot; None where there are too many to list.
    """
    try:
        reports = mechanism.all_reports()
    except InvalidSpec:
        return None
    # All sequences have one length, since they share a pattern.
    if len(reports) ** len(sequences[0]) * len(sequences) > _MOST_NUMBERS:
        return None
    laws = np.array([_law(mechanism, reports, sequence) for sequence in sequences])
    # The worst pair for a sequence of reports is the largest against the smallest probability over all values.
    high, low = laws.max(axis=0), laws.min(axis=0)
    with np.errstate(divide="ignore"):
        return float(np.max(np.log(high[high > 0]) - np.log(low[high > 0])))


def _law(mechanism: Memoized, reports: npt.NDArray[Any], sequence: Sequence[int]) -> F64:
    """The probability of every sequence of reports, over what the device draws once and the coins of every key."""
    # Column c of `sent` is one sequence of reports: the index of the report at every time.
    sent = np.indices((len(reports),) * len(sequence)).reshape(len(sequence), -1)
    law = np.zeros(sent.shape[1])
    for once, chance in _draws(mechanism):
        law += chance * _conditional(mechanism, reports, sequence, once, sent)
    return law


def _draws(mechanism: Memoized) -> "Iterator[tuple[Once, float]]":
    """Everything a device may draw once, with its probability."""
    inner = mechanism.inner
    if isinstance(inner, DBitFlip):
        for buckets in combinations(range(inner.size), inner.sampled):
            yield buckets, 1 / comb(inner.size, inner.sampled)
    elif isinstance(inner, OneBit):
        for alpha in range(mechanism.step):
            yield (alpha,), 1 / mechanism.step
    else:
        yield (), 1.0


def _conditional(
    mechanism: Memoized, reports: npt.NDArray[Any], sequence: Sequence[int], once: Once, sent: npt.NDArray[np.intp]
) -> F64:
    """The probability of every sequence of reports, given the permanent draws.

    Equal keys send equal reports, different keys independent ones; beyond the cap the last report is repeated.
    """
    law, first = np.ones(sent.shape[1]), dict[bytes, int]()
    for time, value in enumerate(sequence):
        key = mechanism.value_key(once, value)
        if key in first:
            law *= sent[time] == sent[first[key]]
        elif len(first) < mechanism.most_values:
            first[key] = time
            law *= _one(mechanism, reports, value, once)[sent[time]]
        else:
            law *= sent[time] == sent[time - 1]
    return law


def _one(mechanism: Memoized, reports: npt.NDArray[Any], value: int, once: Once) -> F64:
    """The probability of every report on one value, given the permanent draws."""
    inner = mechanism.inner
    if isinstance(inner, DBitFlip):
        # The inner probability includes the draw of the buckets, which is divided out again.
        chosen = (reports["buckets"] == np.array(once)).all(axis=1)
        return np.where(chosen, np.exp(inner.log_prob(reports, value)) * comb(inner.size, inner.sampled), 0.0)
    key = int(mechanism.value_key(once, value))
    return np.exp(inner.log_prob(reports, key))
