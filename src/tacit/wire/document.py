"""The collection document: what is asked, over which domain, at which epsilon, by which mechanism.

A document is JSON in canonical form; its identity is the SHA-256 of that form, and every report batch carries it. It
states everything a device needs, so that a respondent's client can check the digest and perturb without asking
anybody. Standard library only: clients read documents too.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Self, cast

from tacit.device.base import Device
from tacit.device.catalog import KINDS, device_of
from tacit.device.domains.domain import Domain
from tacit.device.domains.product import domain_of
from tacit.device.numbers.canonical import canonical, digest
from tacit.device.windows.terms import AccountTerms, WindowTerms
from tacit.errors import InvalidSpec, InvalidValue
from tacit.wire.fields import is_short_text, stated_fields, whole_number
from tacit.wire.integrity import IntegrityTerms, check_kept
from tacit.wire.rows import Rows, check_word
from tacit.wire.shuffled import ShuffleTerms
from tacit.wire.tokens import TokenTerms, check_tokens
from tacit.wire.windows import account_from_json, check_told, check_windowed, windows_from_json

OLDEST, NEWEST = 1, 3
"""Versions of a document. Each has all fields of the one before, and those that it adds."""
ADDED = ("shuffle", "windows", "account")
"""What version 2 adds, each null or an object. A document is published in the oldest version that can say it."""
ADDED_LATER = ("tokens", "integrity")
"""What version 3 adds, each null or an object."""
POLICIES = ("single", "one_of", "all_of", "joint")
"""How several questions are asked: one of them, drawn by the device; all, at a share of epsilon each; or together."""
MAX_QUESTIONS = 128
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_LANGUAGE = re.compile(r"[a-z]{2,3}(_[a-z]{2,8})?")
MAX_ORIGINS = 64
_ORIGIN = re.compile(r"https?://[a-z0-9.-]+(:[0-9]{1,5})?|\*")

Texts = dict[str, str]


def _texts(value: Any, where: str, most: int) -> Texts:
    """Text in one or more languages: {"en": "..."}."""
    pairs = cast("dict[Any, Any]", value) if isinstance(value, dict) else {}
    if not pairs:
        raise InvalidSpec(f'{where} must be text by language, such as {{"en": "…"}}')
    for language, text in pairs.items():
        if not isinstance(language, str) or not _LANGUAGE.fullmatch(language):
            raise InvalidSpec(f'{where}: a language must be a tag such as "en" or "pt_br"')
        if not is_short_text(text, most):
            raise InvalidSpec(f"{where}: the text must have 1 to {most} characters")
    return dict(pairs)


@dataclass(frozen=True)
class Question:
    """One question: an id, its text by language, the domain of answers and the task that answers it."""

    name: str
    text: Texts
    domain: Domain
    task: str

    @classmethod
    def from_json(cls, value: Any, where: str) -> Self:
        """Read one question of a document."""
        given = stated_fields(value, where, ("name", "text", "domain", "task"))
        if not isinstance(given["name"], str) or not _NAME.fullmatch(given["name"]):
            raise InvalidSpec(f"{where}.name must be a lower-case word of up to 40 letters, digits and underscores")
        if not isinstance(given["task"], str) or not _NAME.fullmatch(given["task"]):
            raise InvalidSpec(f'{where}.task must be the name of a task, such as "histogram"')
        text = _texts(given["text"], f"{where}.text", 500)
        return cls(given["name"], text, domain_of(given["domain"]), given["task"])

    def to_json(self) -> dict[str, Any]:
        """The wire form."""
        return {"name": self.name, "text": self.text, "domain": self.domain.spec(), "task": self.task}


@dataclass(frozen=True)
class PlanRound:
    """A round of an adaptive plan: every round is a document of its own, for respondents who were not asked before."""

    method: str
    k: int
    """How many items or itemsets are looked for."""
    respondents: int
    """How many are expected to take part in all rounds together."""
    round: int
    """From 1 on."""
    target: int
    """The number of reports at which the round closes by itself."""
    first: str = ""
    """The document of round 1; empty in that one."""
    previous: str = ""
    """The document of the round before; empty in round 1."""

    @classmethod
    def from_json(cls, value: Any) -> Self:
        """Read the plan of a document."""
        given = stated_fields(value, "document.plan", tuple(field.name for field in fields(cls)))
        if not isinstance(given["method"], str) or not _NAME.fullmatch(given["method"]):
            raise InvalidSpec('document.plan.method must be the name of a plan, such as "svim"')
        for name in ("first", "previous"):
            linked = r"[0-9a-f]{64}" if given["round"] != 1 else ""
            if not isinstance(given[name], str) or not re.fullmatch(linked, given[name]):
                raise InvalidSpec(f"document.plan.{name} must be the id of a document, and empty in round 1")
        for name, most in (("k", 4096), ("respondents", 10**10), ("round", 64), ("target", 10**10)):
            whole_number(given[name], f"document.plan.{name}", 1, most)
        return cls(**given)

    def to_json(self) -> dict[str, Any]:
        """The wire form."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


