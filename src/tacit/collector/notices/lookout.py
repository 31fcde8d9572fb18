"""The lookout: what operators want to be told about collections, found by looking at them now and then.

An event is told once, whichever process sees it first, because its mark is unique in the database:

    alarm     the detectors raise an alarm; again at the earliest when the number of reports has doubled
    rejects   at least 100 reports were refused, and more than 5 % of all; again when their number has doubled
    cohort    the minimum cohort is reached, so that there are answers
    closed    the collection takes no more reports
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import log2
from threading import Lock
from typing import Any

from tacit.collector.notices.webhooks import Event, Webhooks

LOG = logging.getLogger("tacit.collector")

LEAST_REFUSED, MOST_REFUSED_SHARE = 100, 0.05
NOT_REFUSALS = ("duplicate", "closed")
"""Reasons for which honest devices are refused every day: a repeated upload, and one after closing."""
MOST_GAUGES = 200
"""Collections that have gauges: the latest ones. Every label is a series that whoever reads metrics must keep."""
_LABEL_DIGITS = 12
_STATES = {"quiet": 0, "look": 1, "alarm": 2}


@dataclass(frozen=True)
class Sight:
    """What is known of a collection at one moment."""

    collection: str
    state: str
    """"published" or "closed"."""
    team: str
    reports: int
    cohort: int
    rejected: Mapping[str, int]

    @property
    def refused(self) -> int:
        """Reports that were refused for a reason that honest devices do not give."""
        return sum(count for reason, count in self.rejected.items() if reason not in NOT_REFUSALS)


@dataclass(frozen=True)
class LastInspection:
    """What the detectors said last, and of how many reports."""

    state: str
    least_p: float
    reports: int


def doublings(number: int, first: int) -> int:
    """How often a number has doubled since it was `first`.

    >>> doublings(100, 100), doublings(399, 100), doublings(400, 100)
    (0, 1, 2)
    """
    return int(log2(max(1.0, number / first)))


def events_of(sight: Sight, verdict: LastInspection | None) -> list[Event]:
    """What is to be told of a collection, whether it was told before or not."""
    counts = {"reports": sight.reports, "refused": sight.refused, "state": sight.state}
    found: dict[str, str] = {}
    if verdict is not None and verdict.state == "alarm":
        found["alarm"] = f"alarm {doublings(verdict.reports, 100)}"
        counts["integrity"] = verdict.state
    if sight.refused >= LEAST_REFUSED and sight.refused > MOST_REFUSED_SHARE * (sight.reports + sight.refused):
        found["rejects"] = f"rejects {doublings(sight.refused, LEAST_REFUSED)}"
    if sight.reports >= sight.cohort:
        found["cohort"] = "cohort"
    if sight.state == "closed":
        found["closed"] = "closed"
    return [
        Event(name, sight.collection, sight.team, f"{sight.collection} {mark}", counts) for name, mark in found.items()
    ]


class Lookout:
    """Looks at collections, remembers the latest verdicts for gauges, and announces events."""

    def __init__(
        self,
        webhooks: Webhooks,
        sights: Callable[[], "list[Sight]"],
        inspect: Callable[[str], "dict[str, Any] | None"],
    ) -> None:
        """Announce to webhooks; `inspect` returns what the integrity of a collection is, None where it has none."""
        self._webhooks, self._sights, self._inspect = webhooks, sights, inspect
        self._lock = Lock()
        self._seen: dict[str, tuple[Sight, LastInspection | None]] = {}
        # Marks that are known to be in the database, so that it is not asked again.
        self._told: set[str] = set()

    def look(self) -> None:
        """Look at every collection that has changed since the last look."""
        sights = self._sights()
        for sight in sights:
            before = self._seen.get(sight.collection)
            if before is not None and before[0] == sight:
                continue
            try:
                verdict = self._verdict(sight, None if before is None else before[1])
            except Exception as error:
                # One collection that cannot be inspected must not silence the others. It is tried again at every look.
                LOG.warning("lookout: an inspection failed with %s", type(error).__name__)
                self._announce(events_of(sight, None))
                continue
            with self._lock:
                self._seen[sight.collection] = sight, verdict
            self._announce(events_of(sight, verdict))
        self._forget({sight.collection for sight in sights})

    def _verdict(self, sight: Sight, before: LastInspection | None) -> LastInspection | None:
        """What the detectors say now; as before where hardly any report has come since."""
        if sight.reports < sight.cohort:
            return None
        if before is not None and before.reports <= sight.reports < 1.01 * before.reports:
            return before
        found = self._inspect(sight.collection)
        if found is None or found["status"] != "ok":
            return None
        least = min((one["p_value"] for look in found["inspections"] for one in look["findings"]), default=1.0)
        return LastInspection(found["state"], least, sight.reports)

    def _announce(self, events: "list[Event]") -> None:
        for event in events:
            if event.mark not in self._told:
                self._webhooks.announce(event)
                self._told.add(event.mark)

    def _forget(self, present: set[str]) -> None:
        with self._lock:
            for gone in self._seen.keys() - present:
                del self._seen[gone]

    def gauges(self) -> dict[str, float]:
        """Gauges of the latest collections, by name with labels.

        Labels are the first digits of ids, which tell operators which collection it is, and open none.
        """
        with self._lock:
            seen = list(self._seen.values())[-MOST_GAUGES:]
        rows: dict[str, dict[str, float]] = {
            "tacit_integrity_state": {},
            "tacit_integrity_least_p_value": {},
            "tacit_collection_refused": {},
        }
        for sight, verdict in seen:
            label = f'{{collection="{sight.collection[:_LABEL_DIGITS]}"}}'
            rows["tacit_collection_refused"][label] = float(sight.refused)
            if verdict is not None:
                rows["tacit_integrity_state"][label] = float(_STATES[verdict.state])
                rows["tacit_integrity_least_p_value"][label] = verdict.least_p
        return {name + label: value for name, values in rows.items() for label, value in values.items()}
