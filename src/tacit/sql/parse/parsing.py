"""SQL text to sqlglot's syntax tree, once per query, with a bound on the parser's work.

sqlglot backtracks: it tries one reading after another. Some short texts (a row of JOINs without ON, calls inside LIMIT
inside calls) take exponential time, which anybody who may send a query could use to block the collector. So the
parser's steps are counted, and a text that takes many more of them than its length explains is refused.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

from sqlglot import TokenType, exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError

from tacit.errors import InvalidQuery

MAX_TEXT = 20_000
"""The longest text of a query, in characters."""
STEPS, STEPS_PER_TOKEN = 5_000, 20
"""The step budget of a text: a constant, and so many per token. Real queries take about two steps per token."""

EXPLAIN = re.compile(r"\s*explain\b", re.IGNORECASE)
# Keywords that PostgreSQL takes as a column's name behind AS, and sqlglot does not.
_LABELS = {"SELECT", "UPDATE", "INSERT", "DELETE", "ALL", "END", "FROM"}
_NUMBERED = {"regtype", "regclass"}


_WORD = "word"
"""Where a node keeps the name of its function as it was written, which sqlglot forgets (VARIANCE becomes VAR_SAMP)."""


@dataclass(frozen=True, eq=False)
class ParsedQuery:
    """One statement: sqlglot's tree, whose nodes know their position in the text, and the tokens."""

    tree: Any
    tokens: Sequence[Any]
    explain: bool = False
    """Whether the text began with EXPLAIN, which is cut off before parsing."""

    @property
    def table(self) -> str:
        """The name of the table in FROM as it is written; empty for a subquery or no FROM at all."""
        source: Any = self.tree.args.get("from_")
        return str(source.this.name) if source is not None and isinstance(source.this, exp.Table) else ""

    def keyword(self, word: str) -> int:
        """The 1-based position of a keyword of the outermost SELECT, for error messages; 0 if it is not there."""
        # Only at depth 0: the same keyword may stand inside a subquery before.
        depth = 0
        for token in self.tokens:
            depth += {"(": 1, ")": -1}.get(str(token.text), 0)
            if not depth and str(token.text).upper().split(" ")[0] == word:
                return token.start + 1
        return 0


def place_of(node: Any) -> int:
    """The 1-based position of a node: that of the first of its parts that came from a token; 0 if none did."""
    starts = (part.meta["start"] for part in node.walk() if "start" in part.meta)
    return min(starts, default=-1) + 1


def refusal(words: str, node: Any = None, code: str = "0A000") -> InvalidQuery:
    """The error of a query that is not answered, placed at a node of its tree."""
    return InvalidQuery(f"sql: {words}", code=code, position=0 if node is None else place_of(node))


def label_of(node: Any) -> str:
    """What PostgreSQL calls the column of a function: its name in lower case, such as count; empty if it is none."""
    return next((str(part.meta[_WORD]) for part in node.walk() if _WORD in part.meta), "")


_DIALECT: Any = Dialect.get_or_raise("postgres")
_BASE: Any = _DIALECT.parser().__class__


def _call(name: str, arguments: list[Any]) -> Any:
    """A function call that is left as it was written."""
    return exp.Anonymous(this=name, expressions=arguments)


_AS_WRITTEN = {name: partial(_call, name) for name in ("DATE_PART", "DATE_BIN")}
"""DATE_PART stays apart from EXTRACT, whose type is another one, and DATE_BIN keeps its origin."""


class _CountingParser(_BASE):
    """sqlglot's PostgreSQL parser with a step budget, which also remembers the token of its last error."""

    # Every attempt at a reading consumes tokens through `_advance`, backtracking included, so it counts all work.
    steps_left = STEPS
    fault: Any = None

    FUNCTIONS = _BASE.FUNCTIONS | _AS_WRITTEN
    FUNCTION_PARSERS = {name: read for name, read in _BASE.FUNCTION_PARSERS.items() if name not in _AS_WRITTEN}  # noqa: RUF012

    def _advance(self, times: int = 1) -> None:
        self.steps_left -= 1
        if self.steps_left < 0:
            raise InvalidQuery("sql: the query is too entangled to be read; write it more simply", code="54001")
        _BASE._advance(self, times)

    def raise_error(self, message: str, token: Any = None) -> None:
        """Remember the token: sqlglot's exception has a line and a column, and clients want a character position."""
        self.fault = token or self._curr or self._prev
        _BASE.raise_error(self, message, self.fault)


