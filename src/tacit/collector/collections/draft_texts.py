"""Checks of the texts in drafts: no invisible characters, which could make two labels look alike or mislead readers.

Published documents are not checked, so that those of earlier releases keep loading.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from tacit.device.domains.domain import Domain
from tacit.device.domains.optional import OptionalDomain
from tacit.device.domains.product import Product
from tacit.device.domains.text import ALPHABETS
from tacit.errors import InvalidSpec
from tacit.wire.document import Collection

_DIRECTION = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
"""The Bidi_Control characters of Unicode, which reorder the text around them."""
_HIDDEN = re.compile(f"[\x00-\x1f\x7f-\x9f{_DIRECTION}\u200b\u2028\u2029\ufeff]")
"""Characters that a label must not contain: labels are compared, sorted, exported, and shown in one line."""
_HIDDEN_IN_TEXT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\ufeff]")
"""Characters that longer texts must not contain; line breaks and isolating direction marks are fine there."""


def check_texts(collection: Collection) -> None:
    """InvalidSpec for invisible characters in titles, questions, labels and names, and for blanks around the latter."""
    _check_text(collection.title, "draft.title")
    _check_text(collection.about, "draft.about")
    for question in collection.questions:
        _check_text(question.text, f"draft: the text of question '{question.name}'")
        _check_domain(question.domain, f"draft: question '{question.name}'")
    if collection.shuffle is not None:
        for party in collection.shuffle.parties:
            _check_label(party.name, "draft.shuffle: the name of a party")


def _check_text(texts: Mapping[str, str], where: str) -> None:
    for language, text in texts.items():
        _check_visible(text, _HIDDEN_IN_TEXT, f"{where} ({language})")


def _check_domain(domain: Domain, where: str) -> None:
    if isinstance(domain, Product):
        for attribute in domain.attributes:
            _check_domain(attribute, f"{where}, attribute {_place(domain.attributes, attribute)}")
        return
    if isinstance(domain, OptionalDomain):
        _check_label(domain.declined, f"{where}: declined")
        return _check_domain(domain.domain, where)
    _check_label(getattr(domain, "name", "x"), f"{where}: its name")
    labels: Iterable[str] = getattr(domain, "labels", ())
    for place, label in enumerate(labels, 1):
        _check_label(label, f"{where}: label {place}")
    if (other := getattr(domain, "other", None)) is not None:
        _check_label(other, f"{where}: other")
    alphabet: str = getattr(domain, "alphabet", "lower")
    if alphabet not in ALPHABETS:
        _check_visible(alphabet, _HIDDEN, f"{where}: its alphabet")


def _place(attributes: tuple[Any, ...], attribute: Any) -> int:
    return attributes.index(attribute) + 1


def _check_label(label: str, where: str) -> None:
    _check_visible(label, _HIDDEN, where)
    if label != label.strip():
        raise InvalidSpec(f"{where} begins or ends with a blank, which nobody sees; remove it")


def _check_visible(text: str, hidden: "re.Pattern[str]", where: str) -> None:
    if found := hidden.search(text):
        code, place = ord(found.group()), found.start() + 1
        raise InvalidSpec(f"{where} holds U+{code:04X} at character {place}, which nobody sees; remove it")
