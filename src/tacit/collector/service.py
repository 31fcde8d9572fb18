"""The collector as one object: wires a store to ingest, folding, answers, access and background chores.

It knows nothing of HTTP, which is a layer on top (`http`); the command line uses it directly.
"""

import logging
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from tacit.catalog import CATALOG
from tacit.collector.answers.answer import CollectionAnswers, answer, answer_plan, answer_rows
from tacit.collector.answers.ask import ask, ask_joint
from tacit.collector.answers.looks import Looks
from tacit.collector.answers.rounds import Rounds
from tacit.collector.answers.series import SeriesRequest, WindowClock, answer_series
from tacit.collector.collections import publish as publishing
from tacit.collector.collections.access import Access, Bearer
from tacit.collector.collections.active import Active, Catalog, Shelf, parsed_json
from tacit.collector.collections.issuing import Issuing
from tacit.collector.collections.origins import Origins
from tacit.collector.collections.parts import Total
from tacit.collector.collections.publish import Planner, find_record
from tacit.collector.collections.retention import Retention
from tacit.collector.ingest.damage import Damage
from tacit.collector.ingest.fold import Folder, Housekeeping
from tacit.collector.ingest.imports import import_tally
from tacit.collector.ingest.readiness import Readiness
from tacit.collector.ingest.totals import TallyCache, WindowTotals
from tacit.collector.ingest.uploads import Ingest, Rejections
from tacit.collector.ingest.writer import BatchWriter
from tacit.collector.limits import MOST_WAITING_BYTES, FoldLimits, Intervals
from tacit.collector.metrics import Metrics
from tacit.collector.notices.front import NoticeFront
from tacit.collector.ports import BatchIntake, CollectionRecord, Store, window_id
from tacit.collector.rows.open import open_files
from tacit.collector.rows.segments import RowSegment
from tacit.collector.shuffle.front import ShuffleFront
from tacit.collector.work import Work, WorkLimits
from tacit.device.numbers.canonical import canonical
from tacit.errors import StorageDamaged
from tacit.hosting.clock import Clock, date_of
from tacit.hosting.exposition import Board
from tacit.hosting.problems import Problem
from tacit.tasks.table import TASKS
from tacit.tasks.task import Task
from tacit.wire.batch import invitation_hash

LOG = logging.getLogger("tacit.collector")

FRESH_SECONDS = 2.0
"""Time that an answer may spend on folding what is waiting, so that it includes reports that were just acknowledged."""


@dataclass(frozen=True)
class Sharing:
    """How a collector shares its store with other processes of the same server; by default with none."""

    workers: int = 1
    """Processes that work in the store's folder."""
    intake: BatchIntake | None = None
    """The process that stores the batches of this one and does the background chores; None if this one does."""
    board: Board | None = None
    """Where the metrics of all are."""


def _writer(store: Store, sharing: Sharing) -> BatchWriter:
    """A writer with room for what its own requests, or those of all workers, may hand on at once."""
    most = 1 if sharing.intake is not None else sharing.workers
    return BatchWriter(sharing.intake or store, most_waiting=4096 * most, most_bytes=MOST_WAITING_BYTES * most)


