"""The task marginals: what is planned, what is refused, and what the queries make of exact tables."""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tacit.core.compose import AllOf, OneOf
from tacit.device.domains.domain import Booleans, Categories, Ordered
from tacit.device.domains.reals import Integers
from tacit.device.families.coefficients import Coefficients
from tacit.device.families.views import Views
from tacit.device.numbers.budget import Epsilon
from tacit.errors import InvalidSpec
from tacit.oracles.grr import GRR
from tacit.simulate.marginals import simulate_records, taxi_like
from tacit.tasks.marginals.covering import covers
from tacit.tasks.marginals.joint import JOINT
from tacit.tasks.marginals.marginals import Table
from tacit.tasks.marginals.methods import ask, make_method
from tacit.tasks.marginals.plan import choose_marginals
from tacit.tasks.marginals.solve import solve_marginals
from tacit.tasks.marginals.sources import polarised
from tacit.tasks.marginals.strength import cramers_v
from tacit.tasks.marginals.task import CARRIED, MARGINALS, plan_choice, solved
from tacit.tasks.marginals.words import association_words, pairs_words, table_words, tree_words
from tacit.tasks.memo import Memo
from tacit.tasks.task import JointQuestions, QuestionTally, find_query

I64 = npt.NDArray[np.int64]
BINARY = JointQuestions(tuple("abcdefgh"), tuple(Booleans(name) for name in "abcdefgh"))


def mixed() -> JointQuestions:
    domains = (Booleans("smoker"), Ordered("age", ("young", "middle", "old")), Integers("rooms", 1, 4))
    return JointQuestions(("smoker", "age", "rooms"), domains)


def records(n: int, seed: int = 1) -> I64:
    """Smoking rises with age; rooms are drawn on their own."""
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 3, n)
    return np.stack([rng.random(n) < 0.2 + 0.25 * age, age, rng.integers(0, 4, n)], axis=1).astype(np.int64)


def answered(asked: JointQuestions, rows: I64, epsilon: str = "2", k: int = 2) -> QuestionTally:
    mechanism = MARGINALS.plan(asked, Epsilon(epsilon), len(rows), k)
    tally = simulate_records(mechanism, rows, np.random.default_rng(2))
    return QuestionTally(mechanism, tally, len(rows))


def run(asked: JointQuestions, part: QuestionTally, query: str, level: float = 0.95, **given: str) -> dict[str, Any]:
    return find_query(JOINT, query, given, "joint").run(asked, part, given, level)


def test_the_pick_has_the_least_error_of_what_documents_carry() -> None:
    choice = plan_choice(BINARY.sizes, Epsilon("2"), 1 << 16, 3)
    assert (
        choice.pick.method == choose_marginals(sizes=BINARY.sizes, k=3, epsilon="2", n=1 << 16).pick.method == "marg_ps"
    )
    assert {option.method for option in choice.options} <= set(CARRIED)
    for option in choice.options:
        assert isinstance(option.mechanism, OneOf)
        assert isinstance(option.mechanism.family, (Views, Coefficients))


@pytest.mark.parametrize(("n", "k"), [(500, 2), (2_000, 1), (10_000, 2), (10**6, 2)])
def test_every_question_is_asked_and_pairs_as_soon_as_that_pays(n: int, k: int) -> None:
    choice = plan_choice((5, 4, 3) * 3, Epsilon("0.5"), n, k)
    mechanism = choice.pick.mechanism
    assert isinstance(mechanism, OneOf) and isinstance(mechanism.family, Views)
    assert covers(mechanism.family.views, 9, 1)
    assert covers(mechanism.family.views, 9, 2) == (n == 10**6) == (choice.pick.method != "one_way")
    asked = JointQuestions(
        tuple("abcdefghi"), tuple(Integers(x, 0, s - 1) for x, s in zip("abcdefghi", (5, 4, 3) * 3, strict=True))
    )
    told = MARGINALS.forecast(asked, mechanism, n, k)
    assert ("taken for independent" in told.why) == (k > 1 and n < 10**6)
    assert told.between is not None and told.between[0] <= told.standard_error <= told.between[1]


