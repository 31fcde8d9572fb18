"""The schemas of bodies in the OpenAPI description, built from the same constants as the code."""

from typing import Any

from tacit.collector.collections.access import MAX_INVITATIONS, SCOPES, TEAM
from tacit.collector.ingest.uploads import REASONS
from tacit.collector.notices.webhooks import EVENTS
from tacit.collector.shuffle.front import SESSION_STATES
from tacit.core.statistics.level import LEAST_LEVEL, MOST_LEVEL
from tacit.hosting.problems import KINDS, TYPE_PREFIX
from tacit.wire.document import MAX_ORIGINS
from tacit.wire.shuffled import MAX_SESSION_DAYS

CONFIDENCE = {"type": "number", "minimum": LEAST_LEVEL, "maximum": MOST_LEVEL, "default": 0.95}
TEAM_NAME = {"type": "string", "pattern": f"^({TEAM.pattern})?$"}
OBJECT: dict[str, Any] = {"type": "object"}
TEXT: dict[str, Any] = {"type": "string"}
WHOLE: dict[str, Any] = {"type": "integer", "minimum": 0}
_POSITIVE: dict[str, Any] = {"type": "number", "minimum": 0}
_TEXTS: dict[str, Any] = {"type": "object", "additionalProperties": TEXT}


def ref(name: str) -> dict[str, str]:
    """Return a reference to a schema by its name."""
    return {"$ref": f"#/components/schemas/{name}"}


def fields(required: dict[str, Any], **optional: Any) -> dict[str, Any]:
    """Return the schema of an object with these fields; answers may have more."""
    return {"type": "object", "required": list(required), "properties": required | optional}


def _closed(required: dict[str, Any], **optional: Any) -> dict[str, Any]:
    """A request body in which unknown fields are refused, so that misspelt ones are noticed."""
    return fields(required, **optional) | {"additionalProperties": False}


