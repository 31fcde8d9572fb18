"""Validation of tallies read from a file or a database: none of their bytes reaches a kernel before it passed here.

`CellRule` says what cells of n reports can be; here the rules are applied to every state of a tally: counts, logs, and
the tables of families (`MemberCounts`, with a line of cells per member).
"""

from typing import Any

import numpy as np

from tacit.arrays import I64
from tacit.core.cell_rule import LIMIT, CellRule
from tacit.core.mechanism import Mechanism
from tacit.core.members import AnyTally, MemberCounts, PerMember
from tacit.core.tally import Counts, Log, check_weights, same_mechanism
from tacit.device.base import Device
from tacit.errors import ReportRejected


def check_tally(mechanism: Device, tally: AnyTally) -> None:
    """Refuse a tally that no reports of this mechanism add up to: forged or damaged cells, logs, weights or totals.

    Raises ReportRejected that says what is impossible, SpecMismatch for a tally of another mechanism, and Overflow for
    weights whose sums would leave 62 bits. What passes can be added and estimated without a wrong read or a wrapped
    integer; that the numbers are the true ones, a checksum has to tell.
    """
    same_mechanism(mechanism, tally.mechanism, action="read this tally")
    if isinstance(tally, PerMember):
        _check_members(tally)
    elif isinstance(tally, Log):
        _check_log(tally)
    else:
        _check_counts(tally)


def _refuse(mechanism: Device, fault: str) -> None:
    """Raise ReportRejected for a fault; do nothing for the empty text, which means that there is none."""
    if fault:
        raise ReportRejected(
            f"{mechanism.kind} {mechanism.digest[:6]}: {fault}; the stored tally is damaged, restore it from a copy"
        )


def _rule(mechanism: Device) -> CellRule:
    assert isinstance(mechanism, Mechanism)
    return mechanism.cell_rule


def _check_counts(tally: Counts) -> None:
    """Check counts of one mechanism, as a table with a single line."""
    numbers = (tally.n, tally.total, tally.total2)
    if not all(-LIMIT < number < LIMIT for number in numbers):
        _refuse(tally.mechanism, "the number of reports or a total is beyond 62 bits")
    n, total, total2 = (np.array([number], np.int64) for number in numbers)
    _check_lines(tally.mechanism, n, (total, total2), tally.cells.reshape(1, -1), _squares(tally))


def _squares(tally: Counts) -> I64 | None:
    return tally.cells2.reshape(1, -1) if tally.is_weighted else None


def _check_lines(mechanism: Device, n: I64, totals: tuple[I64, I64], cells: I64, cells2: I64 | None) -> None:
    rule = _rule(mechanism)
    if cells2 is not None:
        return _refuse(mechanism, rule.weighted_fault(n, totals, cells, cells2))
    if np.any(totals[0] != n) or np.any(totals[1] != n):
        _refuse(mechanism, "the totals are not the number of reports")
    return _refuse(mechanism, rule.fault(n, cells))


def _check_log(tally: Log) -> None:
    mechanism = tally.mechanism
    assert isinstance(mechanism, Mechanism)
    for chunk in tally.chunks:
        mechanism.check_reports(chunk)
    if tally.weights is not None:
        if [len(chunk) for chunk in tally.chunks] != [len(weights) for weights in tally.weights]:
            _refuse(mechanism, "the log has another number of weights than of reports")
        check_weights(*tally.weights)


def _check_members(tally: PerMember) -> None:
    for part in tally.parts:
        if isinstance(part, MemberCounts):
            _check_grid(part)
        else:
            for member in part:
                assert isinstance(member.mechanism, Mechanism)
                check_tally(member.mechanism, member)
    _check_together(tally)


def _check_grid(grid: MemberCounts) -> None:
    lines = len(grid.n)
    cells2 = grid.cells2.reshape(lines, -1) if grid.is_weighted else None
    _check_lines(grid.mechanism, grid.n, (grid.total, grid.total2), grid.cells.reshape(lines, -1), cells2)


def _check_together(tally: PerMember) -> None:
    """Check that the members fit each other.

    Under `one_of` each respondent is in one member's tally, under `all_of` in all; all members are weighted or none.
    """
    sizes: list[Any] = []
    weighted: set[bool] = set()
    for part in tally.parts:
        for member in (part,) if isinstance(part, MemberCounts) else part:
            # A table has a number of reports per line, everything else one. Empty members may be of either weighting.
            numbers = member.n.tolist() if isinstance(member, MemberCounts) else [member.n]
            sizes += numbers
            weighted |= {member.is_weighted} if any(numbers) else set()
    everybody = tally.mechanism.drawn_from is None
    if any(size != tally.n for size in sizes) if everybody else sum(sizes) != tally.n:
        _refuse(tally.mechanism, "the members' reports are not as many as the tally states")
    if len(weighted) > 1:
        _refuse(tally.mechanism, "some members are weighted and others are not")
