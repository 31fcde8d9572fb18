"""The JSON Schema of collection documents and of drafts, as data: `spec/collection.schema.json` and OpenAPI share it.

The kinds of mechanisms and their fields are read off the classes, so that the schema cannot forget one. A schema sees
shapes; what it cannot see (sizes that must agree, names that must differ, normal form) the library checks.
"""

from dataclasses import fields
from typing import Any

from tacit.device.base import Device
from tacit.device.catalog import FAMILIES, KINDS
from tacit.device.domains.product import DOMAINS
from tacit.device.families.compose import Family
from tacit.device.numbers.budget import Budget
from tacit.device.windows.calendar import EVERY, MAX_WINDOWS, ZONES
from tacit.device.windows.terms import GUARANTEES, MAX_LATE
from tacit.wire.document import ADDED, ADDED_LATER, MAX_QUESTIONS, NEWEST, OLDEST, POLICIES
from tacit.wire.integrity import UNTIL_CLOSED
from tacit.wire.rows import KEYWORDS, MAX_COLUMNS, RESERVED, SYSTEM, TYPES
from tacit.wire.shuffled import (
    DELTA,
    IDENTITY,
    MAX_NAME,
    MAX_REPORTS,
    MAX_SPOT_CHECKS,
    MAX_URL,
    MODES,
    URL,
)
from tacit.wire.tokens import KEY
from tacit.wire.windows import ACCOUNT_FIELDS, WINDOW_FIELDS

Schema = dict[str, Any]
"""A JSON Schema, or a part of one."""

# The largest integer that a JSON number holds exactly in every language.
_SAFE = (1 << 53) - 1
_NAME: Schema = {"type": "string", "pattern": "^[a-z][a-z0-9_]{0,39}$"}
_LABEL: Schema = {"type": "string", "minLength": 1, "maxLength": 256}
_BOOLEAN: Schema = {"type": "boolean"}
# Decimal text in normal form: no leading zeros, no trailing zeros after the point.
_DECIMAL = "(0|[1-9][0-9]{0,14})(\\.[0-9]{0,17}[1-9])?"


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _whole(low: int, high: int) -> Schema:
    return {"type": "integer", "minimum": low, "maximum": high}


def _items(of: Schema, low: int, high: int) -> Schema:
    return {"type": "array", "items": of, "minItems": low, "maxItems": high}


def _record(required: Schema, optional: Schema | None = None) -> Schema:
    """An object with these fields and no others."""
    properties = required | (optional or {})
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def _texts(most: int) -> Schema:
    """Text by language."""
    return {
        "type": "object",
        "minProperties": 1,
        "propertyNames": {"pattern": "^[a-z]{2,3}(_[a-z]{2,8})?$"},
        "additionalProperties": {"type": "string", "minLength": 1, "maxLength": most},
    }


def _texts_of_draft(most: int, *, optional: bool = False) -> Schema:
    """Text by language, or plain text, which is English."""
    plain: Schema = {"type": "string", "minLength": 0 if optional else 1, "maxLength": most}
    return {"anyOf": [_texts(most), plain, *([{"type": "null"}] if optional else [])]}


def _one_by_kind(kinds: dict[str, Schema]) -> Schema:
    """One of several objects, told apart by `kind`."""
    return {"type": "object", "required": ["kind"], "oneOf": [_ref(schema["title"]) for schema in kinds.values()]}


_INTEGER: Schema = {
    "description": "An integer; from 2^53 on as digit text.",
    "anyOf": [_whole(0, _SAFE), {"type": "string", "pattern": "^[1-9][0-9]{15,19}$"}],
}

# Fields of a spec by the annotation of the dataclass; an unlisted annotation allows anything.
_OF_TYPES: dict[Any, Schema] = {
    int: _ref("integer"),
    str: {"type": "string", "maxLength": 64},
    bool: _BOOLEAN,
    Budget | str: _ref("epsilon"),
    Device: _ref("mechanism"),
    Family: _ref("family"),
    tuple[Device, ...]: _items(_ref("mechanism"), 1, 1 << 16),
    tuple[int, ...]: _items(_whole(0, _SAFE), 1, 1 << 20),
    tuple[tuple[int, ...], ...]: _items(_items(_whole(0, _SAFE), 1, 1 << 20), 0, 1 << 16),
}


