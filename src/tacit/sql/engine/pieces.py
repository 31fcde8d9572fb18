"""One query over one piece of a table (a sealed segment, or all rows in memory): which sums to take, and taking them.

Query --Run(piece)--> jobs: one per private group x aggregate x function of private values
jobs  --fill-------->  every distinct region is scanned once; its terms are added to all jobs that ask for it
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import Any

import numpy as np

from tacit.arrays import F64, Mask
from tacit.sql.engine.aggregate import GroupSums, PublicMeasure, is_centred
from tacit.sql.engine.picked import Picks
from tacit.sql.engine.plan import powers_of
from tacit.sql.engine.predicate import Conditions, MaskedRegion
from tacit.sql.engine.public import RowEvaluator
from tacit.sql.engine.query import Query
from tacit.sql.engine.scores import Scores
from tacit.sql.engine.source import Asked, TermSource
from tacit.sql.engine.terms import constant_terms
from tacit.sql.engine.weights import Weights, no_weights
from tacit.sql.parse.syntax import Aggregate, Both, Condition, columns_in
from tacit.sql.patience import Check, patient
from tacit.sql.schema.regions import Region


@dataclass(frozen=True, eq=False)
class Piece:
    """Some rows of a table: their public columns, and the source of their private terms."""

    public: RowEvaluator
    source: TermSource
    lock: Lock = field(default_factory=Lock)
    """Held while a query scans the piece, whose caches and large temporary arrays then belong to that query alone."""


class Centres:
    """The origin of the powers of every measure: sums are taken of (x - centre)^k, for numerical stability.

    Any number gives the same answer in exact arithmetic; one near the measures keeps large numbers of small spread,
    such as timestamps, from cancelling. All pieces must use the same centre, as their sums are added: it is the mean
    in the first piece that has values.
    """

    def __init__(self, known: Mapping[int, float] | None = None) -> None:
        """Begin with centres that are known, by the place of the aggregate; the first piece with values sets others."""
        self._known: dict[int, float] = dict(known or {})
        self._lock = Lock()

    def of(self, place: int, function: str, measure: F64 | None, present: Mask | None) -> float:
        """The centre of the aggregate at `place`; 0 for COUNT and SUM, which do not cancel, and for empty pieces."""
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
class AggregateJob:
    """One aggregate of one private group: which rows are asked for which region, and the running sums."""

    measured: PublicMeasure
    parts: list[MaskedRegion]
    total: GroupSums

    def add(self, part: MaskedRegion, picks: Picks) -> None:
        """Add the terms of a block to the sums."""
        self.total = self.total + self.measured.sums(picks, part.mask)


class Run:
    """One query over one piece."""

    def __init__(self, query: Query, public: RowEvaluator, centres: Centres, check: Check = patient) -> None:
        """Nothing is computed yet; the check is called between steps."""
        self._query, self._check = query, check
        self._public = public
        self._centres = centres
        self._conditions = Conditions(query.schema, public)
        self._weights: dict[tuple[int, int], tuple[MaskedRegion, Weights]] = {}
        """Cache by (aggregate, id of mask). The part is stored too, since an id is valid only while its mask lives."""

    @property
    def n(self) -> int:
        """Number of rows."""
        return self._public.rows.n

    @property
    def keys(self) -> list[tuple[Any, ...]]:
        """The keys of the public groups that occur in this piece."""
        return self._public.groups(self._query.public)[1]

    @cached_property
    def jobs(self) -> list[AggregateJob]:
        """One job per private group, aggregate and function of private values, in this nesting; see `QuerySums`."""
        aggregates = self._query.select.aggregates
        measured = [self._measured(i, item) for i, item in enumerate(aggregates)]
        for item, one, parts in zip(aggregates, measured, self._every_part, strict=True):
            self._check_measure(item, one, parts)
        return [
            AggregateJob(measured[i], parts, measured[i].nothing(self._asked(i, measured[i], parts)))
            for _, region in self._query.private_groups
            for i, whole in enumerate(self._parts(region))
            for parts in self._scored(i, whole)
        ]

    def _scored(self, place: int, parts: list[MaskedRegion]) -> list[list[MaskedRegion]]:
        """The parts of an aggregate; once per function if it is SUM, AVG or a quantile of a private number."""
        number = self._query.numbers[place]
        if number is None:
            return [parts]
        return [
            [MaskedRegion(part.mask, Scores(_plain(part), number.place, steps)) for part in parts]
            for steps in number.functions
        ]

    def _measured(self, place: int, item: Aggregate) -> PublicMeasure:
        self._check()
        codes, keys = self._public.groups(self._query.public)
        measure, present = self._measure(item)
        centre = self._centres.of(place, item.function, measure, present)
        function = item.function if self._query.numbers[place] is None else "count"
        return PublicMeasure(function, measure, present, codes if self._query.public else None, len(keys), centre)

    def _asked(self, place: int, measured: PublicMeasure, parts: Sequence[MaskedRegion]) -> Weights:
        """Weights of the rows whose reports the aggregate uses, for the minimum cohort.

        They depend on public columns alone, so the private groups, which have the same masks, share them.
        """
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
    def _every_part(self) -> list[list[MaskedRegion]]:
        """Masks and regions of every aggregate, before private groups; equal FILTERs share one list object."""
        found: dict[Condition, list[MaskedRegion]] = {}
        for item in self._query.select.aggregates:
            if item.condition not in found:
                self._check()
                found[item.condition] = self._conditions.parts(Both((self._query.select.condition, item.condition)))
        return [found[item.condition] for item in self._query.select.aggregates]

    def _parts(self, region: Region) -> list[list[MaskedRegion]]:
        """Masks and regions of every aggregate inside one private group."""
        if region.is_full:
            return self._every_part
        self._check()
        different = {id(parts): parts for parts in self._every_part}
        narrowed = {
            key: [MaskedRegion(part.mask, _plain(part) & region) for part in parts] for key, parts in different.items()
        }
        left = {key: [part for part in parts if not part.region.is_empty] for key, parts in narrowed.items()}
        return [left[id(parts)] for parts in self._every_part]

    def _measure(self, item: Aggregate) -> tuple[F64 | None, Mask | None]:
        schema, column = self._query.schema, item.argument
        if column is None or any(schema.dimension(name) is not None for name in columns_in(column)):
            return None, None
        if item.function == "count":
            return None, self._public.present(column)
        return self._public.measure(column)

    def measure_sums(self) -> dict[int, tuple[int, float]]:
        """Number and sum of the measures of every aggregate that has a centre, from which their mean follows."""
        found: dict[int, tuple[int, float]] = {}
        for place, item in enumerate(self._query.select.aggregates):
            measure, present = self._measure(item) if is_centred(item.function) else (None, None)
            if measure is not None:
                there = measure if present is None else measure[present]
                usable = there[np.isfinite(there)]
                found[place] = len(usable), float(usable.sum())
        return found

    def _check_measure(self, item: Aggregate, measured: PublicMeasure, parts: Sequence[MaskedRegion]) -> None:
        """Refuse NaN and huge measures, but only in rows that the aggregate asks for: a WHERE may leave them out."""
        if measured.measure is not None and item.argument is not None:
            self._public.check_measure(item.argument, [part.mask for part in parts])

    def weights(self) -> list[dict[Asked, F64]]:
        """For EXPLAIN: by job, region -> sums of powers of the (centred) measure over the rows that ask for it."""
        found: list[dict[Asked, F64]] = []
        every: list[list[tuple[MaskedRegion, F64]]] = []
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


def _plain(part: MaskedRegion) -> Region:
    """The region of a part that came from conditions, which never has scores."""
    assert isinstance(part.region, Region)
    return part.region


def fill(runs: Sequence[Run], source: TermSource, check: Check = patient) -> None:
    """Run the jobs of several queries over one piece in one scan.

    Every distinct region is evaluated once, however many aggregates ask for it.
    """
    asked: dict[Asked, list[tuple[AggregateJob, MaskedRegion]]] = {}
    for run in runs:
        # Full and empty regions need no reports: their terms are 1 or 0 in all rows.
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
