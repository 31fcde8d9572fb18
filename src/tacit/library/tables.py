"""`tacit.marginals`: joint tables of several columns, any few of them together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from math import comb
from typing import Any, cast

import numpy as np

from tacit.core.estimate import Estimate
from tacit.device.arguments import explained
from tacit.device.numbers.budget import Declared
from tacit.device.numbers.coins import Coins
from tacit.errors import InvalidSpec
from tacit.library.columns import Column, columns_of
from tacit.library.domains import Scope, name_scope
from tacit.library.finding import Ends, Finding
from tacit.library.inquiry import RESPONDENTS, Inquiry, checked_epsilon, respondents
from tacit.tasks.marginals.marginals import Marginals, Table
from tacit.tasks.marginals.solve import solve_marginals
from tacit.tasks.marginals.target import TargetModel, fit_target, plan_star
from tacit.tasks.marginals.task import DEFAULT_K, MARGINALS
from tacit.tasks.task import JointQuestions

MOST_TABLES = 64
"""Tables that a finding lists; of more, those of single columns are listed, and others asked for by name."""


@dataclass(frozen=True, eq=False, repr=False)
class MarginalsFinding(Finding):
    """Tables of several columns; `table` asks the same reports for any others."""

    def table(self, *names: Any) -> Finding:
        """Return the joint table of some columns, given one by one or as a list; one row per combination."""
        if len(names) == 1 and isinstance(names[0], (list, tuple)):
            names = tuple(cast("Sequence[Any]", names[0]))
        places = [_place(self.inquiry, name) for name in names]
        if not places or len(set(places)) < len(places):
            raise InvalidSpec("marginals: name the columns of a table, each once: table('smoker', 'sport')")
        solved = cast("Marginals", self.answers)
        return _joined(self.inquiry, self.tally, solved, [tuple(sorted(places))])

    def model(self, target: str, *, model: str = "naive_bayes") -> TargetModel:
        """Return a model of one column by all others, numbered as the columns are; plan it with `target=`."""
        return fit_target(cast("Marginals", self.answers), _place(self.inquiry, target), model=model)

    def synthetic(self, target: str, n: int, *, seed: int | None = None) -> dict[str, list[Any]]:
        """Return columns of n made-up records that go with the target as the respondents do, for training a model."""
        drawn = self.model(target).sample(n, np.random.default_rng(seed))
        names = [str(getattr(scope.domain, "name", i)) for i, scope in enumerate(self.inquiry.scopes)]
        pairs = zip(names, self.inquiry.scopes, drawn.T.tolist(), strict=True)
        return {name: [scope.label(at) for at in column] for name, scope, column in pairs}


def scopes_of(
    who: str, columns: Mapping[str, Column] | None, domain: Any, missing: str | None
) -> tuple[dict[str, Scope], int]:
    """The domain of every column, and how many respondents there are."""
    declared = cast("Mapping[str, Any]", domain if isinstance(domain, Mapping) else {})
    if domain is not None and not declared:
        raise InvalidSpec(f"{who}: domain must be a dictionary with the answers of every column: domain={{'a': [...]}}")
    names = list(declared) if columns is None else list(columns)
    if any(name not in names for name in declared):
        raise InvalidSpec(f"{who}: domain names a column that the values do not have; there are {', '.join(names)}")
    held = columns or {}
    lengths = {len(column.items) for column in held.values()}
    if len(lengths) > 1:
        raise InvalidSpec(f"{who}: columns must be of one length, with one value per respondent each")
    found = {name: name_scope(who, name, declared.get(name), held.get(name), missing, ordered=False) for name in names}
    return found, max(lengths, default=0)


def _place(inquiry: Inquiry, name: str) -> int:
    names = [getattr(scope.domain, "name", "") for scope in inquiry.scopes]
    if name not in names:
        raise InvalidSpec(f"marginals: there is no column '{str(name)[:40]}', must be one of {', '.join(names)}")
    return names.index(name)


def _tables(k: int, inquiry: Inquiry, tally: Any) -> Finding:
    solved, columns = solve_marginals(inquiry.mechanism, tally), len(inquiry.scopes)
    size = min(k, columns) if comb(columns, min(k, columns)) <= MOST_TABLES else 1
    return _joined(inquiry, tally, solved, list(combinations(range(columns), size)))


def _joined(inquiry: Inquiry, tally: Any, solved: Marginals, asked: list[tuple[int, ...]]) -> MarginalsFinding:
    """Tables one below the other; a row has the answers of its own columns, and None in those of other tables."""
    shown = sorted({place for places in asked for place in places})
    tables = solved.tables(asked)
    labels = [label for table in tables for label in _labels(inquiry, table, shown)]

    def ends(level: float) -> Ends:
        low, high = zip(*(table.raw.interval(level) for table in tables), strict=True)
        return np.concatenate(low), np.concatenate(high)

    value, variance = (np.concatenate([getattr(t.raw, name) for t in tables]) for name in ("value", "variance"))
    # Of one table the estimate itself, with covariance; of several, cells of different tables are not combined.
    raw = tables[0].raw if len(tables) == 1 else Estimate(value, variance, tally.n)
    consistent = Estimate(np.concatenate([t.consistent.ravel() for t in tables]), variance, tally.n)
    names = tuple(str(getattr(inquiry.scopes[place].domain, "name", place)) for place in shown)
    # A label of one column is the answer itself, not a tuple of one.
    plain = [label[0] for label in labels] if len(names) == 1 else labels
    notes = tuple(dict.fromkeys(note for table in tables for note in _notes(names, table)))
    return MarginalsFinding(inquiry, tally, names, plain, value, ends, "share", raw, consistent, solved, notes)


def _labels(inquiry: Inquiry, table: Table, shown: list[int]) -> list[tuple[Any, ...]]:
    """The answers of every cell, in the columns that are shown."""
    cells = np.ndindex(*table.shape)
    held = [dict(zip(table.attributes, cell, strict=True)) for cell in cells]
    return [tuple(inquiry.scopes[p].label(cell[p]) if p in cell else None for p in shown) for cell in held]


def _notes(names: tuple[str, ...], table: Table) -> list[str]:
    """What is to be said about a table that was not asked as a whole."""
    if table.status not in ("independent", "reconstructed"):
        return []
    return [f"nobody was asked about all of {', '.join(names)} together; what was not asked is taken for independent"]


@explained
def ask_marginals(
    columns: Mapping[str, Column] | None = None, *, epsilon: Declared | None = None, n: int = RESPONDENTS,
    k: int = DEFAULT_K, domain: Any = None, missing: str | None = None, target: str | None = None,
) -> Inquiry:  # fmt: skip
    """Plan the tables of k columns; or of a target column with every other one, for a model of it."""
    who = "marginals"
    if columns is None and domain is None:
        raise InvalidSpec("marginals: domain is missing; declare every column: domain={'smoker': bool, 'sport': [...]}")
    scopes, count = scopes_of(who, columns, domain, missing)
    if len(scopes) < 2:
        raise InvalidSpec("marginals: tables are of two columns or more; one column is counted by tacit.histogram")
    asked = JointQuestions(tuple(scopes), tuple(scope.domain for scope in scopes.values()))
    people = count or respondents(who, n, None)
    budget = checked_epsilon(who, epsilon)
    if target is not None and target not in scopes:
        raise InvalidSpec(f"marginals: target is '{str(target)[:40]}', must be one of {', '.join(scopes)}")
    if target is None:
        mechanism = MARGINALS.plan(asked, budget, people, k)
    else:
        mechanism = plan_star(asked.sizes, asked.names.index(target), budget)

    def predict(planned: Any, respondents_: int) -> Any:
        return MARGINALS.forecast(asked, planned, respondents_, k)

    return Inquiry(who, mechanism, tuple(scopes.values()), people, partial(_tables, k), predict, policy="joint")


@explained
def marginals(
    values: Any, epsilon: Declared | None = None, *, k: int = DEFAULT_K, domain: Any = None,
    missing: str | None = None, target: str | None = None, coins: Coins | None = None,
) -> MarginalsFinding:  # fmt: skip
    """Return the joint tables of k columns each; `found.table('smoker', 'sport')` is one of them.

    Values are a DataFrame, a dictionary of columns or a list of rows. `domain` has the answers of every column. With
    a `target` column respondents are asked about it and one other each, for `found.model` and `found.synthetic`.

    >>> people = {"smoker": [True, False] * 10_000, "sport": ["never", "often"] * 10_000}
    >>> found = marginals(people, epsilon=2, domain={"smoker": bool, "sport": ["never", "often"]})
    >>> found.to_rows()[1]["smoker"], found.to_rows()[1]["sport"], abs(found.to_rows()[1]["share"] - 0.5) < 0.1
    (False, 'often', True)
    """
    columns = columns_of("marginals", values)
    inquiry = ask_marginals(columns, epsilon=epsilon, k=k, domain=domain, missing=missing, target=target)
    return cast("MarginalsFinding", inquiry.simulate(tuple(columns.values()), coins))
