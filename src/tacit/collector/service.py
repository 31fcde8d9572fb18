"""The collector as one object: a store, and everything that works on it."""

import logging
from collections.abc import Callable, Mapping
from time import monotonic
from typing import Any

from tacit.catalog import CATALOG
from tacit.collector.access import Access, today
from tacit.collector.active import Active, Catalog, Shelf, parsed_json
from tacit.collector.answer import Answers, answer, answer_plan, answer_rows
from tacit.collector.ask import ask, ask_joint
from tacit.collector.damage import Damage
from tacit.collector.fold import Folder, Housekeeping
from tacit.collector.ingest import Ingest, Rejections
from tacit.collector.metrics import Metrics
from tacit.collector.ports import CollectionRecord, Store
from tacit.collector.problems import Problem
from tacit.collector.publish import Planner, find_record
from tacit.collector.readiness import Readiness
from tacit.collector.retention import Retention
from tacit.collector.rounds import Rounds
from tacit.collector.rows.segments import RowSegment, SegmentFiles
from tacit.collector.totals import Totals
from tacit.collector.work import Work, WorkLimits
from tacit.collector.writer import Writer
from tacit.core.members import AnyTally
from tacit.device.canonical import canonical
from tacit.errors import StorageDamaged
from tacit.tasks.table import TASKS
from tacit.tasks.task import Task

LOG = logging.getLogger("tacit.collector")

FRESH_SECONDS = 2.0
"""How long an answer waits for reports that are stored and not yet folded."""

RETIRE_SECONDS = 3600.0
"""How often the collector looks for what is past its retention."""

SWEEP_SECONDS = 300.0
"""How often the collector looks for files of segments that nobody needs any more."""

DAMAGE_SECONDS = 300.0
"""How often the collector reads all tallies to see whether they are as they were written."""

ADVANCE_SECONDS = 2.0
"""How often rounds of adaptive plans are looked at."""