class Collector:
    """The application object: publishes, ingests, folds and answers."""

    def __init__(
        self,
        store: Store,
        *,
        catalog: Catalog = CATALOG,
        tasks: tuple[Task, ...] = TASKS,
        shard: str = "main",
        work: WorkLimits | None = None,
        clock: Clock | None = None,
        intervals: Intervals | None = None,
        folding: FoldLimits | None = None,
        lake: str = "",
        sharing: Sharing | None = None,
        webhook_private: bool = False,
    ) -> None:
        """Wire everything to a store; `catalog` and `tasks` are the mechanisms and tasks that documents may use.

        `shard` must differ between processes that share a database. `lake` is the URL at which reports are kept as
        files; without it they are counted and forgotten. Whatever is None has its defaults.
        """
        self._sharing = sharing = sharing or Sharing()
        clock, intervals = clock or Clock(), intervals or Intervals()
        self.store, self.tasks, self.clock = store, tasks, clock
        self.files = open_files(store.segments, lake, clock, intervals)
        self.shelf, self.rejections, self.writer = Shelf(store, catalog), Rejections(), _writer(store, sharing)
        self.shuffle = ShuffleFront(store, self.shelf, self.touch, clock, alone=sharing.workers == 1)
        self.planner = Planner(
            catalog, tasks, takes_rows=self.files.is_ready, check_shuffled=self.shuffle.check, in_lake=bool(lake)
        )
        self.access, self.metrics, self.origins = Access(store, clock.day), Metrics(), Origins(store)
        self.work, self.issuing = Work(work), Issuing(store)
        self.readiness = Readiness(store, self.writer, clock)
        self.ingest = Ingest(self.shelf, self.rejections, takes_rows=self.files.is_ready, now=clock.now)
        self.folder = Folder(
            store, self.shelf, self.files, shard=shard, clock=clock, intervals=intervals, limits=folding
        )
        self.damage, self._looks = Damage(self.folder), Looks()
        self._when_dropped: list[Callable[[str], None]] = [self.folder.forget, self.damage.forget, self._looks.forget]
        self.retention = Retention(store, clock, intervals, self._forget)
        self.rounds = Rounds(store, self.shelf, self.folder, tasks)
        self._totals, self._window_totals = TallyCache(store, self.folder), WindowTotals(store, self.folder)
        self.notices = NoticeFront(self, clock, intervals, private=webhook_private)
        self.started = clock.seconds()
        # Collections with batches to fold. Written by request threads and read by the housekeeping thread: single set
        # operations are atomic, and `touch_all` finds whatever is lost.
        self._touched: set[str] = set()
        own = [
            (self.flush_rejections, intervals.note_refusals),
            (self._post_metrics, intervals.post_metrics),
            (self.origins.look, intervals.look_at_origins),
        ]
        self._housekeeping = Housekeeping(own if sharing.intake is not None else [
            *own,
            (self.fold_touched, intervals.fold),
            (self.rounds.advance_due, intervals.advance),
            (self.touch_all, intervals.touch),
            (self.retire, intervals.retire),
            (self.sweep, intervals.sweep),
            (self.look_for_damage, intervals.damage),
        ])  # fmt: skip

    def start(self) -> None:
        """Start background work: apply retention first, then fold what an earlier process left behind."""
        self.origins.look()
        if self._sharing.intake is None:
            self.retire()
            self.touch_all()
        self._housekeeping.start()
        if self._sharing.intake is None:
            self.notices.start()
        self.shuffle.start()

    def stop(self) -> None:
        """Stop cleanly: every accepted batch is stored and every refusal counted before the database is closed."""
        # Order matters: no more queries, then no more folds, then drain the writer, and only then close the store.
        self.work.stop()
        self.shuffle.stop()
        self._housekeeping.stop()
        self.notices.stop()
        self.writer.stop()
        try:
            self.flush_rejections()
        finally:
            self.store.close()

    def touch(self, collection: str) -> None:
        """Mark a collection as having batches to fold."""
        self._touched.add(collection)

    def touch_all(self) -> None:
        """Mark all collections: another process may have crashed and left batches behind."""
        for collection in self.shelf.all_ids():
            self._touched.update(self._stored_under(collection))

    def _stored_under(self, collection: str) -> list[str]:
        """The ids under which reports of a collection wait: its own, or those of its windows."""
        active = self.shelf.find(collection)
        if active is None or active.collection.windows is None:
            return [collection]
        return [window_id(collection, one.window) for one in self.store.windows(collection) if one.waiting]

    def fold_touched(self) -> None:
        """Fold all marked collections; one that fails does not hold up the others, and waits for `touch_all`."""
        touched = {collection for collection in list(self._touched) if self.folder.is_due(collection)}
        # Unmarked before folding, so that a batch that arrives meanwhile marks the collection again.
        self._touched -= touched
        failure: Exception | None = None
        while touched:
            collection = touched.pop()
            try:
                folded = self.folder.fold_all(collection, FRESH_SECONDS)
            except StorageDamaged as error:
                # Retrying does not repair damage: the log names the collection, and the others go on.
                LOG.error("%s", error)
            except Exception as error:
                failure = error
            else:
                self.metrics.count("tacit_folded_batches_total", amount=folded)
                if folded:
                    # The time limit may have ended the fold early, so the collection is looked at again.
                    self.touch(collection)
        if failure is not None:
            raise failure

    def flush_rejections(self) -> None:
        """Write buffered counts of refusals to the store."""
        self.rejections.flush(self.store)

    def exposition(self) -> str:
        """All metrics of this server, of the other processes as they posted them last."""
        board = self._sharing.board
        if board is None:
            return self._own_exposition()
        self._post_metrics()
        return board.read()

    def _post_metrics(self) -> None:
        if self._sharing.board is not None:
            self._sharing.board.post(self._own_exposition())

    def _own_exposition(self) -> str:
        segments, size = self.files.usage()
        return self.metrics.text({
            "tacit_batches_waiting": float(self.writer.waiting),
            "tacit_jobs_running": float(self.work.running),
            "tacit_jobs_waiting": float(self.work.waiting),
            "tacit_damaged_collections": float(self.damage.number),
            "tacit_segments": float(segments),
            "tacit_segment_bytes": float(size),
            "tacit_uptime_seconds": round(self.clock.seconds() - self.started, 3),
        } | self.notices.lookout.gauges())  # fmt: skip

    def sweep(self) -> None:
        """Garbage-collect segment files that no manifest names."""
        self.folder.sweep()

    def look_for_damage(self) -> None:
        """Verify the tallies of all collections, for the metric and the log."""
        for collection in self.shelf.all_ids():
            active = self.shelf.find(collection)
            if active is not None:
                self._is_damaged(active)

    def _is_damaged(self, active: Active) -> bool:
        return self.damage.look(active.id, rows=active.collection.rows is not None)

    def stored(self, active: Active) -> tuple[int, bool]:
        """The number of stored reports (0 if corrupt; fakes do not count), and whether the collection is corrupt."""
        damaged = self._is_damaged(active)
        fakes = 0 if active.collection.shuffle is None else active.collection.shuffle.fakes
        return 0 if damaged else self._respondents(active.id, fakes), damaged

    def _respondents(self, collection: str, fakes: int) -> int:
        """Stored reports but for the fakes of sessions, each of which is one batch; those of windows add up."""
        if not fakes:
            inside = sum(one.reports for one in self.store.windows(collection))
            return inside + self.store.stored_reports(collection)
        numbers = self.store.batch_numbers(collection)
        return numbers.reports - numbers.batches * fakes

    def segments(self, collection: str) -> list[RowSegment]:
        """The sealed segments of a collection with rows, after sealing the waiting rows."""
        active = self.find(collection)
        if active.collection.rows is None:
            raise Problem("conflict", "the collection has no rows; read its answers instead")
        self.folder.fold_all(collection, FRESH_SECONDS)
        return self.folder.segments(active)

    def retire(self) -> None:
        """Drop the reports of collections that are past the retention in their documents."""
        self.retention.look()
        self._totals.forget()
        self._window_totals.forget()

    def when_dropped(self, forget: Callable[[str], None]) -> None:
        """Register a callback that gets the id of every collection whose reports are dropped, to clear caches."""
        self._when_dropped.append(forget)

    def _forget(self, collection: str) -> None:
        for forget in self._when_dropped:
            forget(collection)

    def find(self, collection: str) -> Active:
        """A published or closed collection; Problem `not_found`, or `conflict` for a draft."""
        active = self.shelf.find(collection)
        if active is None:
            find_record(self.store, collection)
            raise Problem("conflict", "the collection is a draft; publish it first")
        return active

    def answers(self, collection: str, level: float, post: str | None = None) -> CollectionAnswers:
        """Answers to all questions from everything that is stored; `post` names a post-processing method."""
        active = self.find(collection)
        if active.collection.plan is not None:
            return answer_plan(active, self.rounds.result(active), level=level, tasks=self.tasks)
        if active.collection.rows is not None:
            # `stored_reports` sums a column without verifying checksums, so that the manifests are verified here.
            self.folder.check(collection, rows=True)
            return answer_rows(active, self.store.stored_reports(collection), level=level)
        return answer(*self._folded(collection), level=level, tasks=self.tasks, post=post)

    def series(self, collection: str, request: SeriesRequest) -> dict[str, Any]:
        """The series of a collection with windows, after folding the waiting batches."""
        active = self.find(collection)
        windows = active.collection.windows
        if windows is None:
            raise Problem("conflict", "the collection has no windows; read its answers instead")
        self._fold(collection)
        tallies = self._window_totals.of(active)
        today = date.fromordinal(date(1970, 1, 1).toordinal() + self.clock.day())
        clock = WindowClock(windows, active.collection.retention_days, self.clock.now(), today)
        return answer_series(active, tallies, request, clock)

    def _fold(self, collection: str) -> None:
        """Fold the waiting batches of a collection, or of its windows, within one time limit."""
        end = self.clock.seconds() + FRESH_SECONDS
        for under in self._stored_under(collection):
            self.folder.fold_all(under, max(0.0, end - self.clock.seconds()))

    def integrity(self, collection: str) -> dict[str, Any]:
        """Whether the reports of a collection look forged, and how far forged ones could push its answers."""
        active, total = self._folded(collection)
        return self._looks.at(active, total, self.store, self.folder) | {"rejected": self.refused(collection)}

    def publish(self, draft: str) -> CollectionRecord:
        """Publish a draft; a shuffled one gets its first session as soon as all shufflers have signed it."""
        record = publishing.publish(self.store, self.planner, draft)
        self.shuffle.published(record.id)
        return record

    def close(self, collection: str) -> CollectionRecord:
        """Close a published collection; Problem `conflict` while a session of a shuffled one goes on."""
        active = self.shelf.find(collection)
        if active is not None:
            self.shuffle.refuse_closing(active)
        return publishing.close(self.store, collection)

    def invite(self, collection: str, count: Any) -> list[str]:
        """Make single-use invitations to a collection that takes reports by invitation."""
        active = self.find(collection)
        if not active.collection.invitations:
            raise Problem("conflict", "the collection takes reports from everybody; publish one with invitations: true")
        invitations = self.access.invite(collection, count)
        self.shuffle.invited(active, [invitation_hash(invitation) for invitation in invitations])
        return invitations

    def import_tally(self, collection: str, data: bytes) -> dict[str, Any]:
        """Add the tally of a file, made elsewhere, to a collection; the same file, or the same sources, count once."""
        return import_tally(self.store, self.find(collection), data)

    def ask(self, collection: str, question: str, query: str, given: Mapping[str, str], level: float) -> dict[str, Any]:
        """The answer of a question's task to a query; `given["other"]` names a second collection to compare with."""
        found = self._folded(collection)
        other = self._folded(given["other"]) if "other" in given else None
        return ask(*found, question, query, given, level=level, tasks=self.tasks, other=other)

    def joint(self, collection: str, query: str, given: Mapping[str, str], level: float) -> dict[str, Any]:
        """The answer to a query about several questions that were asked together."""
        return ask_joint(*self._folded(collection), query, given, level=level)

    def _folded(self, collection: str) -> tuple[Active, Total]:
        """A collection without rows and its tally, after folding the waiting batches."""
        active = self.find(collection)
        if active.collection.rows is not None:
            raise Problem("conflict", "the reports of this collection come with rows; ask for them with SQL")
        self._fold(collection)
        return active, self._totals.total(active)

    def status(self, collection: str) -> dict[str, Any]:
        """State, number of reports and refusals of a collection; a corrupt one is flagged and counts 0 reports."""
        record, active = find_record(self.store, collection), self.shelf.find(collection)
        rejected = self.refused(collection) if active else {}
        reports, damaged = self.stored(active) if active else (0, False)
        plan, plan_damaged = self._plan_state(active) if active else (None, False)
        return {
            "id": record.id,
            "state": record.state,
            "damaged": damaged or plan_damaged,
            "reports": reports,
            "days": {} if active is None or damaged else self._days(active, reports),
            "rejected": rejected,
            "minimum_cohort": active.collection.least_reports if active else None,
            "plan": plan,
        }

    def refused(self, collection: str) -> dict[str, int]:
        """Refused reports by reason, those that are still to be written among them."""
        rejected = Counter(self.store.rejected(collection))
        rejected.update(self.rejections.waiting(collection))
        return dict(rejected)

    def _days(self, active: Active, reports: int) -> dict[str, int]:
        """Reports by date, those that are still to be folded today; none where shufflers hand over all at once."""
        if active.collection.shuffle is not None:
            return {}
        days = self.store.reports_by_day(active.id)
        waiting = reports - sum(days.values())
        if waiting > 0:
            days[self.clock.day()] = days.get(self.clock.day(), 0) + waiting
        return {date_of(day): count for day, count in sorted(days.items())}

    def allowed(self, collection: str) -> dict[str, list[str]]:
        """The sites of a collection: those of its document, and those that an operator added."""
        active = self.find(collection)
        self.origins.look()
        return {"document": list(active.collection.origins), "added": list(self.origins.added(active.id))}

    def allow(self, bearer: Bearer, collection: str, given: Any) -> dict[str, list[str]]:
        """Allow sites beside those of the document, and note every change in the audit log."""
        new, gone = self.origins.replace(self.find(collection), given)
        for action, changed in (("allow", new), ("disallow", gone)):
            for origin in changed:
                self.access.note(bearer, f"{action} {origin}", collection)
        return self.allowed(collection)

    def _plan_state(self, active: Active) -> tuple[dict[str, Any] | None, bool]:
        """The state of an adaptive plan (None without one), and whether one of its rounds is corrupt."""
        if active.collection.plan is None:
            return None, False
        try:
            return self.rounds.state(active), False
        except StorageDamaged:
            return None, True

    def advance(self, collection: str) -> dict[str, Any]:
        """Close the open round of a plan and publish the next one; returns the state of the plan."""
        active = self.find(collection)
        if active.collection.plan is None:
            raise Problem("conflict", "the collection has no rounds; close it instead")
        self.rounds.advance(active)
        return self.rounds.state(active)

    def open_round(self, collection: str) -> str:
        """The id of the round of a plan that takes reports now, or of its last one."""
        return self.rounds.current(self.find(collection)).id

    def summaries(self, may_read: Callable[[str], bool] = lambda _: True) -> list[dict[str, Any]]:
        """A summary of every collection for which `may_read` is true, for lists."""
        return [self._summary(record) for record in self.store.collections() if may_read(record.id)]

    def _summary(self, record: CollectionRecord) -> dict[str, Any]:
        content = parsed_json(record.document)
        title, is_draft = content["title"], record.state == "draft"
        fakes = content["shuffle"]["fakes"] if content.get("shuffle") else 0
        damaged = not is_draft and self.damage.look(record.id, rows=content.get("rows") is not None)
        return {
            "id": record.id,
            "state": record.state,
            "team": record.team,
            "damaged": damaged,
            "title": {"en": title} if isinstance(title, str) else title,
            "epsilon": content["epsilon"],
            "questions": len(content["questions"]),
            "round": content["plan"]["round"] if content.get("plan") else None,
            "shuffled": content.get("shuffle") is not None,
            "reports": 0 if is_draft or damaged else self._respondents(record.id, fakes),
            "minimum_cohort": content.get("minimum_cohort"),
        }

    def scope_of(self, token: str) -> str | None:
        """The scope of a valid token, or None."""
        bearer = self.access.bearer(token)
        return None if bearer is None else bearer.scope

    def team_of(self, token: str) -> str:
        """The team that a valid token is limited to; empty for none."""
        bearer = self.access.bearer(token)
        return "" if bearer is None else bearer.team

    def sign_in(self, name: str, scope: str, team: str) -> str:
        """A token for a user whom an OpenID provider has authenticated."""
        return self.access.sign_in(name, scope, team)

    def sign_out(self, token: str) -> None:
        """End a token that was made by signing in; others stay."""
        self.access.sign_out(token)

    def may(self, token: str, action: str, collection: str) -> bool:
        """Whether a token is valid and allows an action on a collection."""
        bearer = self.access.bearer(token)
        return bearer is not None and bearer.may(action, collection)

    def owner(self, token: str) -> str:
        """The owner under which work for a token is limited: its public name, or `PUBLIC` without a valid token."""
        bearer = self.access.bearer(token) if token else None
        return "" if bearer is None else bearer.key

    def record(self, collection: str) -> CollectionRecord | None:
        """A collection in any state, or None."""
        return self.store.collection(collection)

    def preview(self, collection: str) -> bytes:
        """The document that a draft would be published as; InvalidSpec says why it cannot be."""
        record = find_record(self.store, collection)
        if record.state != "draft":
            return record.document
        return canonical(self.planner.plan(parsed_json(record.document))[0].to_json())
