"""Plans by the published closed forms: inverses, fallbacks, choices and refusals."""

from math import exp, log, sqrt

import numpy as np
import pytest

from tacit.errors import InvalidSpec
from tacit.shuffle.mechanisms.closed_forms import (
    CentralTarget,
    appended_noise,
    blanket,
    decimal_down,
    decimal_up,
    unary_blanket,
)
from tacit.shuffle.mechanisms.messages import FragmentedUnary
from tacit.shuffle.mechanisms.planned import aue, sh_grr, sh_rap, sh_rap_r, solh

IPUMS, KOSARAK = (602_325, 915), (990_002, 42_178)


def target(epsilon: str, n: int = IPUMS[0], delta: float = 1e-9) -> CentralTarget:
    return CentralTarget(epsilon, delta, n)


@pytest.mark.parametrize("epsilon", ["0.1", "0.3", "0.7", "1"])
def test_inverses_put_into_the_published_forms_give_the_central_epsilon_back(epsilon: str):
    """Table 9.1 forwards: the planned local epsilon is amplified to the target, and to no more."""
    wanted = target(epsilon)
    n, two, four = wanted.n, log(2 / 1e-9), log(4 / 1e-9)
    hashed = solh(wanted, 10**6)
    forward = sqrt(14 * two * (exp(hashed.epsilon_local) + hashed.mechanism.buckets - 1) / (n - 1))
    assert forward == pytest.approx(float(epsilon), rel=1e-9) and forward <= float(epsilon) * (1 + 1e-12)
    unary = sh_rap(wanted, 100)
    assert 2 * sqrt(14 * four * (exp(unary.epsilon_local / 2) + 1) / (n - 1)) == pytest.approx(float(epsilon), rel=1e-9)
    removal = sh_rap_r(wanted, 100)
    # Its mechanism states what replacing a value costs locally, which is twice the local epsilon of removal.
    assert sqrt(14 * two * (exp(removal.epsilon_local / 2) + 1) / (n - 1)) == pytest.approx(float(epsilon), rel=1e-9)
    few = sh_grr(wanted, 8)
    assert sqrt(14 * two * (exp(few.epsilon_local) + 7) / (n - 1)) == pytest.approx(float(epsilon), rel=1e-9)


def test_published_variances():
    wanted = target("0.8")
    m, u, z, n = blanket(wanted), unary_blanket(wanted), appended_noise(wanted), wanted.n
    assert sh_rap(wanted, 915).variance_at_zero == pytest.approx((u - 1) / (n * (u - 2) ** 2), rel=1e-6)
    assert sh_rap_r(wanted, 915).variance_at_zero == pytest.approx((m - 1) / (n * (m - 2) ** 2), rel=1e-6)
    assert sh_grr(wanted, 915).variance_at_zero == pytest.approx((m - 1) / (n * (m - 915) ** 2), rel=1e-6)
    assert aue(wanted, 915).variance_at_zero == pytest.approx(z * (1 - z) / n, rel=1e-6)
    d = solh(wanted, 42_178).mechanism.buckets
    assert solh(wanted, 42_178).variance_at_zero == pytest.approx(m**2 / (n * (m - d) ** 2 * (d - 1)), rel=1e-6)
    # At the best d' that is 27 m^2/(4 n (m - 1)^3).
    assert solh(wanted, 42_178).variance_at_zero == pytest.approx(27 * m**2 / (4 * n * (m - 1) ** 3), rel=1e-4)


@pytest.mark.parametrize("epsilon", ["0.1", "0.2", "0.5", "1"])
def test_no_other_number_of_buckets_is_better(epsilon: str):
    wanted = target(epsilon, n=200_000)
    best = solh(wanted, 10**5)
    assert best.amplified
    for buckets in range(2, int(blanket(wanted))):
        other = solh(wanted, 10**5, buckets=buckets, or_grr=False)
        assert other.variance_at_zero >= best.variance_at_zero * (1 - 1e-9)


def test_randomised_response_is_planned_where_it_is_better():
    """IPUMS: from epsilon 0.9 on; in general for d below 0.615 m."""
    assert [solh(target(e), IPUMS[1]).mechanism.kind for e in ("0.8", "0.9", "1")] == ["olh", "grr", "grr"]
    wanted = target("1", n=10**7)
    m = blanket(wanted)
    assert [solh(wanted, int(x * m)).mechanism.kind for x in (0.610, 0.620)] == ["grr", "olh"]
    assert solh(wanted, int(0.5 * m), or_grr=False).mechanism.kind == "olh"
    assert solh(target("0.2"), 2).mechanism.kind == "grr"  # two values: hashing gains nothing


