"""Which frequency oracle to use, by exact average error, report size and server work (SEL-FO).

The functions below count the server's operations for n reports: what one report costs to add, plus the final estimate.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, inf, log2
from typing import Any

from tacit.core.mechanism import Oracle
from tacit.device.arguments import explained
from tacit.device.numbers.budget import Budget, Declared, as_budget
from tacit.errors import InvalidSpec
from tacit.integrity.influence import influence_cap
from tacit.oracles.blocks import ABR, CBR, SS
from tacit.oracles.grr import GRR
from tacit.oracles.hadamard import HRR, HRRSubspace
from tacit.oracles.local_hash import BLH, OLH
from tacit.oracles.unary import OUE, RUE, SUE, THE

Work = Callable[[Oracle, int], float]

TOLERANCE = 1.03
"""Oracles whose average error is within this factor of the best compete on server work and report size."""


@dataclass(frozen=True)
class OracleOption:
    """One oracle, what it would cost and how well it would do."""

    kind: str
    mechanism: Oracle
    average_error: float
    standard_error: float
    report_bits: int
    server_operations: float
    n_needed: int | None = None

    @property
    def coalition_influence(self) -> float | None:
        """The most that a coalition that sends 1 % of all reports can move the share of a value."""
        cap = influence_cap(self.mechanism)
        return None if cap is None else cap.coalition()

    def to_row(self) -> dict[str, Any]:
        """Plain numbers for JSON and tables."""
        row = {
            "kind": self.kind,
            "standard_error": self.standard_error,
            "average_error": self.average_error,
            "report_bits": self.report_bits,
            "report_bytes": self.mechanism.report_dtype.itemsize,
            "server_operations": self.server_operations,
            "coalition_influence": self.coalition_influence,
            "spec": self.mechanism.spec(),
        }
        return row if self.n_needed is None else row | {"n_needed": self.n_needed}


@dataclass(frozen=True)
class Choice:
    """The pick and every option it was compared with, best first."""

    pick: OracleOption
    options: tuple[OracleOption, ...]
    reason: str


def _linear(mechanism: Oracle, n: int) -> float:
    """One increment per report, one division per value."""
    return n + mechanism.size


def _transform(mechanism: Oracle, n: int) -> float:
    """One increment per report, then a fast Hadamard transform."""
    return n + mechanism.size * max(1.0, log2(mechanism.size))


def _fourier(mechanism: Oracle, n: int) -> float:
    """One increment per report, then a cyclic convolution by three fast Fourier transforms."""
    m = getattr(mechanism, "m", mechanism.size)
    return n + 3 * m * max(1.0, log2(m))


def _span(mechanism: Oracle, n: int) -> float:
    """One increment per reported sign, then a fast Hadamard transform."""
    signs = getattr(mechanism, "signs", 2)
    return n * signs + mechanism.size * max(1.0, log2(mechanism.size))


def _bits(mechanism: Oracle, n: int) -> float:
    """Packed bit vectors are added byte by byte, eight values at a time."""
    return n * ceil(mechanism.size / 8)


def _pairs(mechanism: Oracle, n: int) -> float:
    """Every report is evaluated at every value, as local hashing requires."""
    return float(n) * mechanism.size


OPTIONS: tuple[tuple[type[Oracle], Work], ...] = (
    (GRR, _linear),
    (CBR, _fourier),
    (SS, _bits),
    (ABR, _pairs),
    (HRR, _transform),
    (HRRSubspace, _span),
    (SUE, _bits),
    (OUE, _bits),
    (RUE, _bits),
    (THE, _bits),
    (BLH, _pairs),
    (OLH, _pairs),
)
"""Every oracle the chooser compares, with the server operations of n reports."""

WORD_OPTIONS = tuple(option for option in OPTIONS if option[0].fits_word)
"""Those whose reports fit the 64-bit word that shufflers pass on."""


def _option(
    kind: type[Oracle], work: Work, size: int, budget: Budget, n: int, target: float | None
) -> OracleOption | None:
    """Return the option of one oracle; None where it does not support the size or the budget."""
    make: Any = kind
    try:
        mechanism: Oracle = make(size=size, epsilon=budget)
        error = mechanism.average_error()
    except InvalidSpec:  # The domain is too large or too small for this kind.
        return None
    # The error is n times a variance, so dividing by the target variance gives the respondents that are needed.
    needed = None if target is None else ceil(error / target**2)
    return OracleOption(
        kind.kind, mechanism, error, (error / n) ** 0.5, mechanism.report_bits, work(mechanism, n), needed
    )


@explained
def choose_oracle(
    *,
    size: int,
    epsilon: Declared,
    n: int,
    target_error: float | None = None,
    max_report_bits: int | None = None,
    options: Sequence[tuple[type[Oracle], Work]] = OPTIONS,
) -> Choice:
    """Choose the oracle for `size` values at `epsilon` with about n respondents.

    All oracles are compared by the exact average error M over the domain, which does not depend on the data.
    Among those within 3 % of the best, the one with the least server work wins, then the shortest report. The
    classical rule (GRR below 3 e^epsilon + 2 values) is right only against OUE and OLH.
    """
    if n < 1:
        raise InvalidSpec(f"choose: n is {n}, must be at least 1")
    if target_error is not None and not target_error > 0:
        raise InvalidSpec(f"choose: target_error is {target_error}, must be above 0")
    budget = as_budget(epsilon)
    possible = [_option(kind, work, size, budget, n, target_error) for kind, work in options]
    limit = inf if max_report_bits is None else max_report_bits
    # The limit is a constraint, not a criterion: it filters before anything is ranked.
    fitting = [option for option in possible if option and option.report_bits <= limit]
    if not fitting:
        bound = "" if max_report_bits is None else f" with reports of at most {max_report_bits} bits; allow longer ones"
        raise InvalidSpec(f"choose: no oracle fits a domain of {size} values{bound}")
    ranked = sorted(fitting, key=lambda option: option.average_error)
    pick = _cheapest(ranked)
    return Choice(pick, tuple(ranked), _reason(pick, ranked[0]))


def _cheapest(ranked: Sequence[OracleOption]) -> OracleOption:
    """Return the option with the least work, then the shortest report, among those close to the least error."""
    close = [option for option in ranked if option.average_error <= TOLERANCE * ranked[0].average_error]
    # Work that differs by less than a factor of two is the same work.
    return min(close, key=lambda o: (round(log2(o.server_operations)), o.report_bits, o.average_error))


def _reason(pick: OracleOption, best: OracleOption) -> str:
    """Return the sentence that explains the pick: least error, or close to it and cheaper."""
    excess = pick.average_error / best.average_error - 1
    if excess <= 1e-9:
        return f"{pick.kind} has the least error"
    # Average errors are squared: what the table shows are their roots, which differ by half as much.
    within = f"the squared error of {pick.kind} is {100 * excess:.1f} % above the least, that of {best.kind}"
    return f"{within}, and it takes less work of the server or shorter reports; docs/mechanisms.md explains the names"
