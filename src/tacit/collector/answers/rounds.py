"""Adaptive plans: every round is a collection of its own, and the plan's state is recomputed from their tallies.

    round 1 (published -> closed) --tally--> plan.send --> round 2 (published -> closed) --tally--> ... --> result

There is no stored state of a plan beside its rounds: their documents, which name the first one, and the tallies of
those that are closed. A plan is a deterministic function of these (event sourcing), so that a crash between closing a
round and publishing the next leaves nothing half done, and two processes that advance a plan publish the same document.
"""

import logging
from collections.abc import Generator
from dataclasses import replace
from typing import Any

from tacit.collector.collections.active import Active, Shelf
from tacit.collector.collections.policies import round_target
from tacit.collector.collections.publish import publish_document
from tacit.collector.ingest.fold import Folder
from tacit.collector.ports import CollectionRecord, Store
from tacit.core.members import AnyTally
from tacit.errors import InvalidSpec, StorageDamaged
from tacit.hosting.problems import Problem
from tacit.tasks.plans import PlanResult, Round, Steps, proceed
from tacit.tasks.table import TASKS, find_task
from tacit.tasks.task import AdaptiveTask, Task
from tacit.wire.document import Collection, PlanRound

LOG = logging.getLogger("tacit.collector")

FOLD_SECONDS = 30.0
"""Time that advancing may spend on folding the last reports of a round."""


def steps_of(collection: Collection, tasks: tuple[Task, ...] = TASKS) -> Steps:
    """A fresh generator of the plan that a document is a round of, at its beginning; Problem if it has no rounds."""
    plan, question = collection.plan, collection.questions[0]
    task = find_task(question.task, tasks)
    if plan is None or not isinstance(task, AdaptiveTask):
        raise Problem("conflict", "the collection has no rounds; close it instead")
    return task.steps(question.domain, collection.mechanism.budget, plan.k, plan.respondents)


class Rounds:
    """Recomputes, advances and describes adaptive plans."""

    def __init__(self, store: Store, shelf: Shelf, folder: Folder, tasks: tuple[Task, ...]) -> None:
        """Work on the collections of a store."""
        self._store, self._shelf, self._folder, self._tasks = store, shelf, folder, tasks

    def chain(self, active: Active) -> list[Active]:
        """All published rounds of the plan that a collection belongs to, in order."""
        first = active.collection.plan_id
        rounds = [round_ for round_ in self._published() if round_.collection.plan_id == first]
        return sorted(rounds, key=lambda round_: _plan(round_).round)

    def _published(self) -> Generator[Active]:
        for collection in self._shelf.all_ids():
            found = self._shelf.find(collection)
            if found is not None and found.collection.plan is not None:
                yield found

    def current(self, active: Active) -> Active:
        """The latest round of a plan: the only one that may be open."""
        return self.chain(active)[-1]

    def _tally(self, active: Active) -> AnyTally:
        """The complete tally of a closed round; Problem `unavailable` while acknowledged reports are not folded yet."""
        # Replays must always see the same tally: with a part of it the plan might publish another next round.
        self._folder.fold_all(active.id, FOLD_SECONDS)
        tally = self._folder.total(active)
        # Another process may hold batches that it has claimed and not yet counted; a plan must not go on without them.
        if tally.n != self._store.stored_reports(active.id):
            raise Problem("unavailable", "reports of the round are still being counted; try again shortly")
        return tally

    def replay(self, active: Active) -> tuple[list[Active], Round | PlanResult]:
        """The rounds of a plan, and what the plan yields after the closed ones: the next round, or the result."""
        chain = self.chain(active)
        steps = steps_of(chain[0].collection, self._tasks)
        said = proceed(steps)
        for done in chain:
            # A release with another plan would ask something else here; its tallies cannot be mixed.
            if not isinstance(said, Round) or said.mechanism.digest != done.mechanism.digest:
                raise InvalidSpec("plan: a round was published under another version of the plan; it cannot go on")
            if self._state(done) != "closed":
                break
            said = proceed(steps, (done.mechanism, self._tally(done)))
        return chain, said

    def _state(self, active: Active) -> str:
        record = self._store.collection(active.id)
        return "closed" if record is None else record.state

    def advance(self, active: Active) -> CollectionRecord | None:
        """Close the open round and publish the next one; returns its record, or None if the plan has finished.

        Problem `conflict` if the round has fewer reports than the minimum cohort.
        """
        now = self.current(active)
        reports, least = self._store.stored_reports(now.id), now.collection.minimum_cohort
        if self._state(now) != "closed":
            if reports < least:
                said = f"round {_plan(now).round} has {reports} reports, and nothing is learnt from fewer than {least}"
                raise Problem("conflict", f"{said}; wait for more")
            self._store.close_collection(now.id)
        chain, said = self.replay(active)
        if isinstance(said, PlanResult):
            return None
        record = self._store.collection(now.id)
        return publish_document(self._store, _next_document(chain, said), "" if record is None else record.team)

    def advance_due(self) -> None:
        """Advance every plan whose open round has reached its target, or that a crash left with a closed last round."""
        plans = {found.collection.plan_id: found for found in self._published()}
        for found in plans.values():
            now = self.current(found)
            due = self._store.stored_reports(now.id) >= _plan(now).target
            if self._state(now) == "closed" or due:
                self._advance_quietly(found)

    def _advance_quietly(self, active: Active) -> None:
        try:
            self.advance(active)
        except Problem:
            # Too few reports, or some not folded yet: the next run of this chore tries again.
            return
        except StorageDamaged as error:
            # One corrupt plan must not hold up the others.
            LOG.error("%s", error)

    def state(self, active: Active) -> dict[str, Any]:
        """The state of a plan as plain data: its rounds, the current one, and whether it has finished."""
        chain, said = self.replay(active)
        plan = _plan(chain[0])
        return {
            "plan": active.collection.plan_id,
            "method": plan.method,
            "k": plan.k,
            "finished": isinstance(said, PlanResult),
            "current": chain[-1].id,
            "rounds": [self._row(found) for found in chain],
        }

    def _row(self, active: Active) -> dict[str, Any]:
        plan = _plan(active)
        return {
            "id": active.id,
            "round": plan.round,
            "about": active.collection.about.get("en", ""),
            "state": self._state(active),
            "reports": self._store.stored_reports(active.id),
            "target": plan.target,
        }

    def result(self, active: Active) -> PlanResult | None:
        """The result of the plan, or None while it is still asking."""
        said = self.replay(active)[1]
        return said if isinstance(said, PlanResult) else None


def _plan(active: Active) -> PlanRound:
    assert active.collection.plan is not None
    return active.collection.plan


def _next_document(chain: list[Active], asked: Round) -> Collection:
    """The document of the next round: that of the last one with another mechanism and position in the plan."""
    last = chain[-1].collection
    plan = _plan(chain[-1])
    following = replace(
        plan,
        round=plan.round + 1,
        target=round_target(asked.share, plan.respondents),
        first=chain[0].id,
        previous=chain[-1].id,
    )
    return replace(last, mechanism=asked.mechanism, plan=following)
