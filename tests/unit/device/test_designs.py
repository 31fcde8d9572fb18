"""Block designs: built as published, certified exactly, planned as computed independently."""

import hashlib
import json
import math
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import pytest

from tacit.device.kinds.designs import (
    MAX_MODULUS,
    Cyclic,
    average_error,
    best_block_size,
    best_cyclic,
    block_rates,
    certify,
    paley,
    shape,
    singer,
)
from tacit.device.numbers.fields import (
    factor,
    is_prime,
    next_prime,
    prime_power,
    prime_powers,
    primitive_polynomial,
)
from tacit.errors import InvalidSpec
from tacit.oracles.certify import block_indicator, certify_cyclic

VECTORS: dict[str, list[dict[str, Any]]] = json.loads(
    (Path(__file__).parents[3] / "spec" / "vectors" / "designs.json").read_text(encoding="utf-8")
)

POLYNOMIALS = {
    (2, 4): (1, 1, 0, 0),
    (2, 8): (1, 0, 1, 1, 1, 0, 0, 0),
    (3, 3): (2, 1, 0),
    (3, 5): (2, 1, 0, 0, 0),
    (3, 10): (1, 1, 0, 1, 0, 0, 0, 0, 0, 0),
    (5, 3): (2, 1, 0),
    (5, 4): (2, 1, 1, 0),
    (7, 3): (5, 1, 0),
    (7, 4): (4, 1, 1, 0),
    (11, 3): (7, 1, 0),
    (13, 3): (6, 2, 0),
    (19, 3): (15, 1, 0),
    (23, 3): (10, 1, 0),
    (53, 3): (8, 1, 0),
}
PRIME_POWER_DESIGNS = [
    *((4, 3), (4, 4), (4, 7), (8, 3), (8, 4), (9, 3), (9, 4)),
    *((16, 3), (25, 3), (27, 3), (49, 3)),
]
PALEY_MODULI = [m for m in range(7, 1088) if m % 4 == 3 and is_prime(m)]

# epsilon, domain size, (family, q, t), average error relative to the best subset selection, points.
PLANNED = [
    (0.5, 4, ("grr", 4, 1), 1.027, 4),
    (0.5, 16, ("paley", 19, 1), 1.062, 19),
    (0.5, 64, ("paley", 67, 1), 1.058, 67),
    (0.5, 256, ("singer", 3, 6), 1.012, 364),
    (0.5, 1024, ("singer", 3, 7), 1.010, 1093),
    (0.5, 4096, ("singer", 3, 9), 1.010, 9841),
    (0.5, 65536, ("singer", 3, 11), 1.009, 88573),
    (0.5, 1048576, ("singer", 3, 14), 1.009, 2391484),
    (1, 4, ("grr", 4, 1), 1.000, 4),
    (1, 16, ("singer", 4, 3), 1.047, 21),
    (1, 64, ("singer", 4, 4), 1.014, 85),
    (1, 256, ("singer", 4, 5), 1.005, 341),
    (1, 1024, ("singer", 3, 7), 1.024, 1093),
    (1, 4096, ("singer", 4, 7), 1.003, 5461),
    (1, 65536, ("singer", 4, 9), 1.002, 87381),
    (1, 1048576, ("singer", 4, 11), 1.002, 1398101),
    (2, 4, ("grr", 4, 1), 1.000, 4),
    (2, 16, ("grr", 16, 1), 1.143, 16),
    (2, 64, ("singer", 8, 3), 1.009, 73),
    (2, 256, ("singer", 7, 4), 1.017, 400),
    (2, 1024, ("singer", 11, 4), 1.025, 1464),
    (2, 4096, ("singer", 8, 5), 1.001, 4681),
    (2, 65536, ("singer", 9, 6), 1.002, 66430),
    (2, 1048576, ("singer", 11, 7), 1.023, 1948717),
    (4, 4, ("grr", 4, 1), 1.000, 4),
    (4, 16, ("grr", 16, 1), 1.000, 16),
    (4, 64, ("grr", 64, 1), 1.000, 64),
    (4, 256, ("singer", 37, 3), 1.124, 1407),
    (4, 1024, ("singer", 41, 3), 1.034, 1723),
    (4, 4096, ("singer", 64, 3), 1.005, 4161),
    (4, 65536, ("singer", 41, 4), 1.024, 70644),
    (4, 1048576, ("singer", 41, 5), 1.024, 2896405),
]


