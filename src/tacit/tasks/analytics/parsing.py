"""Texts of SQL to sqlglot's trees, within a number of steps.

sqlglot tries one reading after another and goes back where one fails, so that some short texts (a row of JOINs without
ON, calls inside LIMIT inside calls) would keep it busy for years. Its steps are counted, and a text that takes many
more of them than its length explains is refused.
"""

from functools import cache
from importlib import import_module
from typing import Any

from tacit.errors import InvalidQuery
from tacit.tasks.analytics.imports import sqlglot

STEPS, STEPS_PER_TOKEN = 5_000, 20
"""Steps that every text may take; those of real queries are about two per token."""


@cache
def _dialect() -> Any:
    sqlglot()
    return import_module("sqlglot.dialects.dialect").Dialect.get_or_raise("postgres")


@cache
def _parser() -> Any:
    """PostgreSQL's parser with a count of its steps."""
    base: Any = _dialect().parser().__class__

    class Counting(base):
        """Gives up after `steps_left` steps."""

        steps_left = STEPS

        def _advance(self, times: int = 1) -> None:
            self.steps_left -= 1
            if self.steps_left < 0:
                raise InvalidQuery("sql: the query is too entangled to be read; write it more simply")
            base._advance(self, times)

    return Counting


def parse_text(text: str) -> Any:
    """The tree of the first statement of a text; None if there is none. Errors of syntax are sqlglot's."""
    tokens = _dialect().tokenize(text)
    parser = _parser()(dialect=_dialect())
    parser.steps_left = STEPS + STEPS_PER_TOKEN * len(tokens)
    return next(iter(parser.parse(tokens, text)), None)