@pytest.mark.parametrize("n", [1_000, 10**6])
@pytest.mark.slow
def test_where_no_cover_is_found_every_question_is_asked_at_least(n: int) -> None:
    choice = plan_choice((2,) * 120, Epsilon("1"), n, 3)
    assert isinstance(choice.pick.mechanism, OneOf) and isinstance(choice.pick.mechanism.family, Views)
    assert covers(choice.pick.mechanism.family.views, 120, 1)
    asked = JointQuestions(tuple(f"q{i}" for i in range(120)), (Booleans("q"),) * 120)
    why = MARGINALS.forecast(asked, choice.pick.mechanism, n, 3).why
    assert ("taken for independent" if n == 1_000 else "tables of 3 are completed from those of two") in why


def wide(*sizes: int) -> JointQuestions:
    return JointQuestions(tuple(f"q{i}" for i in range(len(sizes))), tuple(Integers("q", 1, size) for size in sizes))


@pytest.mark.parametrize(
    ("asked", "k", "word"),
    [
        (wide(2, 1, 3), 2, "'q1' has one value, which says nothing; drop it"),
        (wide(2, 3), 3, "k is 3, must be from 1 to the 2 questions"),
        (wide(2, 3), 0, "k is 0"),
        (wide(2, 4096), 2, "ask it alone"),
        (wide(1024, 1024, 1024, 1024), 4, "1099511627776 cells, at most 2048 can be planned for; set k to 1"),
        (wide(40, 40, 2), 3, "set k to 2"),
    ],
)
def test_what_cannot_be_asked_is_refused_naming_what_can(asked: JointQuestions, k: int, word: str) -> None:
    with pytest.raises(InvalidSpec, match=word):
        MARGINALS.plan(asked, Epsilon("1"), 10_000, k)


def test_a_forecast_says_what_respondents_report() -> None:
    asked = mixed()
    mechanism = MARGINALS.plan(asked, Epsilon("2"), 20_000, 2)
    forecast = MARGINALS.forecast(asked, mechanism, 20_000, 2)
    assert forecast.of == "a cell of a table of 2 questions" and forecast.standard_error is not None
    assert "of the 3 questions, drawn by the device" in forecast.why
    assert [option["picked"] for option in forecast.options].count(True) == 1
    signs = make_method("inp_ht", ask(asked.sizes, 2, "2", 20_000))
    assert "one yes or no" in MARGINALS.forecast(asked, signs, 20_000, 2).why


def test_the_answer_to_one_question_is_its_own_table() -> None:
    """Nine shares within 6 standard errors, which fails by chance with probability below 2e-8."""
    asked, rows = mixed(), records(20_000)
    part = answered(asked, rows)
    for place, domain in enumerate(asked.domains):
        answer = MARGINALS.answer(domain, replace(part, place=place))
        truth = np.bincount(rows[:, place], minlength=domain.size) / len(rows)
        assert np.all(np.abs(answer.raw.value - truth) < 6 * answer.raw.standard_error)
        assert answer.consistent is not None and answer.consistent.value.sum() == pytest.approx(1)
        assert answer.unit == "share" and list(answer.raw.labels or []) == domain.all_labels()


def test_a_tally_is_solved_once_by_all_that_share_its_memo() -> None:
    part = answered(mixed(), records(500))
    first = solved(part)
    assert solved(replace(part, place=2)) is first
    assert solved(replace(part, memo=Memo())) is not first


