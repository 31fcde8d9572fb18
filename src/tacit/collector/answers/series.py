"""The answers of a collection that asks again and again: a series of windows, with bands, changes and smoothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property, reduce
from operator import add
from typing import Any, Self

import numpy as np

from tacit.arrays import F64
from tacit.collector.answers.answer import BELOW, OK, as_text
from tacit.collector.answers.comparisons import DIFFERENCES, check_against, compare, is_window, mean_rows
from tacit.collector.collections.active import Active
from tacit.collector.collections.windowed import declared
from tacit.collector.safe_csv import csv_text
from tacit.core.estimate import Estimate
from tacit.core.mechanism import Oracle
from tacit.core.members import AnyTally
from tacit.core.statistics.level import check_level
from tacit.core.statistics.normal import normal_isf
from tacit.device.windows.guarantee import always_words, guarantee_words
from tacit.device.windows.terms import FINAL, FUTURE, AccountTerms, WindowTerms
from tacit.errors import InvalidQuery
from tacit.post.series.change import change_points
from tacit.post.series.differences import first_differences
from tacit.post.series.kalman import Smoothed, filter_online, series_noise, smooth
from tacit.post.series.series import Series, sparse_groups
from tacit.tasks.task import plain_label

BY = ("window", "group", "week", "month")
"""How windows are put together: each for itself, joined until they have the minimum cohort, or by the calendar."""
DROPPED = "dropped"
TARGET = "population"
"""Devices of a window are a random group of all, so that intervals are about all of them."""
COLUMNS = (
    "from", "to", "first_day", "last_day", "state", "provisional", "reports", "value", "estimate", "standard_error",
    "low", "high", "band_low", "band_high", "smoothed", "smoothed_low", "smoothed_high", "level", *DIFFERENCES,
)  # fmt: skip


@dataclass(frozen=True)
class SeriesRequest:
    """What is asked for, checked."""

    by: str = "window"
    level: float = 0.95
    band: bool = False
    smooth: str = ""
    """"online" (what could be said at the time), "afterwards", or empty."""
    changes: bool = False
    mean: bool = False
    """Whether means over all windows are answered as well."""
    against: str = ""
    """What every window is compared with: "previous", the number of a window, or nothing."""
    first: int = 0
    last: int | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be asked."""
        check_level(self.level)
        if self.by not in BY:
            raise InvalidQuery(f"by is {self.by[:20]!r}, must be one of {', '.join(BY)}")
        if self.smooth not in ("", "online", "afterwards"):
            raise InvalidQuery(f"smooth is {self.smooth[:20]!r}, must be online or afterwards")
        check_against(self.against)

    @classmethod
    def from_query(cls, given: Mapping[str, str], level: float) -> Self:
        """Read the parameters of a query string; InvalidQuery for others than are known."""
        for name in sorted(set(given) - set(PARAMETERS)):
            raise InvalidQuery(f"series: unknown parameter '{name[:40]}', must be one of {', '.join(PARAMETERS)}")
        return cls(
            by=given.get("by", "window"),
            level=level,
            band=_flag(given, "band"),
            smooth=given.get("smooth", ""),
            changes=_flag(given, "changes"),
            mean=_flag(given, "mean"),
            against=given.get("against", ""),
            first=_window(given, "from") or 0,
            last=_window(given, "to"),
        )


PARAMETERS = ("by", "band", "smooth", "changes", "mean", "against", "from", "to")
"""What may be asked of a series, beside the level."""


def _flag(given: Mapping[str, str], name: str) -> bool:
    text = given.get(name, "false")
    if text not in ("true", "false"):
        raise InvalidQuery(f"{name} is {text[:20]!r}, must be true or false")
    return text == "true"


def _window(given: Mapping[str, str], name: str) -> int | None:
    text = given.get(name)
    if text is None:
        return None
    if not is_window(text):
        raise InvalidQuery(f"{name} is {text[:20]!r}, must be the number of a window")
    return int(text)


