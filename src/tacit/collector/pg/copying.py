"""COPY (SELECT ...) TO STDOUT: the rows of an answer as text, CSV or in PostgreSQL's binary format.

`\\copy` of psql, ADBC and connectorx read answers this way. Nothing is ever copied from a client.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from struct import pack
from typing import Any

from tacit.collector.pg import values as pg
from tacit.collector.pg.messages import PgError, encode
from tacit.collector.pg.text import Statement, statements
from tacit.collector.pg.values import Field
from tacit.sql.parse.parsing import tokens_of

_SIGNATURE = b"PGCOPY\n\xff\r\n\0" + pack("!ii", 0, 0)
_END = pack("!h", -1)
_ESCAPES = {"\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}
_ONE_CHARACTER = ("DELIMITER", "QUOTE", "ESCAPE")
_TRUTHS = {"": True, "TRUE": True, "ON": True, "1": True, "FALSE": False, "OFF": False, "0": False}


@dataclass(frozen=True)
class CopyFormat:
    """How rows are written."""

    name: str = "text"
    """text, csv or binary."""
    header: bool = False
    delimiter: str = "\t"
    null: str = "\\N"
    quote: str = '"'
    escape: str = '"'
    force: bool = False
    """Whether all values of CSV stand in quotes, but for NULL."""


def read_copy(statement: Statement, longest: int) -> tuple[Statement, CopyFormat]:
    """The query of a COPY, at its place in the text, and the format; refused unless it is COPY (query) TO STDOUT."""
    tokens = tokens_of(statement.text)
    # What stands in quotes is no word of COPY, whatever it says.
    words = ["" if token.token_type.name == "STRING" else str(token.text).upper() for token in tokens]
    if len(words) < 2 or words[1] != "(":
        raise PgError("0A000", "COPY of a table would show rows, and answers are read only",
                      hint="Write COPY (SELECT aggregates FROM a table) TO STDOUT.")  # fmt: skip
    close = _closing(words)
    if words[close + 1 : close + 3] != ["TO", "STDOUT"]:
        raise PgError("0A000", "COPY goes to STDOUT alone", hint="Write COPY (SELECT ...) TO STDOUT.")
    start, end = tokens[1].end + 1, tokens[close].start
    inner = statements(statement.text[start:end], longest)
    if len(inner) != 1:
        raise PgError("42601", "COPY takes one SELECT")
    query = replace(inner[0], start=statement.start + start + inner[0].start)
    rest = [(word, token.token_type.name == "STRING") for word, token in zip(words, tokens, strict=True)]
    texts = [str(token.text) for token in tokens]
    return query, _format(_options(rest[close + 3 :], texts[close + 3 :]))


def _closing(words: Sequence[str]) -> int:
    depth = 0
    for i, word in enumerate(words):
        depth += {"(": 1, ")": -1}.get(word, 0)
        if i and not depth:
            return i
    raise PgError("42601", "syntax error in COPY: a parenthesis has no end")


def _options(words: Sequence[tuple[str, bool]], texts: Sequence[str]) -> dict[str, str]:
    """Options by name, in the form of today, (FORMAT csv, HEADER), or in that of old, CSV HEADER."""
    plain = [
        (word, text) for (word, quoted), text in zip(words, texts, strict=True) if quoted or word not in ("(", ")", ",")
    ]
    plain = plain[1:] if plain and plain[0][0] == "WITH" else plain
    options: dict[str, str] = {}
    i = 0
    while i < len(plain):
        word, after = plain[i][0], plain[i + 1] if i + 1 < len(plain) else ("", "")
        if word in ("CSV", "BINARY", "TEXT"):
            options["FORMAT"] = word
        elif word in ("FORMAT", "NULL", "ENCODING", *_ONE_CHARACTER):
            after = plain[i + 2] if after[0] == "AS" and i + 2 < len(plain) else after
            i += 2 if plain[i + 1 : i + 2] == [("AS", "AS")] else 1
            options[word] = after[1]
        elif word == "HEADER":
            stated = after[0] in _TRUTHS and after[0] != ""
            options[word] = after[0] if stated else ""
            i += stated
        elif word in ("FORCE_QUOTE", "FORCE") or (word in ("QUOTE", "*") and "FORCE_QUOTE" in options):
            options["FORCE_QUOTE"] = "*"
            i += 1 if after[0] in ("*", "QUOTE") else 0
        else:
            raise PgError("42601", f"option {word[:40]!r} of COPY is not recognized")
        i += 1
    return options


def _format(options: dict[str, str]) -> CopyFormat:
    name = options.get("FORMAT", "text").lower()
    if name not in ("text", "csv", "binary"):
        raise PgError("22023", f"COPY format {name[:40]!r} is not recognized", hint="Write text, csv or binary.")
    if name == "binary" and set(options) - {"FORMAT", "ENCODING"}:
        raise PgError("0A000", "COPY in binary takes no other options")
    if options.get("ENCODING", "utf8").lower().replace("-", "") not in ("utf8", "unicode"):
        raise PgError("0A000", "COPY writes UTF-8 alone")
    for option in _ONE_CHARACTER:
        if option in options and not re.fullmatch(r"[^\r\n]", options[option]):
            raise PgError("22023", f"COPY {option.lower()} must be a single character")
    base = CopyFormat(name, delimiter=",", null="") if name == "csv" else CopyFormat(name)
    quote = options.get("QUOTE", base.quote)
    return replace(
        base, header=_TRUTHS.get(options.get("HEADER", "FALSE"), False), quote=quote,
        delimiter=options.get("DELIMITER", base.delimiter), null=options.get("NULL", base.null),
        escape=options.get("ESCAPE", quote), force="FORCE_QUOTE" in options,
    )  # fmt: skip


def copy_messages(
    form: CopyFormat, fields: Sequence[Field], rows: Sequence[tuple[Any, ...]], digits: int
) -> Iterator[bytes]:
    """All messages of a copy but for the last one, which says how many rows it had."""
    binary = form.name == "binary"
    yield encode("H", pack("!bh", binary, len(fields)) + pack("!h", binary) * len(fields))
    # As PostgreSQL sends it, the signature stands before the first row in one message with it.
    head = _SIGNATURE if binary else b""
    if form.header:
        yield encode("d", _line(form, [field.name for field in fields]))
    for row in rows:
        if binary:
            data = _binary_row(row, fields)
        else:
            texts = [_plain_text(value, field, digits) for value, field in zip(row, fields, strict=True)]
            data = _line(form, texts)
        yield encode("d", head + data)
        head = b""
    if binary:
        yield encode("d", head + _END)
    yield encode("c")


def _plain_text(value: Any, field: Field, digits: int) -> str | None:
    data = pg.encode_value(value, field.type, 0, digits)
    return None if data is None else data.decode(errors="replace")


def _binary_row(row: Sequence[Any], fields: Sequence[Field]) -> bytes:
    parts = [pack("!h", len(fields))]
    for value, field in zip(row, fields, strict=True):
        data = pg.encode_value(value, field.type, 1)
        parts.append(pack("!i", -1) if data is None else pack("!i", len(data)) + data)
    return b"".join(parts)


def _line(form: CopyFormat, values: Sequence[str | None]) -> bytes:
    spelt = _csv if form.name == "csv" else _text
    return (form.delimiter.join(spelt(form, value) for value in values) + "\n").encode(errors="replace")


def _text(form: CopyFormat, value: str | None) -> str:
    if value is None:
        return form.null
    escaped = "".join(_ESCAPES.get(character, character) for character in value)
    return escaped if form.delimiter == "\t" else escaped.replace(form.delimiter, "\\" + form.delimiter)


def _csv(form: CopyFormat, value: str | None) -> str:
    if value is None:
        return form.null
    special = any(part in value for part in (form.delimiter, form.quote, "\n", "\r"))
    if not (special or form.force or value == form.null or value == "\\."):
        return value
    inner = value.replace(form.escape, form.escape * 2) if form.escape != form.quote else value
    return form.quote + inner.replace(form.quote, form.escape + form.quote) + form.quote