_FIELDS = (
    "version",
    "title",
    "about",
    "questions",
    "policy",
    "epsilon",
    "mechanism",
    "minimum_cohort",
    "retention_days",
    "origins",
    "invitations",
    "plan",
    "rows",
)


@dataclass(frozen=True)
class Collection:
    """A collection document, checked. Two documents are the same collection if and only if their ids agree."""

    title: Texts
    about: Texts
    questions: tuple[Question, ...]
    policy: str
    mechanism: Device
    minimum_cohort: int = 100
    retention_days: int = 365
    origins: tuple[str, ...] = ()
    invitations: bool = False
    plan: PlanRound | None = None
    """Where this is a round of an adaptive plan."""
    rows: Rows | None = None
    """Public columns that come with every report and stay linked to it."""
    shuffle: ShuffleTerms | None = None
    """Where reports are sealed for shufflers: who they are, and under which terms they mix reports."""
    windows: WindowTerms | None = None
    """Where the question is asked again and again: the calendar, and which windows a device answers."""
    account: AccountTerms | None = None
    """What reports of all windows are charged to on a device."""
    tokens: TokenTerms | None = None
    """Where a report needs an anonymous token: the key that signs them."""
    integrity: IntegrityTerms | None = None
    """Where reports are kept for a while after they were counted, to look for forged ones."""
    version: int = OLDEST
    """The version that the document was written in; raised to the oldest that can say what is meant."""

    def __post_init__(self) -> None:
        """Raise the version to one that has a field for everything that is said."""
        said = [name for name in (*ADDED, *ADDED_LATER) if getattr(self, name) is not None]
        object.__setattr__(self, "version", max(self.version, version_for(said)))

    @classmethod
    def from_text(cls, text: str | bytes) -> Self:
        """Read and check a document as it was sent: JSON in UTF-8; bytes may begin with a byte order mark."""
        try:
            value = json.loads(text if isinstance(text, str) else text.decode("utf-8-sig"))
        # JSON that is nested deeply enough ends in RecursionError, and documents come from strangers.
        except (ValueError, RecursionError):
            raise InvalidSpec("document must be JSON in UTF-8") from None
        return cls.from_json(value)

    @classmethod
    def from_json(cls, value: Any, kinds: tuple[type[Device], ...] = KINDS) -> Self:
        """Read and check a document with mechanisms of these kinds; every field must be stated, in canonical form."""
        given = _versioned(value)
        questions = _questions(given["questions"])
        made = cls(
            title=_texts(given["title"], "document.title", 200),
            about=_texts(given["about"], "document.about", 4000),
            questions=questions,
            policy=_policy(given["policy"], len(questions)),
            mechanism=device_of(given["mechanism"], kinds),
            minimum_cohort=whole_number(given["minimum_cohort"], "document.minimum_cohort", 1, 10**9),
            retention_days=whole_number(given["retention_days"], "document.retention_days", 1, 36500),
            origins=_origins(given["origins"]),
            invitations=_boolean(given["invitations"], "document.invitations"),
            plan=None if given["plan"] is None else PlanRound.from_json(given["plan"]),
            rows=None if given["rows"] is None else Rows.from_json(given["rows"]),
            shuffle=None if given.get("shuffle") is None else ShuffleTerms.from_json(given["shuffle"]),
            windows=None if given.get("windows") is None else windows_from_json(given["windows"]),
            account=None if given.get("account") is None else account_from_json(given["account"]),
            tokens=None if given.get("tokens") is None else TokenTerms.from_json(given["tokens"]),
            integrity=None if given.get("integrity") is None else IntegrityTerms.from_json(given["integrity"]),
            version=given["version"],
        )
        made.check()
        # Two texts of one meaning would have two ids, so that only the one that reading gives back is a document.
        if canonical(made.to_json()) != canonical(value):
            raise InvalidSpec("document: not in canonical form; publish it again with this version of tacit")
        return made

    def check(self) -> None:
        """Refuse a mechanism that does not fit the questions or the shufflers, and rows with a private column."""
        self._check_rows()
        check_told(self)
        check_windowed(self)
        check_tokens(self)
        check_kept(self)
        if self.shuffle is not None:
            self._check_shuffled(self.shuffle)
        if self.policy == "joint":
            self._check_joint()
            return
        if self.policy != "single" and self.mechanism.kind != self.policy:
            raise InvalidSpec(
                f"document: the policy is {self.policy}, the mechanism is {self.mechanism.kind}; they must agree"
            )
        family = self.mechanism.drawn_from
        if self.policy == "one_of" and family.kind != "questions":
            raise InvalidSpec(
                f"document: the policy is one_of, so the family must be questions, with a member each; it is "
                f"{family.kind}, whose members are parts of one answer"
            )
        parts = self.members
        if len(parts) != len(self.questions):
            raise InvalidSpec(f"document: the mechanism answers {len(parts)} questions, must be {len(self.questions)}")
        for question, part in zip(self.questions, parts, strict=True):
            size = part.domain_size
            if size != question.domain.size:
                raise InvalidSpec(
                    f"document: the mechanism of question '{question.name}' is for {size} values, "
                    f"its domain has {question.domain.size}"
                )

    def _check_joint(self) -> None:
        """The mechanism must be about all questions together, each an attribute."""
        family = self.mechanism.drawn_from
        if family is None or not family.together:
            raise InvalidSpec(
                "document: the policy is joint, so the mechanism must be one_of a family about all questions"
            )
        domains, sizes = tuple(question.domain.size for question in self.questions), family.answer_sizes()
        if sizes != domains:
            raise InvalidSpec(
                f"document: the mechanism is for attributes of {list(sizes)[:8]} values, "
                f"the domains of the questions have {list(domains)[:8]}"
            )

    def _check_rows(self) -> None:
        if self.rows is None:
            return
        public = [column.name for column in self.rows.columns]
        for question in self.questions:
            check_word(question.name, "document.questions beside rows")
            if question.name in public:
                raise InvalidSpec(f"document.rows: '{question.name}' is a question, so it must not be a public column")
        if self.plan is not None:
            raise InvalidSpec("document.rows: reports of an adaptive plan are counted, not kept with rows")

    def _check_shuffled(self, terms: ShuffleTerms) -> None:
        """Refuse what shufflers cannot mix, or what would tell reports apart after they were mixed."""
        if self.rows is not None:
            raise InvalidSpec("document.rows must be null in a shuffled collection: rows would tell reports apart")
        if self.plan is not None:
            raise InvalidSpec("document.plan must be null in a shuffled collection: rounds of a plan are not shuffled")
        if self.policy != "single":
            raise InvalidSpec(
                f'document.policy is {self.policy}, must be "single" in a shuffled collection; ask the other questions '
                "in collections of their own"
            )
        if not self.mechanism.fits_word:
            raise InvalidSpec(
                f"document.mechanism: reports of {self.mechanism.kind} do not fit the 64-bit word that shufflers pass "
                "on; use a kind whose reports do, such as grr or olh"
            )
        if self.minimum_cohort > terms.minimum:
            raise InvalidSpec(
                f"document.minimum_cohort is {self.minimum_cohort}, must be at most {terms.minimum}, the number of "
                "reports from which on shufflers release them (document.shuffle.minimum)"
            )

    @property
    def roles_apart(self) -> bool:
        """Whether reports are shuffled and no party runs two roles: only then may the document claim amplification."""
        return self.shuffle is not None and not self.shuffle.together

    @property
    def least_reports(self) -> int:
        """So many reports must have come in before anything is answered."""
        return self.minimum_cohort if self.shuffle is None else max(self.minimum_cohort, self.shuffle.minimum)

    @property
    def members(self) -> tuple[Device, ...]:
        """The mechanism of every question; of questions that are asked together, the one of all."""
        if self.policy in ("single", "joint"):
            return (self.mechanism,)
        return self.mechanism.per_question

    @property
    def epsilon(self) -> Any:
        """The privacy budget of one respondent, in wire form."""
        return self.mechanism.budget.to_spec()

    def to_json(self) -> dict[str, Any]:
        """The document, in its version."""
        pairs: dict[str, Any] = {
            "version": self.version,
            "title": self.title,
            "about": self.about,
            "questions": [question.to_json() for question in self.questions],
            "policy": self.policy,
            "epsilon": self.epsilon,
            "mechanism": self.mechanism.spec(),
            "minimum_cohort": self.minimum_cohort,
            "retention_days": self.retention_days,
            "origins": list(self.origins),
            "invitations": self.invitations,
            "plan": None if self.plan is None else self.plan.to_json(),
            "rows": None if self.rows is None else self.rows.to_json(),
        }
        # Earlier versions have no such fields, and stating them as null would change the ids of their documents.
        parts = {name: getattr(self, name) for name in added_by(self.version)}
        return pairs | {name: None if part is None else part.to_json() for name, part in parts.items()}

    @cached_property
    def id(self) -> str:
        """SHA-256 of the canonical document, in hexadecimal."""
        return digest(self.to_json())

    @property
    def plan_id(self) -> str:
        """What a respondent takes part in once: the first document of the plan, or this one."""
        return self.id if self.plan is None or not self.plan.first else self.plan.first

    @property
    def languages(self) -> list[str]:
        """Languages in which everything is said."""
        texts = [self.about, *(question.text for question in self.questions)]
        return sorted(language for language in self.title if all(language in text for text in texts))

    def encode(self, answers: Mapping[str, Any]) -> Any:
        """A respondent's answers as the value that the mechanism perturbs; wrong ones are refused, never shown."""
        indices: list[int] = []
        for question in self.questions:
            if question.name not in answers:
                raise InvalidValue(f"question '{question.name}' has no answer; every question must be answered")
            indices.append(question.domain.encode(answers[question.name]))
        if self.policy == "joint":
            return self.mechanism.drawn_from.of_answers(indices)
        return indices[0] if self.policy == "single" else tuple(indices)


