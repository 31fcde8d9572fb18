"""Domains: every answer has one index, every refusal names the attribute and the rule and nothing else."""

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.core.domain import (
    DOMAINS,
    Bits,
    Booleans,
    Buckets,
    Categories,
    Domain,
    Integers,
    Items,
    OptionalDomain,
    Ordered,
    Product,
    Strings,
    Text,
    domain_of,
    indices,
    join_columns,
    split_columns,
)
from tacit.device.numbers.canonical import canonical
from tacit.device.numbers.hashing import text_id
from tacit.errors import InvalidSpec, InvalidValue

EXAMPLES: list[Domain] = [
    Categories("browser", ("Firefox", "Chrome"), other="another"),
    Categories("colour", ["red"]),  # type: ignore[arg-type]  # One value: oracles refuse it, domains do not.
    Booleans("smoker"),
    Integers("year", -10, 20, 5),
    Buckets("income", ("-1.50", "0", "10"), open_below=True, open_above=True),
    Ordered("mood", ("bad", "fair", "good")),
    Bits("flags", 3),
    Text("code", "01", 3),
    Strings("word", "2024-a", 64),
    Items("basket", ("bread", "milk"), most=1),
    OptionalDomain(Integers("age", 0, 9), "prefer not to say"),
    Product((Booleans("smoker"), Integers("age", 0, 9))),
]


@pytest.mark.parametrize("domain", EXAMPLES, ids=lambda d: d.kind)
def test_spec_round_trip(domain: Domain) -> None:
    again = domain_of(domain.spec())
    assert again == domain
    assert again.digest == domain.digest
    canonical(domain.spec())


def test_every_kind_has_an_example() -> None:
    assert {type(domain) for domain in EXAMPLES} == set(DOMAINS)


UNLABELLED = ("strings", "buckets", "text", "items")


@pytest.mark.parametrize("domain", [d for d in EXAMPLES if d.kind not in UNLABELLED], ids=str)
def test_labels_encode_to_their_own_index(domain: Domain) -> None:
    labels = domain.all_labels()
    assert len(labels) == domain.size
    assert domain.encode_many(labels) == list(range(domain.size))
    assert [domain.decode(index) for index in range(domain.size)] == labels
    with pytest.raises(InvalidValue):
        domain.decode(domain.size)
    with pytest.raises(InvalidValue):
        domain.decode(-1)


def test_text_is_compared_in_normal_form() -> None:
    assert Ordered("cafe", ("caf\u00e9", "bar")).encode("cafe\u0301") == 0
    assert Strings("s", "k", 9).encode("cafe\u0301") == Strings("s", "k", 9).encode("caf\u00e9")
    assert Categories("cafe", ("cafe\u0301",)).labels == ("caf\u00e9",)


def test_other_takes_every_unlisted_text_but_nothing_else() -> None:
    browser = EXAMPLES[0]
    assert [browser.encode(v) for v in ("Chrome", "Lynx", "", "another")] == [1, 2, 2, 2]
    with pytest.raises(InvalidValue, match=r"^browser: the value must be text"):
        browser.encode(None)


@pytest.mark.parametrize("value", [True, 1, "true", np.True_, np.int64(1)])
def test_true(value: Any) -> None:
    assert Booleans("b").encode(value) == 1


def test_integers_take_numbers_and_decimal_text_on_the_grid() -> None:
    year = Integers("year", -10, 20, 5)
    assert [year.encode(v) for v in (-10, "5", 10.0, "2e1", Decimal("15.0"), np.int32(0))] == [
        0,
        3,
        4,
        6,
        5,
        2,
    ]
    for outside in (
        -15,
        25,
        1,
        "5.5",
        5.5,
        True,
        None,
        "",
        "five",
        "1_0",
        "\u0665",
        float("nan"),
        float("inf"),
    ):
        with pytest.raises(InvalidValue) as caught:
            year.encode(outside)
        assert str(caught.value) == (
            "year: the value is outside the domain, must be an integer from -10 to 20 in steps of 5"
        )


def test_floats_stand_for_their_shortest_decimal() -> None:
    tenths = Buckets("x", (*(f"0.{i}" for i in range(10)), "1"))
    # 0.3 and 0.7 lie below their decimal in binary; they fall into the bucket their owner means.
    assert [tenths.encode(i / 10) for i in range(10)] == list(range(10))
    assert [tenths.encode(f"0.{i}") for i in range(10)] == list(range(10))
    assert tenths.encode(0.29999999999999) == 2
    assert tenths.encode(Fraction(3, 10)) == 3
    assert tenths.encode(".5") == 5
    assert list(indices(tenths, np.array([0.3, 0.7], np.float32))) == [3, 7]


