"""From a tally to the answers about several attributes."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np

from tacit.core.compose import AllOf, OneOf, PerMember
from tacit.core.mechanism import Mechanism, Oracle
from tacit.core.members import Grid
from tacit.core.sharing import SharedHashes
from tacit.core.tally import Counts, Log
from tacit.device.coefficients import Coefficients
from tacit.device.views import Views
from tacit.errors import InvalidSpec
from tacit.oracles.grr import GRR
from tacit.post.marginal_components import Components, structure_of
from tacit.post.marginal_nonneg import NonNegative
from tacit.post.marginal_table import Attributes, along_axes, margin, shape_of
from tacit.post.marginal_variance import Precision, view_weights
from tacit.tasks.marginal_sources import (
    F64,
    FromEach,
    FromSigns,
    FromViews,
    FromWhole,
    Share,
    Source,
    moments_of,
)
from tacit.tasks.marginals import Marginals, Reconstruct, kept_attributes


def solve_marginals(
    mechanism: Mechanism,
    tally: Any,
    *,
    sizes: Sequence[int] | None = None,
    respondents: int | None = None,
    reconstruct: Reconstruct = "entropy",
    non_negative: NonNegative = "norm_sub",
    rounds: int = 3,
    fix_total: bool = True,
) -> Marginals:
    """The answers that a tally holds: of views, coefficients, one oracle over all combinations, or every attribute.

    `sizes` are the numbers of answers of all attributes, those with one answer included; an oracle over all
    combinations needs them. `respondents` are those the reports were drawn from, where they were asked other questions.
    """
    everybody = float(tally.n if respondents is None else respondents)
    if isinstance(mechanism, OneOf) and isinstance(mechanism.family, Views):
        source: Source = _views(mechanism, mechanism.family, tally, everybody)
    elif isinstance(mechanism, OneOf) and isinstance(mechanism.family, Coefficients):
        source = _signs(mechanism, mechanism.family, tally, everybody)
    elif isinstance(mechanism, AllOf):
        source = _each(mechanism, tally)
    elif isinstance(mechanism, Oracle) and sizes is not None:
        source = _whole(mechanism, tally, sizes, everybody, fix_total)
    else:
        raise InvalidSpec(f"marginals: {mechanism.kind} does not answer tables; plan the question with task marginals")
    whole = source.sizes if sizes is None else tuple(sizes)
    kept = kept_attributes(whole)
    if shape_of(whole, kept) != source.sizes:
        raise InvalidSpec("marginals: the sizes are not those of the mechanism; give the published ones")
    return Marginals(whole, source, tally.n, everybody, kept, reconstruct, non_negative, rounds)


def _views(mechanism: OneOf, family: Views, tally: PerMember, everybody: float) -> FromViews:
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
    """How much of a sign survives, and the variance of one unbiased sign given the sign: 1/keep^2 - 1."""
    member = mechanism.member(0)
    if not isinstance(member, GRR):
        raise InvalidSpec(f"marginals: signs are asked by {member.kind}, must be grr over two values")
    keep = member.p - member.q
    return float(keep), float(1 / keep**2 - 1)


def _signs(mechanism: OneOf, family: Coefficients, tally: PerMember, everybody: float) -> FromSigns:
    grid = tally.parts[0]
    assert isinstance(grid, Grid)
    keep, noise = sign_channel(mechanism)
    total = np.where(grid.total > 0, grid.total, 1).astype(np.float64)
    theta = (grid.cells[:, 0] - grid.cells[:, 1]) / total / keep
    scale = np.where(grid.total > 0, grid.total2 / total**2, np.inf)
    return FromSigns(family, theta, noise, scale, everybody)


def _whole(mechanism: Oracle, tally: Any, sizes: Sequence[int], everybody: float, fix_total: bool) -> FromWhole:
    shape = tuple(size for size in sizes if size > 1)
    estimate = mechanism.estimate(tally)
    scale = 1 / estimate.effective if estimate.has_data else np.inf
    plain = type(mechanism)._combined is Oracle._combined  # pyright: ignore[reportPrivateUsage]
    combined = None if plain or not estimate.has_data else estimate.variance_of
    if int(np.prod(shape, dtype=np.float64)) != mechanism.size:
        raise InvalidSpec(f"marginals: the sizes make other than the {mechanism.size} combinations of the mechanism")
    whole = estimate.value.reshape(shape)
    return FromWhole(shape, whole, moments_of(mechanism), scale, everybody, fix_total, combined=combined)


def _each(mechanism: AllOf, tally: Any) -> FromEach:
    members = [mechanism.member(i) for i in range(len(mechanism.members))]
    if not all(isinstance(member, GRR) for member in members):
        raise InvalidSpec("marginals: every attribute must be reported by grr")
    grr = [cast("GRR", member) for member in members]
    sizes = tuple(member.size for member in grr)
    channels = [(float(member.p), float(member.q)) for member in grr]
    return FromEach(sizes, channels, _seen(tally, sizes), tally.n)


def _seen(tally: Any, sizes: tuple[int, ...]) -> Share:
    """The shares of reported combinations, from the joint table or from the reports."""
    if isinstance(tally, Counts):
        joint = tally.cells.reshape(sizes) / max(1, tally.total)
        return lambda attributes: margin(joint, range(len(sizes)), attributes)
    if not isinstance(tally, Log):
        raise InvalidSpec("marginals: the reports of one respondent were not kept together; use state joint or log")
    log = tally

    def counted(attributes: Attributes) -> F64:
        shape = shape_of(sizes, attributes)
        out = np.zeros(int(np.prod(shape)), np.int64)
        for chunk in log.chunks:
            columns = tuple(chunk[f"answer_{a}"].astype(np.int64) for a in attributes)
            out += np.bincount(np.ravel_multi_index(columns, shape), minlength=len(out))
        return out.reshape(shape) / max(1, log.n)

    return counted


def expected_source(mechanism: Mechanism, n: float, truth: Share, sizes: Sequence[int]) -> Source:
    """What a collection of n respondents would know if the truth were this: for predicted errors."""
    shape = tuple(size for size in sizes if size > 1)
    if isinstance(mechanism, OneOf) and isinstance(mechanism.family, Views):
        family = mechanism.family
        precision = [
            Precision(moments_of(mechanism.member(i)), 1 / (n * mechanism.probability(i))) for i in range(len(family))
        ]
        structure = structure_of(family.sizes, family.views)
        known = Components(structure, np.zeros(int(structure.starts[-1])), structure.sums(np.ones(len(family))))
        return FromViews(structure, precision, known, n, truth)
    if isinstance(mechanism, OneOf) and isinstance(mechanism.family, Coefficients):
        return _expected_signs(mechanism, mechanism.family, n, truth)
    if isinstance(mechanism, AllOf):
        grr = [cast("GRR", mechanism.member(i)) for i in range(len(mechanism.members))]
        draft = FromEach(shape, [(float(m.p), float(m.q)) for m in grr], truth, n)

        def seen(attributes: Attributes) -> F64:
            return along_axes(draft.matrices(attributes), truth(attributes))

        return replace(draft, seen=seen)
    assert isinstance(mechanism, Oracle)
    combined = None
    if isinstance(mechanism, SharedHashes):
        combined = partial(_collided, mechanism, truth(tuple(range(len(shape)))).ravel(), n)
    return FromWhole(shape, np.zeros(shape), moments_of(mechanism), 1 / n, n, truth=truth, combined=combined)


def _collided(mechanism: SharedHashes, share: F64, n: float, rows: F64) -> F64:
    """Variance of sums of an oracle with public hash functions, over coins and functions: values share cells."""
    own = share * (share - 1 / n)
    alone = own.sum() - own - share**2
    shared = np.clip(rows**2 @ alone + (rows @ share) ** 2, 0, None)
    return mechanism.moments.combined(rows, share) / n + shared / mechanism.sharing


def _expected_signs(mechanism: OneOf, family: Coefficients, n: float, truth: Share) -> FromSigns:
    _, noise = sign_channel(mechanism)
    total = mechanism.bounds[-1]
    scale = total / (np.array(family.weights, np.float64) * n)
    return FromSigns(family, np.zeros(len(family)), noise, scale, n, truth)
