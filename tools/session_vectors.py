"""Sessions of shuffled documents for spec/vectors/sessions.json: good ones with a sealed report, and ones to refuse."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any

from tacit.client.sealed.sealing import seal_report
from tacit.device.numbers.coins import ReplayCoins
from tacit.shuffle.crypto.hpke import HpkeKey
from tacit.shuffle.crypto.signing import Identity
from tacit.shuffle.protocol.parties import party_name
from tacit.shuffle.protocol.session import LABEL, ShuffleSession
from tacit.wire.document import Collection
from tacit.wire.sessions import make_session

CLOSES = 4_000_000_000
GRR = {"kind": "grr", "epsilon": "1", "size": 3}
OLH = {"kind": "olh", "epsilon": "1", "size": 3, "buckets": 4, "state": "counts"}
RELAY = {"name": "Relay", "url": "https://relay.example"}
TOGETHER = [["collector", "shuffler_2"]]


def identity(party: int) -> Identity:
    """The private identity of a party, which is no secret here."""
    return Identity.draw(ReplayCoins(f"identity {party}".encode()))


def seal_key(party: int) -> HpkeKey:
    """The private key that one seals for."""
    return HpkeKey.draw(ReplayCoins(f"seal {party}".encode()))


def document(mode: str, shufflers: int, *, mechanism: dict[str, Any] = GRR, **terms: Any) -> dict[str, Any]:
    """A document with one question."""
    domain = {"kind": "categories", "name": "colour", "labels": ["red", "green"], "other": "another"}
    question = {"name": "colour", "text": {"en": "Which colour?"}, "domain": domain, "task": "histogram"}
    parties = [
        {"name": f"Shuffler {i}", "identity": identity(i).public.hex(), "url": f"https://shuffler-{i}.example/s_{i}"}
        for i in range(1, shufflers + 1)
    ]
    usual = {
        "mode": mode,
        "collector": {"name": "Collector", "identity": identity(0).public.hex()},
        "shufflers": parties,
        "relay": None,
        "minimum": 1000,
        "maximum": 100_000,
        "fakes": 90,
        "spot_checks": 3,
        "delta": "2.5e-9",
        "together": [],
    }
    return {
        "version": 2,
        "title": {"en": "A title"},
        "about": {"en": "What this is for."},
        "questions": [question],
        "policy": "single",
        "epsilon": "1",
        "mechanism": mechanism,
        "minimum_cohort": 100,
        "retention_days": 30,
        "origins": ["*"],
        "invitations": False,
        "plan": None,
        "rows": None,
        "shuffle": usual | terms,
        "windows": None,
        "account": None,
    }


def signed(session: dict[str, Any], shufflers: int, seeds: dict[int, int] | None = None) -> dict[str, Any]:
    """A session with the signatures of all parties; `seeds` lets one party sign with the key of another."""
    parties = range(shufflers + 1)
    pairs = [(party_name(i), identity((seeds or {}).get(i, i)).sign(LABEL, session)) for i in parties]
    return {"session": session, "signatures": [{"by": name, "signature": text} for name, text in sorted(pairs)]}


def session_of(given: dict[str, Any]) -> ShuffleSession:
    """The session of a document. It claims less than an accountant would find, so that better ones change no vector."""
    keys = [seal_key(i).public.hex() for i in range(len(given["shuffle"]["shufflers"]) + 1)]
    collection = Collection.from_json(given)
    session = make_session(collection, url="https://collector.example", seal_keys=keys, closes=CLOSES)
    local = session.certificate["local_epsilon"]
    claims = {"epsilon": "0.5" if session.claims_amplification else local, "epsilon_others": local}
    return replace(session, certificate={**session.certificate, **claims})


def published(given: dict[str, Any]) -> dict[str, Any]:
    """The session of a document, signed."""
    return signed(session_of(given).document, len(given["shuffle"]["shufflers"]))


GOOD = {
    "osh": document("osh", 3),
    "osh of five, local hashing": document("osh", 5, mechanism=OLH, fakes=0),
    "osh through a relay": document("osh", 3, relay=RELAY),
    "osh-z whose collector shuffles": document("osh-z", 3, together=TOGETHER),
    "ss": document("ss", 2),
    "relay": document("relay", 1, relay=RELAY),
}


def good_case(name: str, given: dict[str, Any]) -> dict[str, Any]:
    """A session, and a report sealed for it."""
    collection, session = Collection.from_json(given), session_of(given)
    report = collection.mechanism.privatize_one(1, ReplayCoins(b"report"))
    sealed = seal_report(session, collection.mechanism, report, ReplayCoins(b"sealed"))
    return {
        "name": name,
        "document": given,
        "published": published(given),
        "id": session.id,
        "report": report.hex(),
        "coins": b"sealed".hex(),
        "sealed": sealed.to_json(),
    }


Change = Callable[[dict[str, Any]], Any]
"""Changes a session in place, before all parties sign it."""


def _set(*path: Any, to: Any) -> Change:
    def change(session: dict[str, Any]) -> None:
        for step in path[:-1]:
            session = session[step]
        session[path[-1]] = to

    return change


SIGNED_BY_ALL: list[tuple[str, str, Change]] = [
    ("another collection", "osh", _set("collection", to="00" * 32)),
    ("another mode", "osh", _set("mode", to="osh-z")),
    ("fewer respondents", "osh", _set("n_min", to=2)),
    ("more respondents", "osh", _set("n_max", to=1 << 30)),
    ("fewer fakes", "osh", _set("fakes", to=0)),
    ("other spot checks", "osh", _set("spot_checks", to=0)),
    ("kept for longer", "osh", _set("retention_seconds", to=1 << 40)),
    ("other words", "osh", _set("words", "outcomes", to=2)),
    ("a relay that the document does not name", "osh", _set("relay", to={"operator": "X", "url": "https://x.example"})),
    ("no relay where the document names one", "osh through a relay", _set("relay", to=None)),
    ("roles apart that are together", "osh-z whose collector shuffles", _set("together", to=[])),
    ("a claim in spite of roles together", "osh-z whose collector shuffles", _set("claims_amplification", to=True)),
    ("another address of a shuffler", "osh", _set("shufflers", 1, "url", to="https://elsewhere.example")),
    ("another operator", "osh", _set("shufflers", 1, "operator", to="Somebody")),
    ("another identity", "osh", _set("shufflers", 1, "identity", to=identity(9).public.hex())),
    ("a shuffler too few", "osh", lambda session: session["shufflers"].pop()),
    ("one key for two parties", "osh", _set("shufflers", 1, "seal_key", to=seal_key(0).public.hex())),
    ("no key", "osh", _set("shufflers", 1, "seal_key", to="")),
    ("an unknown field", "osh", _set("more", to=1)),
    ("a missing field", "osh", lambda session: session.pop("closes")),
    ("a certificate for another mechanism", "osh", _set("certificate", "digest", to="00" * 32)),
    ("a certificate for fewer respondents", "osh", _set("certificate", "n_min", to=2)),
    ("a certificate with more fakes", "osh", _set("certificate", "fakes", to=1000)),
    ("a certificate with another delta", "osh", _set("certificate", "delta", to="0.001")),
    ("a certificate with a smaller local epsilon", "osh", _set("certificate", "local_epsilon", to="0.9")),
    ("epsilons that do not grow", "osh", _set("certificate", "epsilon_others", to="0.00001")),
    ("no certificate", "osh", _set("certificate", to={"epsilon": "1"})),
    ("amplification by roles together", "osh-z whose collector shuffles", _set("certificate", "epsilon", to="0.5")),
]


def bad_cases() -> list[dict[str, Any]]:
    """Sessions that a client must not take part in; all are signed, but for the last ones."""
    cases: list[dict[str, Any]] = []
    for name, given, change in SIGNED_BY_ALL:
        session = deepcopy(published(GOOD[given])["session"])
        change(session)
        made = signed(session, len(GOOD[given]["shuffle"]["shufflers"]))
        cases.append({"name": name, "document": given, "published": made})
    good = published(GOOD["osh"])
    cases += [
        {"name": "a missing signature", "document": "osh", "published": {**good, "signatures": good["signatures"][1:]}},
        {"name": "a signature of somebody else", "document": "osh", "published": signed(good["session"], 3, {2: 1})},
        {"name": "a document without a session", "document": "osh", "published": {"session": None, "signatures": []}},
        {"name": "nothing", "document": "osh", "published": None},
    ]
    return cases


def small_claim() -> dict[str, Any]:
    """A claim that only an accountant finds to be too small; clients without one show it as the operators' claim."""
    session = deepcopy(published(GOOD["osh"])["session"])
    session["certificate"]["epsilon"] = "0.00001"
    return {"name": "a claim that is too small", "document": "osh", "published": signed(session, 3)}


def sessions() -> dict[str, Any]:
    """Everything of sessions.json."""
    good = [good_case(name, given) for name, given in GOOD.items()]
    return {"good": good, "bad": bad_cases(), "bad_for_accountants": [small_claim()]}