def _of_class(kind: type[Any]) -> Schema:
    """The spec of a mechanism or family: its kind and every field of the class."""
    pairs = {f.name: _ref("epsilon") if f.name == "epsilon" else _OF_TYPES.get(f.type, {}) for f in fields(kind)}
    return {"title": f"spec_{kind.kind}"} | _record({"kind": {"const": kind.kind}} | pairs)


_EDGE: Schema = {"type": "string", "pattern": f"^-?{_DECIMAL}$"}
_EDGE_OF_DRAFT: Schema = {
    "anyOf": [_whole(1 - 10**15, 10**15 - 1), {"type": "string", "pattern": "^-?[0-9]{1,15}(\\.[0-9]{1,18})?$"}]
}
_STEP: Schema = _whole(-_SAFE, _SAFE)

_LABELS: Schema = _items(_LABEL, 1, 1 << 20) | {"uniqueItems": True}

_DOMAIN_FIELDS: Schema = {
    "name": {"type": "string", "minLength": 1, "maxLength": 64},
    "labels": _LABELS,
    "other": {"anyOf": [_LABEL, {"type": "null"}]},
    "most": {"anyOf": [_whole(1, 1 << 20), {"type": "null"}]},
    "low": _STEP,
    "high": _STEP,
    "step": _whole(1, _SAFE),
    "edges": _items(_EDGE, 1, 1 << 20),
    "open_below": _BOOLEAN,
    "open_above": _BOOLEAN,
    "alphabet": {"type": "string", "minLength": 1, "maxLength": 1 << 14},
    "length": _whole(1, 64),
    "key": _LABEL,
    "max_bytes": _whole(1, 1 << 16),
    "attributes": _items(_ref("domain"), 1, 1024),
    "domain": _ref("domain"),
    "declined": _LABEL,
}
"""Schemas of the fields of domains, by name; a name means the same in every kind of domain."""

_HAVE_DEFAULTS = ("name", "declined", "other", "most", "step", "open_below", "open_above")


def _domain(kind: type[Any]) -> Schema:
    """A domain as a document states it: every field."""
    pairs = {f.name: _DOMAIN_FIELDS.get(f.name, {}) for f in fields(kind)}
    return {"title": f"domain_{kind.kind}"} | _record({"kind": {"const": kind.kind}} | pairs)


def _domain_of_draft(kind: type[Any]) -> Schema:
    """A domain as a draft may state it: some fields have defaults, and it is named after its question."""
    own = {f.name: _DOMAIN_FIELDS.get(f.name, {}) for f in fields(kind)}
    # Drafts may write edges as numbers or in any decimal form; publishing brings them into normal form.
    if "edges" in own:
        own["edges"] = _items(_EDGE_OF_DRAFT, 1, 1 << 20)
    if "domain" in own:
        own["domain"] = _ref("draft_domain")
    needed = {name: schema for name, schema in own.items() if name not in _HAVE_DEFAULTS}
    rest = {name: schema for name, schema in own.items() if name in _HAVE_DEFAULTS}
    return {"title": f"draft_domain_{kind.kind}"} | _record({"kind": {"const": kind.kind}} | needed, rest)


def _by_policy() -> list[Schema]:
    """Conditions between the policy, the number of questions and the kind of mechanism."""

    def rule(policy: str, then: Schema) -> Schema:
        return {"if": {"properties": {"policy": {"const": policy}}}, "then": {"properties": then}}

    together = [kind.kind for kind in FAMILIES if kind.together]
    mechanisms: dict[str, Schema] = {
        "one_of": {"kind": {"const": "one_of"}, "family": {"properties": {"kind": {"const": "questions"}}}},
        "all_of": {"kind": {"const": "all_of"}},
        "joint": {"kind": {"const": "one_of"}, "family": {"properties": {"kind": {"enum": together}}}},
    }
    several = [
        rule(policy, {"questions": {"minItems": 2}, "mechanism": {"properties": mechanisms[policy]}})
        for policy in POLICIES[1:]
    ]
    return [rule("single", {"questions": {"maxItems": 1}}), *several]