def test_buckets_are_half_open_and_closed_at_the_ends_unless_declared() -> None:
    closed = Buckets("x", ("0", "1", "10"))
    assert [closed.encode(v) for v in (0, "0.999", 1, "9.999999")] == [0, 0, 1, 1]
    for outside in (10, "-0.0001", "1e3"):
        with pytest.raises(InvalidValue, match=r"at least 0 and below 10$"):
            closed.encode(outside)
    both = Buckets("x", ("0",), open_below=True, open_above=True)
    assert (both.encode("-1e300"), both.encode(-0.0), both.all_labels()) == (0, 1, ["< 0", ">= 0"])
    with pytest.raises(InvalidValue, match=r"must be below 0$"):
        Buckets("x", ("-5", "0"), open_below=True).encode(0)


def test_edges_have_one_canonical_text() -> None:
    assert Buckets("x", ("-00.50", "-0", 2, "10.0")).edges == ("-0.5", "0", "2", "10")  # type: ignore[arg-type]


def test_bits_take_text_or_lists_first_bit_most_significant() -> None:
    flags = Bits("flags", 3)
    assert [flags.encode(v) for v in ("011", [0, 1, 1], (True, False, False))] == [3, 3, 4]
    for wrong in ("01", "0111", "012", [0, 1, 2], [0, 1, [1]], 3, None, "\u0660\u0661\u0661"):
        with pytest.raises(InvalidValue, match=r"^flags: .* must be 3 bits"):
            flags.encode(wrong)


def test_strings_are_ids_that_cannot_be_decoded() -> None:
    word = Strings("word", "2024-a", 4)
    assert word.encode("😀") == text_id("2024-a", "😀")
    assert word.encode("") != Strings("word", "2024-b", 4).encode("")
    for wrong in ("😀!", "\ud800", None, b"x"):
        with pytest.raises(InvalidValue, match="at most 4 bytes"):
            word.encode(wrong)
    with pytest.raises(InvalidSpec):
        word.decode(0)
    with pytest.raises(InvalidSpec):
        word.all_labels()


THREE = Product((Booleans("a"), Integers("b", 1, 3), Categories("c", ("x", "y"))))


def test_product_is_a_mixed_radix_number_first_attribute_first() -> None:
    assert (THREE.size, THREE.encode((True, 1, "y")), THREE.encode({"c": "y", "b": 1, "a": 1, "d": 9})) == (
        12,
        7,
        7,
    )
    assert THREE.decode(7) == (True, 1, "y")
    assert THREE.indices((True, 1, "y")) == (1, 0, 1)


@given(st.integers(0, 11))
def test_product_split_and_join_are_inverse(index: int) -> None:
    assert THREE.join(THREE.split(index)) == index
    assert THREE.encode(THREE.decode(index)) == index


def test_projection_keeps_the_named_order() -> None:
    pair = THREE.project(["c", "a"])
    assert (pair.names, pair.size) == (("c", "a"), 4)
    assert pair.encode({"a": True, "b": 2, "c": "x"}) == 1
    with pytest.raises(InvalidSpec, match="no attribute 'z'"):
        THREE.project(["z"])
    with pytest.raises(InvalidSpec):
        THREE.project(["a", "a"])


def test_products_beyond_64_bits_can_be_projected() -> None:
    wide = Product((Strings("word", "k", 9), Integers("age", 0, 99)))
    assert wide.size == 100 << 64
    assert wide.project(["age"]).encode({"word": "x", "age": 7}) == 7
    with pytest.raises(InvalidSpec, match="64 bits"):
        indices(wide, [{"word": "x", "age": 7}])


@pytest.mark.parametrize("answers", [{"a": True, "b": 1}, (True, 1), "abc", 7, None])
def test_incomplete_answers(answers: Any) -> None:
    with pytest.raises(InvalidValue):
        THREE.encode(answers)


def refusal(domain: Domain, value: Any) -> str:
    try:
        domain.encode(value)
    except InvalidValue as error:
        return str(error)
    return ""


PROBES: list[Any] = [
    None,
    "",
    "?",
    99,
    (None,) * 2,
    {"smoker": 1},
    {"age": 1},
    (True, 99),
    "x" * 65,
    -(10**9),
]
# Written down once: whatever the value, the message must be one of these few.
MESSAGES = [{"", *(refusal(domain, probe) for probe in PROBES)} for domain in EXAMPLES]
SECRETS = st.one_of(st.text(), st.integers(), st.floats(), st.lists(st.integers()), st.none(), st.booleans())


