"""A rehearsal before anybody is asked: example answers pass through the code of a device, and must be countable.

A mechanism's `privatize_one` is the device's own function, which the server half inherits. What fails here would fail
on every respondent's device, where nobody could mend it any more.
"""

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from tacit.collector.problems import Problem
from tacit.core.compose import OneOf
from tacit.core.mechanism import Mechanism
from tacit.core.patience import check
from tacit.device.base import Device
from tacit.device.coins import ReplayCoins
from tacit.device.domain import Domain, Strings
from tacit.device.items import Items
from tacit.device.product import Product
from tacit.device.reals import Buckets
from tacit.device.text import Text
from tacit.errors import InvalidSpec
from tacit.wire.document import Collection

MOST_MEMBERS = 64
"""How many members of a family are rehearsed at most, spread evenly over it."""


def example_answers(domain: Domain) -> list[Any]:
    """A few answers as a respondent would give them, the extreme ones of the domain among them."""
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
    """A number of the first bucket and one of the last; an edge belongs to the bucket above it."""
    below = [f"-1{'0' * 20}"] if domain.open_below else []
    numbers = [*below, *(domain.edges if domain.open_above else domain.edges[:-1])]
    return [numbers[0], numbers[-1]]


def _of_product(domain: Product) -> list[Any]:
    """An answer for every attribute, by name: the first examples of all, and the last."""
    examples = {attribute.name: example_answers(attribute) for attribute in domain.attributes}
    return [{name: some[end] for name, some in examples.items()} for end in (0, -1)]


_EXAMPLES: Mapping[type[Domain], Callable[[Any], list[Any]]] = {
    Items: _of_items,
    Text: _of_text,
    Strings: _of_strings,
    Buckets: _of_buckets,
    Product: _of_product,
}


def rehearse(collection: Collection) -> None:
    """Make reports on example answers to every question; InvalidSpec if one fails, or could not be counted."""
    stage = _Stage()
    names = [question.name for question in collection.questions]
    examples = {name: _of_question(collection, place, stage) for place, name in enumerate(names)}
    for turn in range(max(map(len, examples.values()))):
        answers = {name: some[turn % len(some)] for name, some in examples.items()}
        with _refusing("the questions together" if len(examples) > 1 else "the question"):
            _whole_report(collection, answers, stage)


def _of_question(collection: Collection, place: int, stage: "_Stage") -> list[Any]:
    """Example answers to one question, each of which the question's own mechanism has reported on."""
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
    """Any failure of the code of a device means that the document must not be published."""
    try:
        yield
    except Problem:
        raise  # The deadline of whoever waits, which says nothing about the document.
    except Exception as error:
        raise InvalidSpec(
            f"document: no device can answer {who} ({error}); choose a task that fits its domain, or another domain"
        ) from error


def _whole_report(collection: Collection, answers: Mapping[str, Any], stage: "_Stage") -> None:
    """A report as a device makes it, and one of every member that it might have drawn."""
    mechanism, value = collection.mechanism, collection.encode(answers)
    stage.report(mechanism, value)
    if isinstance(mechanism, OneOf):
        count = len(mechanism.family)
        for member in sorted({turn * count // MOST_MEMBERS for turn in range(MOST_MEMBERS)}):
            stage.report(mechanism.member(member), mechanism.family.view(member)(value))


class _Stage:
    """Where reports are tried: every pair of mechanism and value once, since many questions are asked alike."""

    def __init__(self) -> None:
        self._coins = ReplayCoins(b"rehearsal")
        self._done = set[tuple[str, str]]()

    def report(self, device: Device, value: Any) -> None:
        """Perturb a value as a device does, and read the report as the collector does."""
        check()
        assert isinstance(device, Mechanism)
        if (device.digest, repr(value)) in self._done:
            return
        reports = device.decode(device.privatize_one(value, self._coins))
        if len(reports) != 1 or not np.all(device.valid(reports)):
            raise InvalidSpec(f"{device.kind}: the collector would refuse the report")
        self._done.add((device.digest, repr(value)))