def error_of(m: int, k: int, size: int, epsilon: float) -> float:
    return average_error(*block_rates(m, k, math.exp(epsilon)), size)


def flip(design: Cyclic, *points: int) -> Cyclic:
    block = bytearray(design.block)
    for point in points:
        block[point >> 3] ^= 1 << (point & 7)
    return replace(design, block=bytes(block))


def certify_by_fft(design: Cyclic) -> None:
    certify_cyclic(block_indicator(design.block, design.modulus), design.k, design.lam)


def test_primes_agree_with_a_sieve():
    sieve = [n for n in range(2, 5000) if all(n % d for d in range(2, math.isqrt(n) + 1))]
    assert [n for n in range(-3, 5000) if is_prime(n)] == sieve
    for low, high in pairwise(sieve):
        assert next_prime(low + 1) == high


@pytest.mark.parametrize(
    "n",
    [
        3215031751,  # strong pseudoprime to the bases 2, 3, 5, 7
        3825123056546413051,  # strong pseudoprime to the first nine primes
        561,  # Carmichael number
        65537**2,
    ],
)
def test_pseudoprimes_are_not_prime(n: int):
    assert not is_prime(n)


def test_large_primes_are_prime():
    assert is_prime(2**61 - 1)
    assert next_prime(2**61 - 2) == 2**61 - 1
    with pytest.raises(InvalidSpec, match="must be below"):
        is_prime(2**89 - 1)


@pytest.mark.parametrize("n", [1, 2, 12, 97, 2**26, 3**10 - 1, 66904221, 67108859])
def test_factors_are_prime_and_multiply_back(n: int):
    factors = factor(n)
    assert math.prod(p**e for p, e in factors.items()) == n
    assert all(is_prime(p) for p in factors)


def test_prime_powers_are_listed_once_each_and_in_order():
    assert prime_powers(32) == [2, 3, 4, 5, 7, 8, 9, 11, 13, 16, 17, 19, 23, 25, 27, 29, 31, 32]
    assert prime_powers(1) == []
    assert prime_power(49) == (7, 2)
    assert prime_power(2) == (2, 1)


@pytest.mark.parametrize(("design", "expected"), POLYNOMIALS.items())
def test_the_first_primitive_polynomial_is_published(design: tuple[int, int], expected: tuple[int, ...]):
    q, t = design
    assert primitive_polynomial(q, t, q) == expected


@pytest.mark.parametrize(
    ("q", "t", "points"),
    [
        (3, 3, (0, 1, 3, 9)),
        (2, 4, (0, 1, 2, 4, 5, 8, 10)),
        (5, 3, (0, 1, 3, 8, 12, 18)),
        (7, 3, (0, 1, 3, 13, 32, 36, 43, 52)),
    ],
)
def test_small_singer_designs_have_the_published_points(q: int, t: int, points: tuple[int, ...]):
    design = singer(q, t)
    assert design.points() == points
    assert [i for i in range(design.modulus) if i in design] == list(points)


def recurrence_by_definition(p: int, coefficients: tuple[int, ...], length: int) -> list[int]:
    terms = [0] * (len(coefficients) - 1) + [1]
    while len(terms) < length:
        recent = terms[-len(coefficients) :]
        terms.append(sum(c * s for c, s in zip(coefficients, recent, strict=True)) % p)
    return terms[:length]


@pytest.mark.parametrize(("q", "t"), [(2, 8), (3, 10), (5, 4), (13, 3), (53, 3)])
def test_a_prime_design_is_the_zeros_of_its_recurrence(q: int, t: int):
    design = singer(q, t)
    terms = recurrence_by_definition(q, primitive_polynomial(q, t, q), design.modulus)
    assert design.points() == tuple(i for i, term in enumerate(terms) if term == 0)


