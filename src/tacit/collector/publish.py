"""Publishing: a draft, planned and checked, becomes a document that never changes again."""

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any, cast

from tacit.collector.active import ID, Catalog, parsed_json
from tacit.collector.ports import CollectionRecord, Store
from tacit.collector.problems import Problem
from tacit.core.compose import AllOf, OneOf, Questions
from tacit.core.mechanism import Mechanism
from tacit.core.normal import normal_isf
from tacit.device.budget import Budget, Epsilon, Share
from tacit.device.canonical import canonical
from tacit.errors import InvalidSpec
from tacit.tasks.itemset_task import DEFAULT_K
from tacit.tasks.table import TASKS, find_task
from tacit.tasks.task import Part, Task
from tacit.wire.document import MAX_QUESTIONS, POLICIES, VERSION, Collection, Plan, Question
from tacit.wire.tallies import empty_tally

MAX_DRAFT_BYTES = 1 << 20
MAX_RESPONDENTS = 10**10
_DEFAULTS: dict[str, Any] = {
    "about": "",
    "policy": "",
    "respondents": 10_000,
    "minimum_cohort": 100,
    "retention_days": 365,
    "origins": [],
    "invitations": False,
    "k": None,
    "rows": None,
}
_KNOWN = ("title", "questions", "epsilon", *_DEFAULTS)


