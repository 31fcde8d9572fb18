"""The made-up crowd of the demo: the truth that no real collector would know."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.wire.document import Collection, Question

I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]
Columns = dict[str, npt.NDArray[Any]]
Draw = Callable[[int, np.random.Generator], I64]
"""A row of answers for each of n respondents, as indices."""


@dataclass(frozen=True)
class Query:
    """SQL, and what a program that sees everything would answer: a number for every cell, named as it is shown."""

    sql: str
    truth: Callable[[Columns], dict[str, float]]


@dataclass(frozen=True)
class Example:
    """A draft, and how its answers are distributed in the made-up crowd."""

    draft: dict[str, Any]
    respondents: int
    """Respondents per hundred of the whole demo."""
    draw: Draw
    groups: tuple[tuple[str, ...], ...] = ()
    """Of questions that are asked together, which go together; those of different groups are drawn independently."""
    public: Callable[[I64, np.random.Generator], Columns] | None = None
    """The public columns of a table, which may depend on the answers."""
    queries: tuple[Query, ...] = ()

    def draft_for(self, n: int) -> dict[str, Any]:
        """The draft for so many respondents."""
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
        """What every question would be answered with if nobody minded telling."""
        columns = self.values.reshape(len(self.values), -1).T
        return [_truth(question, column) for question, column in zip(self.collection.questions, columns, strict=True)]

    @property
    def columns(self) -> Columns:
        """What is public and what is not, as labels."""
        pairs = zip(self.collection.questions, self.values.T, strict=True)
        return self.public | {asked.name: np.array(asked.domain.all_labels())[column] for asked, column in pairs}

    def parts(self, size: int) -> "Iterator[Crowd]":
        """The same respondents in groups of this size."""
        for start in range(0, len(self.values), size):
            places = slice(start, start + size)
            public = {name: column[places] for name, column in self.public.items()}
            yield replace(self, values=self.values[places], public=public)


def _truth(question: Question, indices: I64) -> F64:
    domain: Any = question.domain
    if question.task == "mean":
        return np.array([domain.low + domain.step * float(indices.mean())])
    return np.bincount(indices, minlength=domain.size) / len(indices)


def drawn_apart(*weights: Sequence[float]) -> Draw:
    """Answers that do not depend on each other, by how often each is given."""
    shares = [np.asarray(each, np.float64) / np.sum(each) for each in weights]
    return lambda n, rng: np.stack([rng.choice(len(share), size=n, p=share) for share in shares], axis=1)


def drawn_after(first: Sequence[float], second: Sequence[Sequence[float]]) -> Draw:
    """Two answers, the second by how often it is given after each first one."""
    shares = np.asarray(second, np.float64)
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
    """How many of n respondents each example gets."""
    counts = [n * example.respondents // 100 for example in examples]
    return [n - sum(counts[1:]), *counts[1:]]