def version_for(said: Iterable[str]) -> int:
    """The oldest version that has these of the added fields."""
    names = set(said)
    return 3 if names & set(ADDED_LATER) else 2 if names & set(ADDED) else OLDEST


def added_by(version: int) -> tuple[str, ...]:
    """The fields that documents of a version have beside those of the first."""
    return () if version == OLDEST else ADDED if version == 2 else (*ADDED, *ADDED_LATER)


def _versioned(value: Any) -> dict[str, Any]:
    """The fields of a document, which are those of its version."""
    version = cast("dict[str, Any]", value).get("version", OLDEST) if isinstance(value, dict) else OLDEST
    # By `type`, as 1.0 and True are equal to 1.
    if type(version) is not int or not OLDEST <= version <= NEWEST:
        raise InvalidSpec(
            f"document.version is {str(version)[:20]}, must be from {OLDEST} to {NEWEST}; a newer document needs a "
            "newer version of tacit"
        )
    return stated_fields(value, "document", (*_FIELDS, *added_by(version)))


def _questions(value: Any) -> tuple[Question, ...]:
    items = cast("list[Any]", value) if isinstance(value, list) else []
    if not 1 <= len(items) <= MAX_QUESTIONS:
        raise InvalidSpec(f"document.questions must be a list of 1 to {MAX_QUESTIONS} questions")
    questions = tuple(Question.from_json(item, f"questions[{i}]") for i, item in enumerate(items))
    if len({question.name for question in questions}) < len(questions):
        raise InvalidSpec("document.questions: names must differ from each other")
    return questions


def _policy(value: Any, questions: int) -> str:
    if value not in POLICIES or (value == "single") != (questions == 1):
        raise InvalidSpec('document.policy must be "single" for one question, else "one_of", "all_of" or "joint"')
    return value


def is_origin(value: Any) -> bool:
    """Whether this is a web origin, or "*" for all."""
    return isinstance(value, str) and _ORIGIN.fullmatch(value) is not None


def _origins(value: Any) -> tuple[str, ...]:
    # What is no list becomes one that is refused below, as 0 is no origin.
    items: list[Any] = cast("list[Any]", value) if isinstance(value, list) else [0]
    if len(items) > MAX_ORIGINS or not all(map(is_origin, items)):
        raise InvalidSpec('document.origins must be a list of web origins such as "https://example.org", or "*"')
    return tuple(items)


def _boolean(value: Any, where: str) -> bool:
    if type(value) is not bool:
        raise InvalidSpec(f"{where} must be true or false")
    return value
