"""Queries over one piece of a table: rows with their reports, whole or a segment."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.tasks.analytics.aggregate import GroupSums, Measured, is_centred
from tacit.tasks.analytics.patience import Check, patient
from tacit.tasks.analytics.picked import Picks
from tacit.tasks.analytics.plan import powers_of
from tacit.tasks.analytics.predicate import Conditions, Part
from tacit.tasks.analytics.public import Public
from tacit.tasks.analytics.query import Query
from tacit.tasks.analytics.regions import Region
from tacit.tasks.analytics.scores import Scores
from tacit.tasks.analytics.source import Asked, Source
from tacit.tasks.analytics.syntax import Aggregate, Both, Column, Condition, columns_in
from tacit.tasks.analytics.terms import constant_terms
from tacit.tasks.analytics.weights import Weights, no_weights

F64 = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Piece:
    """Some rows of a table: their public columns, and where their terms come from."""

    public: Public
    source: Source
    lock: Lock = field(default_factory=Lock)
    """One query at a time goes through a piece."""


class Centres:
    """Where powers of measures are taken from, the same in all pieces: a mean in the first one that has values.

    Any number does; one near the measures keeps large ones of small spread from cancelling.
    """

    def __init__(self) -> None:
        """Nothing is known yet."""
        self._known: dict[int, float] = {}
        self._lock = Lock()

    def of(self, place: int, function: str, measure: F64 | None, present: Mask | None) -> float:
        """The centre of one aggregate; pieces without values need none."""
        if measure is None or not is_centred(function):
            return 0.0
        with self._lock:
            if place not in self._known:
                there = measure if present is None else measure[present]
                if not len(there):
                    return 0.0
                self._known[place] = float(np.mean(there))
            return self._known[place]


@dataclass(eq=False)
class Job:
    """One aggregate of one private group: which rows are asked for what, and the sums so far."""

    measured: Measured
    parts: list[Part]
    total: GroupSums

    def add(self, part: Part, picks: Picks) -> None:
        """Count the terms of some rows."""
        self.total = self.total + self.measured.sums(picks, part.mask)


class Run:
    """One query over one piece."""

    def __init__(self, query: Query, public: Public, centres: Centres, check: Check = patient) -> None:
        """Nothing is computed yet; the check is called between steps."""
        self._query, self._check = query, check
        self._public = public
        self._centres = centres
        self._conditions = Conditions(query.schema, public)
        self._weights: dict[tuple[int, int], tuple[Part, Weights]] = {}
        """By aggregate and mask; masks are told apart by their identity, so parts are held on to."""

    @property
    def n(self) -> int:
        """Number of rows."""
        return self._public.rows.n

    @property
    def keys(self) -> list[tuple[Any, ...]]:
        """Values of the public groups that occur."""
        return self._public.groups(self._query.public)[1]

    @cached_property
    def jobs(self) -> list[Job]:
        """One per private group, aggregate and function of private values that it needs, in this order."""
        aggregates = self._query.select.aggregates
        measured = [self._measured(i, item) for i, item in enumerate(aggregates)]
        for item, one, parts in zip(aggregates, measured, self._every_part, strict=True):
            self._check_measure(item, one, parts)
        return [
            Job(measured[i], parts, measured[i].nothing(self._asked(i, measured[i], parts)))
            for _, region in self._query.private_groups
            for i, whole in enumerate(self._parts(region))
            for parts in self._scored(i, whole)
        ]

    def _scored(self, place: int, parts: list[Part]) -> list[list[Part]]:
        """The parts of an aggregate, once for every function of a private number that it needs."""
        number = self._query.numbers[place]
        if number is None:
            return [parts]
        return [
            [Part(part.mask, Scores(_plain(part), number.place, steps)) for part in parts] for steps in number.functions
        ]

    def _measured(self, place: int, item: Aggregate) -> Measured:
        self._check()
        codes, keys = self._public.groups(self._query.public)
        measure, present = self._measure(item)
        centre = self._centres.of(place, item.function, measure, present)
        function = item.function if self._query.numbers[place] is None else "count"
        return Measured(function, measure, present, codes if self._query.public else None, len(keys), centre)

    def _asked(self, place: int, measured: Measured, parts: Sequence[Part]) -> Weights:
        """How the rows whose reports are used weigh; worked out once for rows that many private groups ask."""
        found = no_weights(measured.groups)
        for part in parts:
            if part.is_known:
                continue
            key = place, id(part.mask)
            if key not in self._weights:
                self._weights[key] = part, measured.asked(part.mask, self.n)
            found = found + self._weights[key][1]
        return found

    @cached_property
    def _every_part(self) -> list[list[Part]]:
        """Rows and regions of every aggregate, private groups apart; of equal conditions they are the same."""
        found: dict[Condition, list[Part]] = {}
        for item in self._query.select.aggregates:
            if item.condition not in found:
                self._check()
                found[item.condition] = self._conditions.parts(Both((self._query.select.condition, item.condition)))
        return [found[item.condition] for item in self._query.select.aggregates]

    def _parts(self, region: Region) -> list[list[Part]]:
        """The same inside one private group."""
        if region.is_full:
            return self._every_part
        self._check()
        different = {id(parts): parts for parts in self._every_part}
        narrowed = {key: [Part(part.mask, _plain(part) & region) for part in parts] for key, parts in different.items()}
        left = {key: [part for part in parts if not part.region.is_empty] for key, parts in narrowed.items()}
        return [left[id(parts)] for parts in self._every_part]

    def _measure(self, item: Aggregate) -> tuple[F64 | None, Mask | None]:
        schema, column = self._query.schema, item.argument
        if column is None or any(schema.dimension(name) is not None for name in columns_in(column)):
            return None, None
        if item.function == "count" and isinstance(column, Column):
            return None, self._public.present(column.name)
        return self._public.measure(column)

    def _check_measure(self, item: Aggregate, measured: Measured, parts: Sequence[Part]) -> None:
        """Refuse values that cannot be summed in the rows that are asked for; elsewhere they do no harm."""
        if measured.measure is not None and item.argument is not None:
            self._public.check_measure(item.argument, [part.mask for part in parts])

    def weights(self) -> list[dict[Asked, F64]]:
        """What every aggregate of every private group asks for, and sums of powers of the (centred) measures."""
        found: list[dict[Asked, F64]] = []
        every: list[list[tuple[Part, F64]]] = []
        for i, (item, parts) in enumerate(zip(self._query.select.aggregates, self._every_part, strict=True)):
            self._check()
            measure, present = self._measure(item)
            centre = self._centres.of(i, item.function, measure, present)
            centred = measure - centre if measure is not None and centre else measure
            every.append([(part, powers_of(part.mask, centred, present, self.n)) for part in parts])
        for _, group in self._query.private_groups:
            self._check()
            for parts, number in zip(every, self._query.numbers, strict=True):
                sums: dict[Asked, F64] = {}
                for part, powers in parts:
                    plain = _plain(part) & group
                    region: Asked = plain if number is None else number.expected(plain)
                    if group.is_full or not region.is_empty:
                        sums[region] = sums.get(region, np.zeros(len(powers))) + powers
                found.append(sums)
        return found


def _plain(part: Part) -> Region:
    """The region of a part that conditions make."""
    assert isinstance(part.region, Region)
    return part.region


def fill(runs: Sequence[Run], source: Source, check: Check = patient) -> None:
    """Do the jobs of several queries; every region is looked at once, however many aggregates ask for it."""
    asked: dict[Asked, list[tuple[Job, Part]]] = {}
    for run in runs:
        known = {full: Picks(constant_terms(run.n, float(full)), slice(0, run.n)) for full in (False, True)}
        for job in run.jobs:
            for part in job.parts:
                if part.is_known:
                    check()
                    job.add(part, known[part.region.is_full])
                else:
                    asked.setdefault(part.region, []).append((job, part))
    for region, rows, terms in source.scan(list(asked), check):
        picks = Picks(terms, rows)
        for job, part in asked[region]:
            check()
            job.add(part, picks)
