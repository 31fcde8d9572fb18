"""What all kinds stand on: odds, canonical JSON, hashing and replayed coins."""

from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import Any

from tacit.device.numbers.budget import as_budget
from tacit.device.numbers.canonical import canonical, digest
from tacit.device.numbers.coins import ReplayCoins
from tacit.device.numbers.hashing import bucket, hash32, text_id


def _numbers(label: str) -> Iterator[int]:
    """An endless stream of 64-bit numbers that is the same everywhere."""
    coins = ReplayCoins(label.encode())
    while True:
        yield coins.word()


def _decimal(number: int) -> str:
    """A decimal text between 0.001 and 32, with 0 to 18 decimals."""
    decimals = number % 19
    scaled = number // 19 % (31 * 10**decimals) + 10**decimals // 1000 + 1
    text = f"{scaled:0{decimals + 1}d}"
    return text[: len(text) - decimals] + ("." + text[len(text) - decimals :] if decimals else "")


def epsilons() -> list[Any]:
    """One thousand budgets: edges, decimals of every length, shares, and amplified ones."""
    numbers = _numbers("odds")
    budgets: list[Any] = ["0.001", "0.001000000000000001", "31.999999999999999999", "32"]
    budgets += [f"{i / 10:.1f}" for i in range(1, 101)]
    budgets += [str(2**i) for i in range(5)]
    budgets += [{"of": "1", "share": f"1/{i}"} for i in range(1, 101)]
    budgets += [{"of": "32", "share": "1/999999999"}, {"of": "0.001", "share": "999999998/999999999"}]
    for _ in range(150):
        whole = next(numbers) % 999 + 1
        budgets.append({"of": _decimal(next(numbers)), "share": f"{next(numbers) % whole + 1}/{whole}"})
    budgets += [{"of": _decimal(next(numbers)), "sampled": next(numbers) % (1 << 20) + 1} for _ in range(98)]
    budgets += [{"of": "1", "sampled": 1}, {"of": "32", "sampled": 1 << 20}]
    return budgets + [_decimal(next(numbers)) for _ in range(1000 - len(budgets))]


BAD_EPSILONS: list[Any] = [
    *("", " ", "0", "0.0", "0.0009", "0.000999999999999999", "32.000000000000000001", "33", "1000"),
    *("-1", "+1", "1e0", ".5", "1.", "1,5", "0x1", "1_0", "nan", "inf", "1.0000000000000000001", "\u0661"),
    *(1.5, 1, None, True, [], ["1"], {}, {"of": "1"}, {"share": "1/2"}),
    *({"of": "1", "share": share} for share in ("4/3", "0/1", "1/0", "1", "0.5", "1/1000000000", "-1/2", "01/2", 0.5)),
    *({"of": "1", "sampled": sampled} for sampled in (0, -1, (1 << 20) + 1, 1.5, "2", True)),
    *(
        {"of": 1, "share": "1/2"},
        {"of": {"of": "1", "share": "1/2"}, "share": "1/2"},
        {"of": "0", "sampled": 2},
    ),
    {"of": "1", "share": "1/2", "sampled": 2},
]

SPELLINGS: list[Any] = [
    *("1.0", "01", "001.500", "0.10", "32.0", "10", "010.010", " 1 "),
    *({"of": "1.0", "share": "2/6"}, {"of": "2", "share": "7/7"}, {"of": "02", "sampled": 3}),
]


def odds_file() -> dict[str, Any]:
    """Odds of budgets, the canonical form of other spellings, and what is refused."""
    return {
        "odds": [{"epsilon": wire, "odds": str(as_budget(wire).odds)} for wire in epsilons()],
        "spellings": [{"given": wire, "canonical": as_budget(wire).to_spec()} for wire in SPELLINGS],
        "bad": BAD_EPSILONS,
    }