def _settings() -> Schema:
    return {
        "minimum_cohort": _whole(1, 10**9),
        "retention_days": _whole(1, 36500),
        "origins": _items(_ref("origin"), 0, 64),
        "invitations": _BOOLEAN,
    }


def _plan() -> Schema:
    """A round of an adaptive plan; every round but the first links to the first and to the previous one."""
    linked: Schema = {"type": "string", "pattern": "^([0-9a-f]{64})?$"}
    pairs = _record({
        "method": {"type": "string", "pattern": "^[a-z][a-z0-9_]{0,39}$"},
        "k": _whole(1, 4096),
        "respondents": _whole(1, 10**10),
        "round": _whole(1, 64),
        "target": _whole(1, 10**10),
        "first": linked,
        "previous": linked,
    })  # fmt: skip
    none = {"properties": {name: {"const": ""} for name in ("first", "previous")}}
    some = {"properties": {name: {"minLength": 64} for name in ("first", "previous")}}
    return pairs | {"if": {"properties": {"round": {"const": 1}}}, "then": none, "else": some}


def _rows() -> Schema:
    """Public columns that come with every report, or null."""
    named = _ref("sql_name")
    column = _record({"name": named | {"not": {"enum": list(RESERVED)}}, "type": {"enum": list(TYPES)}})
    return {"anyOf": [{"type": "null"}, _record({"table": named, "columns": _items(column, 1, MAX_COLUMNS)})]}


def _shuffle() -> Schema:
    """The terms of a shuffled collection; how many shufflers there are depends on the mode."""
    name: Schema = {"type": "string", "minLength": 1, "maxLength": MAX_NAME}
    url: Schema = {"type": "string", "maxLength": MAX_URL, "pattern": f"^{URL}$"}
    identity: Schema = {"type": "string", "pattern": f"^{IDENTITY}$"}
    role: Schema = {"type": "string", "pattern": "^(collector|relay|shuffler_[1-9])$"}
    pairs = _record({
        "mode": {"enum": list(MODES)},
        "collector": _record({"name": name, "identity": identity}),
        "shufflers": _items(_record({"name": name, "url": url, "identity": identity}), 1, 9),
        "relay": {"anyOf": [{"type": "null"}, _record({"name": name, "url": url})]},
        "minimum": _whole(2, MAX_REPORTS),
        "maximum": _whole(2, MAX_REPORTS),
        "fakes": _whole(0, MAX_REPORTS),
        "spot_checks": _whole(0, MAX_SPOT_CHECKS),
        "delta": {"type": "string", "pattern": f"^{DELTA}$"},
        "together": _items(_items(role, 2, 11) | {"uniqueItems": True}, 0, 5),
    })  # fmt: skip
    by_mode: list[Schema] = [
        {
            "if": {"properties": {"mode": {"const": mode}}},
            "then": {"properties": {"shufflers": {"anyOf": [{"minItems": n, "maxItems": n} for n in counts]}}},
        }
        for mode, counts in MODES.items()
    ]
    relayed: Schema = {
        "if": {"properties": {"mode": {"const": "relay"}}},
        "then": {"properties": {"relay": {"type": "object"}}},
    }
    return {"title": "shuffle"} | pairs | {"allOf": [*by_mode, relayed]}