@dataclass(frozen=True)
class WindowClock:
    """The state of windows at a time."""

    windows: WindowTerms
    retention_days: int
    now: float
    today: date

    @cached_property
    def _known(self) -> dict[int, str]:
        """States that were asked for: every window is asked for twice, and its calendar costs more than its answer."""
        return {}

    def state(self, window: int) -> str:
        """future, open, settling, final or dropped."""
        if window not in self._known:
            self._known[window] = self._state(window)
        return self._known[window]

    def _state(self, window: int) -> str:
        last = self.windows.calendar.last_day(window)
        state = self.windows.state(window, self.now)
        return DROPPED if state == FINAL and (self.today - last).days > self.retention_days else state


def answer_series(
    active: Active, tallies: dict[int, AnyTally], request: SeriesRequest, clock: WindowClock
) -> dict[str, Any]:
    """Answer from the tally of every window that has reports; groups below the minimum cohort have a status alone."""
    windows, account = _terms(active)
    spans = _spans(active, tallies, request, clock)
    sums = [_sum(tallies, span) for span in spans]
    told = [i for i, tally in enumerate(sums) if tally is not None and tally.n >= active.collection.minimum_cohort]
    rows = [_about(windows, clock, spans[i], 0 if sums[i] is None else sums[i].n) for i in range(len(spans))]
    labels = [plain_label(label) for label in active.collection.questions[0].domain.all_labels()]
    changes: list[dict[str, Any]] = []
    means: dict[str, Any] | None = None
    drift: list[float] | None = None
    if told:
        series = Series(tuple(_estimate(active, sums[i]) for i in told), tuple(spans[i] for i in told))
        drift = _fill(rows, told, series, labels, request)
        compare(rows, told, series, request.against, level=request.level, target=TARGET)
        means = mean_rows(series, labels, level=request.level, target=TARGET) if request.mean else None
        changes = _changes(series, labels, windows) if request.changes and len(series) > 1 else []
    return {
        "id": active.id,
        "question": active.collection.questions[0].name,
        "by": request.by,
        "level": request.level,
        "target": TARGET,
        "epsilon": active.collection.epsilon,
        "guarantee": windows.guarantee,
        "words": [*guarantee_words(windows, declared(active.collection)), *always_words(windows, account)],
        "windows": windows.to_json(),
        "minimum_cohort": active.collection.minimum_cohort,
        "smooth": request.smooth or None,
        "drift_variance": drift,
        "changes": changes,
        "against": request.against or None,
        "mean": means,
        "series": rows,
    }


def _terms(active: Active) -> tuple[WindowTerms, AccountTerms]:
    windows, account = active.collection.windows, active.collection.account
    if windows is None or account is None:
        raise InvalidQuery("the collection has no windows; ask for its answers instead")
    return windows, account


def _spans(
    active: Active, tallies: dict[int, AnyTally], request: SeriesRequest, clock: WindowClock
) -> list[tuple[int, int]]:
    """Ranges of windows that are answered together, up to the one of today."""
    windows, calendar = clock.windows, clock.windows.calendar
    begun = [k for k in range(windows.count) if clock.state(k) != FUTURE]
    last = min(begun[-1] if begun else -1, windows.count - 1 if request.last is None else request.last)
    chosen = range(max(0, request.first), last + 1)
    if request.by == "window":
        return [(k, k) for k in chosen]
    if request.by == "group":
        n = [tallies[k].n if k in tallies else 0 for k in chosen]
        groups = sparse_groups(n, active.collection.minimum_cohort, windows.per)
        return [(chosen[first], chosen[end]) for first, end in groups]
    if windows.every != "day" and request.by != windows.every:
        raise InvalidQuery(
            f"by is {request.by}, must be window or group: windows of a {windows.every} do not add up to it"
        )
    groups_by_day: dict[Any, list[int]] = {}
    for k in chosen:
        day = calendar.first_day(k)
        key = day.isocalendar()[:2] if request.by == "week" else (day.year, day.month)
        groups_by_day.setdefault(key, []).append(k)
    return [(group[0], group[-1]) for group in groups_by_day.values()]


