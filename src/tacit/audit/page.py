"""The findings of an audit as one printable page; everything in it is escaped, and nothing is loaded."""

import json
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

_STYLE = """
body { font: 11pt/1.5 Georgia, serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; color: #111; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.1rem; margin-top: 1.6rem; border-bottom: 1px solid #999; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; } th, td { text-align: left; padding: .2rem .5rem; }
th { border-bottom: 1px solid #999; } td { border-bottom: 1px solid #ddd; vertical-align: top; }
code { font-size: .85rem; overflow-wrap: anywhere; } .fails { color: #a00; font-weight: bold; }
.sign { display: flex; gap: 2rem; margin-top: 3rem; } .sign div { flex: 1; border-top: 1px solid #111; }
@media print { body { margin: 0; max-width: none; } h2 { break-after: avoid; } table { break-inside: avoid; } }
"""


def audit_page(found: dict[str, Any]) -> str:
    """Return the page of a dossier as HTML."""
    several = found.get("questions")
    verdict = "<b>holds</b>" if found["holds"] else '<b class="fails">is REFUTED</b>'
    parts = [
        f"<h1>Privacy audit: {escape(str(found['mechanism']['spec']['kind']))}</h1>",
        f"<p>The claim {verdict} in everything that was checked.</p>",
        _document(found["document"]),
        *(_findings(found) if several is None else _questions(found, several)),
        _section("Assumptions", _list(found["assumptions"])),
        _section("Versions", _pairs({**found["versions"], "SHA-256 of the browser client": found["script"]["sha256"]})),
        '<div class="sign"><div>Name</div><div>Date</div><div>Signature</div></div>',
    ]
    head = f'<meta charset="utf-8"><title>Privacy audit</title><style>{_STYLE}</style>'
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{"".join(parts)}</body></html>\n'


def _questions(found: dict[str, Any], several: Sequence[dict[str, Any]]) -> list[str]:
    """The guarantees of all questions together, then everything about each."""
    together = _section(
        "All questions together, in exact arithmetic and by enumeration", _guarantees(found["guarantees"])
    )
    return [together, *(f"<h1>{escape(one['question'])}</h1>{''.join(_findings(one))}" for one in several)]


def _findings(found: dict[str, Any]) -> list[str]:
    """The sections about one mechanism."""
    mechanism = found["mechanism"]
    return [
        _section("Mechanism", _pairs({**mechanism["spec"], "digest": mechanism["digest"]})),
        _section("Thresholds over 2^64", _pairs(found["thresholds"]) if found["thresholds"] else "<p>None.</p>"),
        _section("Guarantees, in exact arithmetic and by enumeration", _guarantees(found["guarantees"])),
        _section("Largest likelihood ratio", _witness(found["witness"])),
        _section("Black-box bounds", _clients(found["clients"])),
        _section("Over time", f"<p>{escape(found['longitudinal'])}</p>"),
    ]


def _section(title: str, content: str) -> str:
    return f"<h2>{escape(title)}</h2>{content}"


def _list(items: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(item)}</li>' for item in items)}</ul>"


def _table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    body = "".join(f"<tr>{''.join(f'<td>{_cell(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "holds" if value else '<span class="fails">FAILS</span>'
    if isinstance(value, float):
        return f"{value:.9g}"
    return "not known" if value is None else f"<code>{escape(str(value))}</code>"


def _pairs(pairs: dict[str, Any]) -> str:
    return _table(["field", "value"], [[name, value] for name, value in pairs.items()])


def _document(document: dict[str, Any] | None) -> str:
    if document is None:
        return ""
    shown = {"id": document["id"], "title": next(iter(document["title"].values()))}
    shown |= {"epsilon": document["epsilon"], "policy": document["policy"], "cohort": document["minimum_cohort"]}
    questions = [[one["name"], one["task"], next(iter(one["text"].values()))] for one in document["questions"]]
    return _section("Document", _pairs(shown) + _table(["question", "task", "text"], questions))


def _guarantees(rows: Sequence[dict[str, Any]]) -> str:
    names = ("guarantee", "declared", "realised", "enumerated", "holds")
    table = _table(names, [[row[name] for name in names] for row in rows])
    tiny = [row["enumerated_on"] for row in rows if row["enumerated_on"] is not None]
    # Whoever signs must see where reports of something smaller were listed.
    return table + (
        f"<p>Enumerated: <code>{escape(json.dumps(tiny[0]))}</code>, all of its reports.</p>" if tiny else ""
    )


def _witness(witness: dict[str, Any] | None) -> str:
    if witness is None:
        return "<p>Reports are too many to list; the ratio follows from the thresholds.</p>"
    shown = {"report": witness["report"], "values": witness["values"], "probabilities": witness["probabilities"]}
    return _pairs(shown | {"log ratio": witness["log_ratio"]})


def _clients(clients: Sequence[dict[str, Any]]) -> str:
    if not clients:
        return "<p>No client was run.</p>"
    header = ["program", "fresh reports", "pairs", "declared", "at least", "confidence", ""]
    rows = [
        [
            client.get("program", ""),
            client["runs"],
            len(client["pairs"]),
            client["declared"],
            client["epsilon_lower"],
            client["confidence"],
            not client["refuted"],
        ]
        for client in clients
    ]
    hashes = {name: digest for client in clients for name, digest in client.get("files", {}).items()}
    return _table(header, rows) + (_table(["file of a program", "SHA-256"], hashes.items()) if hashes else "")
