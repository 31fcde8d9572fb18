"""Texts of statements: cut into single ones, and classified by their first words.

One lexer, sqlglot's, decides what is a statement, what is a parameter and what is inside quotes. Nothing is parsed
here; a statement that is a query is parsed once, when it is prepared.
"""

from dataclasses import dataclass
from typing import Any

from tacit.collector.pg.messages import PgError
from tacit.errors import InvalidQuery
from tacit.sql.parse.parsing import tokens_of

_MOST_STATEMENTS, _MOST_EXPLAINED = 100, 10
_MOST_PARAMETERS = 1000


@dataclass(frozen=True)
class Statement:
    """One statement."""

    text: str
    words: tuple[str, ...]
    """Its first words, in capitals."""
    parameters: tuple[int, ...] = ()
    """Numbers of its parameters, `$1` and so on, in the order in which they stand."""
    start: int = 0
    """Where it begins in the text that was sent."""


def _tokens(text: str) -> list[Any]:
    try:
        return tokens_of(text)
    except InvalidQuery as error:
        raise PgError(error.code, str(error).removeprefix("sql: ")) from None


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
    numbers = [int(tokens[i + 1].text) for i in range(len(tokens) - 1) if _is_parameter(tokens, i)]
    if any(not 1 <= number <= _MOST_PARAMETERS for number in numbers):
        raise PgError("42P02", f"parameters are numbered from $1 to ${_MOST_PARAMETERS}")
    return Statement(text[first:last], words, tuple(numbers), first)


def _is_parameter(tokens: list[Any], i: int) -> bool:
    sign, number = tokens[i], tokens[i + 1]
    adjacent = sign.text == "$" and sign.token_type.name == "PARAMETER" and number.start == sign.end + 1
    return adjacent and str(number.text).isdigit() and len(number.text) < 6
