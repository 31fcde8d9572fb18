"""Texts of statements: cut into single ones, classified by their first words, and filled with parameters.

One lexer, sqlglot's, decides what is a statement, what is a parameter and what is inside quotes; a text that was
filled is read again, and refused unless every parameter came back as exactly one constant.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from tacit.collector.pg import values as pg
from tacit.collector.pg.catalog_functions import type_oid
from tacit.collector.pg.messages import PgError
from tacit.errors import InvalidQuery
from tacit.tasks.analytics.imports import expressions, sqlglot
from tacit.tasks.analytics.parsing import parse_text
from tacit.tasks.analytics.sql import MAX_TEXT

_MOST_STATEMENTS, _MOST_EXPLAINED = 100, 10
_MOST_PARAMETERS = 1000
_LONGEST_FILLED = 1 << 18


@dataclass(frozen=True)
class Place:
    """Where a parameter stands in a text, with the cast behind it; from `any` on where `= ANY(` is before it."""

    number: int
    start: int
    end: int
    cast: int = 0
    any: int = -1


@dataclass(frozen=True)
class Statement:
    """One statement."""

    text: str
    words: tuple[str, ...]
    """Its first words, in capitals."""
    places: tuple[Place, ...] = ()
    start: int = 0
    """Where it begins in the text that was sent."""

    @property
    def parameters(self) -> int:
        """Number of parameters."""
        return max((place.number for place in self.places), default=0)


def _tokens(text: str) -> list[Any]:
    library = sqlglot()
    try:
        return library.tokenize(text, read="postgres")
    except library.errors.SqlglotError:
        raise PgError("42601", "syntax error: the text is not SQL; a quote or a comment may have no end") from None


def statements(text: str, longest: int) -> list[Statement]:
    """The statements of a text, without empty ones.

    >>> [statement.text for statement in statements("SELECT ';' ; -- nothing\\n SET a = 1;", 100)]
    ["SELECT ';'", 'SET a = 1']
    """
    if len(text) > longest:
        raise PgError("54000", f"a statement may have at most {longest} characters")
    found: list[Statement] = []
    masked, explained = _without_explain(text)
    for tokens in _split(_tokens(masked)):
        start = max((at for at in explained if at < tokens[0].start), default=-1)
        explained.discard(start)
        found.append(_statement(text, tokens, start))
    if len(found) > _MOST_STATEMENTS:
        raise PgError("54000", f"at most {_MOST_STATEMENTS} statements may be sent at once")
    return found


def _split(tokens: list[Any]) -> list[list[Any]]:
    found: list[list[Any]] = [[]]
    for token in tokens:
        if token.token_type.name == "SEMICOLON":
            found.append([])
        else:
            found[-1].append(token)
    return [item for item in found if item]


def _without_explain(text: str) -> tuple[str, set[int]]:
    """The text with blanks for EXPLAIN, behind which sqlglot reads no further, and where it stood."""
    places: set[int] = set()
    while True:
        starts = [tokens[0] for tokens in _split(_tokens(text))]
        found = next((token for token in starts if str(token.text).upper() == "EXPLAIN"), None)
        if found is None:
            return text, places
        if len(places) == _MOST_EXPLAINED:
            raise PgError("54000", f"at most {_MOST_EXPLAINED} statements may be explained at once")
        places.add(found.start)
        text = text[: found.start] + " " * (found.end + 1 - found.start) + text[found.end + 1 :]


def _statement(text: str, tokens: list[Any], explain: int = -1) -> Statement:
    """One statement from its tokens; EXPLAIN stands before them at a place, unless that is -1."""
    first, last = tokens[0].start if explain < 0 else explain, tokens[-1].end + 1
    words = tuple(word.upper() for token in tokens[:4] for word in str(token.text).split()[:4])
    words = (words or (text[first],)) if explain < 0 else ("EXPLAIN", *words)
    places = [_place(tokens, i, first) for i in range(len(tokens) - 1) if _is_parameter(tokens, i)]
    if any(not 1 <= place.number <= _MOST_PARAMETERS for place in places):
        raise PgError("42P02", f"parameters are numbered from $1 to ${_MOST_PARAMETERS}")
    return Statement(text[first:last], words, tuple(places), first)


def _is_parameter(tokens: list[Any], i: int) -> bool:
    sign, number = tokens[i], tokens[i + 1]
    adjacent = sign.text == "$" and sign.token_type.name == "PARAMETER" and number.start == sign.end + 1
    return adjacent and str(number.text).isdigit() and len(number.text) < 6


def _place(tokens: list[Any], i: int, first: int) -> Place:
    end, cast = tokens[i + 1].end + 1, 0
    if i + 3 < len(tokens) and tokens[i + 2].token_type.name == "DCOLON":
        named = type_oid(_type_name(tokens[i + 3]))
        bracket = i + 4 < len(tokens) and tokens[i + 4].text in ("[", "(", ".")
        if named and not bracket:
            end, cast = tokens[i + 3].end + 1, named
    before = [str(token.text).upper() for token in tokens[max(0, i - 3) : i]]
    closed = i + 2 < len(tokens) and tokens[i + 2].text == ")"
    some = tokens[i - 3].start - first if before == ["=", "ANY", "("] and closed else -1
    return Place(int(tokens[i + 1].text), tokens[i].start - first, end - first, cast, some)


def _type_name(token: Any) -> str:
    return f'"{token.text}"' if token.token_type.name == "IDENTIFIER" else str(token.text)


def fill(statement: Statement, values: "Sequence[pg.Value | list[pg.Value]]", *, lists: bool = False) -> str:
    """The text with constants in place of parameters; with `lists`, `= ANY` of an array becomes IN of a list."""
    if statement.parameters > len(values):
        raise PgError("42P02", f"there is no parameter ${statement.parameters}")
    text, made, at, tokens, size = statement.text, list[str](), 0, 0, 0
    # Queries over a collection's table have a limit of their own, which a text is held to before anybody reads it.
    longest = MAX_TEXT - len(text) if lists else _LONGEST_FILLED
    for place in statement.places:
        value = values[place.number - 1]
        start, end, constant = place.start, place.end, pg.constant(value)
        if lists and isinstance(value, list) and place.any >= 0:
            start, end, constant = place.any, text.index(")", place.end) + 1, _listed(value)
        size += len(constant)
        if size > longest:
            raise PgError("54000", f"the parameters of a statement may have at most {longest} characters")
        made += [text[at:start], constant]
        tokens += len(_tokens(constant)) - len(_tokens(text[start:end]))
        at = end
    filled = "".join([*made, text[at:]])
    if statement.places and len(_lexed(filled)) != len(_lexed(text)) + tokens:
        raise PgError("42601", "a parameter does not stand where a constant can stand")
    return filled


def _lexed(text: str) -> list[Any]:
    return _tokens(_without_explain(text)[0])


def _listed(values: "Sequence[pg.Value]") -> str:
    present = [value for value in values if value is not None]
    if not present:
        raise PgError("22023", "an empty list has nothing to compare with; leave out the condition")
    return " IN (" + ",".join(pg.constant(value) for value in present) + ") "


def parsed(text: str) -> Any:
    """The tree of a query; parameters may stand in it."""
    library = sqlglot()
    try:
        found = parse_text(_castable(text))
    except library.errors.SqlglotError as error:
        places: list[dict[str, Any]] = getattr(error, "errors", None) or [{}]
        near = str(places[0].get("highlight", ""))[:40]
        raise PgError("42601", f"syntax error at or near {near!r}" if near else "syntax error") from None
    except InvalidQuery as error:
        raise PgError("54001", str(error).removeprefix("sql: ")) from None
    except RecursionError:
        raise PgError("54001", "the query is nested too deeply") from None
    if found is None:
        raise PgError("42601", "syntax error: there is no statement")
    return found


_LABELS = {"SELECT", "UPDATE", "INSERT", "DELETE", "ALL", "END", "FROM"}


def _castable(text: str) -> str:
    """Two things that sqlglot does not know: `oid[]`, which becomes `bigint[]`, and names such as `AS select`."""
    made, at = list[str](), 0
    for token, after in pairwise(_tokens(text)):
        word = str(token.text).lower()
        if after.text == "[" and word in ("oid", "regtype", "regclass", "name"):
            made += [text[at : token.start], "bigint" if word != "name" else "text"]
            at = token.end + 1
        elif word == "as" and str(after.text).upper() in _LABELS and after.token_type.name != "STRING":
            made += [text[at : after.start], f'"{after.text}"']
            at = after.end + 1
    return "".join([*made, text[at:]])


def parameter_types(tree: Any, statement: Statement, given: Sequence[int], columns: Mapping[str, int]) -> list[int]:
    """Types of parameters: those that were stated, and for the others what they are compared with."""
    count = max(statement.parameters, len(given))
    found = [given[i] if i < len(given) else 0 for i in range(count)]
    for place in statement.places:
        if place.cast and found[place.number - 1] in (0, pg.UNKNOWN):
            found[place.number - 1] = place.cast
    for node in tree.find_all(expressions().Parameter) if tree is not None else ():
        number = int(node.name) if node.name.isdigit() else 0
        if 1 <= number <= count and found[number - 1] in (0, pg.UNKNOWN):
            found[number - 1] = _compared(node, columns)
    return [oid or pg.TEXT for oid in found]


def _compared(node: Any, columns: Mapping[str, int]) -> int:
    exp, inside = expressions(), node
    while (parent := inside.parent) is not None:
        if isinstance(parent, (exp.Limit, exp.Offset)):
            return pg.INT8
        if isinstance(parent, exp.Cast):
            return type_oid(parent.args["to"].sql(dialect="postgres")) or pg.TEXT
        others = [column.name.lower() for column in parent.find_all(exp.Column)]
        if isinstance(parent, (exp.Binary, exp.Between, exp.In)) and others:
            kind = columns.get(others[0], pg.TEXT)
            return pg.TEXT if isinstance(parent, (exp.Like, exp.ILike)) else _array_of(node, kind)
        if isinstance(parent, exp.Select):
            break
        inside = parent
    return pg.TEXT


def _array_of(node: Any, kind: int) -> int:
    exp = expressions()
    some = isinstance(node.parent, exp.Any) or isinstance(getattr(node.parent, "parent", None), exp.Any)
    return next((array for array, of in pg.ELEMENTS.items() if of == kind), kind) if some else kind
