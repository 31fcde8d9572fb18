"""What the fuzzers share: dice with a known seed, damaged batches, and a second reading of every batch to compare with.

More inputs on demand: TACIT_FUZZ_INPUTS (per collection and form) and TACIT_FUZZ_SEED in the environment.
"""

import json
import os
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

SEED = int(os.environ.get("TACIT_FUZZ_SEED", "20260101"))
INPUTS = int(os.environ.get("TACIT_FUZZ_INPUTS", "1000"))

Report = tuple[int, bytes]
"""Member and payload."""


class Dice:
    """Small random numbers, drawn in blocks: a generator that is asked one by one would be most of the test."""

    def __init__(self, *seed: int) -> None:
        self._rng, self._left = np.random.default_rng([SEED, *seed]), list[int]()

    def below(self, n: int) -> int:
        if not self._left:
            self._left = self._rng.integers(0, 1 << 62, 1 << 14).tolist()
        return self._left.pop() % n

    def one_of(self, items: Any) -> Any:
        return items[self.below(len(items))]

    def bytes(self, size: int) -> bytes:
        return bytes(self.below(256) for _ in range(size))


def flip(data: bytes, dice: Dice) -> bytes:
    at = dice.below(len(data) or 1)
    return data[:at] + bytes([data[at] ^ 1 << dice.below(8)]) + data[at + 1 :] if data else data


def cut(data: bytes, dice: Dice) -> bytes:
    return data[: dice.below(len(data) + 1)]


def grow(data: bytes, dice: Dice) -> bytes:
    at = dice.below(len(data) + 1)
    return data[:at] + dice.bytes(1 + dice.below(12)) + data[at:]