class Collector:
    """Publishes, ingests, folds and answers; knows nothing of HTTP."""

    def __init__(
        self,
        store: Store,
        *,
        catalog: Catalog = CATALOG,
        tasks: tuple[Task, ...] = TASKS,
        shard: str = "main",
        day: Callable[[], int] = today,
        work: WorkLimits | None = None,
    ) -> None:
        """Work on a store with the kinds, tasks and calendar given; tests bring their own."""
        self.store, self.tasks = store, tasks
        self.files = SegmentFiles(store.segments)
        self.planner = Planner(catalog, tasks, takes_rows=self.files.is_ready)
        self.shelf, self.rejections, self.writer = Shelf(store, catalog), Rejections(), Writer(store)
        self.access, self.metrics = Access(store, day), Metrics()
        self.work = Work(work)
        self.readiness = Readiness(store, self.writer)
        self.ingest = Ingest(self.shelf, self.writer, self.rejections, takes_rows=self.files.is_ready)
        self.folder = Folder(store, self.shelf, self.files, shard=shard)
        self.damage = Damage(self.folder)
        self._when_dropped: list[Callable[[str], None]] = [self.files.drop, self.damage.forget]
        self.retention = Retention(store, day, forget=self._forget)
        self.rounds = Rounds(store, self.shelf, self.folder, tasks)
        self._totals = Totals(store, self.folder)
        self.started = monotonic()
        self._touched: set[str] = set()
        self._housekeeping = Housekeeping([
            (self.fold_touched, 0.25),
            (self.flush_rejections, 1.0),
            (self.rounds.advance_due, ADVANCE_SECONDS),
            (self.touch_all, 60.0),
            (self.retire, RETIRE_SECONDS),
            (self.sweep, SWEEP_SECONDS),
            (self.look_for_damage, DAMAGE_SECONDS),
        ])  # fmt: skip

    def start(self) -> None:
        """Drop what is past its retention, and begin folding what an earlier process left behind."""
        self.retire()
        self.touch_all()
        self._housekeeping.start()

    def stop(self) -> None:
        """Store what was accepted, note refusals, and release the database."""
        self.work.stop()
        self._housekeeping.stop()
        self.writer.stop()
        try:
            self.flush_rejections()
        finally:
            self.store.close()

    def touch(self, collection: str) -> None:
        """Say that a collection has batches to fold."""
        self._touched.add(collection)

    def touch_all(self) -> None:
        """Look at every collection again: another process may have left batches."""
        self._touched.update(self.shelf.all_ids())

    def fold_touched(self) -> None:
        """Fold what has arrived since; a collection that fails waits for `touch_all`, and does not hold up others."""
        touched = {collection for collection in list(self._touched) if self.folder.is_due(collection)}
        self._touched -= touched
        failure: Exception | None = None
        while touched:
            collection = touched.pop()
            try:
                folded = self.folder.fold_all(collection, FRESH_SECONDS)
            except StorageDamaged as error:
                # Damage does not go away by trying again; whoever reads the log is told which collection it is.
                LOG.error("%s", error)
            except Exception as error:
                failure = error
            else:
                self.metrics.count("tacit_folded_batches_total", amount=folded)
                if folded:
                    # Time may have run out before everything was folded.
                    self.touch(collection)
        if failure is not None:
            raise failure

    def flush_rejections(self) -> None:
        """Count refusals in the store."""
        self.rejections.flush(self.store)

    def sweep(self) -> None:
        """Remove the files of segments that nobody needs any more."""
        self.folder.sweep()

    def look_for_damage(self) -> None:
        """Read the tallies of all collections, for the metric and the log."""
        for collection in self.shelf.all_ids():
            active = self.shelf.find(collection)
            if active is not None:
                self._is_damaged(active)

    def _is_damaged(self, active: Active) -> bool:
        return self.damage.look(active.id, rows=active.collection.rows is not None)

    def stored(self, active: Active) -> tuple[int, bool]:
        """The number of stored reports, and whether the collection is damaged; what is damaged is not counted."""
        damaged = self._is_damaged(active)
        return 0 if damaged else self.store.stored_reports(active.id), damaged

    def segments(self, collection: str) -> list[RowSegment]:
        """The rows of a collection as sealed segments, sealing first what is waiting."""
        active = self.find(collection)
        if active.collection.rows is None:
            raise Problem("conflict", "the collection has no rows; read its answers instead")
        self.folder.fold_all(collection, FRESH_SECONDS)
        return self.folder.segments(active)

    def retire(self) -> None:
        """Drop the reports of collections that are past the retention their documents state."""
        self.retention.look()
        self._totals.forget()

    def when_dropped(self, forget: Callable[[str], None]) -> None:
        """Have something called with every collection whose reports are dropped, to forget what it keeps of them."""
        self._when_dropped.append(forget)

    def _forget(self, collection: str) -> None:
        for forget in self._when_dropped:
            forget(collection)

    def find(self, collection: str) -> Active:
        """A published or closed collection, or a problem."""
        active = self.shelf.find(collection)
        if active is None:
            find_record(self.store, collection)
            raise Problem("conflict", "the collection is a draft; publish it first")
        return active

    def answers(self, collection: str, level: float, post: str | None = None) -> Answers:
        """Answers from everything that is stored, folding first what is waiting; `post` names a method."""
        active = self.find(collection)
        if active.collection.plan is not None:
            return answer_plan(active, self.rounds.result(active), level=level)
        if active.collection.rows is not None:
            # The number of reports alone is read without its checksum.
            self.folder.check(collection, rows=True)
            return answer_rows(active, self.store.stored_reports(collection), level=level)
        return answer(*self._folded(collection), level=level, tasks=self.tasks, post=post)

    def ask(self, collection: str, question: str, query: str, given: Mapping[str, str], level: float) -> dict[str, Any]:
        """What a question's task says to a query, from everything that is stored; `other` names a second collection."""
        found = self._folded(collection)
        other = self._folded(given["other"]) if "other" in given else None
        return ask(*found, question, query, given, level=level, tasks=self.tasks, other=other)

    def joint(self, collection: str, query: str, given: Mapping[str, str], level: float) -> dict[str, Any]:
        """What questions that were asked together say to a query, from everything that is stored."""
        return ask_joint(*self._folded(collection), query, given, level=level)

    def _folded(self, collection: str) -> tuple[Active, AnyTally]:
        """A collection and everything that is stored of it."""
        active = self.find(collection)
        if active.collection.rows is not None:
            raise Problem("conflict", "the reports of this collection come with rows; ask for them with SQL")
        self.folder.fold_all(collection, FRESH_SECONDS)
        return active, self._totals.total(active)

    def status(self, collection: str) -> dict[str, Any]:
        """State, number of reports and refusals of a collection; one that is damaged says so and counts nothing."""
        record, active = find_record(self.store, collection), self.shelf.find(collection)
        rejected: dict[str, int] = {}
        for counts in (self.store.rejected(collection), self.rejections.waiting(collection)) if active else ():
            for reason, reports in counts.items():
                rejected[reason] = rejected.get(reason, 0) + reports
        reports, damaged = self.stored(active) if active else (0, False)
        plan, plan_damaged = self._plan_state(active) if active else (None, False)
        return {
            "id": record.id,
            "state": record.state,
            "damaged": damaged or plan_damaged,
            "reports": reports,
            "rejected": rejected,
            "minimum_cohort": active.collection.minimum_cohort if active else None,
            "plan": plan,
        }

    def _plan_state(self, active: Active) -> tuple[dict[str, Any] | None, bool]:
        """Where the plan of a collection stands, if it has one, and whether one of its rounds is damaged."""
        if active.collection.plan is None:
            return None, False
        try:
            return self.rounds.state(active), False
        except StorageDamaged:
            return None, True

    def advance(self, collection: str) -> dict[str, Any]:
        """Close the open round of a plan and publish the next one; says where the plan stands."""
        active = self.find(collection)
        if active.collection.plan is None:
            raise Problem("conflict", "the collection has no rounds; close it instead")
        self.rounds.advance(active)
        return self.rounds.state(active)

    def open_round(self, collection: str) -> str:
        """The round of a plan that takes reports now, or its last one."""
        return self.rounds.current(self.find(collection)).id

    def summaries(self, may_read: Callable[[str], bool] = lambda _: True) -> list[dict[str, Any]]:
        """Every collection in a few words, as far as it may be read."""
        return [self._summary(record) for record in self.store.collections() if may_read(record.id)]

    def _summary(self, record: CollectionRecord) -> dict[str, Any]:
        content = parsed_json(record.document)
        title, is_draft = content["title"], record.state == "draft"
        damaged = not is_draft and self.damage.look(record.id, rows=content.get("rows") is not None)
        return {
            "id": record.id,
            "state": record.state,
            "damaged": damaged,
            "title": {"en": title} if isinstance(title, str) else title,
            "epsilon": content["epsilon"],
            "questions": len(content["questions"]),
            "round": content["plan"]["round"] if content.get("plan") else None,
            "reports": 0 if is_draft or damaged else self.store.stored_reports(record.id),
            "minimum_cohort": content.get("minimum_cohort"),
        }

    def scope_of(self, token: str) -> str | None:
        """The scope of a token that holds today, or None."""
        bearer = self.access.bearer(token)
        return None if bearer is None else bearer.scope

    def may(self, token: str, action: str, collection: str) -> bool:
        """Whether a token that holds today allows an action on a collection."""
        bearer = self.access.bearer(token)
        return bearer is not None and bearer.may(action, collection)

    def owner(self, token: str) -> str:
        """Whose work it is that is done for a token: its key, or empty for everybody without one that holds."""
        bearer = self.access.bearer(token) if token else None
        return "" if bearer is None else bearer.key

    def record(self, collection: str) -> CollectionRecord | None:
        """A draft, published or closed collection."""
        return self.store.collection(collection)

    def preview(self, collection: str) -> bytes:
        """The document that a draft would be published as; InvalidSpec says why it cannot be."""
        record = find_record(self.store, collection)
        if record.state != "draft":
            return record.document
        return canonical(self.planner.plan(parsed_json(record.document))[0].to_json())
