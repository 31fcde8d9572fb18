"""Drafts and publishing: a draft is planned, rehearsed, and becomes an immutable document, whose id is its digest."""

import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any, cast

from tacit.collector.collections.active import ID, Catalog, parsed_json
from tacit.collector.collections.draft_texts import check_texts
from tacit.collector.collections.issuing import draw_issuer
from tacit.collector.collections.parts import Total, answering, check_fakes, parts_of
from tacit.collector.collections.policies import Wanted, asked_of, plan_policy, reports_each, wanted_k
from tacit.collector.collections.rehearsal import rehearse
from tacit.collector.collections.windowed import check_windows, windowed_fields
from tacit.collector.ports import NO_FOLDER, CollectionRecord, Store
from tacit.core.extras import need
from tacit.core.mechanism import Mechanism
from tacit.core.patience import check
from tacit.core.statistics.normal import normal_isf
from tacit.device.numbers.budget import Epsilon
from tacit.device.numbers.canonical import canonical
from tacit.errors import InvalidSpec
from tacit.hosting.problems import Problem
from tacit.tasks.histogram import HISTOGRAM
from tacit.tasks.marginals.task import MARGINALS
from tacit.tasks.rows import ANALYTICS
from tacit.tasks.table import TASKS, find_task
from tacit.tasks.task import AdaptiveTask, Forecast, JointTask, QuestionTask, RowsTask, Task
from tacit.wire.document import MAX_QUESTIONS, OLDEST, Collection, Question, added_by, version_for
from tacit.wire.tallies import empty_tally
from tacit.wire.tokens import TokenTerms

# A draft has labels in it, so it may be large, but every device has to download the document made of it.
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
    "tokens": False,
    "integrity": None,
    "k": None,
    "rows": None,
    "shuffle": None,
    "windows": None,
    "account": None,
    "queries": [],
}
_KNOWN = ("title", "questions", "epsilon", *_DEFAULTS)


def _anybody(collection: Collection) -> None:
    """Where nobody runs a collection, none is refused."""
    del collection