DOCUMENTS: list[Any] = [
    *(None, True, False, 0, -1, (1 << 53) - 1, 1 - (1 << 53), "", [], {}),
    *("plain", 'quote " backslash \\ slash /', "\b\f\n\r\t", "\0\1\x1b\x1f\x7f\x80\x9f"),
    *(
        "\u2028\u2029",
        "\ufeff",
        "\u00e9",
        "Zo\u00eb",
        "\ud55c\uae00",
        "\U0001f600",
        "\U0001f469\u200d\U0001f52c",
    ),
    *("\U0010ffff", "\ufffd", "\u0661", "<script>&amp;"),
    [1, [2, [3, []]], {"a": [{}]}],
    {"b": 1, "a": 2, "_": 3, "ab": 4, "a_b": 5, "b_a": None},
    {"kind": "grr", "size": 10, "epsilon": {"of": "1", "share": "1/3"}},
    {"labels": ["caf\u00e9", "\U0001f44d", "na\u00efve"], "text": "\u2028", "proto": {"__proto__": 1}},
]

BAD_DOCUMENTS: list[Any] = [
    *(0.5, -1.5, 1e-9, 1 << 53, -(1 << 53), 10**30),
    *("\ud800", "a\udc00", "\udc00\ud800", "e\u0301", "\u1112\u1161\u11ab", "\u212b"),
    *({"A": 1}, {"a b": 1}, {"": 1}, {"a1": 1}, {"\u00e9": 1}, {"a-b": 1}, {"a\n": 1}),
    *([0.5], {"a": {"b": [1, 0.5]}}, {"a": "\ud83d"}),
]


def canonical_file() -> dict[str, Any]:
    """Canonical bytes and digests, and documents that have none."""
    return {
        "cases": [{"value": v, "canonical": canonical(v).hex(), "digest": digest(v)} for v in DOCUMENTS],
        "bad": BAD_DOCUMENTS,
    }


def hashing_file() -> dict[str, Any]:
    """Hashes, buckets and ids of texts."""
    edges = (0, 1, (1 << 32) - 1, 1 << 32, (1 << 53) - 1, 1 << 53, 1 << 63, (1 << 64) - 1)
    numbers = _numbers("hashing")
    pairs = [(seed, value) for seed in (0, 1, (1 << 32) - 1) for value in edges]
    pairs += [(next(numbers) >> 32, next(numbers) >> next(numbers) % 64) for _ in range(100)]
    buckets = [(seed, value, g) for seed, value in pairs[-20:] for g in (2, 3, 257, 1 << 16)]
    texts = ("", "caf\u00e9", "cafe\u0301", "\U0001f600", "a\0b", "x" * 200)
    return {
        "hash32": [{"seed": s, "value": str(v), "hash": hash32(s, v)} for s, v in pairs],
        "bucket": [{"seed": s, "value": str(v), "buckets": g, "bucket": bucket(s, v, g)} for s, v, g in buckets],
        "text_id": [{"key": k, "text": t, "id": str(text_id(k, t))} for k in ("", "k\u00f6y") for t in texts],
    }


def _coins_case(seed: bytes) -> dict[str, Any]:
    words, draws = ReplayCoins(seed), ReplayCoins(seed)
    moduli = (1, 2, 3, 1000, (1 << 32) - 1, 1 << 32, (1 << 53) - 1, (1 << 64) - 1)
    return {
        "seed": seed.hex(),
        "words": [str(words.word()) for _ in range(20)],
        "uniform": [{"m": str(m), "value": str(draws.uniform(m))} for m in moduli],
    }


def coins_file() -> dict[str, Any]:
    """Replayed words, and uniform integers made of them."""
    seeds = (b"", b"\0", b"tacit", bytes(range(32)), sha256(b"long").digest() * 4)
    return {"cases": [_coins_case(seed) for seed in seeds]}


FILES: dict[str, Callable[[], dict[str, Any]]] = {
    "odds.json": odds_file,
    "canonical.json": canonical_file,
    "hashing.json": hashing_file,
    "coins.json": coins_file,
}