def zeros_of_the_relative_trace(q: int, t: int) -> set[int]:
    p, e = prime_power(q)
    coefficients = primitive_polynomial(p, e * t, q)
    powers = [[1] + [0] * (e * t - 1)]
    for _ in range(q**t - 2):
        lead, shifted = powers[-1][-1], [0, *powers[-1][:-1]]
        powers.append([(a + lead * c) % p for a, c in zip(shifted, coefficients, strict=True)])
    zeros: set[int] = set()
    for i in range(shape("singer", q, t)[0]):
        conjugates = [powers[i * q**j % (q**t - 1)] for j in range(t)]
        if all(sum(column) % p == 0 for column in zip(*conjugates, strict=True)):
            zeros.add(i)
    return zeros


@pytest.mark.parametrize(("q", "t"), [(3, 3), (4, 3), (4, 4), (8, 3), (9, 3), (16, 3)])
def test_a_design_is_a_translate_of_the_zeros_of_the_relative_trace(q: int, t: int):
    design, zeros = singer(q, t), zeros_of_the_relative_trace(q, t)
    points, m = set(design.points()), design.modulus
    assert any({(i + shift) % m for i in zeros} == points for shift in range(m))


@pytest.mark.parametrize(("q", "t"), [*POLYNOMIALS, (2, 3), (2, 14), *PRIME_POWER_DESIGNS])
def test_singer_designs_are_certified(q: int, t: int):
    design = singer(q, t)
    assert (design.modulus, design.k, design.lam) == shape("singer", q, t)
    certify(design)
    certify_by_fft(design)


def test_paley_designs_are_certified():
    for m in PALEY_MODULI:
        design = paley(m)
        assert set(design.points()) == {i * i % m for i in range(1, m)}
        certify(design)
        certify_by_fft(design)


@pytest.mark.parametrize("design", [singer(53, 4), singer(9, 6), singer(4, 9), paley(65539)], ids=repr)
def test_large_designs_are_certified_by_transform(design: Cyclic):
    certify_by_fft(design)


@pytest.mark.parametrize("check", [certify, certify_by_fft])
@pytest.mark.parametrize("design", [singer(3, 5), singer(4, 4), paley(67)], ids=repr)
def test_a_corrupted_block_is_rejected(check: Any, design: Cyclic):
    inside = design.points()
    outside = next(i for i in range(design.modulus) if i not in design)
    with pytest.raises(InvalidSpec, match="must have"):
        check(flip(design, inside[0]))
    with pytest.raises(InvalidSpec, match="must have"):
        check(flip(design, outside))
    for point in inside[:10]:
        with pytest.raises(InvalidSpec, match="shift"):
            check(flip(design, point, outside))


def test_a_bitmap_of_another_length_is_rejected():
    design = singer(3, 3)
    with pytest.raises(InvalidSpec, match="exactly 13 bits"):
        certify(flip(design, 13))
    with pytest.raises(InvalidSpec, match="exactly 13 bits"):
        certify(replace(design, block=design.block + b"\0"))


def test_an_indicator_that_counts_twice_is_rejected():
    indicator = block_indicator(singer(3, 3).block, 13)
    with pytest.raises(InvalidSpec, match="other than 0 and 1"):
        certify_cyclic(indicator * 2, 4, 1)


@pytest.mark.parametrize(
    ("q", "t"),
    [
        (6, 3),  # no field of six elements
        (1, 3),
        (0, 3),
        (-2, 3),
        (3, 2),  # a line: GRR
        (2, 27),  # too many points
        (2, 10**9),
        (8209, 3),
        (10**30, 3),
    ],
)
def test_singer_designs_that_cannot_exist_are_refused(q: int, t: int):
    with pytest.raises(InvalidSpec):
        singer(q, t)


@pytest.mark.parametrize("m", [-1, 0, 2, 5, 13, 15, 27, 2**31 - 1])
def test_paley_designs_that_cannot_exist_are_refused(m: int):
    with pytest.raises(InvalidSpec, match=f"m is {m},"):
        paley(m)


