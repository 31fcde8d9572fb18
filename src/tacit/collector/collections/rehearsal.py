"""A dry run before a document is published: example answers go through the device's code, and must be countable.

A mechanism's `privatize_one` is the device's own function, which the server half inherits. What fails here would fail
on every respondent's device, and a published document cannot be corrected any more.
"""

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from tacit.core.mechanism import Mechanism
from tacit.core.patience import check
from tacit.device.base import Device
from tacit.device.domains.domain import Domain, Strings
from tacit.device.domains.items import Items
from tacit.device.domains.optional import OptionalDomain
from tacit.device.domains.product import Product
from tacit.device.domains.reals import Buckets
from tacit.device.domains.text import Text
from tacit.device.numbers.coins import ReplayCoins
from tacit.errors import InvalidSpec
from tacit.hosting.problems import Problem
from tacit.wire.document import Collection

MOST_MEMBERS = 64
"""How many members of a family are tried at most, spread evenly over it; a grid may have thousands."""


def example_answers(domain: Domain) -> list[Any]:
    """A few answers as a respondent would give them, including the extremes of the domain."""
    make = _EXAMPLES.get(type(domain))
    return make(domain) if make is not None else _labels(domain)


def _labels(domain: Domain) -> list[Any]:
    """The first, the middle and the last label."""
    return [domain.decode(index) for index in sorted({0, domain.size // 2, domain.size - 1})]


def _of_items(domain: Items) -> list[Any]:
    most = min(domain.most or len(domain.labels), 64)
    return [[], [domain.labels[-1]], list(domain.labels[:most])]


def _of_text(domain: Text) -> list[Any]:
    symbol = "a" if domain.is_bytes else domain.symbols[-1]
    return ["", symbol, symbol * domain.length]


def _of_strings(domain: Strings) -> list[Any]:
    return ["", "a" * min(domain.max_bytes, 64)]


def _of_buckets(domain: Buckets) -> list[Any]:
    """A number in the first bucket and one in the last; an edge belongs to the bucket above it."""
    below = [f"-1{'0' * 20}"] if domain.open_below else []
    numbers = [*below, *(domain.edges if domain.open_above else domain.edges[:-1])]
    return [numbers[0], numbers[-1]]


def _of_product(domain: Product) -> list[Any]:
    """An answer for every attribute, by name: the first examples of all, and the last."""
    examples = {attribute.name: example_answers(attribute) for attribute in domain.attributes}
    return [{name: some[end] for name, some in examples.items()} for end in (0, -1)]


def _of_optional(domain: OptionalDomain) -> list[Any]:
    return [*example_answers(domain.domain), None]


_EXAMPLES: Mapping[type[Domain], Callable[[Any], list[Any]]] = {
    Items: _of_items,
    Text: _of_text,
    Strings: _of_strings,
    Buckets: _of_buckets,
    Product: _of_product,
    OptionalDomain: _of_optional,
}


def rehearse(collection: Collection) -> None:
    """Report on example answers to every question; InvalidSpec if that fails, or if the collector would refuse one."""
    stage = _Stage()
    names = [question.name for question in collection.questions]
    examples = {name: _of_question(collection, place, stage) for place, name in enumerate(names)}
    for turn in range(max(map(len, examples.values()))):
        answers = {name: some[turn % len(some)] for name, some in examples.items()}
        with _refusing("the questions together" if len(examples) > 1 else "the question"):
            _whole_report(collection, answers, stage)


def _of_question(collection: Collection, place: int, stage: "_Stage") -> list[Any]:
    """Example answers to one question, after trying each on the question's own mechanism where it has one."""
    question, members = collection.questions[place], collection.members
    with _refusing(f"question '{question.name}'"):
        examples = example_answers(question.domain)
        for example in examples:
            value = question.domain.encode(example)
            if len(members) == len(collection.questions):
                stage.report(members[place], value)
    return examples


@contextmanager
def _refusing(who: str) -> Generator[None]:
    """Turn any exception of the device's code into InvalidSpec: the document must not be published."""
    try:
        yield
    except Problem:
        # The deadline of the request (`check`), which says nothing about the document.
        raise
    except Exception as error:
        raise InvalidSpec(
            f"document: no device can answer {who} ({error}); choose a task that fits its domain, or another domain"
        ) from error


def _whole_report(collection: Collection, answers: Mapping[str, Any], stage: "_Stage") -> None:
    """A report of the whole mechanism, and one of every member that a device might draw (up to `MOST_MEMBERS`)."""
    mechanism, value = collection.mechanism, collection.encode(answers)
    stage.report(mechanism, value)
    family = mechanism.drawn_from
    if family is not None:
        for member in sorted({turn * len(family) // MOST_MEMBERS for turn in range(MOST_MEMBERS)}):
            stage.report(family.mechanism(member), family.view(member)(value))


class _Stage:
    """Tries reports, each pair of mechanism and value once: many questions have the same mechanism."""

    def __init__(self) -> None:
        # Deterministic coins, so that a draft that passes once passes always.
        self._coins = ReplayCoins(b"rehearsal")
        self._done = set[tuple[str, str]]()

    def report(self, device: Device, value: Any) -> None:
        """Privatize a value as a device does, and validate the report as the collector does."""
        check()
        assert isinstance(device, Mechanism)
        if (device.digest, repr(value)) in self._done:
            return
        reports = device.decode(device.privatize_one(value, self._coins))
        if len(reports) != 1 or not np.all(device.valid(reports)):
            raise InvalidSpec(f"{device.kind}: the collector would refuse the report")
        self._done.add((device.digest, repr(value)))