def _list(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


_CELL = fields({name: {"type": "number"} for name in ("estimate", "standard_error", "low", "high")})
_STATE = {"type": "string", "enum": ["draft", "published", "closed"]}
_DAMAGED = {
    "type": "boolean",
    "description": "what is stored is not as it was written: nothing of it is counted or answered until it is restored",
}
_SUMMARY = fields(
    {
        "id": TEXT,
        "state": _STATE,
        "team": TEXT,
        "damaged": _DAMAGED,
        "title": _TEXTS,
        "epsilon": {"type": ["string", "object", "integer"]},
        "questions": WHOLE,
        "round": {"type": ["integer", "null"]},
        "shuffled": {"type": "boolean"},
        "reports": WHOLE,
        "minimum_cohort": {"type": ["integer", "null"]},
    }
)
_OPTION = fields({"name": TEXT, "standard_error": _POSITIVE, "report_bits": WHOLE, "picked": {"type": "boolean"}})
_PREDICTION = fields(
    {
        "name": TEXT,
        "mechanism": ref("mechanism"),
        "standard_error": _POSITIVE,
        "half_width_95": _POSITIVE,
        "of": TEXT,
        "why": TEXT,
        "options": _list(_OPTION),
        "report_bits": WHOLE,
        "reports": WHOLE,
    }
)
_DECIMAL: dict[str, Any] = {"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?$"}
_EPSILONS = fields({"collector": _DECIMAL, "others": _DECIMAL, "local": _DECIMAL}) | {
    "description": "what shuffled reports keep against the collector; against it and all other respondents; against it "
    "and the shufflers"
}
_CLAIM = fields(
    {
        "epsilon": _EPSILONS,
        "delta": _DECIMAL,
        "respondents": WHOLE,
        "fakes": WHOLE,
        "mode": TEXT,
        "roles_apart": {"type": "boolean"},
    }
)
_ENTRY = fields({"day": WHOLE, "actor": TEXT, "action": TEXT, "subject": TEXT, "team": TEXT})
_TABLE = fields({"collection": TEXT, "name": TEXT, "columns": _list(OBJECT), "n": WHOLE, "damaged": _DAMAGED})
_WEBHOOK = fields({"id": TEXT, "url": TEXT, "events": _list(TEXT), "team": TEXT, "day": WHOLE}, secret=TEXT)
_DELIVERY = fields(
    {
        "number": WHOLE,
        "webhook": TEXT,
        "event": TEXT,
        "collection": TEXT,
        "state": {"type": "string", "enum": ["waiting", "delivered", "failed"]},
        "attempts": WHOLE,
        "day": WHOLE,
        "note": TEXT,
    }
)

SCHEMAS: dict[str, Any] = {
    "Problem": fields(
        {
            "type": {"type": "string", "enum": [TYPE_PREFIX + kind for kind in KINDS]},
            "title": TEXT,
            "status": {"type": "integer"},
            "detail": TEXT,
        }
    ),
    "Batch": _closed(
        {
            "collection": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
            "batch": {"type": "string", "pattern": "^[0-9a-f]{32}$"},
            "reports": _list(
                _closed({"report": {"type": "string", "pattern": "^[0-9a-f]*$"}}, member=WHOLE, row=OBJECT)
            ),
        }
    ),
    "Receipt": fields(
        {
            "accepted": WHOLE,
            "rejected": _list(fields({"index": WHOLE, "reason": {"type": "string", "enum": list(REASONS)}})),
            "duplicate": {"type": "boolean"},
        }
    ),
    "Collection": fields({"id": TEXT, "state": _STATE, "team": TEXT}, draft=ref("draft"), document=ref("document")),
    "Collections": fields({"collections": _list(_SUMMARY)}),
    "Status": fields(
        {
            "id": TEXT,
            "state": _STATE,
            "damaged": _DAMAGED,
            "reports": WHOLE,
            "days": {"type": "object", "additionalProperties": WHOLE, "description": "reports by date (UTC)"},
            "rejected": {"type": "object", "additionalProperties": WHOLE},
            "minimum_cohort": {"type": ["integer", "null"]},
            "plan": {"anyOf": [{"type": "null"}, ref("PlanState")]},
        }
    ),
    "Origins": fields({"document": _list(TEXT), "added": _list(TEXT)}),
    "AddedOrigins": _closed({"origins": _list(ref("origin")) | {"maxItems": MAX_ORIGINS}}),
    "PlanState": fields(
        {
            "plan": TEXT,
            "method": TEXT,
            "k": WHOLE,
            "finished": {"type": "boolean"},
            "current": TEXT,
            "rounds": _list(OBJECT),
        }
    ),
    "Integrity": fields(
        {
            "id": TEXT,
            "version": WHOLE,
            "n": WHOLE,
            "status": {"type": "string", "enum": ["ok", "below_minimum_cohort"]},
            "looked_at": {"type": "string", "enum": ["nothing", "sums", "log", "reports"]},
            "state": {"type": "string", "enum": ["quiet", "look", "alarm"]},
            "rejected": OBJECT,
            "influence": {"anyOf": [OBJECT, {"type": "null"}]},
            "inspections": _list(OBJECT),
            "hot": _list({}),
            "repair": {"anyOf": [OBJECT, {"type": "null"}]},
            "repairs": _list(OBJECT),
            "jump": {"anyOf": [OBJECT, {"type": "null"}]},
        }
    ),
    "Answers": fields(
        {
            "id": TEXT,
            "n": WHOLE,
            "epsilon": {},
            "realised_epsilon": {"type": "number"},
            "level": {"type": "number"},
            "status": {"type": "string", "enum": ["ok", "below_minimum_cohort", "asking"]},
            "questions": _list(
                fields(
                    {
                        "name": TEXT,
                        "task": TEXT,
                        "unit": TEXT,
                        "text": OBJECT,
                        "n": WHOLE,
                        "status": TEXT,
                        "method": TEXT,
                        "rows": _list(
                            fields({"value": {}, "raw": _CELL, "consistent": {"anyOf": [_CELL, {"type": "null"}]}})
                        ),
                    }
                )
            ),
        },
        shuffle=_CLAIM,
    ),
    "Series": fields(
        {"id": TEXT, "by": TEXT, "level": {"type": "number"}, "words": _list(TEXT), "changes": _list(OBJECT)}
        | {"mean": {"anyOf": [fields({"windows": WHOLE, "each_once": _list(OBJECT)}), {"type": "null"}]}}
        | {"series": _list(fields({"from": WHOLE, "to": WHOLE, "n": WHOLE, "status": TEXT}))}
    ),
    "Plan": fields({"questions": _list(_PREDICTION)}, problem=ref("Problem")),
    "ShuffleIdentity": fields({"identity": {"type": "string", "pattern": "^[0-9a-f]{64}$"}}),
    "NewSession": _closed({}, days={"type": "integer", "minimum": 1, "maximum": MAX_SESSION_DAYS}),
    "Session": fields(
        {
            "collection": TEXT,
            "mode": TEXT,
            "minimum": WHOLE,
            "epsilon": _EPSILONS,
            "delta": _DECIMAL,
            "sessions": WHOLE,
            "released": _list(TEXT),
            "session": {"type": ["string", "null"]},
            "state": {"type": "string", "enum": ["none", *SESSION_STATES]},
            "note": TEXT,
        },
        closes=WHOLE,
        closing={"type": "boolean"},
        awaited=_list(TEXT),
        uploads={"type": "object", "additionalProperties": {"type": ["integer", "null"]}},
        rows=WHOLE,
        opened_rows=WHOLE,
        n=WHOLE,
        respondents=WHOLE,
        fakes=WHOLE,
        alarms=_list(TEXT),
        blames=TEXT,
        reason=TEXT,
    ),
    "SignedSession": fields({"session": OBJECT, "signatures": _list(fields({"by": TEXT, "signature": TEXT}))}),
    "Transcript": fields({"document": ref("document"), "session": ref("SignedSession"), "transcript": OBJECT}),
    "Token": fields(
        {
            "id": TEXT,
            "scope": {"type": "string", "enum": list(SCOPES)},
            "collection": TEXT,
            "label": TEXT,
            "expires": WHOLE,
            "team": TEXT,
        },
        token=TEXT,
    ),
    "Tokens": fields({"tokens": _list(ref("Token"))}),
    "NewToken": _closed(
        {"scope": {"type": "string", "enum": list(SCOPES)}}, collection=TEXT, label=TEXT, days=WHOLE, team=TEAM_NAME
    ),
    "Webhook": _WEBHOOK,
    "Webhooks": fields({"webhooks": _list(_WEBHOOK)}),
    "NewWebhook": _closed({"url": TEXT, "events": _list({"type": "string", "enum": list(EVENTS)})}, team=TEAM_NAME),
    "Deliveries": fields({"deliveries": _list(_DELIVERY)}),
    "Team": _closed({"team": TEAM_NAME}),
    "Audit": fields({"entries": _list(_ENTRY)}),
    "Query": _closed({"sql": TEXT}, level=CONFIDENCE),
    "Result": fields(
        {"table": TEXT, "n": WHOLE, "seconds": _POSITIVE},
        columns=_list(
            fields(
                {"name": TEXT, "kind": {"type": "string", "enum": ["group", "aggregate"]}},
                ordered={"type": "boolean"},
            )
        ),
        rows=_list(_list({})),
        level={"type": "number"},
        plan=_list(OBJECT),
    ),
    "Tables": fields({"tables": _list(_TABLE)}),
    "Imported": fields({"reports": WHOLE, "sources": WHOLE, "duplicate": {"type": "boolean"}}),
    "TokenNumbers": fields({"issued": WHOLE, "used": WHOLE}),
    "BlindedToken": _closed({"blinded": {"type": "string", "pattern": "^[0-9a-f]{512}$"}}),
    "BlindSignature": fields({"signature": {"type": "string", "pattern": "^[0-9a-f]{512}$"}}),
    "Invitations": fields({"invitations": _list(TEXT)}),
    "InvitationCount": _closed({}, count={"type": "integer", "minimum": 1, "maximum": MAX_INVITATIONS}),
}
