"""Decode RAPPOR tallies: which of many candidates are present, and how frequent they are.

The collector's end of `decode.regression`: it builds the design matrix from the mechanism and turns the result into an
`Estimate` with covariance. Reference: Erlingsson, Pihur and Korolova, CCS 2014, section 4.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.arrays import F64
from tacit.core.estimate import Estimate, no_data
from tacit.core.statistics.least_squares import linear_solver
from tacit.core.tally import Counts
from tacit.decode.regression import Decoded, decode_candidates
from tacit.oracles.rappor import RAPPOR


@dataclass(frozen=True, eq=False)
class DecodedRAPPOR:
    """Frequencies of groups of candidates that share all their bits, and the mass nobody listed.

    `estimate` has one cell per group, labelled by the ids of the group; `decoded` says which are significant.
    `unlisted` is meaningful after "least_squares" only: a LASSO shifts what it leaves to the intercept.
    """

    estimate: Estimate
    decoded: Decoded
    unlisted: float
    unlisted_standard_error: float


def decode_rappor(
    mechanism: RAPPOR,
    tally: Counts,
    candidates: npt.ArrayLike,
    *,
    alpha: float = 0.05,
    complete: bool = False,
    penalty_factor: float = 2.0,
) -> DecodedRAPPOR:
    """Estimate candidates and test which are present, with family-wise error `alpha` over all of them.

    Rows are weighted by their own noise. `complete` says that every value anybody holds is listed.
    """
    ids = mechanism.ids(candidates)
    design, (share, variance) = mechanism.design(ids), mechanism.bit_frequencies(tally)
    decoded = decode_candidates(
        design, share, variance, alpha=alpha, intercept=not complete, penalty_factor=penalty_factor
    )
    # An unlisted value sets a share hashes/bits of all bits, which is what the intercept sees of it.
    scale = mechanism.bits / mechanism.hashes
    return DecodedRAPPOR(
        _estimate(mechanism, tally, decoded, ids, complete),
        decoded,
        scale * decoded.intercept,
        scale * decoded.intercept_standard_error,
    )


def _estimate(
    mechanism: RAPPOR, tally: Counts, decoded: Decoded, ids: npt.NDArray[np.uint64], complete: bool
) -> Estimate:
    labels = [tuple(ids[list(group)].tolist()) for group in decoded.groups]
    if tally.is_empty:
        return no_data(len(labels), labels)
    return Estimate(
        decoded.frequency,
        decoded.standard_error**2,
        tally.n,
        total=float(tally.total),
        labels=labels,
        effective=1 / tally.variance_scale,
        covariance=_covariance(mechanism, tally, decoded, ids, complete),
    )


def _covariance(
    mechanism: RAPPOR, tally: Counts, decoded: Decoded, ids: npt.NDArray[np.uint64], complete: bool
) -> "Callable[[F64], F64]":
    """Variances of linear combinations of groups; infinite where a group takes part that was not fitted."""
    # Candidates of a group have equal columns, so the first of each stands for all.
    fitted = decoded.fitted
    first = [group[0] for group, chosen in zip(decoded.groups, fitted, strict=True) if chosen]
    _, variance = mechanism.bit_frequencies(tally)
    answered = np.isfinite(variance)
    columns = mechanism.design(ids[first])[answered].astype(np.float64)
    if not complete:
        columns = np.column_stack([columns, np.ones(len(columns))])
    noise = variance[answered]
    solver = linear_solver(columns, 1 / noise)

    def combined(rows: F64) -> F64:
        full = np.zeros((len(rows), columns.shape[1]))
        full[:, : len(first)] = rows[:, fitted]
        known = solver.identifies(full) & ~(rows[:, ~fitted] != 0).any(axis=1)
        return np.where(known, (full @ solver.operator) ** 2 @ noise, np.inf)

    return combined
