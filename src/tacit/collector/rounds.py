"""Adaptive plans in the collector: every round is a collection of its own, and the plan is replayed from their tallies.

Nothing of a running plan is kept but its rounds: documents that name the first one, and the tallies of those that are
closed. A plan is a function of these, so that a crash between closing a round and publishing the next one leaves
nothing half done, and two processes that advance a plan publish the same document.
"""

import logging
from collections.abc import Generator
from dataclasses import replace
from typing import Any

from tacit.collector.active import Active, Shelf
from tacit.collector.fold import Folder
from tacit.collector.policies import round_target
from tacit.collector.ports import CollectionRecord, Store
from tacit.collector.problems import Problem
from tacit.collector.publish import publish_document
from tacit.core.mechanism import Mechanism
from tacit.core.members import AnyTally
from tacit.errors import InvalidSpec, StorageDamaged
from tacit.tasks.plans import Result, Round, Steps
from tacit.tasks.table import TASKS, find_task
from tacit.tasks.task import Task
from tacit.wire.document import Collection, Plan

LOG = logging.getLogger("tacit.collector")

FOLD_SECONDS = 30.0
"""How long advancing waits for reports of the round that are stored and not yet counted."""


def steps_of(collection: Collection, tasks: tuple[Task, ...] = TASKS) -> Steps:
    """The plan that a document is a round of, from its beginning."""
    plan, question = collection.plan, collection.questions[0]
    begin = find_task(question.task, tasks).steps
    if plan is None or begin is None:
        raise Problem("conflict", "the collection has no rounds; close it instead")
    return begin(question.domain, collection.mechanism.budget, plan.k, plan.respondents)


class Rounds:
    """Follows plans from round to round."""

    def __init__(self, store: Store, shelf: Shelf, folder: Folder, tasks: tuple[Task, ...]) -> None:
        """Work on a store."""
        self._store, self._shelf, self._folder, self._tasks = store, shelf, folder, tasks

    def chain(self, active: Active) -> list[Active]:
        """All rounds of a plan that are published, in order."""
        first = active.collection.plan_id
        rounds = [found for found in self._published() if found.collection.plan_id == first]
        return sorted(rounds, key=lambda found: _plan(found).round)

    def _published(self) -> Generator[Active]:
        for collection in self._shelf.all_ids():
            found = self._shelf.find(collection)
            if found is not None and found.collection.plan is not None:
                yield found

    def current(self, active: Active) -> Active:
        """The round that takes reports, or the last one."""
        return self.chain(active)[-1]

    def _tally(self, active: Active) -> AnyTally:
        """The tally of a closed round; everything that was acknowledged must be in it."""
        self._folder.fold_all(active.id, FOLD_SECONDS)
        tally = self._folder.total(active)
        if tally.n != self._store.stored_reports(active.id):
            raise Problem("unavailable", "reports of the round are still being counted; try again shortly")
        return tally

    def replay(self, active: Active) -> tuple[list[Active], Round | Result]:
        """The rounds of a plan, and what it says after the closed ones: the next question, or what was found."""
        chain = self.chain(active)
        steps = steps_of(chain[0].collection, self._tasks)
        said: Round | Result = next(steps)
        for done in chain:
            if not isinstance(said, Round) or said.mechanism.digest != done.mechanism.digest:
                raise InvalidSpec("plan: a round was published under another version of the plan; it cannot go on")
            if self._state(done) != "closed":
                break
            said = _send(steps, done.mechanism, self._tally(done))
        return chain, said

    def _state(self, active: Active) -> str:
        record = self._store.collection(active.id)
        return "closed" if record is None else record.state

    def advance(self, active: Active) -> CollectionRecord | None:
        """Close the round that is open and publish the next one; None when the plan has found what it looks for."""
        now = self.current(active)
        reports, least = self._store.stored_reports(now.id), now.collection.minimum_cohort
        if self._state(now) != "closed":
            if reports < least:
                said = f"round {_plan(now).round} has {reports} reports, and nothing is learnt from fewer than {least}"
                raise Problem("conflict", f"{said}; wait for more")
            self._store.close_collection(now.id)
        chain, said = self.replay(active)
        if isinstance(said, Result):
            return None
        return publish_document(self._store, _next_document(chain, said))

    def advance_due(self) -> None:
        """Advance every plan whose open round has its reports, or whose closed one was left without a next."""
        plans = {found.collection.plan_id: found for found in self._published()}
        for found in plans.values():
            now = self.current(found)
            due = self._store.stored_reports(now.id) >= _plan(now).target
            if self._state(now) == "closed" or due:
                self._advance_quietly(found)

    def _advance_quietly(self, active: Active) -> None:
        try:
            self.advance(active)
        except Problem:  # Too few reports, or some not counted yet: it is looked at again.
            return
        except StorageDamaged as error:  # Other plans go on.
            LOG.error("%s", error)

    def state(self, active: Active) -> dict[str, Any]:
        """What a plan has done and what it is waiting for, as plain data."""
        chain, said = self.replay(active)
        plan = _plan(chain[0])
        return {
            "plan": active.collection.plan_id,
            "method": plan.method,
            "k": plan.k,
            "finished": isinstance(said, Result),
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

    def result(self, active: Active) -> Result | None:
        """What the plan found, if it has come to its end."""
        said = self.replay(active)[1]
        return said if isinstance(said, Result) else None


def _plan(active: Active) -> Plan:
    assert active.collection.plan is not None
    return active.collection.plan


def _send(steps: Steps, mechanism: Mechanism, tally: AnyTally) -> Round | Result:
    try:
        return steps.send((mechanism, tally))
    except StopIteration as stop:
        return stop.value


def _next_document(chain: list[Active], asked: Round) -> Collection:
    """The document of the next round: everything is as in the last one but the mechanism and the place in the plan."""
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