@dataclass(frozen=True)
class Planner:
    """Turns drafts into documents, with the mechanisms and tasks that collections may use."""

    catalog: Catalog
    tasks: tuple[Task, ...] = TASKS
    takes_rows: bool = True
    """Whether the collector has a folder for segments."""
    check_shuffled: Callable[[Collection], None] = _anybody
    """Refuses shuffled collections that could not be run on this collector."""
    in_lake: bool = False
    """Whether the collector keeps reports in a lake, which windows are not."""

    def plan(self, draft: Mapping[str, Any]) -> tuple[Collection, int]:
        """The collection that a draft describes, and its number of respondents; InvalidSpec if there is none."""
        fields = _draft_fields(draft)
        _check_tokens(fields)
        if fields["rows"] is not None and not self.takes_rows:
            raise InvalidSpec(f"draft.rows: {NO_FOLDER}")
        task = _default_task(fields)
        questions = tuple(_question(item, f"questions[{i}]", task) for i, item in enumerate(fields["questions"]))
        respondents = _respondents(fields["respondents"])
        wanted = Wanted(questions, _epsilon(fields["epsilon"]), respondents, fields, self.tasks)
        policy, mechanism, plan = plan_policy(wanted)
        document = {
            "version": OLDEST,
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
        # Version 1 unless there is something to say that it has no field for: every client reads that one.
        added = {name: fields[name] for name in ("shuffle", "integrity")}
        added |= windowed_fields(fields, document["epsilon"])
        version = version_for(name for name, part in added.items() if part is not None)
        if version > OLDEST:
            kept |= {"version": version} | {name: added.get(name) for name in added_by(version)}
        # Through the parser that devices use: what it refuses is not published, and defaults are those of the wire.
        collection = Collection.from_json(document | kept, self.catalog)
        if fields["tokens"]:
            replace(collection, tokens=_NO_KEY).check()
        check_texts(collection)
        if collection.integrity is not None and self.in_lake:
            raise InvalidSpec("draft.integrity: reports of this collector are kept in its lake; leave it out")
        check_windows(collection, in_lake=self.in_lake)
        self._rehearse(collection)
        check_fakes(collection, mechanism)
        self.check_shuffled(collection)
        return collection, respondents

    def _rehearse(self, collection: Collection) -> None:
        """A dry run: report example answers, and answer from an empty tally. What would fail later is refused now."""
        rehearse(collection)
        mechanism = collection.mechanism
        assert isinstance(mechanism, Mechanism)
        if collection.rows is not None:
            return
        parts = parts_of(collection, mechanism, Total(empty_tally(mechanism)))
        for question, part in zip(collection.questions, parts, strict=True):
            check()
            task = find_task(question.task, self.tasks)
            if isinstance(task, QuestionTask | JointTask):
                task.answer(question.domain, part)

    def predict(self, draft: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The expected precision of every question of a draft: standard error and half-width of a 95 % interval."""
        collection, n = self.plan(draft)
        task, asked = find_task(collection.questions[0].task, self.tasks), asked_of(collection.questions)
        mechanism = collection.mechanism
        assert isinstance(mechanism, Mechanism)
        # Questions that are asked together share one mechanism, and so one forecast.
        if isinstance(task, JointTask):
            forecast = task.forecast(asked, mechanism, n, wanted_k(draft.get("k")))
        elif isinstance(task, RowsTask):
            forecast = task.forecast(asked, mechanism, n)
        else:
            return self._predict_each(collection, n)
        return [_prediction(question, mechanism, forecast, n) for question in collection.questions]

    def _predict_each(self, collection: Collection, n: int) -> list[dict[str, Any]]:
        """A forecast per question, each of which has a mechanism of its own."""
        reports = reports_each(collection.policy, len(collection.questions), n)
        predictions: list[dict[str, Any]] = []
        for question, member in zip(collection.questions, collection.members, strict=True):
            check()
            task = find_task(question.task, self.tasks)
            assert isinstance(member, Mechanism) and isinstance(task, QuestionTask | AdaptiveTask)
            # What fakes add to the variance is forecast as well.
            forecast = task.forecast(question.domain, answering(collection, member), reports)
            if task is HISTOGRAM and reports < n:
                forecast = _of_a_group(forecast, question.domain.size, reports, n)
            predictions.append(_prediction(question, member, forecast, reports))
        return predictions


def _of_a_group(forecast: Forecast, size: int, reports: int, n: int) -> Forecast:
    """The forecast of shares that a random group answers for everybody, with the error of having asked a group.

    That is f(1 - f)/n_g (n - n_g)/(n - 1), as in docs/maths/one_of.md, for answers that are equally frequent.
    """
    sampling = (1 / size) * (1 - 1 / size) / reports * (n - reports) / max(1, n - 1)

    def whole(error: float) -> float:
        return sqrt(error**2 + sampling)

    options = tuple({**option, "standard_error": whole(option["standard_error"])} for option in forecast.options)
    return replace(forecast, standard_error=whole(forecast.standard_error), options=options)


def _prediction(question: Question, member: Mechanism, forecast: Forecast, n: int) -> dict[str, Any]:
    """The forecast of one question from n reports, as plain data."""
    raw = forecast.standard_error if forecast.raw is None else forecast.raw
    return {
        "name": question.name,
        "mechanism": member.spec(),
        "standard_error": forecast.standard_error,
        "raw_standard_error": raw,
        "between": None if forecast.between is None else list(forecast.between),
        # Intervals are those of the raw answers, also beside consistent ones.
        "half_width_95": float(normal_isf(0.025)) * raw,
        "of": forecast.of,
        "why": forecast.why,
        "options": [dict(option) for option in forecast.options],
        "report_bits": member.report_bits,
        "reports": n,
    }


_NEEDED = {
    "title": "write title: What the survey is about",
    "questions": "list at least one, with name, text and domain",
    "epsilon": 'write epsilon: "1" (small is private, large is precise; tacit plan --help says what reaches an error)',
}
"""The fields that every draft states, and how."""


def _draft_fields(draft: Any) -> dict[str, Any]:
    if not isinstance(draft, Mapping):
        raise InvalidSpec("draft must be an object with title, questions and epsilon")
    given = cast("Mapping[str, Any]", draft)
    # Unknown fields are refused: a misspelt `minimum_cohort` would otherwise silently be the default.
    for name in sorted(set(map(str, given)) - set(_KNOWN)):
        raise InvalidSpec(f"draft: unknown field '{name[:40]}', must be one of {', '.join(sorted(_KNOWN))}")
    for name, hint in _NEEDED.items():
        if name not in given:
            raise InvalidSpec(f"draft: field '{name}' is missing; {hint}")
    fields = _DEFAULTS | dict(given)
    items = fields["questions"]
    if not isinstance(items, list) or not 1 <= len(cast("list[Any]", items)) <= MAX_QUESTIONS:
        raise InvalidSpec(f"draft.questions must be a list of 1 to {MAX_QUESTIONS} questions")
    # Documents have epsilon as text, so that it is exact; floats are refused later, a plain integer is convenience.
    if type(fields["epsilon"]) is int:
        fields["epsilon"] = str(fields["epsilon"])
    return fields


# A stand-in: the key of a collection is drawn when it is published, and a draft is checked before that.
_NO_KEY = TokenTerms("8" + "0" * 510 + "1")


def _check_tokens(fields: dict[str, Any]) -> None:
    """Tokens are redeemed for invitations, so that a draft that asks for them asks for both."""
    if type(fields["tokens"]) is not bool:
        raise InvalidSpec("draft.tokens must be true or false")
    if fields["tokens"]:
        fields["invitations"] = True
        need("shuffle")


def _default_task(fields: Mapping[str, Any]) -> str:
    """The task of questions that do not name one."""
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
    "optional": {"declined": "Prefer not to say"},
}


def _domain(spec: dict[str, Any], name: Any) -> dict[str, Any]:
    """A domain spec with defaults filled in; its name is the question's unless it has one."""
    kind, inner = spec.get("kind"), spec.get("domain")
    filled = _DOMAIN_DEFAULTS.get(str(kind), {}) | spec
    if kind == "optional" and isinstance(inner, dict):
        filled["domain"] = _domain(cast("dict[str, Any]", inner), name)
    return filled if kind in ("product", "optional") else {"name": name} | filled


def _texts(value: Any) -> Any:
    """Texts by language; a plain string counts as English."""
    return {"en": value} if isinstance(value, str) else value


def _epsilon(value: Any) -> Epsilon:
    """The epsilon of a draft, which is text: a float of YAML or JSON is not the same number to every program."""
    if not isinstance(value, str):
        raise InvalidSpec('draft.epsilon must be decimal text such as "1.0", in quotation marks')
    return Epsilon(value)


def _respondents(value: Any) -> int:
    if type(value) is not int or not 1 <= value <= MAX_RESPONDENTS:
        raise InvalidSpec(f"draft.respondents must be an integer from 1 to {MAX_RESPONDENTS}")
    return value


def create_draft(store: Store, planner: Planner, draft: Any, team: str = "") -> CollectionRecord:
    """Store a new draft of a team, or of none; InvalidSpec if it could not be published."""
    planner.plan(draft)
    record = CollectionRecord(f"draft-{secrets.token_hex(16)}", "draft", _draft_bytes(draft), team)
    store.add_collection(record)
    return record


def replace_draft(store: Store, planner: Planner, collection: str, draft: Any) -> CollectionRecord:
    """Replace a draft; Problem `conflict` for a published collection, which never changes."""
    old = _draft_of(store, collection)
    planner.plan(draft)
    record = replace(old, document=_draft_bytes(draft))
    store.replace_draft(record)
    return record


def delete_draft(store: Store, collection: str) -> None:
    """Delete a draft; Problem `conflict` for a published collection, which can only be closed."""
    _draft_of(store, collection)
    store.delete_draft(collection)


def publish(store: Store, planner: Planner, collection: str) -> CollectionRecord:
    """Turn a draft into a published collection, whose id is the digest of its document."""
    draft = _draft_of(store, collection)
    # Published before the draft is deleted: after a crash in between, publishing again gives the same document, or
    # with tokens another one, with a key of its own, beside one whose address nobody knows.
    fields = parsed_json(draft.document)
    record = publish_document(store, _with_tokens(store, fields, planner.plan(fields)[0]), draft.team)
    if record.team != draft.team:
        raise Problem("conflict", "another team has published exactly this document; change its title or its text")
    store.delete_draft(collection)
    return record


def _with_tokens(store: Store, draft: Any, collection: Collection) -> Collection:
    """The collection with the public half of a key of its own, if its draft asks for tokens; the rest is stored."""
    if not draft.get("tokens"):
        return collection
    terms, secret = draw_issuer()
    made = replace(collection, tokens=terms)
    store.issuing.add_key(made.id, secret)
    return made


def publish_document(store: Store, collection: Collection, team: str = "") -> CollectionRecord:
    """Publish a document after a rehearsal; idempotent, as the id is the digest of the document."""
    rehearse(collection)
    record = CollectionRecord(collection.id, "published", canonical(collection.to_json()), team)
    store.add_collection(record, 0 if collection.windows is None else collection.windows.count)
    # The id is the digest of the document: if it was published before, it may be closed by now.
    return store.collection(record.id) or record


def close(store: Store, collection: str) -> CollectionRecord:
    """Close a published collection: it takes no more reports, and its answers stay."""
    record = find_record(store, collection)
    if record.state == "draft":
        raise Problem("conflict", "a draft takes no reports; delete it, or publish it first")
    store.close_collection(collection)
    return find_record(store, collection)


def find_record(store: Store, collection: str) -> CollectionRecord:
    """A collection in any state; Problem `not_found` if there is none."""
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
