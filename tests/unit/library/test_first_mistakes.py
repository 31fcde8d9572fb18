"""First mistakes: each raises from `tacit.errors`, and its message says what to write instead."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import tacit
from tacit.errors import TacitError

COINS = tacit.SystemCoins()
GRR = tacit.GRR(4, 1)
REPORTS = GRR.privatize([0, 1, 2], COINS)
RANGES = tacit.ranges([1, 2, 3] * 20, epsilon=1, low=0, high=9)
ASKED = tacit.ask("histogram", epsilon=1, domain=["yes", "no"])
HOURS = pd.Series(pd.date_range("2024-01-01", periods=3, freq="h"))
SECRET = 77_123

MISTAKES = [
    # How kinds are made.
    ("tacit.GRR(d=4, epsilon=1)", "there is no argument 'd', it is called 'size'; write GRR(size, epsilon)"),
    ("tacit.GRR(domain=4, epsilon=1)", "there is no argument 'domain', it is called 'size'"),
    ("tacit.GRR(4, eps=1)", "it is called 'epsilon'"),
    ("tacit.GRR(4)", "epsilon is missing; write GRR(size, epsilon)"),
    ("tacit.GRR(4, 1, 2)", "3 arguments without a name, at most 2"),
    ("tacit.GRR(4, 1, size=4)", "size is given twice"),
    ("tacit.OLH(4, 1, bucket=3)", "it is called 'buckets'"),
    ("tacit.GRR(['a', 'b'], 1)", "size is the number of values, not the values; write len"),
    ("tacit.RR()", "epsilon is missing; write RR(epsilon)"),
    ("tacit.choose_oracle(d=4, epsilon=1, n=10)", "it is called 'size'"),
    # Epsilon.
    ("tacit.GRR(4, 'one')", "epsilon is 'one', must be a number from 0.001 to 32, such as 0.5"),
    ("tacit.GRR(4, '1e0')", "must be a number from 0.001 to 32"),
    ("tacit.GRR(4, float('nan'))", "epsilon is 'nan', must be a number"),
    ("tacit.GRR(4, 0)", "must be between 0.001 and 32"),
    ("tacit.GRR(4, True)", "epsilon is of type bool, must be a number such as 0.5"),
    ("tacit.GRR(4, None)", "epsilon is of type NoneType, must be a number such as 0.5"),
    ("tacit.histogram(['a', 'b'])", "epsilon is missing; write epsilon=1"),
    ("tacit.histogram(['a', 'b'], eps=1)", "there is no argument 'eps', it is called 'epsilon'"),
    # Coins.
    ("GRR.privatize([1])", "coins are missing; write privatize(…, tacit.SystemCoins())"),
    ("GRR.privatize([1], 7)", "coins are of type int"),
    ("GRR.privatize([1], np.random.default_rng(1))", "coins are of type Generator"),
    ("GRR.privatize([1], tacit.SystemCoins)", "coins are the class SystemCoins, must be an object of it"),
    ("GRR.privatize_one(1)", "coins are missing; write privatize_one(…, tacit.SystemCoins())"),
    ("tacit.OneBit(9, 1).privatize([1])", "coins are missing"),
    ("tacit.histogram(['a', 'b'], 1, coins=7)", "write privatize(…, tacit.SystemCoins())"),
    ("tacit.histogram(['a', 'b'], 1, seed=7)", "it is called 'coins'"),
    # Values of mechanisms.
    ("GRR.privatize(['a'], COINS)", "these are labels: tacit.histogram(values, epsilon=…) takes them"),
    ("GRR.privatize([0.5], COINS)", "these are floats: round them"),
    ("GRR.privatize([1, np.nan], COINS)", "NaN stands for missing ones: drop them"),
    ("GRR.privatize([True], COINS)", "these are booleans: write values.astype(int)"),
    ("GRR.privatize(1, COINS)", "these are a single value: write [value]"),
    ("GRR.privatize([[1, 2]], COINS)", "these have several columns: give one"),
    ("GRR.privatize([SECRET], COINS)", "must be an integer from 0 to 3"),
    # Reports, tallies and estimates.
    ("GRR.estimate(REPORTS)", "count reports first: write mechanism.estimate(mechanism.tally(reports))"),
    ("tacit.OneBit(9, 1).estimate([1])", "estimate takes a tally"),
    ("GRR.tally([1, 2])", "give what privatize or decode returned"),
    ("RANGES.answers.quantile([0.25, 0.5])", "share is a list; ask for one at a time"),
    ("RANGES.answers.quantile(np.array([0.25, 0.5]))", "share is a list"),
    ("RANGES.answers.quantile(50)", "must be from 0 to 1"),
    ("RANGES.range(5, SECRET)", "high is outside the domain, must be from 0 to 9"),
    # Values of the library.
    ("tacit.histogram(5, epsilon=1)", "this is a single value: write [value]"),
    ("tacit.histogram('abc', epsilon=1)", "this is a single value: write [value]"),
    ("tacit.histogram(None, epsilon=1)", "this is a single value"),
    ("tacit.histogram({'a': [1]}, epsilon=1)", "this is a table: give one of its columns"),
    ("tacit.histogram(pd.DataFrame({'a': [1]}), epsilon=1)", "this is a table: give one of its columns"),
    ("tacit.histogram(np.zeros((2, 2)), epsilon=1)", "several columns: give one"),
    ("tacit.histogram({'a', 'b'}, epsilon=1)", "a set holds every value once: give a list"),
    ("tacit.histogram([], epsilon=1)", "there are no values"),
    ("tacit.histogram([0.5, 0.25], epsilon=1)", "take tacit.mean or tacit.ranges"),
    ("tacit.histogram(['a', 1], epsilon=1)", "must all be text, whole numbers, booleans or dates"),
    ("tacit.histogram([['a'], ['b']], epsilon=1, domain=['a', 'b'])", "sets of items go to tacit.itemsets"),
    ("tacit.histogram(['a'], epsilon=1)", "there is one answer only"),
    ("tacit.histogram(['a', 'b'], epsilon=1, domain='ab')", "domain must be a list of labels such as ['a', 'b']"),
    ("tacit.histogram(['a', 'b'], epsilon=1, domain=2)", "domain must be a list of labels"),
    ("tacit.histogram(['a', 'b'], epsilon=1, size=2)", "there is no argument 'size', it is called 'domain'"),
    ("tacit.histogram(['a', 'x', 'x', 'y'], epsilon=1, domain=['a', 'b'])",
     "histogram: 3 of 4 values are refused (value: the value is outside the domain, must be one of the "
     "declared labels); leave them out, list their labels too (domain=[…])"),
    ("tacit.histogram([SECRET], epsilon=1, domain=['a', 'b'])",
     "or give them one answer together: domain=tacit.Categories(name, labels, other='another')"),
    ("tacit.marginals({'a': ['x', 'y'], 'b': ['u', 'q']}, epsilon=1, domain={'b': ['u', 'v']})",
     "marginals: 1 of 2 values are refused (b: the value"),
    ("tacit.itemsets([['a'], ['a', 'z']], epsilon=1, domain=['a', 'b'])",
     "itemsets: 1 of 2 values are refused (items: the value is outside the domain, must hold declared "
     "items only); leave them out"),
    ("tacit.ranges([1, SECRET], epsilon=1, low=0, high=9)",
     "ranges: 1 of 2 values are refused (value: the value is outside the domain, must be an integer from 0 "
     "to 9); clip them"),
    ("tacit.histogram(['a', 'b'], 1, mechanism='oue')",
     "the mechanism is chosen for you; a choice of your own is tacit.OUE(size, epsilon), with "
     "privatize(indices, tacit.SystemCoins())"),
    ("tacit.histogram(['a', 'b'], 1, kind='hrr')", "tacit.HRR(size, epsilon)"),
    ("tacit.histogram(['a', 'b'], 1, mechanism=tacit.OLH)", "tacit.OLH(size, epsilon)"),
    ("tacit.histogram(['a', 'b'], 1, mechanism='nonsense')", "tacit.OUE(size, epsilon)"),
    ("tacit.histogram(['a', None], epsilon=1)",
     "1 of 2 values are missing (None or NaN); leave them out, or give them an answer of their own: "
     "missing='no answer'"),
    ("tacit.mean(['a'], epsilon=1, low=0, high=9)",
     "the value must be a finite number); text is no number: convert it, such as values.astype(float)"),
    ("tacit.ranges(['a', 'b'], epsilon=1, low=0, high=9)", "or count labels with tacit.histogram"),
    ("tacit.mean(HOURS, epsilon=1, low=0, high=9)", "dates need dates as ends: tacit.ranges or tacit.quantiles"),
    ("tacit.heavy_hitters(['Tea'], epsilon=1, alphabet='lower', length=3)",
     "this alphabet is 'lower', a to z: spell values like that, such as values.str.lower()"),
    ("tacit.heavy_hitters(['tea'], epsilon=1, alphabet='abc', length=3)", "this alphabet is 'abc'"),
    ("tacit.mean([3, SECRET], epsilon=1, low=0, high=10)",
     "mean: 1 of 2 values are refused (value: the value is outside the domain, must be a number from 0 to "
     "10); clip them"),
    ("tacit.mean([SECRET], epsilon=1, low=-0.5, high=2.25)", "must be a number from -0.5 to 2.25)"),
    ("tacit.mean([SECRET], epsilon=1, low=0, high=50_000)", "must be an integer from 0 to 50000)"),
    ("tacit.ask('mean', epsilon=1, low=0, high=10).device(SECRET)", "must be a number from 0 to 10"),
    ("tacit.mean([1, 2], epsilon=1, low=9, high=1)", "low must be below high"),
    ("tacit.mean([1, np.nan], epsilon=1, low=0, high=9)", "1 of 2 values are missing"),
    ("tacit.mean([1, 2], epsilon=1, min=0, max=9)", "there is no argument 'min', it is called 'low'"),
    ("tacit.mean([1, 2], epsilon=1, domain=[1, 2])", "or write low and high instead"),
    ("tacit.mean([True, False], epsilon=1, low=0, high=1)",
     "values are booleans, whose mean is the share of True; write tacit.histogram(values, epsilon)"),
    ("tacit.histogram(['a', 'b'], epsilon=1, domain={'a', 'b'})", "write domain=sorted(labels)"),
    ("tacit.ranges(HOURS, epsilon=1)", "values have a time of day; take their days, such as values.dt.date"),
    ("tacit.ranges([1, 2], epsilon=1, low='2024-02-31', high='2024-03-01')", "must be finite numbers or dates"),
    ("tacit.itemsets(pd.DataFrame({'tea': [True]}), epsilon=1)", "give a list per row, such as [list(table.columns"),
    ("tacit.ranges(['a', 'b'], epsilon=1)", "labels have no order of their own; declare it"),
    ("tacit.ranges([0.5, 1.5], epsilon=1, low=0, high=9)", "write bins=50, or round them"),
    ("tacit.quantiles([1, 2], epsilon=1, shares=50, low=0, high=9)", "shares must be numbers from 0 to 1"),
    ("tacit.heavy_hitters(['a'], epsilon=1, domain=['a', 'b'])", "a list of labels is counted by tacit.histogram"),
    ("tacit.heavy_hitters(['a'], epsilon=1, length=3)", "declare what may be answered: alphabet='lower', length=8"),
    ("tacit.heavy_hitters([0.5], epsilon=1)", "values must be texts or whole numbers"),
    ("tacit.itemsets(['milk', 'tea'], epsilon=1)", "every value must be a list of items"),
    ("tacit.marginals(['a', 'b'], epsilon=1)", "a DataFrame, a dictionary of columns, or a list of rows"),
    ("tacit.marginals({'a': [1, 2]}, epsilon=1)", "one column is counted by tacit.histogram"),
    ("tacit.marginals({'a': [1, 2], 'b': [1]}, epsilon=1)", "columns must be of one length"),
    ("tacit.marginals({'a': [1, 2], 'b': [1, 2]}, epsilon=1, domain=['a'])", "domain must be a dictionary"),
    ("tacit.table({'a': [1, 2]}, epsilon=1)", "private is missing; say which columns are"),
    ("tacit.table({'a': [1, 2]}, epsilon=1, private=['b'])", "there is no column 'b', must be one of a"),
    # The two-sided form.
    ("tacit.ask('histgram', epsilon=1)", "task is 'histgram', must be one of histogram, mean"),
    ("tacit.ask('histogram', epsilon=1)", "declare the answers before anybody is asked"),
    ("tacit.ask('histogram', epsilon=1, domain=['a', 'b'], n=0)", "n must be a whole number from 1 on"),
    ("ASKED.device('perhaps')", "must be one of the declared labels"),
    ("ASKED.device(None)", "the value must be text, one of the declared labels"),
    ("ASKED.collect(['yes'])", "reports must be bytes that devices returned"),
    ("ASKED.collect([b'xx'])",
     "histogram: 1 of 1 reports have another length, must be 1 byte each; collect what the device"),
    ("ASKED.collect([ASKED.device('yes'), b'xx', b''])", "2 of 3 reports have another length"),
    # Levels of intervals.
    ("RANGES.interval('a')", "interval: level is 'a', must be a number between 0 and 1; write interval(0.95)"),
    ("RANGES.interval(95)", "interval: level is '95', must be a number between 0 and 1"),
    ("RANGES.to_pandas('a')", "level is 'a'"),
    ("RANGES.estimate.interval([0.9])", "must be a number between 0 and 1"),
    ("tacit.LocalDevice.from_spec({})", "as device.spec() gives them"),
    ("tacit.plan_epsilon('histogram', target_error=0.01, domain=['a', 'b'])", "n is missing"),
    ("tacit.plan_epsilon('histogram', target_error=0, n=9, domain=['a', 'b'])", "must be above 0"),
    ("tacit.plan_epsilon('histogram', target_error=1e-9, n=9, domain=['a', 'b'])", "no epsilon reaches an error of"),
]  # fmt: skip


@pytest.mark.parametrize(("code", "said"), MISTAKES, ids=[code for code, _ in MISTAKES])
def test_a_first_mistake_is_told_what_to_write(code: str, said: str):
    known: dict[str, Any] = globals() | {"np": np, "pd": pd}
    with pytest.raises(TacitError) as caught:
        eval(code, known)
    message = str(caught.value)
    assert said in message, message
    assert str(SECRET) not in message  # A private value is never shown.


def test_missing_numbers_are_not_given_an_answer_that_numbers_cannot_have():
    for task in (tacit.mean, tacit.ranges, tacit.quantiles):
        with pytest.raises(TacitError) as caught:
            task([1, np.nan], epsilon=1, low=0, high=9)
        assert str(caught.value).endswith("1 of 2 values are missing (None or NaN); leave them out")


def test_kinds_that_a_refusal_names_are_made_of_size_and_epsilon():
    for name in ("GRR", "SUE", "OUE", "THE", "BLH", "OLH", "HRR", "SS", "SHE"):
        with pytest.raises(TacitError, match=rf"tacit\.{name}\(size, epsilon\)"):
            tacit.histogram(["a", "b"], epsilon=1, mechanism=name.lower())  # pyright: ignore
        assert getattr(tacit, name)(4, 1).size == 4


def test_the_rest_that_float_arithmetic_leaves_is_no_part_of_epsilon():
    assert tacit.GRR(4, 0.1 + 0.2).epsilon == tacit.GRR(4, "0.3").epsilon
    assert tacit.GRR(4, 0.1 + 0.7).epsilon == tacit.GRR(4, "0.8").epsilon
    # A third is no short decimal, and text and Decimal are what they say.
    assert str(tacit.GRR(4, 1 / 3).budget.to_spec()) == "0.3333333333333333"
    assert str(tacit.GRR(4, "0.30000000000000004").budget.to_spec()) == "0.30000000000000004"


def test_kinds_take_size_and_epsilon_in_their_places():
    assert tacit.GRR(4, 1) == tacit.GRR(size=4, epsilon="1")
    assert tacit.OLH(4, 1, state="log") == tacit.OLH(size=4, epsilon="1", state="log")
    assert tacit.OneBit(9, 0.5).top == 9 and tacit.RR(1).size == 2
    for kind in tacit.CATALOG:
        names = list(__import__("inspect").signature(kind).parameters)
        assert "epsilon" in names[:2], kind
