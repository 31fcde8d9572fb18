"""What people see of a finding: a repr that fits a terminal, HTML, a DataFrame, a plot; and `tacit` itself."""

import pydoc
import re
import subprocess
import sys
from collections.abc import Generator
from typing import Any

import numpy as np
import pytest

import tacit
from tacit.errors import MissingExtra
from tacit.library.show import MOST_HTML_ROWS, OUTSIDE, WIDTH, Shown, html_of, text_of_finding

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")


def coins() -> tacit.ReplayCoins:
    return tacit.ReplayCoins(b"seen")


@pytest.fixture(scope="module")
def findings() -> dict[str, tacit.Finding]:
    values = list(range(60)) * 10
    wild = ["<script>alert(1)</script>", "a" * 300, "ü"] * 100
    return {
        "wild": tacit.histogram([text[:200] for text in wild], epsilon=1, coins=coins()),
        "many": tacit.histogram(values, epsilon=1, coins=coins()),
        "mean": tacit.mean(values, epsilon=1, low=0, high=100, coins=coins()),
        "ranges": tacit.ranges(values, epsilon=1, low=0, high=59, coins=coins()),
        "buckets": tacit.ranges([0.5, 1.5] * 50, epsilon=1, low=0, high=2, bins=30, coins=coins()),
        "quantiles": tacit.quantiles(values, epsilon=1, low=0, high=59, coins=coins()),
        "itemsets": tacit.itemsets([["a", "b"], ["a"]] * 100, epsilon=4, k=2, coins=coins()),
        "marginals": tacit.marginals({"a": [True, False] * 50, "b": ["x", "y"] * 50}, epsilon=2, coins=coins()),
    }


NAMES = ["wild", "many", "mean", "ranges", "buckets", "quantiles", "itemsets", "marginals"]


@pytest.mark.parametrize("name", NAMES)
def test_a_repr_fits_a_terminal(findings: dict[str, tacit.Finding], name: str):
    lines = repr(findings[name]).splitlines()
    assert len(lines) <= 20 and max(map(len, lines)) <= WIDTH
    assert lines[0].startswith(findings[name].inquiry.task) and "epsilon" in lines[0]


@pytest.mark.parametrize("name", NAMES)
def test_html_has_every_row_and_escapes_labels(findings: dict[str, tacit.Finding], name: str):
    html = findings[name]._repr_html_()
    assert html.count("<tr>") - 1 <= MOST_HTML_ROWS and html.startswith("<div>")
    assert "<script" not in html
    opened, closed = re.findall(r"<(\w+)[ >]", html), re.findall(r"</(\w+)>", html)
    assert sorted(opened) == sorted(closed)


@pytest.mark.parametrize("name", NAMES)
def test_a_frame_has_one_row_per_value_with_its_interval(findings: dict[str, tacit.Finding], name: str):
    found = findings[name]
    frame = found.to_pandas(level=0.9)
    assert len(frame) == len(found) and {"low", "high", found.unit} <= set(frame.columns)
    assert (frame["low"] <= frame["high"]).all()
    assert np.array_equal(frame["low"].to_numpy(float), np.ravel(found.interval(0.9)[0]).astype(float))


@pytest.mark.parametrize("name", NAMES)
def test_a_polars_frame_has_the_same_rows(findings: dict[str, tacit.Finding], name: str):
    found = findings[name]
    frame, other = found.to_polars(level=0.9), found.to_pandas(level=0.9)
    assert frame.columns == list(other.columns) and len(frame) == len(other)
    assert np.array_equal(frame["low"].to_numpy().astype(float), other["low"].to_numpy(float))


def test_without_polars_the_command_that_installs_it_is_told(
    findings: dict[str, tacit.Finding], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(MissingExtra, match=r"polars is not installed; .*pip install 'tacit\[polars\]'"):
        findings[NAMES[0]].to_polars()


@pytest.fixture
def pyplot() -> Generator[Any]:
    from matplotlib import pyplot

    yield pyplot
    pyplot.close("all")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.slow_cases("itemsets", "ranges", "marginals", "buckets", "many", "wild")
def test_a_plot_has_error_bars_or_a_band(findings: dict[str, tacit.Finding], name: str, pyplot: Any):
    axes = findings[name].plot()
    band = [item for item in axes.collections if type(item).__name__ != "LineCollection"]
    assert axes.containers or band
    assert "95 % intervals" in axes.get_title()
    axes.figure.canvas.draw()
    assert findings[name].plot(axes) is axes


def test_an_empty_finding_is_not_drawn():
    found = tacit.heavy_hitters(["ab", "ba"] * 5, epsilon=0.1, k=2, alphabet="ab", length=2, coins=coins())
    with pytest.raises(tacit.errors.InvalidSpec, match="nothing to draw"):
        found.plot()


def test_an_inquiry_says_how_precise_it_will_be():
    asked = tacit.ask("histogram", epsilon=1, n=10_000, domain=["yes", "no"])
    assert "expected standard error 0.0096" in repr(asked) and asked.expected_error == asked.mechanism.standard_error(
        10_000
    )
    assert "<device: grr, epsilon 1" in repr(asked.device)


def test_tasks_come_first_and_help_fits_a_screen():
    tasks = ["ask", "heavy_hitters", "histogram", "itemsets", "marginals", "mean", "plan_epsilon", "quantiles"]
    # `dir` sorts what it is told; the order is that of the list itself.
    names = tacit.__dir__()
    assert set(tasks) <= set(names[: next(i for i, name in enumerate(names) if name[0].isupper())])
    documentation = tacit.__doc__ or ""
    assert len(documentation.splitlines()) <= 45 and max(map(len, documentation.splitlines())) <= 120
    for name in ("histogram", "mean", "ranges", "quantiles", "heavy_hitters", "itemsets", "marginals", "table"):
        assert f"    {name}(" in documentation and callable(getattr(tacit, name))


def test_intervals_of_shares_are_shown_within_what_is_possible_and_values_outside_are_explained():
    rows = [("a", 1.0136, 0.9, 1.126), ("b", -0.02, -0.1, 0.05)]
    text = text_of_finding(Shown("t", ("value",), "share", rows, ()))
    assert "90.00 % to 100.00 %" in text and "0.00 % to 5.00 %" in text and "101.36 %" in text and "-2.00 %" in text
    assert " ".join(OUTSIDE.split()) in " ".join(text.split()) and OUTSIDE in html_of(
        Shown("t", ("v",), "share", rows, ())
    )
    # Means and estimates of SQL have no such range, and shares that are possible need no words.
    assert "1.126" in text_of_finding(Shown("t", ("value",), "mean", rows, ()))
    assert "unbiased" not in text_of_finding(Shown("t", ("value",), "share", [("a", 0.5, -0.1, 1.2)], ()))


def test_help_of_the_package_is_its_overview_and_not_the_whole_reference():
    text = pydoc.plain(pydoc.render_doc(tacit))
    overview, listed = text.split("PACKAGE CONTENTS")
    # What comes first fits a screen; below it are the names of the rooms, one a line, and a few lines on data.
    assert len(overview.splitlines()) <= 48 and len(listed.splitlines()) <= 60
    assert "help(tacit.histogram)" in overview and "dir(tacit)" in overview


def test_help_of_a_kind_shows_size_and_epsilon_first():
    code = "import pydoc, tacit; print(pydoc.plain(pydoc.render_doc(tacit.OLH)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "class OLH(" in done.stdout and "OLH(size, epsilon, *, buckets=0, state='')" in done.stdout
