"""Messages by location: device and batch agree, tallies are exact, and whole vectors are refused."""

import numpy as np
import pytest

from tacit.catalog import parse
from tacit.core.statistics.simulated import GeneratorCoins
from tacit.device.numbers.coins import ReplayCoins
from tacit.errors import InvalidSpec, ReportRejected
from tacit.oracles.unary import SUE
from tacit.shuffle.mechanisms.messages import AppendedUnary, FragmentedUnary, LocationMessages
from tacit.simulate.coins import SimulationCoins
from tacit.testing.statistics import assert_fits, assert_unbiased, assert_variance

BOTH = [FragmentedUnary(size=70, epsilon="3"), AppendedUnary(size=70, epsilon="1", rate="0.1")]
FEW = [FragmentedUnary(size=5, epsilon="3"), AppendedUnary(size=5, epsilon="1", rate="0.2")]


@pytest.mark.parametrize("mechanism", BOTH, ids=lambda m: m.kind)
def test_a_batch_has_the_messages_of_the_devices_one_after_the_other(mechanism: LocationMessages):
    values = [0, 69, 33, 5, 5]
    coins = ReplayCoins(b"one by one")
    one_by_one = b"".join(mechanism.privatize_one(value, coins) for value in values)
    assert mechanism.privatize(values, ReplayCoins(b"one by one")).tobytes() == one_by_one


@pytest.mark.parametrize("mechanism", FEW, ids=lambda m: m.kind)
def test_counts_of_messages_have_the_law_that_is_inverted(mechanism: LocationMessages):
    """How many messages 20,000 respondents with value 3 send, by location: chi-square, alpha 1e-7 each."""
    n = 20_000
    cells = mechanism.tally(mechanism.privatize([3] * n, SimulationCoins(6)), respondents=n).cells
    q = float(mechanism.q)
    for location, count in enumerate(cells.tolist()):
        own = isinstance(mechanism, FragmentedUnary) and location == 3
        sent = count - n if isinstance(mechanism, AppendedUnary) and location == 3 else count
        rate = float(mechanism.p) if own else q
        assert_fits(np.array([sent, n - sent]), np.array([rate, 1 - rate]))
    assert cells.sum() / n == pytest.approx(mechanism.messages_each, rel=0.02)


@pytest.mark.parametrize("mechanism", FEW, ids=lambda m: m.kind)
@pytest.mark.parametrize("way", ["simulated", "messages"])
def test_estimates_are_unbiased_with_the_stated_variance(mechanism: LocationMessages, way: str):
    """200 crowds of 400, five cells each, which are independent; alpha 1e-7, and a variance off by 1.3 is rejected."""
    counts, rng = np.array([200, 120, 60, 20, 0]), np.random.default_rng(8)
    values = np.repeat(np.arange(5), counts)

    def crowd():
        if way == "simulated":
            return mechanism.simulate_tally(counts, rng)
        return mechanism.tally(rng.permutation(mechanism.privatize(values, GeneratorCoins(rng))), respondents=400)

    estimates = [mechanism.estimate(crowd()) for _ in range(200)]
    truth = counts / 400
    errors, variance = np.array([e.value for e in estimates]) - truth, mechanism.moments.variance(truth) / 400
    assert_unbiased(errors, variance)
    assert_variance(errors, variance)
    assert np.mean([e.variance for e in estimates[:20]], axis=0) == pytest.approx(variance, rel=1e-3)


def test_appended_noise_has_the_published_variance_whatever_the_value():
    mechanism = AppendedUnary(size=9, epsilon="1", rate="0.3")
    assert mechanism.moments.variance(np.array([0.0, 1.0])) == pytest.approx([0.21, 0.21])
    tally = mechanism.simulate_tally([1000] + [0] * 8, np.random.default_rng(1))
    assert mechanism.estimate(tally).variance == pytest.approx(0.21 / 1000)
    assert mechanism.estimate(tally).combine([1] * 9).variance[0] == pytest.approx(9 * 0.21 / 1000)


