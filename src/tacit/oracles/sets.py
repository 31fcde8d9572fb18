"""Mechanisms on sets, the collector's half: padding and sampling (which items), and sizes of sets (how many).

A set is padded with dummies to a public length l and one element of it goes through a frequency oracle; the estimated
shares times l are the shares of respondents who hold an item. Reference: Wang's dissertation, chapter 5.
"""

from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tacit.arrays import F64, I64, U64
from tacit.core.draws import GivenCoins
from tacit.core.estimate import Estimate
from tacit.core.mechanism import Oracle, Reports, words
from tacit.core.sets import Sets, as_sets, contained_itemsets
from tacit.core.statistics.score import Law
from tacit.core.statistics.simulated import simulate_each
from tacit.core.wrapper import Wrapper
from tacit.device.base import Device
from tacit.device.kinds.sets import PaddedDevice, SampledGRRDevice, SetDevice, SetSizeDevice
from tacit.device.numbers.coins import Coins
from tacit.errors import InvalidSpec, InvalidValue
from tacit.oracles.blocks import CBR, SS
from tacit.oracles.grr import GRR
from tacit.oracles.local_hash import BLH, OLH
from tacit.oracles.unary import OUE, RUE, SUE

_CHUNK = 1 << 16


def uniform_each(coin_words: U64, moduli: I64) -> I64:
    """Return (word * m) >> 64 for every word and its own modulus below 2^32, in halves that fit into 64 bits."""
    half, m = np.uint64(32), moduli.astype(np.uint64)
    low = (coin_words & np.uint64(0xFFFFFFFF)) * m >> half
    return ((coin_words >> half) * m + low >> half).astype(np.int64)


class SampledGRR(SampledGRRDevice, GRR):
    """Randomised response that may run at an amplified epsilon; `Padded` alone builds it so."""


class SetMechanism(SetDevice, Wrapper):
    """What the kinds on sets share: reports and tallies are those of the inner oracle."""

    inner: Oracle  # pyright: ignore[reportIncompatibleVariableOverride] - always an oracle

    def sets(self, values: Any) -> Sets:
        """A batch of sets of known items; a wrong one is refused without being shown."""
        sets = as_sets(values)
        if len(sets.items) and (int(sets.items.min()) < 0 or int(sets.items.max()) >= self.size):
            raise InvalidValue(f"{self.kind}: an item is outside the domain, must be from 0 to {self.size - 1}")
        return sets

    def held(self, sets: Sets) -> Sets:
        """Return which candidates each set contains, by number; without candidates they are the items themselves."""
        return contained_itemsets(sets, self.candidates, self.size) if self.candidates else sets

    def simulate_sets(self, values: Any, rng: np.random.Generator) -> Any:
        """Return a tally of simulated respondents with these sets, drawn by the law of real reports."""
        counts = np.zeros(self.inner.size, np.int64)
        for chunk in self.sets(values).chunks():
            counts += np.bincount(self._simulated(self.held(chunk), rng), minlength=len(counts))
        # Cyclic blocks know no aggregate form for large designs, and drawing their reports one by one is quick.
        simulate = partial(simulate_each, self.inner) if isinstance(self.inner, CBR) else self.inner.simulate_tally
        return replace(simulate(counts, rng), mechanism=self)

    def _simulated(self, held: Sets, rng: np.random.Generator) -> I64:
        """The values that simulated respondents put through the inner oracle."""
        raise NotImplementedError

    def simulate_tally(self, counts: npt.ArrayLike, rng: np.random.Generator) -> Any:
        """Refused: counts of single items do not say which of them are held together."""
        raise InvalidSpec(f"{self.kind}: sets are not described by counts of items; simulate_sets takes the sets")