# What has no end reaches to the end of the text, so that no text is searched more than once.
_QUOTED_OR_PARAMETER = re.compile(
    r"""'(?:[^']|'')*(?:'|\Z) | "[^"]*(?:"|\Z) | --[^\n]* | /\*.*?(?:\*/|\Z)"""
    r"""| \$(?P<tag>[A-Za-z_]\w*)?\$.*?(?:\$(?(tag)(?P=tag))\$|\Z)"""
    r"""| (?<![\w$<>@&|#])\$(?P<number>\d+)""",
    re.DOTALL | re.VERBOSE,
)


def _marked(text: str) -> str:
    """The text with `@1` for every parameter `$1`, which sqlglot reads as the same and which is as long.

    sqlglot takes what stands between two dollar signs for the tag of a quoted string, also in `IN ($1,$2)`.
    """
    return _QUOTED_OR_PARAMETER.sub(lambda found: f"@{found['number']}" if found["number"] else found[0], text)


def tokens_of(text: str) -> list[Any]:
    """The tokens of a text; InvalidQuery for an unterminated quote or comment."""
    try:
        return _DIALECT.tokenize(_marked(text) if "$" in text else text)
    except SqlglotError:
        raise InvalidQuery("sql: the text is not SQL; a quote or a comment may have no end", code="42601") from None


def parse_text(text: str) -> ParsedQuery:
    """Parse the one statement of a text; InvalidQuery, with the position of the error, if it is not SQL."""
    explain = EXPLAIN.match(text)
    # sqlglot does not parse what follows EXPLAIN. Blanks in its place keep all positions as they are.
    body = " " * explain.end() + text[explain.end() :] if explain else text
    tokens = tokens_of(body)
    # A semicolon may end the text; anywhere else it separates statements.
    ends = [token for token in tokens[:-1] if token.token_type.name == "SEMICOLON"]
    if ends:
        position = ends[0].end + 2
        raise InvalidQuery("sql: several statements at once; send one SELECT", code="42601", position=position)
    try:
        # sqlglot's parser is recursive, so deep nesting hits Python's recursion limit before any check of ours.
        return ParsedQuery(_tree(_adapted(tokens), body), tokens, explain is not None)
    except RecursionError:
        raise InvalidQuery("sql: the query is nested too deeply", code="54001") from None


def _tree(tokens: list[Any], text: str) -> Any:
    parser = _CountingParser(dialect=_DIALECT)
    parser.steps_left = STEPS + STEPS_PER_TOKEN * len(tokens)
    try:
        found = next(iter(parser.parse(tokens, text)), None)
    except SqlglotError as error:
        raise _syntax_error(error, parser.fault) from None
    if found is None:
        raise InvalidQuery("sql: the text is not SQL: there is no statement", code="42601")
    for node in found.find_all(exp.Func):
        if "start" in node.meta:
            node.meta[_WORD] = text[node.meta["start"] : node.meta["end"] + 1].strip('"').lower()
    return found


def _syntax_error(error: Any, token: Any) -> InvalidQuery:
    """The error in PostgreSQL's words; sqlglot's own messages name its Python classes."""
    faults: list[dict[str, Any]] = getattr(error, "errors", None) or [{}]
    wanted = re.fullmatch(r"Expecting (\S{1,20})", str(faults[0].get("description")))
    more = f"; {wanted[1]} is expected" if wanted else ""
    near, start = ("", -1) if token is None else (str(token.text)[:40], token.start)
    where = f" at or near {near!r}" if near else ""
    return InvalidQuery(f"sql: the text is not SQL: syntax error{where}{more}", code="42601", position=start + 1)


def _adapted(tokens: list[Any]) -> list[Any]:
    """Rewrite two things that PostgreSQL's clients send and sqlglot cannot parse.

    These are casts to arrays of catalogue types, such as `oid[]`, and keywords as column names, such as `AS select`.
    """
    for token, after in pairwise(tokens):
        word = str(token.text).lower()
        if after.text == "[" and word == "oid":
            token.text, token.token_type = "uint", TokenType.UINT  # By which `type_oid` knows it again.
        elif after.text == "[" and word in _NUMBERED:
            token.text, token.token_type = "bigint", TokenType.BIGINT
        elif after.text == "[" and word == "name":
            token.text, token.token_type = "text", TokenType.TEXT
        elif word == "as" and str(after.text).upper() in _LABELS and after.token_type.name != "STRING":
            after.token_type = TokenType.IDENTIFIER
    return tokens