def sources() -> list[tuple[str, Table]]:
    """Tables of two attributes from every kind of source, and one of views that leave an interaction out."""
    rows, rng = taxi_like(3_000, np.random.default_rng(3))[:, :4], np.random.default_rng(4)
    found: list[tuple[str, Table]] = []
    for name in ("calm", "inp_ht", "em", "marg_rr"):
        mechanism = make_method(name, ask((2,) * 4, 2, "2", len(rows)))
        tally = simulate_records(mechanism, rows, rng)
        found.append((name, solve_marginals(mechanism, tally).table([1, 3])))
    mechanism = make_method("calm", ask((2,) * 4, 2, "2", len(rows)))
    found.append(("left out", solve_marginals(mechanism, simulate_records(mechanism, rows, rng)).table([0, 1, 2])))
    whole = make_method("fc", ask((2,) * 4, 2, "2", len(rows)))
    counts = np.bincount(rows @ np.array([8, 4, 2, 1]), minlength=16)
    tally = whole.simulate_tally(counts, rng)
    return [*found, ("whole", solve_marginals(whole, tally, sizes=(2,) * 4).table([1, 3]))]


@pytest.mark.parametrize(("name", "table"), sources(), ids=[name for name, _ in sources()])
def test_covariances_are_those_that_variances_of_sums_imply(name: str, table: Table) -> None:
    del name
    cells = int(np.prod(table.shape))
    assert np.allclose(table.covariance(), polarised(table.raw.variance_of, cells), rtol=1e-9, atol=1e-12)
    assert np.allclose(np.diag(table.covariance()), table.raw.variance)


class Exact:
    """A source without noise."""

    def __init__(self, table: npt.NDArray[np.float64]) -> None:
        self.table, self.sizes = table, table.shape

    def raw(self, attributes: Any) -> Any:
        return self.table

    def linear(self, attributes: Any, rows: Any) -> Any:
        return np.zeros(len(rows))

    def covariance(self, attributes: Any) -> Any:
        return np.zeros((self.table.size,) * 2)

    def missing(self, attributes: Any) -> Any:
        return []

    def supposing(self, truth: Any) -> Any:
        return self

    def step(self, attributes: Any) -> float:
        return 0.0


def exact(cells: Any, **changes: Any) -> Table:
    table = np.array(cells, np.float64)
    made = Table((0, 1), table.shape, table, "covered", (), True, Exact(table), 1000, 1000.0)
    return replace(made, **changes)


def test_cramers_v_of_exact_tables() -> None:
    """Of two binary questions it is the correlation: (ad - bc)/sqrt(product of margins)."""
    assert cramers_v(exact([[0.25, 0.25], [0.25, 0.25]])) == 0
    assert cramers_v(exact([[0.5, 0.0], [0.0, 0.5]])) == pytest.approx(1)
    assert cramers_v(exact([[0.4, 0.1], [0.2, 0.3]])) == pytest.approx((0.12 - 0.02) / np.sqrt(0.5 * 0.5 * 0.6 * 0.4))
    assert cramers_v(exact(np.eye(3) / 3)) == pytest.approx(1)


@pytest.mark.slow
def test_cramers_v_takes_off_what_noise_alone_shows() -> None:
    """Two independent questions at epsilon 1, 200 collections of 2000: the mean square is near zero, not near V^2.

    Plugged in, V^2 is 2.3e-3 on average and its standard error 2.5e-4; corrected, half of it lies above zero. Less than
    half of the plugged-in mean is then 4 standard errors away.
    """
    rng = np.random.default_rng(5)
    squares: list[tuple[float, float]] = []
    for _ in range(200):
        counts = rng.multinomial(2_000, [0.25] * 4)
        mechanism = make_method("calm", ask((2, 2), 2, "1", 2_000))
        rows = np.repeat([[0, 0], [0, 1], [1, 0], [1, 1]], counts, axis=0)
        table = solve_marginals(mechanism, simulate_records(mechanism, rows, rng)).table([0, 1])
        p = table.projected
        plugged = float(np.sum((p - np.outer(p.sum(axis=1), p.sum(axis=0))) ** 2 * 4))
        squares.append((cramers_v(table) ** 2, plugged))
    corrected, plugged = np.mean(squares, axis=0)
    assert corrected < 0.6 * plugged


