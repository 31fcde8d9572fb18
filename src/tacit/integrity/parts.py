"""The oracles of which a mechanism is made, each with its own reports and counts: questions, levels, views.

Detectors look at one oracle at a time. Where respondents answer one of several members (`one_of`), or all (`all_of`),
every member is a part; a member may be composed itself. A path names a part: () is the mechanism, (2,) its member 2.
"""

from dataclasses import dataclass
from typing import Any

from tacit.core.all_of import AllOf
from tacit.core.mechanism import Mechanism, Reports
from tacit.core.one_of import OneOf
from tacit.core.tally import Counts
from tacit.integrity.structure import Structured, structured, unwrapped

MOST_PARTS = 64
"""Of a mechanism with more parts none is looked at: each would have too few reports to show anything."""

Path = tuple[int, ...]


@dataclass(frozen=True)
class OraclePart:
    """An oracle inside a mechanism."""

    path: Path
    oracle: Mechanism

    @property
    def structured(self) -> Structured | None:
        """The oracle if its reports support many values each; else None."""
        return structured(self.oracle)


def parts_of_mechanism(mechanism: Mechanism) -> list[OraclePart]:
    """Return all oracles of a mechanism, or none where there are too many."""
    found = _parts(mechanism, (), MOST_PARTS)
    return found if len(found) <= MOST_PARTS else []


def _parts(mechanism: Mechanism, path: Path, most: int) -> list[OraclePart]:
    whole = unwrapped(mechanism)
    if not isinstance(whole, OneOf | AllOf):
        return [OraclePart(path, whole)]
    found: list[OraclePart] = []
    for i in range(whole.member_count):
        found += _parts(whole.member(i), (*path, i), most)
        # Families may have thousands of members, which are not walked through.
        if len(found) > most:
            break
    return found


def part_reports(mechanism: Mechanism, path: Path, reports: Reports) -> Reports:
    """The reports of one part, out of those of the mechanism."""
    for i in path:
        whole = unwrapped(mechanism)
        assert isinstance(whole, OneOf | AllOf)
        mine = reports[reports["member"] == i] if isinstance(whole, OneOf) else reports
        mechanism, reports = whole.member(i), whole.payload(i, mine)
    return reports


def part_counts(mechanism: Mechanism, path: Path, tally: Any) -> Counts | None:
    """The counts of one part, out of the tally of the mechanism; None where reports are logged."""
    for i in path:
        whole = unwrapped(mechanism)
        assert isinstance(whole, OneOf | AllOf)
        # The counts of a log would be made of all reports, whenever somebody looks.
        if isinstance(whole, AllOf) and whole.state == "log":
            return None
        mechanism, tally = whole.member(i), whole.marginal(tally, i)
    return tally if isinstance(tally, Counts) else None