class Padded(PaddedDevice, SetMechanism):
    """Padding and sampling: one element of a set, filled up to a public length with distinct dummies, to an oracle.

    Reports: those of the inner oracle over K candidates and l dummies. Cost: one coin word more than the oracle's.
    Privacy: epsilon. Randomised response inside may run at e^epsilon' = l (e^epsilon - 1) + 1, because a report
    speaks for one of at least l elements; no other oracle may.
    Variance: n [l^2 other + l f (own - other) + f (l - 1)] with the inner oracle's moments; exact and unbiased where no
    set contains more than l candidates, else low. Sums of cells use a bound of what is held together.
    Reference: Wang's dissertation, section 5.2, whose variance lacks the last two terms.

    >>> m = Padded.amplified(epsilon="1", size=10, length=4)
    >>> round(m.inner.realised_epsilon(), 2), m.inner.holds(), m.holds()
    (2.06, False, True)
    """

    inner_kinds: ClassVar[tuple[type[Device], ...]] = (SampledGRR, SUE, OUE, RUE, BLH, OLH, SS, CBR)

    def privatize(self, values: Any, coins: Coins) -> Reports:
        """Reports on a batch of sets; report by report where the oracle draws lanes of bits."""
        sets, cost = self.sets(values), self.inner.coin_words
        draw = self._loop if cost is None else self._sweep
        parts = [draw(self.held(chunk), coins) for chunk in sets.chunks(_CHUNK)]
        return np.concatenate([np.empty(0, self.report_dtype), *parts])

    def _sweep(self, held: Sets, coins: Coins) -> Reports:
        """All reports at once (fast path): every one takes the same number of coin words, the first for its place."""
        drawn = words(coins, len(held), 1 + (self.inner.coin_words or 0))
        places = uniform_each(drawn[:, 0], np.maximum(held.lengths, self.length))
        return self.inner.privatize(self._elements(held, places), GivenCoins(drawn[:, 1:]))

    def _loop(self, held: Sets, coins: Coins) -> Reports:
        """Report by report, since each takes a random number of coin words from the stream."""
        rows = (self._one(np.array(one, np.int64), coins) for one in held.tolist())
        return self.decode(b"".join(row.tobytes() for row in rows))

    def _one(self, held: I64, coins: Coins) -> Reports:
        place = coins.uniform(max(len(held), self.length))
        return self.inner.privatize([self.element(held.tolist(), place)], coins)

    def _elements(self, held: Sets, places: I64) -> I64:
        """The elements at these places of the padded sets.

        padded set   | items of the set | dummies: choices, choices + 1, ... |
        place        0               length                             l or more
        """
        lengths, dummies = held.lengths, self.choices + places - held.lengths
        # Both branches are computed for all; the appended item and the minimum keep the unused ones inside the array.
        items = np.append(held.items, 0)[np.minimum(held.starts[:-1] + places, len(held.items))]
        return np.where(places < lengths, items, dummies)

    def _simulated(self, held: Sets, rng: np.random.Generator) -> I64:
        drawn = np.frombuffer(rng.bytes(8 * len(held)), "<u8")
        return self._elements(held, uniform_each(drawn, np.maximum(held.lengths, self.length)))

    def estimate(self, tally: Any, candidates: npt.ArrayLike | None = None) -> Estimate:
        """Return the share of respondents whose set contains each candidate (by number), with exact variance."""
        inner = self.inner_tally(tally)
        chosen = np.arange(self.choices) if candidates is None else np.asarray(candidates)
        if chosen.size and int(chosen.max()) >= self.choices:
            raise InvalidSpec(f"padded: candidates must be numbers below {self.choices}; dummies are not estimated")
        sampled = replace(self.inner.estimate(inner, chosen), labels=self._labels(candidates, chosen))
        return self._scaled(sampled) if sampled.has_data else sampled

    def _labels(self, candidates: Any, chosen: npt.NDArray[Any]) -> Any:
        """Itemsets label their cells with their items, named candidates with their numbers, all items with none."""
        numbers: list[int] = chosen.tolist()
        if self.candidates:
            return [list(self.candidates[i]) for i in numbers]
        return None if candidates is None else numbers

    def _scaled(self, sampled: Estimate) -> Estimate:
        """The estimate of sampled shares, times the length; sampling one element adds f (l - 1)/n."""
        length, scale = self.length, 1 / sampled.effective
        share = np.clip(sampled.value * length, 0, 1)

        def combined(rows: F64) -> F64:
            return length**2 * sampled.variance_of(rows) + scale * self.sampling_variance(rows, share)

        return replace(
            sampled,
            value=sampled.value * length,
            variance=sampled.variance * length**2 + scale * share * (length - 1),
            covariance=combined,
            law=None if sampled.law is None else self._law(sampled.law.scaled(length), scale),
        )

    def _law(self, law: Law, scale: float) -> Law:
        """The law with the sampling of one element, which adds to its slope.

        The law of sums does not carry over (`pairs` is 0): items of one set are held together.
        """
        return replace(law, slope=law.slope + scale * (self.length - 1), pairs=0.0)

    def sampling_variance(self, rows: F64, share: F64) -> F64:
        """Return n times what sampling one element adds to the variance of `rows @ estimate`; an upper bound for sums.

        Exactly it is l sum w^2 f - E[(sum of w over the set)^2]. The last term is at least the square of the mean,
        and at least sum w^2 f for weights of one sign, where it is exact for single cells.
        """
        # The subtracted term is bounded from below, whichever bound is larger, as items held together are not known.
        squares = rows**2 @ share
        one_sign = np.all(rows >= 0, axis=-1) | np.all(rows <= 0, axis=-1)
        least = np.maximum((rows @ share) ** 2, np.where(one_sign, squares, 0.0))
        return np.clip(self.length * squares - least, 0, None)

    @property
    def variance_at_zero(self) -> float:
        """n times the variance of a candidate that nobody holds."""
        return self.length**2 * self.inner.variance_at_zero

    def log_prob(self, reports: Reports, value: Any) -> F64:
        """Return the log-probability of the mixture over the padded set.

        Place i is drawn by the words from edges[i] up to edges[i + 1], whose numbers may differ by one.
        """
        held = self.contained(value)
        places = max(len(held), self.length)
        edges = [-(-(i << 64) // places) for i in range(places + 1)]
        logs = [self.inner.log_prob(reports, self.element(held, i)) for i in range(places)]
        weights = np.log([(b - a) / 2**64 for a, b in pairwise(edges)])
        return np.logaddexp.reduce(np.array(logs) + weights[:, None], axis=0)


class SetSize(SetSizeDevice, SetMechanism):
    """How many candidates a set contains, `most` and more counting alike, through an oracle on 0 .. most.

    Reports: those of the inner oracle. Cost: as the inner oracle.
    Privacy: epsilon, as the inner oracle.
    Variance: as the inner oracle; the estimate has most + 1 cells, the share of respondents with each number.
    Reference: Wang's dissertation, section 5.3.1, where 0 must be reportable as well.

    >>> SetSize(epsilon="1", size=10, most=4, inner=GRR(size=5, epsilon="1")).coin_words
    1
    """

    inner_kinds: ClassVar[tuple[type[Device], ...]] = (GRR, SUE, OUE, RUE, BLH, OLH, SS, CBR)

    def privatize(self, values: Any, coins: Coins) -> Reports:
        """Reports on a batch of sets."""
        parts = [self.inner.privatize(self._numbers(self.held(c)), coins) for c in self.sets(values).chunks(_CHUNK)]
        return np.concatenate([np.empty(0, self.report_dtype), *parts])

    def _numbers(self, held: Sets) -> I64:
        return np.minimum(held.lengths, self.most)

    def _simulated(self, held: Sets, rng: np.random.Generator) -> I64:
        del rng
        return self._numbers(held)

    def estimate(self, tally: Any, candidates: npt.ArrayLike | None = None) -> Estimate:
        """Return the share of respondents whose set contains each number of candidates."""
        return self.inner.estimate(self.inner_tally(tally), candidates)

    def log_prob(self, reports: Reports, value: Any) -> F64:
        """As the inner oracle, given the number."""
        return self.inner.log_prob(reports, min(len(self.contained(value)), self.most))