def repeat(data: bytes, dice: Dice) -> bytes:
    """A stretch of it twice."""
    at = dice.below(len(data) + 1)
    return data[:at] + data[at // 2 :]


def lie(data: bytes, dice: Dice) -> bytes:
    """Another number where a block states its member or count, or anywhere else."""
    at = 52 + 4 * dice.below(3) if dice.below(2) else dice.below(len(data) + 1)
    number = dice.one_of([0, 1, 2, 3, 255, 256, 1 << 16, (1 << 31) - 1, 1 << 31, (1 << 32) - 1])
    return data[:at] + struct.pack("<I", number) + data[at + 4 :]


def other_digest(data: bytes, dice: Dice) -> bytes:
    return data[:4] + dice.one_of([bytes(32), b"\xff" * 32, dice.bytes(32)]) + data[36:]


def swap(data: bytes, dice: Dice) -> bytes:
    """Two stretches change places."""
    a, b = sorted((dice.below(len(data) + 1), dice.below(len(data) + 1)))
    return data[b:] + data[a:b] + data[:a]


DAMAGE: tuple[Callable[[bytes, Dice], bytes], ...] = (flip, cut, grow, repeat, lie, other_digest, swap, flip, lie)


def damaged(data: bytes, dice: Dice) -> bytes:
    """A batch with up to three faults; one in eight has none."""
    for _ in range(dice.below(8) and 1 + dice.below(3)):
        data = dice.one_of(DAMAGE)(data, dice)
    return data


TOKENS: tuple[bytes, ...] = (
    *(b"NaN", b"-Infinity", b"1e999", b"null", b"true", b"-1", b"0.0", b"1e0", b"-0", b"0x1", b"9" * 19, b"9" * 30),
    *(b"9" * 400, b"18446744073709551615", b"1" * 5000, b'""', b'"\\ud800"', b'"\\u0000"', b'"\xff\xfe"', b'"ABCD"'),
    *(b'"\xed\xa0\x80"', b'"00"', b"[]", b"{}", b"[[]]", b"[" * 1000, b"[" * 500 + b"]" * 500, b'{"a":' * 500),
    *(b"\xef\xbb\xbf", b"/**/", b"'", b",", b"\x00", b'"batch":"00",', b'"reports":[],', b'"member":1,'),
    b'"collection":null,',
)


def replace_token(data: bytes, dice: Dice) -> bytes:
    """Something else in the place of a value, or between two."""
    places = [i for i, byte in enumerate(data[:400]) if byte in b':,[{}]"']
    at = dice.one_of(places) + 1 if places else 0
    return data[:at] + dice.one_of(TOKENS) + data[at + dice.below(40) :]


def insert_token(data: bytes, dice: Dice) -> bytes:
    places = [i for i, byte in enumerate(data[:400]) if byte in b"{,["]
    at = dice.one_of(places) + 1 if places else 0
    return data[:at] + dice.one_of(TOKENS) + data[at:]


JSON_DAMAGE = (flip, cut, grow, repeat, replace_token, replace_token, insert_token)


def twin(collection: str, batch: bytes, reports: list[Report], dice: Dice) -> bytes:
    """The JSON form, at times with odd members, spaces, further keys or other digits."""
    items: list[dict[str, Any]] = [{"member": member, "report": payload.hex()} for member, payload in reports]
    fields: dict[str, Any] = {"collection": collection, "batch": batch.hex(), "reports": items}
    how = dice.below(12)
    if how == 0:
        del dice.one_of(items)[dice.one_of(["member", "report"])]
    elif how == 1:
        fields[dice.one_of(["x", "", "Reports", "batch "])] = 1
    elif how == 2:
        key = dice.one_of(["collection", "batch"])
        fields[key] = dice.one_of(
            [fields[key].upper(), fields[key][:-1], fields[key] + " ", int(fields[key], 16), None]
        )
    elif how == 3:
        dice.one_of(items)["member"] = dice.one_of([-1, 7, 1 << 64, True, "0", 0.0, None])
    elif how == 4:
        dice.one_of(items)["report"] += dice.one_of(["0", " ", "zz", "\u0660\u0661"])
    elif how == 5:
        dice.one_of(items)["report"] += "00"
    elif how == 6:
        fields["collection"] = dice.bytes(32).hex()
    return json.dumps(fields, indent=dice.one_of([None, None, 1])).encode()


def damaged_twin(data: bytes, dice: Dice) -> bytes:
    """A JSON batch with up to two more faults; every other one has none."""
    for _ in range(dice.below(2) and 1 + dice.below(2)):
        data = dice.one_of(JSON_DAMAGE)(data, dice)
    return data


def read_binary(data: bytes, widths: tuple[int, ...]) -> tuple[str, list[Report]] | None:
    """The specification of a binary batch, read once more: collection and reports, or None if it is not one."""
    if len(data) < 52 or not data.startswith(b"TCB1"):
        return None
    reports: list[Report] = []
    rest = data[52:]
    while rest:
        if len(rest) < 8:
            return None
        (member, count), rest = struct.unpack("<II", rest[:8]), rest[8:]
        if member >= len(widths) or not count or len(rest) < count * widths[member]:
            return None
        block, rest = rest[: count * widths[member]], rest[count * widths[member] :]
        reports += [(member, block[i : i + widths[member]]) for i in range(0, len(block), widths[member])]
    return data[4:36].hex(), reports


def _no_constant(text: str) -> Any:
    raise ValueError(text)


def read_twin(data: bytes, widths: tuple[int, ...]) -> tuple[str, list[Report]] | None:
    """The specification of the JSON form, read by another parser."""
    try:
        value = json.loads(data.decode(), parse_constant=_no_constant)
        assert set(value) == {"collection", "batch", "reports"}
        assert type(value["reports"]) is list
        for key, digits in (("collection", 64), ("batch", 32)):
            assert type(value[key]) is str
            assert len(value[key]) == digits
            assert set(value[key]) <= set("0123456789abcdef")
        return value["collection"], [_read_report(item, widths) for item in value["reports"]]
    except (ValueError, AssertionError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def _read_report(item: Any, widths: tuple[int, ...]) -> Report:
    assert set(item) <= {"member", "report"}
    member, text = item.get("member", 0), item["report"]
    assert type(member) is int
    assert 0 <= member < len(widths)
    assert len(text) == 2 * widths[member]
    assert set(text) <= set("0123456789abcdef")
    return member, bytes.fromhex(text)