def test_sentences() -> None:
    asked, part = mixed(), answered(mixed(), records(20_000))
    told = run(asked, part, "association", attributes="age,smoker")
    assert told["words"].startswith("Age and smoker go together: if they were independent")
    found = solved(part).marginals
    assert table_words(["age", "smoker"], [], found.table([0, 1])).startswith("Age and smoker were asked together.")
    assert table_words(["age"], [], found.table([1])) == "The shares of age come with intervals for the noise."
    odd = exact([[0.5, 0.0], [0.0, 0.5]], agrees=False)
    assert table_words(["a", "b"], [], odd).endswith("the consistent table is a compromise.")
    assert table_words(["a", "b"], [["b"]], exact(odd.consistent, status="unseen")).startswith(
        "No report says anything"
    )
    assert table_words(["a", "b"], [], exact(odd.consistent, status="no_data")) == "There are no reports yet."
    many = [["a", str(i)] for i in range(5)]
    assert "; and more." in table_words(["a", "b"], many, exact(odd.consistent, status="reconstructed"))
    assert pairs_words(6, 2, 1).endswith("1 pairs were never asked together, so nothing is known of them.")
    assert "1 of 3 lines could be noise alone." in tree_words(3, 2, 0)
    from tacit.tasks.marginals.association import Verdict

    rare = association_words(["a_b", "c"], Verdict(9.0, 1, 0.003, False, "wald"), 0.95)
    assert "about 3 of 1000 collections" in rare and rare.endswith("only a hint.")


def test_queries_of_coefficients_and_of_all_questions() -> None:
    """Synthetic records need no views: tables of k questions, or the whole table, do as well."""
    asked, rows = mixed(), records(5_000)
    for name in ("inp_ht", "em"):
        mechanism = make_method(name, ask(asked.sizes, 2, "4", len(rows)))
        assert isinstance(mechanism, (OneOf, AllOf))
        part = QuestionTally(mechanism, simulate_records(mechanism, rows, np.random.default_rng(6)), len(rows))
        for model in ("tree", "views"):
            made = run(asked, part, "synthetic", rows="50", model=model)
            assert made["columns"] == list(asked.names) and len(made["rows"]) == 50
            assert {row[1] for row in made["rows"]} <= {"young", "middle", "old"}
        assert run(asked, part, "table", attributes="age,rooms")["coverage"] == "covered"


def test_a_pair_that_was_not_asked_has_no_verdict() -> None:
    asked = mixed()
    family = Views(sizes=asked.sizes, views=((0,), (1, 2)), mechanisms=tuple(
        GRR(size=size, epsilon="2") for size in (2, 12)
    ))  # fmt: skip
    mechanism = OneOf(family=family)
    part = QuestionTally(mechanism, simulate_records(mechanism, records(2_000), np.random.default_rng(7)), 2_000)
    told = run(asked, part, "association", attributes="smoker,age")
    assert told["coverage"] == "independent" and told["p_value"] is None and told["dependent"] is None
    assert "Nobody was asked about smoker and age together" in told["words"]
    pairs = run(asked, part, "associations")
    assert [pair["coverage"] for pair in pairs["pairs"]].count("covered") == 1
    assert "2 pairs were never asked together" in run(asked, part, "tree")["words"]


def test_all_pairs_of_very_many_questions_are_refused() -> None:
    asked = wide(*([2] * 65))
    part = answered(asked, np.zeros((2_000, 65), np.int64), k=1)
    for query in ("associations", "tree", "synthetic"):
        with pytest.raises(InvalidSpec, match="at most 64 questions"):
            run(asked, part, query)
    assert run(asked, part, "table", attributes="q64")["coverage"] == "covered"


def test_labels_without_an_order_have_no_correlation() -> None:
    asked = JointQuestions(("a", "b"), (Categories("a", ("x", "y")), Booleans("b")))
    rows = np.random.default_rng(8).integers(0, 2, (1_000, 2))
    told = run(asked, answered(asked, rows), "association", attributes="a,b")
    assert told["correlation"] is None and told["odds_ratio"] is not None and told["degrees"] == 1
