"""Closed forms as papers print them, each with the conditions under which it was proven; outside of them they refuse.

They are looser than the certified accountants by a factor of two to ten, and are here to be compared with, to repeat
what papers computed, and for unary bits that are shuffled one by one, of which the accountants know nothing.
T. Wang, "Analyzing sensitive data with local differential privacy", dissertation, Purdue University, 2021, table 9.1.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, log, sqrt
from typing import Any

from tacit.device.base import Device
from tacit.device.kinds.grr import GRRDevice
from tacit.device.kinds.local_hash import LocalHashDevice
from tacit.errors import InvalidSpec


def _require(form: str, condition: bool, rule: str) -> None:
    if not condition:
        raise InvalidSpec(f"{form}: the published bound is proven only for {rule}; use a certified accountant")


def _at_most_one(form: str, epsilon: float) -> float:
    _require(form, epsilon <= 1, f"an epsilon of at most 1, not for {epsilon:.4g}")
    return epsilon


def efmrtt(odds: float, *, n: int, delta: float) -> float:
    """Any mechanism: 12 epsilon_l sqrt(ln(1/delta)/n). Erlingsson et al., SODA 2019, theorem 1."""
    local = log(odds)
    rule = "a local epsilon below 1/2, at least 1,000 respondents and a delta below 1/100"
    _require("efmrtt", local < 0.5 and n >= 1000 and delta < 0.01, rule)
    return 12 * local * sqrt(log(1 / delta) / n)


def csuzz(odds: float, *, n: int, delta: float) -> float:
    """Binary randomised response: sqrt(32 ln(4/delta) (x + 1)/n). Cheu et al., EUROCRYPT 2019."""
    epsilon = sqrt(32 * log(4 / delta) * (odds + 1) / n)
    least = sqrt(192 * log(4 / delta) / n)
    _require("csuzz", least < epsilon < 1, f"an epsilon between {least:.4g} and 1, not for {epsilon:.4g}")
    return epsilon


def bbgn(odds: float, *, n: int, delta: float, size: int, fakes: int = 0) -> float:
    """Randomised response on `size` values: sqrt(14 ln(2/delta) (x + size - 1)/(n - 1)); fakes are uniform values.

    Balle, Bell, Gascón and Nissim, CRYPTO 2019; with fakes Wang's dissertation, corollary 9.5.3.
    """
    return _at_most_one("bbgn", _blanket_form(odds, n, delta, size, fakes))


def solh(odds: float, *, n: int, delta: float, buckets: int, fakes: int = 0) -> float:
    """Local hashing to so many buckets; fakes are a uniform seed and bucket. Wang's dissertation, theorem 9.3.2."""
    return _at_most_one("solh", _blanket_form(odds, n, delta, buckets, fakes))


def _blanket_form(odds: float, n: int, delta: float, outputs: int, fakes: int) -> float:
    expected = (n - 1) / (odds + outputs - 1) + fakes / outputs
    return sqrt(14 * log(2 / delta) / expected) if expected > 0 else float("inf")


def rap(odds: float, *, n: int, delta: float) -> float:
    """Symmetric unary bits, shuffled one by one: 2 sqrt(14 ln(4/delta) (sqrt(x) + 1)/(n - 1)). Theorem 9.3.1."""
    return _at_most_one("rap", 2 * sqrt(14 * log(4 / delta) * (sqrt(odds) + 1) / (n - 1)))


def rap_r(odds: float, *, n: int, delta: float) -> float:
    """Unary bits that each flip with 1/(x + 1), shuffled one by one, for a respondent who is *removed*.

    sqrt(14 ln(2/delta) (x + 1)/(n - 1)); replacing a respondent is removing one twice. Wang's dissertation, 9.3.4.
    """
    return _at_most_one("rap_r", sqrt(14 * log(2 / delta) * (odds + 1) / (n - 1)))


def binom(trials: int, chance: float, *, delta: float) -> float:
    """Noise Bin(trials, chance) on every count: sqrt(14 ln(2/delta)/(trials chance)). Theorem 9.2.1."""
    mean = trials * chance
    epsilon = sqrt(14 * log(2 / delta) / mean)
    _require("binom", chance <= 0.5 and mean * epsilon >= 27, "chances up to 1/2 and a mean of at least 27/epsilon")
    return _at_most_one("binom", epsilon)


def fmt(odds: float, *, n: int, delta: float) -> float:
    """Clones in closed form, for any mechanism. Feldman, McMillan and Talwar, FOCS 2021, section 3."""
    _require("fmt", odds <= n / (16 * log(4 / delta)), "a local epsilon up to ln(n/(16 ln(4/delta)))")
    bracket = 8 * sqrt(odds * log(4 / delta) / n) + 8 * odds / n
    return log(1 + (1 - 1 / odds) / (1 + 1 / (odds * (1 + bracket))) * bracket)


