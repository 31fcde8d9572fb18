"""Four numbers per mechanism: exactly those that its device samples."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from tests.unit.shuffle.enumeration import table

import tacit
from tacit.catalog import CATALOG
from tacit.errors import InvalidSpec
from tacit.shuffle.accounting.cells import Cells, cells_of, hashed_cells
from tacit.shuffle.accounting.fakes import counted_fakes, drawn_fakes, spoiled_share
from tacit.testing.examples import example

WITH_CELLS = {"grr", "sue", "oue", "rue", "the", "blh", "olh", "flh", "rmp", "hrr", "hrr_t", "hrr_subspace",
              "hrr_signed", "ss", "cbr", "abr", "brappor"}  # fmt: skip


@pytest.mark.parametrize("kind", [entry.kind for entry in CATALOG])
def test_cells_have_the_realised_odds(kind: str) -> None:
    mechanism = example(kind, "1.5")
    cells = cells_of(mechanism)
    assert (cells is not None) == (kind in WITH_CELLS)
    if cells is not None:
        assert cells.x == mechanism.realised_odds()
        assert cells.a * cells.x + cells.a + cells.b * cells.x + cells.z == 1


@pytest.mark.parametrize(
    "mechanism",
    [tacit.GRR(size=5, epsilon="2"), tacit.HRR(size=8, epsilon="2"), tacit.HRR(size=8, epsilon="2", skip_zero=False),
     tacit.OUE(size=4, epsilon="2"), tacit.SUE(size=4, epsilon="2"), tacit.RUE(size=4, epsilon="2"),
     tacit.SS(size=6, epsilon="2", subset=2), tacit.CBR(size=7, epsilon="2", family="singer", order=2, dimension=3),
     tacit.ABR(size=7, epsilon="2", block=3)],
    ids=lambda m: m.kind,
)  # fmt: skip
def test_cells_are_the_classes_of_reports(mechanism: tacit.GRR) -> None:
    """Classes by likelihood: high at v alone, at w alone, at both, at neither; from the table of all reports."""
    cells, rows = cells_of(mechanism), table(mechanism)
    assert cells is not None
    v, w = rows[0], rows[3]
    x = float(cells.x)
    only, other = np.isclose(v, x * w, rtol=1e-9), np.isclose(w, x * v, rtol=1e-9)
    assert v[only].sum() == pytest.approx(float(cells.a * cells.x), rel=1e-9)
    assert v[other].sum() == pytest.approx(float(cells.a), rel=1e-9)
    assert v[~only & ~other].sum() == pytest.approx(float(cells.b * cells.x + cells.z), rel=1e-9)


def test_an_ideal_hash_supports_two_values_independently() -> None:
    for mechanism in (tacit.OLH(size=64, epsilon="2"), tacit.BLH(size=64, epsilon="2"), tacit.OUE(size=8, epsilon="2")):
        cells = cells_of(mechanism, hashing="pairwise")
        assert cells is not None and cells.independent
    for mechanism in (
        tacit.OLH(size=64, epsilon="2"),
        tacit.GRR(size=64, epsilon="2"),
        tacit.HRR(size=64, epsilon="2"),
    ):
        cells = cells_of(mechanism)
        assert cells is not None and not cells.independent


def test_collisions_over_all_functions_are_those_of_an_ideal_hash() -> None:
    functions = list(product(range(3), repeat=4))
    rate = Fraction(sum(f[0] == f[1] for f in functions), len(functions))
    assert rate == Fraction(1, 3)
    cells = cells_of(tacit.OLH(size=4, epsilon="1", buckets=3), hashing="pairwise")
    assert cells is not None and cells == hashed_cells(cells.a / (1 - rate), 3, rate)


def test_laws_that_do_not_sum_to_one_are_refused() -> None:
    good = hashed_cells(Fraction(1, 6), 4, Fraction(1, 4))
    with pytest.raises(InvalidSpec, match="do not sum to one"):
        Cells(good.x, good.a, good.b, good.z + Fraction(1, 10**9))
    with pytest.raises(InvalidSpec, match="must be above 1"):
        Cells(Fraction(1), Fraction(1, 4), Fraction(1, 4), Fraction(1, 4))


def test_nothing_is_moved_that_is_not_there() -> None:
    cells = hashed_cells(Fraction(1, 6), 4, Fraction(1, 4))
    assert cells.disjoint is not None and cells.disjoint.b == 0 and cells.disjoint.gamma == cells.gamma
    crowded = cells_of(tacit.SS(size=8, epsilon="0.1", subset=6))
    assert crowded is not None and crowded.disjoint is None


# Fakes.


def test_fakes_that_count_are_never_more_than_their_share() -> None:
    hashed, direct = tacit.OLH(size=1024, epsilon="6"), tacit.GRR(size=1024, epsilon="6")
    assert spoiled_share(hashed) == hashed.g / 2**32 and spoiled_share(direct) == 1024 / 2**64
    for drawn in (0, 1, 10, 5_000, 10**6, 10**8):
        for mechanism in (hashed, direct):
            counted = counted_fakes(mechanism, drawn)
            # The floor of the expected number is the most that may be counted; a little less makes it almost certain.
            assert counted <= int(drawn * (1 - spoiled_share(mechanism)))
            assert counted >= 0.999_99 * drawn - 40
            assert counted_fakes(mechanism, drawn_fakes(mechanism, counted)) >= counted


def test_uniform_words_are_no_reports_of_other_kinds() -> None:
    with pytest.raises(InvalidSpec, match="oue: uniform words are no reports"):
        counted_fakes(tacit.OUE(size=4, epsilon="1"), 10)
    with pytest.raises(InvalidSpec, match="at least 0"):
        counted_fakes(tacit.GRR(size=4, epsilon="1"), -1)