def test_numbers_without_meaning_are_refused():
    with pytest.raises(InvalidSpec):
        factor(0)
    for size in (1, MAX_MODULUS + 1):
        with pytest.raises(InvalidSpec, match=f"size is {size}"):
            best_cyclic(size, math.e)


@pytest.mark.parametrize(
    ("m", "k", "epsilon", "p", "q"),
    [
        (10, 3, 1, 0.5381015262, 0.2735442749),
        (13, 4, 1, 0.5471271402, 0.2877394050),
        (400, 57, 2, 0.5511506364, 0.1414758129),
        (11, 3, 1, 0.5047925400, 0.2495207460),
    ],
)
def test_block_rates_are_the_published_ones(m: int, k: int, epsilon: float, p: float, q: float):
    assert block_rates(m, k, math.exp(epsilon)) == pytest.approx((p, q), rel=1e-9)


def test_average_error_of_subset_selection_is_the_published_one():
    assert best_block_size(10, 10, math.e) == 3
    assert error_of(10, 3, 10, 1) == pytest.approx(2.910405516, rel=1e-9)
    # Warner's randomised response: E / (E - 1)^2.
    assert error_of(2, 1, 2, 1) == pytest.approx(math.e / (math.e - 1) ** 2, rel=1e-12)


@pytest.mark.parametrize("size", [2, 3, 4, 5, 8, 16, 24, 90, 114, 200, 256, 1024])
def test_the_best_block_size_is_the_best_of_all(size: int):
    for m, epsilon in product((size, next_prime(size)), (0.001, 0.1, 0.5, 1, 2, 3, 4, 6, 10, 32)):
        k = best_block_size(m, size, math.exp(epsilon))
        best = min(error_of(m, other, size, epsilon) for other in range(1, m))
        assert 1 <= k < m
        assert error_of(m, k, size, epsilon) <= best * (1 + 1e-9)


@pytest.mark.parametrize(
    ("epsilon", "largest"),
    [
        *((0.1, 3), (0.5, 3), (0.75, 4), (1, 5), (1.5, 7), (2, 11)),
        *((2.5, 18), (3, 29), (4, 78), (5, 211), (6, 572)),
    ],
)
def test_randomised_response_is_optimal_up_to_the_published_size(epsilon: float, largest: int):
    odds = math.exp(epsilon)
    assert best_block_size(largest, largest, odds) == 1
    assert best_block_size(largest + 1, largest + 1, odds) > 1


@pytest.mark.parametrize(("epsilon", "size", "choice", "loss", "points"), PLANNED)
def test_the_planned_design_is_the_published_one(
    epsilon: float, size: int, choice: tuple[Any, int, int], loss: float, points: int
):
    odds = math.exp(epsilon)
    assert best_cyclic(size, odds) == choice
    m, k, _ = shape(*choice)
    assert m == points
    optimum = error_of(size, best_block_size(size, size, odds), size, epsilon)
    assert error_of(m, k, size, epsilon) / optimum == pytest.approx(loss, rel=2e-3)


@pytest.mark.parametrize("size", [2, 3, 7, 100, 4097, 2**20, MAX_MODULUS])
@pytest.mark.parametrize("epsilon", [0.001, 1, 8, 32])
def test_planning_works_at_the_edges(size: int, epsilon: float):
    m, k, _ = shape(*best_cyclic(size, math.exp(epsilon)))
    assert size <= m <= MAX_MODULUS
    assert 1 <= k < m


@pytest.mark.slow_cases("singer-4-11", "singer-11-7")
@pytest.mark.parametrize("case", VECTORS["designs"], ids=lambda case: f"{case['family']}-{case['q']}-{case['t']}")
def test_designs_are_the_golden_vectors(case: dict[str, Any]):
    design = paley(case["q"]) if case["family"] == "paley" else singer(case["q"], case["t"])
    assert (design.modulus, design.k, design.lam) == (case["modulus"], case["k"], case["lambda"])
    assert hashlib.sha256(design.block).hexdigest() == case["sha256"]


def test_next_primes_are_the_golden_vectors():
    for case in VECTORS["next_prime"]:
        assert next_prime(case["from"]) == case["prime"]