def capacity(epsilon: float, *, n: int, delta: float) -> float:
    """epsilon^2 (n - 1)/(14 ln(2/delta)): how large x + size - 1 may be by `bbgn`, or x + buckets - 1 by `solh`."""
    return epsilon * epsilon * (n - 1) / (14 * log(2 / delta))


def unary_capacity(epsilon: float, *, n: int, delta: float) -> float:
    """epsilon^2 (n - 1)/(56 ln(4/delta)): how large sqrt(x) + 1 may be by `rap`."""
    return epsilon * epsilon * (n - 1) / (56 * log(4 / delta))


def amplified_odds(epsilon: float, *, n: int, delta: float, outputs: int) -> float:
    """The odds x that `bbgn` (outputs: values) or `solh` (outputs: buckets) allow at epsilon.

    Never below e^epsilon: a report that keeps epsilon on its own keeps it shuffled too.
    """
    _at_most_one("amplified_odds", epsilon)
    return max(exp(epsilon), capacity(epsilon, n=n, delta=delta) - outputs + 1)


@dataclass(frozen=True)
class PublishedForm:
    """A closed form as a certificate may name it: to which kinds it applies, and what must be shuffled."""

    id: str
    epsilon: Callable[[Device, float, int, float, int], float]
    """Of the mechanism, its odds, the respondents, delta and the fakes that count."""
    kinds: tuple[str, ...] = ()
    """Kinds that it holds for; none for all."""
    fragmented: bool = False
    """Whether bits are shuffled one by one, instead of whole reports."""
    removal: bool = False
    fakes: bool = False

    def of(self, mechanism: Device, *, n: int, delta: float, fakes: int, fragmented: bool) -> float:
        """The epsilon of a mechanism by this form, where it holds."""
        if self.kinds and mechanism.kind not in self.kinds:
            raise InvalidSpec(f"{self.id}: the mechanism is {mechanism.kind}, must be {' or '.join(self.kinds)}")
        if fragmented != self.fragmented:
            must = "every bit is shuffled on its own" if self.fragmented else "whole reports are shuffled"
            raise InvalidSpec(f"{self.id}: holds only where {must}; the other needs another accountant")
        if fakes and not self.fakes:
            raise InvalidSpec(f"{self.id}: fakes is {fakes}, must be 0; this bound does not know of fakes")
        if n < 2:
            raise InvalidSpec(f"{self.id}: n is {n}, must be at least 2; nobody hides alone")
        return self.epsilon(mechanism, float(mechanism.realised_odds()), n, delta, fakes)


def _of_odds(form: Callable[..., float]) -> Callable[[Device, float, int, float, int], float]:
    def evaluated(mechanism: Device, odds: float, n: int, delta: float, fakes: int) -> float:
        del mechanism, fakes
        return form(odds, n=n, delta=delta)

    return evaluated


def _rap_r(mechanism: Device, odds: float, n: int, delta: float, fakes: int) -> float:
    del mechanism, fakes
    # A kind states the odds of replacing a value, which changes two bits; removing a respondent changes one of them.
    return rap_r(sqrt(odds), n=n, delta=delta)


def _csuzz(mechanism: Device, odds: float, n: int, delta: float, fakes: int) -> float:
    del fakes
    _require("csuzz", mechanism.value_count == 2, "two values")
    return csuzz(odds, n=n, delta=delta)


def _bbgn(mechanism: Any, odds: float, n: int, delta: float, fakes: int) -> float:
    assert isinstance(mechanism, GRRDevice)
    return bbgn(odds, n=n, delta=delta, size=mechanism.size, fakes=fakes)


def _solh(mechanism: Any, odds: float, n: int, delta: float, fakes: int) -> float:
    assert isinstance(mechanism, LocalHashDevice)
    return solh(odds, n=n, delta=delta, buckets=mechanism.g, fakes=fakes)


_BITS = ("sue", "shuffled_sue")
"""Kinds whose bits all flip alike: as whole reports, and sent location by location."""

FORMS: dict[str, PublishedForm] = {
    form.id: form
    for form in (
        PublishedForm("published_efmrtt", _of_odds(efmrtt)),
        PublishedForm("published_csuzz", _csuzz, ("grr",)),
        PublishedForm("published_bbgn", _bbgn, ("grr",), fakes=True),
        PublishedForm("published_solh", _solh, ("olh", "blh"), fakes=True),
        PublishedForm("published_fmt", _of_odds(fmt)),
        PublishedForm("published_rap", _of_odds(rap), _BITS, fragmented=True),
        PublishedForm("published_rap_r", _rap_r, _BITS, fragmented=True, removal=True),
    )
}
"""Every closed form that a certificate may name, by its id."""
