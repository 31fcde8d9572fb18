"""Closed forms: what they compute, and that they refuse where they were not proven."""

from math import exp, log, sqrt

import pytest

from tacit.errors import InvalidSpec
from tacit.shuffle.accounting import published


def test_closed_forms_and_their_inverses_agree() -> None:
    n, delta = 10**6, 1e-9
    for outputs in (2, 50, 300):
        odds = published.amplified_odds(0.5, n=n, delta=delta, outputs=outputs)
        assert published.solh(odds, n=n, delta=delta, buckets=outputs) == pytest.approx(0.5)
        assert published.bbgn(odds, n=n, delta=delta, size=outputs) == pytest.approx(0.5)
    flip = published.unary_capacity(0.5, n=n, delta=delta)
    assert published.rap((flip - 1) ** 2, n=n, delta=delta) == pytest.approx(0.5)
    assert published.rap_r(published.capacity(0.5, n=n, delta=delta) - 1, n=n, delta=delta) == pytest.approx(0.5)


def test_reports_that_keep_epsilon_on_their_own_are_not_weakened() -> None:
    assert published.amplified_odds(0.1, n=1000, delta=1e-9, outputs=50) == exp(0.1)


def test_certified_claims_are_several_times_smaller() -> None:
    # The same mechanism, local hashing to e^epsilon + 1 buckets: closed form at a million respondents, delta = 1e-9.
    for local, closed in ((1, 0.0414), (2, 0.0657), (4, 0.1813), (6, 0.4917)):
        odds, buckets = exp(local), round(exp(local) + 1)
        assert published.solh(odds, n=10**6, delta=1e-9, buckets=buckets) == pytest.approx(closed, abs=6e-5)


def test_uniform_fakes_help_randomised_response_and_local_hashing() -> None:
    # Against the collector and all other respondents: sqrt(14 ln(2/delta) buckets/fakes).
    assert published.solh(4.0, n=1, delta=1e-9, buckets=8, fakes=10**6) == pytest.approx(sqrt(14 * log(2e9) * 8 / 1e6))
    alone = published.bbgn(50.0, n=10**5, delta=1e-9, size=8)
    assert published.bbgn(50.0, n=10**5, delta=1e-9, size=8, fakes=1000) < alone


def test_binomial_noise() -> None:
    assert published.binom(4_000, 0.5, delta=1e-9) == pytest.approx(sqrt(14 * log(2e9) / 2_000))


REFUSED = {
    "a local epsilon of 1/2": lambda: published.efmrtt(exp(0.5), n=10**5, delta=1e-9),
    "few respondents": lambda: published.efmrtt(exp(0.1), n=999, delta=1e-9),
    "epsilon above one": lambda: published.bbgn(exp(8), n=10**4, delta=1e-9, size=4),
    "hashing above one": lambda: published.solh(exp(8), n=10**4, delta=1e-9, buckets=4),
    "bits above one": lambda: published.rap(exp(20), n=10**4, delta=1e-9),
    "binary response with too little noise": lambda: published.csuzz(exp(0.01), n=10**6, delta=1e-9),
    "a likely coin": lambda: published.binom(10**6, 0.9, delta=1e-9),
    "clones of a large local epsilon": lambda: published.fmt(exp(9), n=10**5, delta=1e-9),
}


@pytest.mark.parametrize("case", REFUSED)
def test_outside_its_conditions_a_published_bound_refuses(case: str) -> None:
    with pytest.raises(InvalidSpec, match="the published bound is proven only for"):
        REFUSED[case]()
