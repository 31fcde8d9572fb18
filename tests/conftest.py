"""What every test run shares: quick collection, few reports, and the time spent per folder printed at its end."""

import gc
import os
from collections import defaultdict
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import runtestprotocol
from tests.examples import load_profile

# Set before anything imports numpy. Workers of a test run use all cores already, and the small matrices of tests are
# slower on several threads than on one: idle BLAS threads spin, at the cost of the other workers.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")


@dataclass
class Spent:
    """What the tests of one folder took."""

    tests: int = 0
    cpu: float = 0.0
    elapsed: float = 0.0


class FolderTimes:
    """Sums seconds by folder: `tests/unit`, `tests/service`, ..., `src`, `docs`.

    Each process that runs tests measures itself and sends the seconds along with its reports; under xdist the sums
    are those of the controller, which sees the reports of all workers.
    """

    def __init__(self) -> None:
        self.before = 0.0
        self.folders: defaultdict[str, Spent] = defaultdict(Spent)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self) -> None:
        """Start to measure after collection."""
        self.before = _cpu_seconds()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, Any, Any]:
        """Note what this phase of a test took; differences of one clock lose nothing to rounding when summed."""
        report = yield
        now = _cpu_seconds()
        report.cpu, self.before = now - self.before, now
        return report

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Add one phase (setup, call or teardown) to its folder."""
        parts = report.nodeid.split("::")[0].split("/")
        spent = self.folders["/".join(parts[: 2 if parts[0] == "tests" else 1])]
        spent.tests += report.when == "call"
        spent.cpu += getattr(report, "cpu", 0.0)
        spent.elapsed += report.duration

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print one line per folder, the most expensive first."""
        if not self.folders:
            return
        terminalreporter.section("time per folder")
        terminalreporter.write_line(f"{'':<16} {'tests':>6} {'CPU s':>7} {'elapsed s':>10}")
        rows = sorted(self.folders.items(), key=lambda row: -row[1].cpu)
        total = Spent(*(sum(getattr(spent, name) for _, spent in rows) for name in ("tests", "cpu", "elapsed")))
        for name, spent in [*rows, ("together", total)]:
            terminalreporter.write_line(f"{name:<16} {spent.tests:>6} {spent.cpu:>7.1f} {spent.elapsed:>10.1f}")


def _cpu_seconds() -> float:
    """CPU seconds of this process and of the processes that it has waited for."""
    return sum(os.times()[:4])


class OneReport:
    """Sends one report per test to the controller of a parallel run, instead of three.

    The other two cost more than a millisecond of CPU time per test, as much as most tests take. What set-up and
    clean-up took is added to the report of the test itself; if one of them fails, it is reported as well.
    """

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        """Run a test as pytest does, and log what remains to be said."""
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        told = [report for report in reports if report.when == "call" or not report.passed]
        for quantity in ("cpu", "duration"):
            setattr(told[0], quantity, sum(getattr(report, quantity) for report in reports if report not in told[1:]))
        for report in told:
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True


def pytest_configure(config: pytest.Config) -> None:
    """Watch all tests: hooks of a conftest file alone would miss the examples in src and docs."""
    config.pluginmanager.register(FolderTimes(), "folder-times")
    load_profile(is_quick="not slow" in str(config.getoption("markexpr")))
    if hasattr(config, "workerinput"):
        config.pluginmanager.register(OneReport(), "one-report")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Collect without garbage collection, and look for garbage less often afterwards.

    Twelve thousand tests are objects that stay until the end: looking for garbage among them again and again costs a
    tenth of the CPU time of collection, and more in tests that allocate much. Of the tests' own time, a look after
    every 700 new objects, which is the default, takes 3 %.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(7000)
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark slow cases before `-m` looks at marks, and let what needs a Spark session come first.

    Starting one takes as long as a hundred other tests. Workers begin with equal stretches of the list and take over
    the ends of those of others, so that what is in front stays with one worker, and one session serves all.
    """
    for item in items:
        words = [word for mark in item.iter_markers("slow_cases") for word in mark.args]
        if words and any(word in item.callspec.id for word in words):  # pyright: ignore[reportAttributeAccessIssue]
            item.add_marker(pytest.mark.slow)
    items.sort(key=lambda item: "spark" not in getattr(item, "fixturenames", ()))


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, Any, Any]:
    """Do not look for examples in the docstrings of tests: there are none."""
    collectors = yield
    if file_path.suffix == ".py":
        return [collector for collector in collectors if isinstance(collector, pytest.Module)]
    return collectors