@given(SECRETS)
def test_errors_never_show_the_value(value: Any) -> None:
    for domain, messages in zip(EXAMPLES, MESSAGES, strict=True):
        assert refusal(domain, value) in messages


def test_errors_begin_with_the_attribute() -> None:
    for domain in EXAMPLES[:-1]:
        wrong = {} if isinstance(domain, OptionalDomain) else None  # Which takes None for declining.
        assert refusal(domain, wrong).startswith(f"{domain.name}: the value ")  # type: ignore[attr-defined]
    assert refusal(THREE, (True, 7, "x")).startswith("b: the value ")
    assert refusal(THREE, {"a": 1, "c": 1}) == "b: the value is missing"


BAD_SPECS: list[Any] = [
    {"kind": "nonsense"},
    {"kind": "booleans"},  # Name is missing.
    {"kind": "booleans", "name": "x", "size": 2},  # Unknown field.
    {"kind": "booleans", "name": ""},
    {"kind": "booleans", "name": "x" * 65},
    {"kind": "booleans", "name": 7},
    {"kind": "categories", "name": "x", "labels": [], "other": None},
    {"kind": "categories", "name": "x", "labels": ["a", "a"], "other": None},
    {"kind": "categories", "name": "x", "labels": ["e\u0301", "\u00e9"], "other": None},
    {"kind": "categories", "name": "x", "labels": "ab", "other": None},
    {"kind": "categories", "name": "x", "labels": ["a"], "other": "a"},
    {"kind": "ordered", "name": "x", "labels": ["a", 1]},
    {"kind": "ordered", "name": "x", "labels": ["\ud800"]},
    {"kind": "integers", "name": "x", "low": 0, "high": 10, "step": 3},
    {"kind": "integers", "name": "x", "low": 1, "high": 0, "step": 1},
    {"kind": "integers", "name": "x", "low": 0, "high": 1, "step": 0},
    {"kind": "integers", "name": "x", "low": 0, "high": 1 << 53, "step": 1},
    {"kind": "integers", "name": "x", "low": 0.5, "high": 1, "step": 1},
    {"kind": "buckets", "name": "x", "edges": ["0"], "open_below": False, "open_above": False},
    {"kind": "buckets", "name": "x", "edges": [], "open_below": True, "open_above": True},
    {"kind": "buckets", "name": "x", "edges": ["0", "0.0"], "open_below": False, "open_above": False},
    {"kind": "buckets", "name": "x", "edges": [0.5, 1.5], "open_below": False, "open_above": False},
    {"kind": "buckets", "name": "x", "edges": ["0", "1e3"], "open_below": False, "open_above": False},
    {"kind": "buckets", "name": "x", "edges": ["0", "1"], "open_below": 1, "open_above": False},
    {"kind": "bits", "name": "x", "length": 0},
    {"kind": "bits", "name": "x", "length": 65},
    {"kind": "strings", "name": "x", "key": "", "max_bytes": 9},
    {"kind": "strings", "name": "x", "key": "k", "max_bytes": 0},
    {"kind": "buckets", "name": "x", "edges": ["0", "1.0"], "open_below": False, "open_above": False},
    {"kind": "ordered", "name": "x", "labels": ["e\u0301"]},
    {"kind": "product", "attributes": []},
    {"kind": "product", "attributes": [{"kind": "product", "attributes": []}]},
    {"kind": "product", "attributes": [{"kind": "booleans", "name": "x"}] * 2},
    ["booleans"],
    None,
]


@pytest.mark.parametrize("spec", BAD_SPECS, ids=str)
def test_domains_that_cannot_exist(spec: Any) -> None:
    with pytest.raises(InvalidSpec):
        domain_of(spec)


def test_batches_equal_single_answers() -> None:
    years = np.array([20, -10, 20, 0])
    assert indices(EXAMPLES[3], years).tolist() == EXAMPLES[3].encode_many(years)
    with pytest.raises(InvalidValue):
        indices(EXAMPLES[3], np.array([1]))
    assert indices(Strings("w", "k", 9), ["a", "b"]).dtype == np.uint64


def test_columns_join_and_split_like_single_indices() -> None:
    rows = [THREE.split(i) for i in range(THREE.size)]
    columns = [np.array(column, np.uint64) for column in zip(*rows, strict=True)]
    joined = join_columns(THREE, columns)
    assert joined.tolist() == list(range(12))
    assert [c.tolist() for c in split_columns(THREE, joined)] == [c.tolist() for c in columns]