def _windows(required: tuple[str, ...]) -> Schema:
    """The windows of a document; of a draft, which has defaults for some fields."""
    pairs: Schema = {
        "every": {"enum": list(EVERY)},
        "first": {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"},
        "count": _whole(1, MAX_WINDOWS),
        "zone": {"enum": list(ZONES)},
        "late": _whole(0, MAX_LATE),
        "per": _whole(1, MAX_WINDOWS),
        "schedule": {"const": "fixed"},
        "guarantee": {"enum": list(GUARANTEES)},
    }
    return _partly(pairs, required)


def _account(required: tuple[str, ...]) -> Schema:
    """The account of a document, or of a draft."""
    cap: Schema = {"type": "string", "pattern": "^(0|[1-9][0-9]?)(\\.[0-9]{0,17}[1-9])?$"}
    pairs: Schema = {
        "name": _NAME,
        "run": _whole(1, MAX_WINDOWS),
        "run_epsilon": cap,
        "lifetime_epsilon": {"anyOf": [{"type": "null"}, cap]},
    }
    return _partly(pairs, required)


def _partly(pairs: Schema, required: tuple[str, ...]) -> Schema:
    needed = {name: pairs[name] for name in required}
    return _record(needed, {name: part for name, part in pairs.items() if name not in required})


def _from_version(version: int, names: tuple[str, ...]) -> Schema:
    """Fields that documents have from a version on, and must state then."""
    older: Schema = {"properties": {"version": {"enum": list(range(OLDEST, version))}}}
    return {"if": older, "then": {"properties": dict.fromkeys(names, False)}, "else": {"required": list(names)}}


def _by_version() -> list[Schema]:
    """Which fields a document of a version has, and what one that is shuffled or asks again must be like."""
    words = [kind.kind for kind in KINDS if kind.fits_word]
    shuffled: Schema = {
        "policy": {"const": "single"},
        "mechanism": {"properties": {"kind": {"enum": words}}},
        "plan": {"type": "null"},
        "rows": {"type": "null"},
    }
    windowed: Schema = {
        "account": {"type": "object"},
        "policy": {"const": "single"},
        "mechanism": {"properties": {"kind": {"not": {"enum": ["memo", "layered", "tree_steps"]}}}},
        "invitations": {"const": False},
    } | {name: {"type": "null"} for name in ("plan", "rows", "shuffle")}
    with_tokens: Schema = {"invitations": {"const": True}}
    with_tokens |= {name: {"type": "null"} for name in ("plan", "shuffle", "windows")}
    kept: Schema = {name: {"type": "null"} for name in ("plan", "rows", "shuffle", "windows")}
    return [
        *(_from_version(2, ADDED), _from_version(3, ADDED_LATER)),
        {
            "if": {"required": ["tokens"], "properties": {"tokens": {"type": "object"}}},
            "then": {"properties": with_tokens},
        },
        {
            "if": {"required": ["integrity"], "properties": {"integrity": {"type": "object"}}},
            "then": {"properties": kept},
        },
        {
            "if": {"required": ["shuffle"], "properties": {"shuffle": {"type": "object"}}},
            "then": {"properties": shuffled},
        },
        {
            "if": {"required": ["windows"], "properties": {"windows": {"type": "object"}}},
            "then": {"properties": windowed},
            "else": {"properties": {"account": {"type": "null"}}},
        },
    ]


def _document() -> Schema:
    pairs: Schema = {
        "version": {"enum": list(range(OLDEST, NEWEST + 1))},
        "title": _texts(200),
        "about": _texts(4000),
        "questions": _items(_ref("question"), 1, MAX_QUESTIONS),
        "policy": {"enum": list(POLICIES)},
        "epsilon": _ref("epsilon"),
        "mechanism": _ref("mechanism"),
        "plan": {"anyOf": [{"type": "null"}, _plan()]},
        "rows": _rows(),
    }
    # With rows there is no adaptive plan, and questions become columns, whose names must be legal in SQL.
    with_rows: Schema = {"properties": {"rows": {"type": "object"}}}
    named: Schema = {"items": {"properties": {"name": _ref("sql_name")}}}
    in_tables: Schema = {"if": with_rows, "then": {"properties": {"plan": {"type": "null"}, "questions": named}}}
    rules = [*_by_policy(), in_tables, *_by_version()]
    added: Schema = {name: {"anyOf": [{"type": "null"}, _ref(name)]} for name in (*ADDED, *ADDED_LATER)}
    return {"description": "A published document."} | _record(pairs | _settings(), added) | {"allOf": rules}


def _draft() -> Schema:
    needed: Schema = {
        "title": _texts_of_draft(200),
        "questions": _items(_ref("draft_question"), 1, MAX_QUESTIONS),
        "epsilon": {"anyOf": [_whole(1, 32), {"type": "string", "pattern": "^\\s*[0-9]{1,3}(\\.[0-9]{1,18})?\\s*$"}]},
    }
    optional: Schema = {
        "about": _texts_of_draft(4000, optional=True),
        "policy": {"enum": [*POLICIES, "", None]},
        "respondents": _whole(1, 10**10),
        "k": {"anyOf": [_whole(1, 4096), {"type": "null"}]},
        "rows": _rows(),
        "shuffle": {"anyOf": [{"type": "null"}, _ref("shuffle")]},
        "windows": {"anyOf": [{"type": "null"}, _windows(("every", "first", "count", "per"))]},
        "account": {"anyOf": [{"type": "null"}, _account(())]},
        "queries": _items({"type": "string", "maxLength": 20_000}, 0, 64),
        "tokens": _BOOLEAN,
        "integrity": {"anyOf": [{"type": "null"}, _ref("integrity")]},
    }
    description = "What `tacit collection create` takes; everything but title, questions and epsilon has a default."
    return {"description": description} | _record(needed, optional | _settings())


def definitions() -> Schema:
    """Return every part by name, `document` and `draft` first; references are to `#/$defs/`."""
    mechanisms = {kind.kind: _of_class(kind) for kind in KINDS}
    families = {kind.kind: _of_class(kind) for kind in FAMILIES}
    domains = {kind.kind: _domain(kind) for kind in DOMAINS}
    drafted = {kind.kind: _domain_of_draft(kind) for kind in DOMAINS}
    decimal: Schema = {"type": "string", "pattern": "^(0|[1-9][0-9]?)(\\.[0-9]{0,17}[1-9])?$"}
    share: Schema = {"type": "string", "pattern": "^[1-9][0-9]{0,8}/[1-9][0-9]{0,8}$"}
    amplified = _record({"of": decimal, "sampled": _whole(1, 1 << 20)})
    question = {"name": _NAME, "text": _texts(500), "domain": _ref("domain"), "task": _NAME}
    drafted_question = {"name": _NAME, "text": _texts_of_draft(500), "domain": _ref("draft_domain")}
    return {
        "document": _document(),
        "draft": _draft(),
        "question": _record(question),
        "draft_question": _record(drafted_question, {"task": _NAME}),
        "shuffle": _shuffle(),
        "windows": {"title": "windows"} | _windows(WINDOW_FIELDS),
        "account": {"title": "account"} | _account(ACCOUNT_FIELDS),
        "integrity": {"title": "integrity"} | _record({"reports": {"const": UNTIL_CLOSED}}),
        "tokens": {"title": "tokens"} | _record({"key": {"type": "string", "pattern": f"^{KEY}$"}}),
        "origin": {"type": "string", "pattern": "^(https?://[a-z0-9.-]+(:[0-9]{1,5})?|\\*)$"},
        "sql_name": _NAME | {"not": {"anyOf": [{"enum": list(KEYWORDS)}, {"pattern": f"^{SYSTEM}"}]}},
        "integer": _INTEGER,
        "epsilon": {"anyOf": [decimal, _record({"of": decimal, "share": share}), amplified]},
        "mechanism": _one_by_kind(mechanisms),
        "family": _one_by_kind(families),
        "domain": _one_by_kind(domains),
        "draft_domain": _one_by_kind(drafted),
    } | {part["title"]: part for group in (mechanisms, families, domains, drafted) for part in group.values()}


def collection_schema() -> Schema:
    """Return the whole schema: of a document at its root, of a draft under `#/$defs/draft`."""
    head: Schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:tacit:schema:collection:{NEWEST}",
        "title": "Tacit collection",
        "description": "A collection document. Drafts are described by #/$defs/draft.",
    }
    return head | _ref("document") | {"$defs": definitions()}
