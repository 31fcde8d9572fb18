"""Publishing: a draft, planned and checked, becomes a document that never changes again."""

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from tacit.collector.active import ID, Catalog, parsed_json
from tacit.collector.answer import parts_of
from tacit.collector.draft_texts import check_texts
from tacit.collector.policies import Wanted, asked_of, plan_policy, reports_each, wanted_k
from tacit.collector.ports import CollectionRecord, Store
from tacit.collector.problems import Problem
from tacit.collector.rehearsal import rehearse
from tacit.collector.rows.segments import NO_FOLDER
from tacit.core.mechanism import Mechanism
from tacit.core.normal import normal_isf
from tacit.core.patience import check
from tacit.device.budget import Epsilon
from tacit.device.canonical import canonical
from tacit.errors import InvalidSpec
from tacit.tasks.analytics_task import ANALYTICS
from tacit.tasks.histogram import HISTOGRAM
from tacit.tasks.marginal_task import MARGINALS
from tacit.tasks.table import TASKS, find_task
from tacit.tasks.task import Forecast, Task
from tacit.wire.document import MAX_QUESTIONS, VERSION, Collection, Question
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
    "queries": [],
}
_KNOWN = ("title", "questions", "epsilon", *_DEFAULTS)


@dataclass(frozen=True)
class Planner:
    """The kinds and tasks that collections may use; tests bring their own."""

    catalog: Catalog
    tasks: tuple[Task, ...] = TASKS
    takes_rows: bool = True
    """Whether there is a place for rows."""

    def plan(self, draft: Mapping[str, Any]) -> tuple[Collection, int]:
        """The collection that a draft describes, and the number of respondents it is planned for."""
        fields = _draft_fields(draft)
        if fields["rows"] is not None and not self.takes_rows:
            raise InvalidSpec(f"draft.rows: {NO_FOLDER}")
        task = _default_task(fields)
        questions = tuple(_question(item, f"questions[{i}]", task) for i, item in enumerate(fields["questions"]))
        respondents = _respondents(fields["respondents"])
        wanted = Wanted(questions, Epsilon(fields["epsilon"]), respondents, fields, self.tasks)
        policy, mechanism, plan = plan_policy(wanted)
        document = {
            "version": VERSION,
            "title": _texts(fields["title"]),
            "about": _texts(fields["about"] or fields["title"]),
            "questions": [question.to_json() for question in questions],
            "policy": policy,
            "epsilon": mechanism.budget.to_spec(),
            "mechanism": mechanism.spec(),
            "plan": None if plan is None else plan.to_json(),
            "rows": fields["rows"],
        }
        kept = {name: fields[name] for name in ("minimum_cohort", "retention_days", "origins", "invitations")}
        collection = Collection.from_json(document | kept, self.catalog)
        check_texts(collection)
        self._rehearse(collection)
        return collection, respondents

    def _rehearse(self, collection: Collection) -> None:
        """Report example answers, and answer from no reports: what would fail later is refused now."""
        rehearse(collection)
        mechanism = collection.mechanism
        assert isinstance(mechanism, Mechanism)
        if collection.rows is not None:
            return
        parts = parts_of(collection, mechanism, empty_tally(mechanism))
        for question, part in zip(collection.questions, parts, strict=True):
            check()
            find_task(question.task, self.tasks).answer(question.domain, part)

    def predict(self, draft: Mapping[str, Any]) -> list[dict[str, Any]]:
        """How precise every answer would be: standard error and half-width of a 95 % interval."""
        collection, n = self.plan(draft)
        if collection.policy == "joint" or collection.rows is not None:
            return self._predict_together(collection, n, wanted_k(draft.get("k")))
        asked = reports_each(collection.policy, len(collection.questions), n)
        found: list[dict[str, Any]] = []
        for question, member in zip(collection.questions, collection.members, strict=True):
            check()
            assert isinstance(member, Mechanism)
            forecast = find_task(question.task, self.tasks).forecast(question.domain, member, asked)
            found.append(_prediction(question, member, forecast, asked))
        return found

    def _predict_together(self, collection: Collection, n: int, k: int) -> list[dict[str, Any]]:
        """One forecast for all questions, which every respondent is asked together."""
        mechanism, together = collection.mechanism, find_task(collection.questions[0].task, self.tasks).together
        assert isinstance(mechanism, Mechanism) and together is not None
        forecast = together.forecast(asked_of(collection.questions), mechanism, n, k)
        return [_prediction(question, mechanism, forecast, n) for question in collection.questions]


def _prediction(question: Question, member: Mechanism, forecast: Forecast, n: int) -> dict[str, Any]:
    """What one mechanism promises for n reports, in the unit of the answer."""
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


def _default_task(fields: Mapping[str, Any]) -> str:
    """The task of questions that name none."""
    if fields["rows"] is not None:
        return ANALYTICS.name
    return MARGINALS.name if fields["policy"] == "joint" else HISTOGRAM.name


def _question(item: Any, where: str, task: str) -> Question:
    """One question of a draft; its text may be plain, and its task is the one given unless told."""
    if not isinstance(item, dict):
        raise InvalidSpec(f"{where} must be an object with name, text and domain")
    fields = {"task": task} | cast("dict[str, Any]", item)
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
    """Publish a document that a device can answer; publishing the same one again changes nothing."""
    rehearse(collection)
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
