"""Text whose index keeps prefixes: encoding, what cannot be a beginning, and messages that never show the value."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.device.domains.domain import Bits, Categories
from tacit.device.domains.reals import Integers
from tacit.device.domains.text import Text
from tacit.errors import InvalidSpec, InvalidValue
from tacit.tasks.hitters.spelling import Spelling, spelling_of, utf8_prefixes

LOWER, BYTES = Text("name", "lower", 5), Text("query", "bytes", 6)


@given(st.text(alphabet="abcdefghijklmnopqrstuvwxyz", max_size=5))
def test_letters_come_back_and_their_first_digits_are_their_beginning(text: str) -> None:
    index = LOWER.encode(text)
    assert LOWER.decode(index) == text
    for length in range(6):
        prefix = index // 27 ** (5 - length)
        assert LOWER.beginning(prefix, length) == text[:length]
        assert LOWER.is_prefix(prefix, length)


@given(st.text(max_size=6))
def test_any_text_without_nul_comes_back_from_bytes_in_normal_form(text: str) -> None:
    import unicodedata

    normal = unicodedata.normalize("NFC", text)
    if "\0" in normal or len(normal.encode(errors="surrogatepass")) > 6:
        with pytest.raises(InvalidValue):
            BYTES.encode(text)
        return
    index = BYTES.encode(text)
    assert BYTES.decode(index) == normal
    for length in range(7):
        assert BYTES.is_prefix(index >> 8 * (6 - length), length)


@pytest.mark.parametrize("value", ["a\0", "\0", "x" * 10_000, "\ud800", None, 7, b"abc", ["a"], "\U0001f600\U0001f600"])
def test_what_is_no_text_of_the_domain_is_refused_and_never_shown(value: Any) -> None:
    with pytest.raises(
        InvalidValue, match=r"^query: the value is outside the domain, must be text of at most 6 bytes"
    ) as error:
        BYTES.encode(value)
    assert "xxx" not in str(error.value)


def test_empty_text_and_emoji_are_valid_where_they_fit() -> None:
    assert BYTES.encode("") == 0 and BYTES.decode(0) == ""
    assert BYTES.decode(BYTES.encode("\U0001f600")) == "\U0001f600"
    assert (
        Text("smile", "\U0001f600\U0001f601", 3).decode(Text("smile", "\U0001f600\U0001f601", 3).encode("\U0001f601"))
        == "\U0001f601"
    )


def test_letters_with_marks_are_the_same_in_both_forms() -> None:
    assert BYTES.encode("cafe\u0301") == BYTES.encode("caf\u00e9")


@pytest.mark.parametrize(
    ("alphabet", "length", "rule"),
    [
        ("lower", 14, "from 1 to 13: more of its 27 symbols do not fit into 64 bits"),
        ("printable", 10, "from 1 to 9: more of its 96 symbols"),
        ("bytes", 9, "from 1 to 8: more of its 256 symbols"),
        ("bytes", 0, "from 1 to 8"),
        ("ba", 2, "order of their code points"),
        ("aa", 2, "order of their code points"),
        ("\0a", 2, "without NUL"),
        ("", 2, "alphabet must be text"),
        (7, 2, "alphabet must be text"),
    ],
)
def test_impossible_domains_say_what_fits(alphabet: Any, length: Any, rule: str) -> None:
    with pytest.raises(InvalidSpec, match=rule):
        Text("name", alphabet, length)


def test_a_text_of_64_bits_has_all_of_them() -> None:
    whole = Text("query", "bytes", 8)
    assert whole.size == 1 << 64
    assert whole.encode("\u00ff" * 4) < whole.size


def test_nothing_follows_the_end_and_bytes_must_be_utf8() -> None:
    assert not LOWER.is_prefix(0 * 27 + 3, 2)
    assert LOWER.is_prefix(3 * 27, 2)
    assert not BYTES.is_prefix(0x80, 1) and not BYTES.is_prefix(0xC080, 2) and not BYTES.is_prefix(0x0041, 2)
    assert BYTES.is_prefix(0xE2, 1) and not BYTES.is_prefix(0xE200, 2)
    assert not BYTES.is_prefix(0x4141414141E2, 6)  # The character would not be complete.


@pytest.mark.parametrize(("digits", "length"), [(1, 1), (1, 2), (1, 8), (2, 2), (2, 3), (2, 4)])
@pytest.mark.slow_cases("2-3", "2-4")
def test_the_automaton_agrees_with_the_decoder_on_whole_bytes(digits: int, length: int) -> None:
    every = np.arange(256**digits, dtype=np.uint64)
    domain = Text("query", "bytes", length)
    slow = [domain.is_prefix(int(prefix), digits) for prefix in every]
    assert utf8_prefixes(every, 8 * digits, length=length).tolist() == slow


@pytest.mark.parametrize("bits", [3, 8, 11, 13])
def test_a_prefix_of_bits_is_possible_if_some_extension_to_whole_bytes_is(bits: int) -> None:
    whole = -(-bits // 8) * 8
    for length in (whole // 8, 4):
        every = utf8_prefixes(np.arange(1 << whole, dtype=np.uint64), whole, length=length)
        found = utf8_prefixes(np.arange(1 << bits, dtype=np.uint64), bits, length=length)
        assert np.array_equal(found, every.reshape(1 << bits, -1).any(axis=1))


def test_three_and_four_bytes_are_followed_through() -> None:
    for text in ("\u20ac", "\ud7ff", "\U0001f600", "\U0010ffff", "\u0800"):
        data = text.encode()
        index = np.array([int.from_bytes(data, "big")], np.uint64)
        assert utf8_prefixes(index, 8 * len(data), length=len(data))[0]
    for data in (b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe0\x80\x80", b"\xf0\x80\x80\x80", b"\xff\x41"):
        assert not utf8_prefixes(np.array([int.from_bytes(data, "big")], np.uint64), 8 * len(data), length=8)[0]


def test_extensions_are_all_possible_ones_in_order() -> None:
    spelling = spelling_of(Text("code", "ab", 3))
    first = spelling.extend(np.zeros(1, np.uint64), 0, 1)
    assert first.tolist() == [0, 1, 2]
    assert spelling.extend(first, 1, 2).tolist() == [0, 3, 4, 5, 6, 7, 8]  # The end is followed by the end alone.
    integers = spelling_of(Integers("age", 0, 10))
    assert integers.extend(np.array([0, 1], np.uint64), 1, 4).tolist() == list(range(11))
    assert spelling_of(Bits("flags", 64)) == Spelling(1 << 64, 2, 64)
    with pytest.raises(InvalidSpec, match="must be text, bits or integers"):
        spelling_of(Categories("pet", ("cat", "dog")))
