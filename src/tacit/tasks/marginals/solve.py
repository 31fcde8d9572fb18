"""From a tally to the answers about several attributes: which table source belongs to which mechanism.

`solve_marginals` reads what was collected; `expected_source` builds the same sources from a supposed truth without any
report, so that a plan can compare methods by the very variance formulas that the answers will carry.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import numpy as np

from tacit.core.compose import AllOf, OneOf, PerMember
from tacit.core.mechanism import Mechanism, Oracle
from tacit.core.members import MemberCounts
from tacit.core.sharing import SharedHashes
from tacit.core.tally import Counts, Log
from tacit.device.families.coefficients import Coefficients
from tacit.device.families.views import Views
from tacit.errors import InvalidSpec
from tacit.oracles.grr import GRR
from tacit.post.views.components import Components, structure_of
from tacit.post.views.nonneg import NonNegative
from tacit.post.views.table import Attributes, along_axes, margin, shape_of
from tacit.post.views.variance import Precision, view_weights
from tacit.tasks.marginals.marginals import Marginals, Reconstruct, kept_attributes
from tacit.tasks.marginals.sources import (
    F64,
    FromEach,
    FromSigns,
    FromViews,
    FromWhole,
    Share,
    TableSource,
    moments_of,
)


def solve_marginals(
    mechanism: Mechanism,
    tally: Any,
    *,
    sizes: Sequence[int] | None = None,
    respondents: int | None = None,
    reconstruct: Reconstruct = "entropy",
    non_negative: NonNegative = "norm_sub",
    rounds: int = 3,
    shrink: bool = True,
    time_limit: float = 60.0,
) -> Marginals:
    """The answers that a tally holds: of views, coefficients, one oracle over all combinations, or every attribute.

    `sizes` are the numbers of answers of all attributes, those with one answer included; an oracle over all
    combinations needs them. `respondents` are those the reports were drawn from, where they were asked other questions.
    Without `shrink` tables are made consistent as in CALM's paper: `non_negative`, `rounds` and `reconstruct` say how.
    `time_limit` is in seconds, for `em` alone, which refuses tables that would take longer.
    """
    everybody = float(tally.n if respondents is None else respondents)
    solver = SOLVERS.get(asked_by(mechanism))
    if solver is not None:
        source = solver.of_tally(mechanism, tally, everybody)
    elif isinstance(mechanism, Oracle) and sizes is not None:
        source = _whole(mechanism, tally, sizes, everybody)
    else:
        raise InvalidSpec(f"marginals: {mechanism.kind} does not answer tables; plan the question with task marginals")
    whole = source.sizes if sizes is None else tuple(sizes)
    kept = kept_attributes(whole)
    if shape_of(whole, kept) != source.sizes:
        raise InvalidSpec("marginals: the sizes are not those of the mechanism; give the published ones")
    return Marginals(whole, source, tally.n, everybody, kept, reconstruct, non_negative, rounds, shrink, time_limit)


def asked_by(mechanism: Mechanism) -> str:
    """The key of a mechanism in `SOLVERS`: the kind of its family, or its own where nothing is drawn."""
    return mechanism.kind if mechanism.drawn_from is None else mechanism.drawn_from.kind


def has_tables(mechanism: Mechanism) -> bool:
    """Whether one report is about several attributes out of a family of them, so that tables are estimated."""
    return mechanism.drawn_from is not None and mechanism.drawn_from.kind in SOLVERS


def _views(mechanism: OneOf, tally: PerMember, everybody: float) -> FromViews:
    family = cast("Views", mechanism.family)
    structure = structure_of(family.sizes, family.views)
    tables: list[F64] = []
    precision: list[Precision] = []
    for i, view in enumerate(family.views):
        member = mechanism.member(i)
        estimate = member.estimate(tally.member(i))
        tables.append(estimate.value.reshape(shape_of(family.sizes, view)))
        precision.append(Precision(moments_of(member), 1 / estimate.effective if estimate.has_data else np.inf))
    agreed = structure.average(structure.grouped(tables), view_weights(structure, precision))
    return FromViews(structure, precision, agreed, everybody)


def sign_channel(mechanism: OneOf) -> tuple[float, float]:
    """Return the correlation `keep` of a sign with its report, and the variance of one unbiased sign: 1/keep^2 - 1."""
    member = mechanism.member(0)
    if not isinstance(member, GRR):
        raise InvalidSpec(f"marginals: signs are asked by {member.kind}, must be grr over two values")
    keep = member.p - member.q
    return float(keep), float(1 / keep**2 - 1)


def _signs(mechanism: OneOf, tally: PerMember, everybody: float) -> FromSigns:
    family, grid = cast("Coefficients", mechanism.family), tally.parts[0]
    assert isinstance(grid, MemberCounts)
    keep, noise = sign_channel(mechanism)
    # Weighted tallies have effective group sizes: total^2 / (sum of squared weights); no reports mean infinite
    # variance.
    total = np.where(grid.total > 0, grid.total, 1).astype(np.float64)
    theta = (grid.cells[:, 0] - grid.cells[:, 1]) / total / keep
    scale = np.where(grid.total > 0, grid.total2 / total**2, np.inf)
    return FromSigns(family, theta, noise, scale, everybody)


def _whole(mechanism: Oracle, tally: Any, sizes: Sequence[int], everybody: float) -> FromWhole:
    """Estimate all combinations at once and reshape them to one axis per attribute."""
    shape = tuple(size for size in sizes if size > 1)
    estimate = mechanism.estimate(tally)
    scale = 1 / estimate.effective if estimate.has_data else np.inf
    # Oracles that override the variance of linear answers have errors beyond their moments, such as shared hashes.
    plain = type(mechanism)._combined is Oracle._combined  # pyright: ignore[reportPrivateUsage]
    combined = None if plain or not estimate.has_data else estimate.variance_of
    if int(np.prod(shape, dtype=np.float64)) != mechanism.size:
        raise InvalidSpec(f"marginals: the sizes make other than the {mechanism.size} combinations of the mechanism")
    whole = estimate.value.reshape(shape)
    return FromWhole(shape, whole, moments_of(mechanism), scale, everybody, combined=combined)


def _each(mechanism: AllOf, tally: Any, everybody: float) -> FromEach:
    del everybody  # All of them answered every question.
    members = [mechanism.member(i) for i in range(len(mechanism.members))]
    if not all(isinstance(member, GRR) for member in members):
        raise InvalidSpec("marginals: every attribute must be reported by grr")
    grr = [cast("GRR", member) for member in members]
    sizes = tuple(member.size for member in grr)
    channels = [(float(member.p), float(member.q)) for member in grr]
    return FromEach(sizes, channels, _seen(tally, sizes), tally.n)


def _seen(tally: Any, sizes: tuple[int, ...]) -> Share:
    """Return the shares of reported combinations, from a table of joint counts or from the log of reports."""
    if isinstance(tally, Counts):
        joint = tally.cells.reshape(sizes) / max(1, tally.total)
        return lambda attributes: margin(joint, range(len(sizes)), attributes)
    if not isinstance(tally, Log):
        raise InvalidSpec("marginals: the reports of one respondent were not kept together; use state joint or log")
    log = tally

    # Counted per request: the table of all attributes together would be too large to keep.
    def counted(attributes: Attributes) -> F64:
        shape = shape_of(sizes, attributes)
        out = np.zeros(int(np.prod(shape)), np.int64)
        for chunk in log.chunks:
            columns = tuple(chunk[f"answer_{a}"].astype(np.int64) for a in attributes)
            out += np.bincount(np.ravel_multi_index(columns, shape), minlength=len(out))
        return out.reshape(shape) / max(1, log.n)

    return counted


def expected_source(mechanism: Mechanism, n: float, truth: Share, sizes: Sequence[int]) -> TableSource:
    """The expected table source of n respondents if this were the truth, for predicted errors."""
    solver = SOLVERS.get(asked_by(mechanism))
    if solver is not None:
        return solver.expected(mechanism, n, truth)
    assert isinstance(mechanism, Oracle)
    shape = tuple(size for size in sizes if size > 1)
    combined = None
    if isinstance(mechanism, SharedHashes):
        combined = partial(_collided, mechanism, truth(tuple(range(len(shape)))).ravel(), n)
    return FromWhole(shape, np.zeros(shape), moments_of(mechanism), 1 / n, n, truth=truth, combined=combined)


def _collided(mechanism: SharedHashes, share: F64, n: float, rows: F64) -> F64:
    """Return the variance of linear answers of an oracle with shared public hash functions.

    The expectation is over the coins and over the functions: values that share a cell confuse all respondents alike,
    and this part of the error does not shrink with n.
    """
    own = share * (share - 1 / n)
    alone = own.sum() - own - share**2
    shared = np.clip(rows**2 @ alone + (rows @ share) ** 2, 0, None)
    return mechanism.moments.combined(rows, share) / n + shared / mechanism.sharing


def _expected_views(mechanism: OneOf, n: float, truth: Share) -> FromViews:
    family = cast("Views", mechanism.family)
    precision = [
        Precision(moments_of(mechanism.member(i)), 1 / (n * mechanism.probability(i))) for i in range(len(family))
    ]
    structure = structure_of(family.sizes, family.views)
    known = Components(structure, np.zeros(int(structure.starts[-1])), structure.sums(np.ones(len(family))))
    return FromViews(structure, precision, known, n, truth)


def _expected_each(mechanism: AllOf, n: float, truth: Share) -> FromEach:
    grr = [cast("GRR", member) for member in mechanism.members]
    draft = FromEach(tuple(m.size for m in grr), [(float(m.p), float(m.q)) for m in grr], truth, n)

    def seen(attributes: Attributes) -> F64:
        return along_axes(draft.matrices(attributes), truth(attributes))

    return replace(draft, seen=seen)


def _expected_signs(mechanism: OneOf, n: float, truth: Share) -> FromSigns:
    family = cast("Coefficients", mechanism.family)
    _, noise = sign_channel(mechanism)
    total = mechanism.bounds[-1]
    scale = total / (np.array(family.weights, np.float64) * n)
    return FromSigns(family, np.zeros(len(family)), noise, scale, n, truth)


@dataclass(frozen=True)
class TableSolver:
    """How tables are estimated from what one kind of mechanism or family was told."""

    of_tally: Callable[[Any, Any, float], TableSource]
    """From the mechanism, a tally and the number of respondents the reports were drawn from."""
    expected: Callable[[Any, float, Share], TableSource]
    """From the mechanism, a number of respondents, and the true shares of all combinations of some attributes."""


SOLVERS: dict[str, TableSolver] = {
    "views": TableSolver(_views, _expected_views),
    "coefficients": TableSolver(_signs, _expected_signs),
    "all_of": TableSolver(_each, _expected_each),
}
"""By `asked_by`: the server's side of every family (and of `all_of`) that tables of several attributes come from."""