def _sum(tallies: dict[int, AnyTally], span: tuple[int, int]) -> Any:
    """The tally of a range of windows: integers, so that days add up to their week bit by bit."""
    found: list[Any] = [tallies[k] for k in range(span[0], span[1] + 1) if k in tallies]
    return reduce(add, found) if found else None


def _estimate(active: Active, tally: Any) -> Estimate:
    mechanism = active.mechanism
    assert isinstance(mechanism, Oracle)
    return mechanism.estimate(tally)


def _about(windows: WindowTerms, clock: WindowClock, span: tuple[int, int], n: int) -> dict[str, Any]:
    """What is said of a range of windows whether it is answered or not."""
    states = {clock.state(k) for k in range(span[0], span[1] + 1)}
    # A range is as settled as the least settled of its windows.
    state = next((s for s in ("open", "settling", DROPPED) if s in states), FINAL)
    return {
        "from": span[0],
        "to": span[1],
        "first_day": windows.calendar.first_day(span[0]).isoformat(),
        "last_day": windows.calendar.last_day(span[1]).isoformat(),
        "state": state,
        "provisional": state in ("open", "settling"),
        "n": n,
        "status": BELOW,
        "rows": [],
    }


def _fill(
    rows: list[dict[str, Any]], told: Sequence[int], series: Series, labels: list[Any], request: SeriesRequest
) -> list[float] | None:
    """Write values and intervals into the rows that are answered; returns the drifts that smoothing settled on."""
    columns: dict[str, F64] = {
        "estimate": series.value,
        "standard_error": np.sqrt(series.variance(TARGET)),
    }
    columns["low"], columns["high"] = series.intervals(request.level, target=TARGET)
    if request.band:
        columns["band_low"], columns["band_high"] = series.band(request.level, target=TARGET)
    smoothed = _smoothed(series, request)
    if smoothed is not None:
        ends = smoothed.interval(normal_isf((1 - request.level) / 2))
        columns |= {"smoothed": smoothed.value, "smoothed_low": ends[0], "smoothed_high": ends[1]}
    names, table = ("value", *columns), np.stack(list(columns.values()), axis=-1).tolist()
    for i, cells in zip(told, table, strict=True):
        values = [dict(zip(names, (label, *cell), strict=True)) for label, cell in zip(labels, cells, strict=True)]
        rows[i] |= {"status": OK, "rows": values}
    return None if smoothed is None else smoothed.drift.tolist()


def _smoothed(series: Series, request: SeriesRequest) -> Smoothed | None:
    if not request.smooth:
        return None
    method = filter_online if request.smooth == "online" else smooth
    return method(series.value, series_noise(series))


def _changes(series: Series, labels: list[Any], windows: WindowTerms) -> list[dict[str, Any]]:
    """The likeliest change of every value, most certain first, and jumps between neighbours that stand out."""
    jumps = set(first_differences(series, target=TARGET).alarms)
    found = sorted(change_points(series, target=TARGET), key=lambda point: point.adjusted)
    return [
        {
            "value": labels[point.cell],
            "window": series.spans[point.row][0],
            "day": windows.calendar.first_day(series.spans[point.row][0]).isoformat(),
            "p_value": point.adjusted,
            "before": point.before,
            "after": point.after,
            "jumps": [
                windows.calendar.first_day(series.spans[row][0]).isoformat()
                for row, cell in sorted(jumps)
                if cell == point.cell
            ],
        }
        for point in found
    ]


def series_csv(answer: dict[str, Any]) -> str:
    """The series as CSV, a row per window and value; a window without an answer has one row without a value."""
    lines: list[Sequence[Any]] = [COLUMNS]
    for row in answer["series"]:
        about = {name: row[name] for name in ("from", "to", "first_day", "last_day", "state", "provisional")}
        about |= {"reports": row["n"], "level": answer["level"]}
        for cell in row["rows"] or [{"value": ""}]:
            whole = about | cell | {"value": as_text(cell["value"])}
            lines.append([whole.get(name) for name in COLUMNS])
    return csv_text(lines)
