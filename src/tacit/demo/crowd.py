"""The made-up crowd of the demo: true answers, which no real collector would know, and their distribution."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.arrays import F64, I64
from tacit.wire.document import Collection, Question

Columns = dict[str, npt.NDArray[Any]]
Draw = Callable[[int, np.random.Generator], I64]
"""Draws n respondents: one row each, with the index of the answer to every question."""


@dataclass(frozen=True)
class DemoQuery:
    """SQL, and a function for its true answer: a number for every cell, named as it is shown."""

    sql: str
    truth: Callable[[Columns], dict[str, float]]


@dataclass(frozen=True)
class Example:
    """A draft of a collection, and the distribution of the made-up crowd's answers to it."""

    draft: dict[str, Any]
    respondents: int
    """The percentage of the demo's respondents that this example gets."""
    draw: Draw
    groups: tuple[tuple[str, ...], ...] = ()
    """Joint questions that depend on each other; those of different groups are drawn independently."""
    public: Callable[[I64, np.random.Generator], Columns] | None = None
    """Draws the public columns of a table, which may depend on the answers."""
    queries: tuple[DemoQuery, ...] = ()

    def draft_for(self, n: int) -> dict[str, Any]:
        """Return the draft for so many respondents, with the queries that it should be planned for."""
        workload = {"queries": [query.sql for query in self.queries]} if self.queries else {}
        return self.draft | {"respondents": n} | workload


@dataclass(frozen=True)
class Crowd:
    """Respondents of one published collection: a row of indices each, or one index for a single question."""

    example: Example
    collection: Collection
    values: I64
    public: Columns

    @property
    def truths(self) -> list[F64]:
        """The true shares of every question's answers, or its true mean."""
        # A single question has one index per respondent instead of a row.
        columns = self.values.reshape(len(self.values), -1).T
        return [_truth(question, column) for question, column in zip(self.collection.questions, columns, strict=True)]

    @property
    def columns(self) -> Columns:
        """All columns of a table, public and private, as labels: what the true answers to SQL are computed from."""
        pairs = zip(self.collection.questions, self.values.T, strict=True)
        return self.public | {
            question.name: np.array(question.domain.all_labels())[column] for question, column in pairs
        }

    def parts(self, size: int) -> "Iterator[Crowd]":
        """Yield the same respondents in parts of this size, which bounds memory while they are perturbed and sent."""
        for start in range(0, len(self.values), size):
            places = slice(start, start + size)
            public = {name: column[places] for name, column in self.public.items()}
            yield replace(self, values=self.values[places], public=public)


def _truth(question: Question, indices: I64) -> F64:
    """Return the true shares of a question's answers, or its true mean."""
    domain: Any = question.domain
    # The mean is of the question's numbers, low + step * index; every other task is compared by shares.
    if question.task == "mean":
        return np.array([domain.low + domain.step * float(indices.mean())])
    return np.bincount(indices, minlength=domain.size) / len(indices)


def drawn_apart(*weights: Sequence[float]) -> Draw:
    """Return a draw of independent answers; `weights` are the relative frequencies of each question's answers."""
    shares = [np.asarray(each, np.float64) / np.sum(each) for each in weights]
    return lambda n, rng: np.stack([rng.choice(len(share), size=n, p=share) for share in shares], axis=1)


def drawn_after(first: Sequence[float], second: Sequence[Sequence[float]]) -> Draw:
    """Return a draw of two dependent answers; row i of `second` weighs the second answer given that the first is i."""
    shares = np.asarray(second, np.float64)
    # Inverse transform sampling: the second answer is the number of cumulative bounds below a uniform number.
    bounds = np.cumsum(shares / shares.sum(axis=1, keepdims=True), axis=1)[:, :-1]

    def draw(n: int, rng: np.random.Generator) -> I64:
        before = drawn_apart(first)(n, rng)[:, 0]
        return np.stack([before, (rng.random(n)[:, None] > bounds[before]).sum(axis=1)], axis=1)

    return draw


def gather(collection: Collection, example: Example, n: int, rng: np.random.Generator) -> Crowd:
    """Draw n respondents of an example."""
    values = example.draw(n, rng)
    public = {} if example.public is None else example.public(values, rng)
    return Crowd(example, collection, values[:, 0] if collection.policy == "single" else values, public)


def portions(n: int, examples: Sequence[Example]) -> list[int]:
    """Return how many of n respondents each example gets; the first takes what rounding down leaves over."""
    # Whole numbers of respondents must add up to n, which percentages alone do not guarantee.
    counts = [n * example.respondents // 100 for example in examples]
    return [n - sum(counts[1:]), *counts[1:]]
