"""Every guarantee that a kind states, by enumeration where there are few enough reports; not by its own formula.

Memoised coins stand for an ideal function: a fresh, uniform stream for every key. That HMAC is one is assumed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations, product
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.core.mechanism import Mechanism
from tacit.device.rappor import LayeredDevice
from tacit.errors import InvalidSpec
from tacit.numeric.bit_flip import DBitFlip
from tacit.numeric.mean import OneBit
from tacit.numeric.memo import Memoized
from tacit.testing.laws import enumerated_epsilon, values_of

F64 = npt.NDArray[np.float64]
Once = tuple[int, ...]

_MOST_NUMBERS = 1 << 24


def enumerated_guarantees(mechanism: Mechanism) -> "list[float | None]":
    """The largest log-likelihood ratio behind each of `mechanism.guarantees()`; None where it is not enumerated."""
    found = [enumerated_epsilon(mechanism)]
    if isinstance(mechanism, LayeredDevice):
        # Any number of reports is a function of the permanent bits, and tells them in the limit.
        found.append(enumerated_epsilon(replace(mechanism, zero="", one="")))
    if isinstance(mechanism, Memoized):
        found = [_constant(mechanism), _same_pattern(mechanism)]
    stated = len(mechanism.guarantees())
    return (found + [None] * stated)[:stated]


def _constant(mechanism: Memoized) -> float | None:
    """Two reports on one value; a third would repeat them once more."""
    return sequence_loss(mechanism, [(value, value) for value in values_of(mechanism)])


def _same_pattern(mechanism: Memoized) -> float | None:
    """As many values as are answered, in every pattern of that many times."""
    sequences = product(values_of(mechanism), repeat=mechanism.most_values)
    groups: dict[Once, list[Sequence[int]]] = {}
    for sequence in sequences:
        groups.setdefault(tuple(sequence.index(value) for value in sequence), []).append(sequence)
    losses = [sequence_loss(mechanism, group) for group in groups.values()]
    return None if any(loss is None for loss in losses) else max(loss for loss in losses if loss is not None)


def sequence_loss(mechanism: Memoized, sequences: "Sequence[Sequence[int]]") -> float | None:
    """The largest log-likelihood ratio of any sequence of reports between any two of these sequences of values.

    It is infinite where one of them can make reports that another cannot; None where there are too many to list.
    """
    try:
        reports = mechanism.all_reports()
    except InvalidSpec:
        return None
    if len(reports) ** len(sequences[0]) * len(sequences) > _MOST_NUMBERS:
        return None
    laws = np.array([_law(mechanism, reports, sequence) for sequence in sequences])
    high, low = laws.max(axis=0), laws.min(axis=0)
    with np.errstate(divide="ignore"):
        return float(np.max(np.log(high[high > 0]) - np.log(low[high > 0])))


def _law(mechanism: Memoized, reports: npt.NDArray[Any], sequence: Sequence[int]) -> F64:
    """The probability of every sequence of reports, over what the device draws once and the coins of every key."""
    sent = np.indices((len(reports),) * len(sequence)).reshape(len(sequence), -1)
    law = np.zeros(sent.shape[1])
    for once, chance in _draws(mechanism):
        law += chance * _given(mechanism, reports, sequence, once, sent)
    return law


def _draws(mechanism: Memoized) -> "Iterator[tuple[Once, float]]":
    """What a device may draw once, and how likely that is."""
    inner = mechanism.inner
    if isinstance(inner, DBitFlip):
        for buckets in combinations(range(inner.size), inner.sampled):
            yield buckets, 1 / comb(inner.size, inner.sampled)
    elif isinstance(inner, OneBit):
        for alpha in range(mechanism.step):
            yield (alpha,), 1 / mechanism.step
    else:
        yield (), 1.0


def _given(
    mechanism: Memoized, reports: npt.NDArray[Any], sequence: Sequence[int], once: Once, sent: npt.NDArray[np.intp]
) -> F64:
    """Equal keys send equal reports, different ones independent reports; beyond the cap the last one is repeated."""
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
    """The probability of every report on one value, given what was drawn once."""
    inner = mechanism.inner
    if isinstance(inner, DBitFlip):
        chosen = (reports["buckets"] == np.array(once)).all(axis=1)
        return np.where(chosen, np.exp(inner.log_prob(reports, value)) * comb(inner.size, inner.sampled), 0.0)
    key = int(mechanism.value_key(once, value))
    return np.exp(inner.log_prob(reports, key))