def test_the_number_of_messages_has_the_same_law_for_every_value():
    for mechanism in FEW:
        sent = [
            np.bincount([len(mechanism.privatize_one(value, coins)) for _ in range(1500)], minlength=7)
            for value in (0, 4)
            for coins in [SimulationCoins(value)]
        ]
        # Two samples of one law: chi-square of the second against the pooled share, conservative by half.
        pooled = (sent[0] + sent[1]) / 3000
        assert_fits(sent[1], pooled)


@pytest.mark.parametrize("mechanism", FEW, ids=lambda m: m.kind)
def test_whole_vectors_are_refused(mechanism: LocationMessages):
    vectors = SUE(size=5, epsilon="3").privatize([1, 2, 3], ReplayCoins(b"v"))
    with pytest.raises(ReportRejected, match="whole vectors, must be one message per location"):
        mechanism.tally(vectors, respondents=3)


@pytest.mark.parametrize("mechanism", FEW, ids=lambda m: m.kind)
def test_messages_that_cannot_be_are_refused(mechanism: LocationMessages):
    messages = mechanism.privatize([1, 2], ReplayCoins(b"m"))
    for wrong, why in [
        (lambda: mechanism.tally(messages), "state how many respondents"),
        (lambda: mechanism.tally(messages, respondents=-1), "state how many respondents"),
        (lambda: mechanism.tally(messages, weights=[1], respondents=2), "cannot be weighted"),
        (lambda: mechanism.tally(np.full(9, 1, np.uint8), respondents=2), "a location has 9 messages"),
        (lambda: mechanism.tally(np.full(1, 5, np.uint8), respondents=2), "out of range"),
    ]:
        with pytest.raises(ReportRejected, match=why):
            wrong()
    with pytest.raises(InvalidSpec, match="belong together"):
        mechanism.log_prob(messages, 1)
    with pytest.raises(InvalidSpec, match="single messages"):
        mechanism.all_reports()


def test_tallies_of_parts_add_up_and_an_empty_one_says_nothing():
    mechanism = FEW[0]
    messages, nothing = mechanism.privatize([1, 2, 3], ReplayCoins(b"m")), np.empty(0, np.uint8)
    parts = mechanism.tally(messages[:2], respondents=2) + mechanism.tally(messages[2:], respondents=1)
    assert parts.cells.tolist() == mechanism.tally(messages, respondents=3).cells.tolist() and parts.n == 3
    assert not mechanism.estimate(mechanism.tally(nothing, respondents=0)).has_data


def test_they_cannot_be_published():
    for mechanism in FEW:
        with pytest.raises(InvalidSpec, match="kind"):
            parse(mechanism.spec())


def test_appended_messages_are_no_local_guarantee_and_rounded_towards_more_noise():
    with pytest.raises(InvalidSpec, match="is not local"):
        AppendedUnary(size=4, epsilon="1", rate="0.25").realised_odds()
    third, rest = (AppendedUnary(size=4, epsilon="1", rate=rate).q for rate in ("0.333333333", "0.666666667"))
    assert third * 10**9 >= 333_333_333 and rest * 10**9 <= 666_666_667
    for rate in ("0", "1", "0.0", "1.5", "-0.1", "1e-3", 0.5):
        with pytest.raises(InvalidSpec, match="rate must be decimal text"):
            AppendedUnary(size=4, epsilon="1", rate=rate)  # type: ignore[arg-type]


def test_a_fragmented_encoding_keeps_its_local_guarantee():
    mechanism = FragmentedUnary(size=5, epsilon="3")
    assert mechanism.holds() and mechanism.realised_epsilon() == pytest.approx(3)
    assert (mechanism.p, mechanism.q) == (SUE(size=5, epsilon="3").p, SUE(size=5, epsilon="3").q)