@dataclass(frozen=True)
class Planner:
    """The kinds and tasks that collections may use; tests bring their own."""

    catalog: Catalog
    tasks: tuple[Task, ...] = TASKS

    def plan(self, draft: Mapping[str, Any]) -> tuple[Collection, int]:
        """The collection that a draft describes, and the number of respondents it is planned for."""
        fields = _draft_fields(draft)
        questions = tuple(_question(item, f"questions[{i}]") for i, item in enumerate(fields["questions"]))
        respondents = _respondents(fields["respondents"])
        policy = fields["policy"] or ("single" if len(questions) == 1 else "one_of")
        epsilon = Epsilon(fields["epsilon"])
        rounds = self._first_round(questions, epsilon, fields["k"], respondents)
        mechanism = rounds[0] if rounds is not None else self._mechanism(questions, policy, epsilon, respondents)
        document = {
            "version": VERSION,
            "title": _texts(fields["title"]),
            "about": _texts(fields["about"] or fields["title"]),
            "questions": [question.to_json() for question in questions],
            "policy": policy,
            "epsilon": mechanism.budget.to_spec(),
            "mechanism": mechanism.spec(),
            "plan": None if rounds is None else rounds[1].to_json(),
            "rows": fields["rows"],
        }
        kept = {name: fields[name] for name in ("minimum_cohort", "retention_days", "origins", "invitations")}
        collection = Collection.from_json(document | kept, self.catalog)
        self._rehearse(collection)
        return collection, respondents

    def _first_round(
        self, questions: tuple[Question, ...], epsilon: Epsilon, k: Any, respondents: int
    ) -> tuple[Mechanism, Plan] | None:
        """The first round of an adaptive task, which must be asked alone; None for all other tasks."""
        tasks = [(find_task(question.task, self.tasks), question.domain) for question in questions]
        adaptive = [(task, domain) for task, domain in tasks if task.steps is not None]
        if not adaptive:
            if k is not None:
                raise InvalidSpec("draft.k is for tasks that look for the most frequent, such as items")
            return None
        if len(questions) > 1:
            named = adaptive[0][0].name
            raise InvalidSpec(f"draft.questions: {named} goes round by round and must be the only question")
        task, domain = adaptive[0]
        wanted: Any = DEFAULT_K if k is None else k
        if type(wanted) is not int:
            raise InvalidSpec("draft.k must be an integer: how many are looked for")
        assert task.steps is not None
        asked = next(task.steps(domain, epsilon, wanted, respondents))
        return asked.mechanism, Plan(task.method, wanted, respondents, 1, round_target(asked.share, respondents))

    def _mechanism(self, questions: tuple[Question, ...], policy: str, epsilon: Epsilon, n: int) -> Mechanism:
        """What every question's task plans, put together as the policy says."""
        if policy not in POLICIES or (policy == "single") != (len(questions) == 1):
            raise InvalidSpec('draft.policy must be "single" for one question, else "one_of" or "all_of"')
        share = Share(epsilon, f"1/{len(questions)}")
        budget: Budget = share if policy == "all_of" else epsilon
        group = max(1, n // len(questions)) if policy == "one_of" else n
        members = tuple(find_task(q.task, self.tasks).plan(q.domain, budget, group) for q in questions)
        if policy == "single":
            return members[0]
        if policy == "one_of":
            return OneOf(family=Questions(mechanisms=members))
        joint = AllOf(members=members, epsilon=epsilon)
        # A log of reports grows for ever; where no joint table can be kept, the members' own tallies are.
        return joint if joint.state == "joint" else AllOf(members=members, epsilon=epsilon, state="members")

    def _rehearse(self, collection: Collection) -> None:
        """Answer from no reports: what could not be answered later is refused now."""
        for question, member in zip(collection.questions, collection.members, strict=True):
            task = find_task(question.task, self.tasks)
            assert isinstance(member, Mechanism)
            task.answer(question.domain, Part(member, empty_tally(member), 0))

    def predict(self, draft: Mapping[str, Any]) -> list[dict[str, Any]]:
        """How precise every answer would be: standard error and half-width of a 95 % interval."""
        collection, respondents = self.plan(draft)
        asked = max(1, respondents // len(collection.questions)) if collection.policy == "one_of" else respondents
        return [
            self._prediction(question, cast("Mechanism", member), asked)
            for question, member in zip(collection.questions, collection.members, strict=True)
        ]

    def _prediction(self, question: Question, member: Mechanism, n: int) -> dict[str, Any]:
        """What one mechanism promises for n reports, in the unit of the answer."""
        forecast = find_task(question.task, self.tasks).forecast(question.domain, member, n)
        return {
            "name": question.name,
            "mechanism": member.spec(),
            "standard_error": forecast.standard_error,
            "half_width_95": float(normal_isf(0.025)) * forecast.standard_error,
            "of": forecast.of,
            "why": forecast.why,
            "options": [dict(option) for option in forecast.options],
            "report_bits": member.report_bits,
            "reports": n,
        }


def _draft_fields(draft: Any) -> dict[str, Any]:
    if not isinstance(draft, Mapping):
        raise InvalidSpec("draft must be an object with title, questions and epsilon")
    given = cast("Mapping[str, Any]", draft)
    for name in sorted(set(map(str, given)) - set(_KNOWN)):
        raise InvalidSpec(f"draft: unknown field '{name[:40]}', must be one of {', '.join(sorted(_KNOWN))}")
    for name in ("title", "questions", "epsilon"):
        if name not in given:
            raise InvalidSpec(f"draft: field '{name}' is missing")
    fields = _DEFAULTS | dict(given)
    items = fields["questions"]
    if not isinstance(items, list) or not 1 <= len(cast("list[Any]", items)) <= MAX_QUESTIONS:
        raise InvalidSpec(f"draft.questions must be a list of 1 to {MAX_QUESTIONS} questions")
    if type(fields["epsilon"]) is int:
        fields["epsilon"] = str(fields["epsilon"])
    return fields


def _question(item: Any, where: str) -> Question:
    """One question of a draft; its text may be plain, and its task is a histogram unless told."""
    if not isinstance(item, dict):
        raise InvalidSpec(f"{where} must be an object with name, text and domain")
    fields = {"task": "histogram"} | cast("dict[str, Any]", item)
    domain = fields.get("domain")
    if isinstance(domain, dict):
        fields["domain"] = _domain(cast("dict[str, Any]", domain), fields.get("name"))
    return Question.from_json(fields | {"text": _texts(fields.get("text"))}, where)


_DOMAIN_DEFAULTS: dict[str, dict[str, Any]] = {
    "categories": {"other": None},
    "integers": {"step": 1},
    "buckets": {"open_below": False, "open_above": False},
    "items": {"most": None},
}


def _domain(spec: dict[str, Any], name: Any) -> dict[str, Any]:
    """A domain spec with its defaults stated; it is called like the question unless it has a name."""
    kind = spec.get("kind")
    filled = _DOMAIN_DEFAULTS.get(str(kind), {}) | spec
    return filled if kind == "product" else {"name": name} | filled


def _texts(value: Any) -> Any:
    """Plain text is English."""
    return {"en": value} if isinstance(value, str) else value


def _respondents(value: Any) -> int:
    if type(value) is not int or not 1 <= value <= MAX_RESPONDENTS:
        raise InvalidSpec(f"draft.respondents must be an integer from 1 to {MAX_RESPONDENTS}")
    return value


def round_target(share: float, respondents: int) -> int:
    """The number of reports at which a round of a plan closes by itself."""
    return max(1, ceil(share * respondents))


def create_draft(store: Store, planner: Planner, draft: Any) -> CollectionRecord:
    """Keep a draft that could be published."""
    planner.plan(draft)
    record = CollectionRecord(f"draft-{secrets.token_hex(16)}", "draft", _draft_bytes(draft))
    store.add_collection(record)
    return record


def replace_draft(store: Store, planner: Planner, collection: str, draft: Any) -> CollectionRecord:
    """Change a draft; a published collection is never changed."""
    _draft_of(store, collection)
    planner.plan(draft)
    record = CollectionRecord(collection, "draft", _draft_bytes(draft))
    store.replace_draft(record)
    return record


def delete_draft(store: Store, collection: str) -> None:
    """Remove a draft; a published collection is closed instead."""
    _draft_of(store, collection)
    store.delete_draft(collection)


def publish(store: Store, planner: Planner, collection: str) -> CollectionRecord:
    """Turn a draft into a published collection, whose id is the digest of its document."""
    draft = _draft_of(store, collection)
    record = publish_document(store, planner.plan(parsed_json(draft.document))[0])
    store.delete_draft(collection)
    return record


def publish_document(store: Store, collection: Collection) -> CollectionRecord:
    """Publish a document as it is; publishing the same one again changes nothing."""
    record = CollectionRecord(collection.id, "published", canonical(collection.to_json()))
    store.add_collection(record)
    return store.collection(record.id) or record


def close(store: Store, collection: str) -> CollectionRecord:
    """Take no more reports; answers stay."""
    record = find_record(store, collection)
    if record.state == "draft":
        raise Problem("conflict", "a draft takes no reports; delete it, or publish it first")
    store.close_collection(collection)
    return find_record(store, collection)


def find_record(store: Store, collection: str) -> CollectionRecord:
    """A collection in any state, or a problem."""
    record = store.collection(collection) if ID.fullmatch(collection) else None
    if record is None:
        raise Problem("not_found", "there is no such collection")
    return record


def _draft_of(store: Store, collection: str) -> CollectionRecord:
    record = find_record(store, collection)
    if record.state != "draft":
        raise Problem("conflict", "the collection is published; its document never changes, publish a new one instead")
    return record


def _draft_bytes(draft: Any) -> bytes:
    data = json.dumps(draft, ensure_ascii=False, separators=(",", ":")).encode()
    if len(data) > MAX_DRAFT_BYTES:
        raise Problem("too_large", f"a draft may have at most {MAX_DRAFT_BYTES} bytes")
    return data