def test_where_shuffling_proves_nothing_the_central_epsilon_is_spent_locally():
    """SH on IPUMS gains nothing below 0.675, on Kosarak never up to 1; one respondent hides nobody."""
    assert not sh_grr(target("0.67"), IPUMS[1]).amplified and sh_grr(target("0.68"), IPUMS[1]).amplified
    assert not sh_grr(target("1", n=KOSARAK[0]), KOSARAK[1]).amplified
    for plan in (sh_grr, solh, sh_rap, sh_rap_r):
        for n in (1, 2, 500):
            found = plan(target("0.5", n=n), 10)
            assert not found.amplified and any("locally" in caution for caution in found.cautions)
            assert found.epsilon_local == pytest.approx(1.0 if plan is sh_rap_r else 0.5)


def test_a_local_epsilon_is_never_below_the_central_one():
    """Just above the threshold the amplified epsilon tends to 0; the central one is private enough on its own."""
    wanted = target("1", n=30_000)  # m is about 100
    size = int(blanket(wanted))
    assert sh_grr(wanted, size).epsilon_local == pytest.approx(1)
    assert min(sh_grr(wanted, d).epsilon_local for d in range(2, size + 5)) >= 1 - 1e-9


def test_appended_encoding_is_refused_where_nothing_is_proven_and_labelled_as_not_local():
    with pytest.raises(InvalidSpec, match=r"aue: 602325 respondents need noise .* ask at least 884383 respondents"):
        aue(target("0.1"), 915)
    assert aue(target("0.1", n=884_383), 915).mechanism.q <= 0.5
    planned = aue(target("0.5"), 915)
    assert planned.epsilon_local is None and any("not local" in caution for caution in planned.cautions)


def test_fewer_messages_have_the_same_noise():
    fewer, source = aue(target("0.5"), 915), aue(target("0.5"), 915, fewer=False)
    assert fewer.mse == pytest.approx(source.mse) and fewer.mechanism.q + source.mechanism.q == pytest.approx(1)
    assert fewer.mechanism.messages_each < 30 < 880 < source.mechanism.messages_each


def test_counts_with_few_and_with_many_messages_are_mirror_images():
    """The law of (count of a, count of b) with rate 1 - z, seen from above, is the one with rate z and a, b swapped.

    So every likelihood ratio of one is a likelihood ratio of the other: the privacy is the same. Exact convolution.
    """
    n, z = 6, 0.2
    binomial = np.array([1.0])
    for _ in range(n):
        binomial = np.convolve(binomial, [1 - z, z])

    def law(noise: np.ndarray, held: int) -> np.ndarray:
        shifted = np.zeros(n + 2)
        shifted[held : held + n + 1] = noise
        return shifted

    few_a, few_b = law(binomial, 1), law(binomial, 0)  # the victim holds a
    many_a, many_b = law(binomial[::-1], 1), law(binomial[::-1], 0)
    assert np.outer(many_a, many_b)[::-1, ::-1] == pytest.approx(np.outer(few_b, few_a))


def test_removal_is_labelled_and_worth_half():
    removal, replacement = sh_rap_r(target("0.4"), 100), sh_rap(target("0.8"), 100)
    assert removal.neighbours == "removal" and removal.replacement_epsilon == pytest.approx(0.8)
    assert any("0.8" in caution for caution in removal.cautions)
    # Equal guarantees have equal errors, up to ln(2/delta) against ln(4/delta).
    assert removal.mse == pytest.approx(replacement.mse, rel=0.05)
    assert isinstance(removal.mechanism, FragmentedUnary)


def test_targets_that_cannot_be_are_refused():
    for make, why in [
        (lambda: target("1.01"), "must be at most 1"),
        (lambda: target("0"), "between 0.001 and 32"),
        (lambda: target("0.5", delta=0.0), "delta is 0"),
        (lambda: target("0.5", delta=0.3), "delta is 0.3"),
        (lambda: target("0.5", n=0), "n is 0"),
    ]:
        with pytest.raises(InvalidSpec, match=why):
            make()


def test_a_delta_that_lets_an_answer_out_is_cautioned():
    assert target("0.5", n=10**6, delta=1e-6).cautions and not target("0.5", n=10**6, delta=1e-7).cautions
    assert any("1/n" in caution for caution in solh(target("0.5", n=10**6, delta=1e-6), 1000).cautions)


def test_the_second_condition_of_the_binomial_theorem_holds_for_all_targets():
    """Theorem 9.2.1 omits N p >= 27/epsilon (Balle et al.); the largest delta is chosen so that it follows."""
    for epsilon in ("0.001", "0.3", "1"):
        wanted = target(epsilon, delta=0.25)
        assert (wanted.n - 1) / blanket(wanted) >= 27 / float(epsilon)


def test_rounding_is_towards_more_noise():
    assert decimal_down(2 / 3, 4) == "0.6666" and decimal_up(2 / 3, 4) == "0.6667"
    assert decimal_up(0.5, 4) == "0.5" and decimal_down(12.0) == "12"
