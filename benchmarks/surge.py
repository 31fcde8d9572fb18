"""A day of a large collection, simulated: arrival peaks, clients that try again, a collector that is lost.

A fluid model in steps of half a second: numbers of reports, not single ones, so that 10^10 of them take a second to
simulate and the same parameters always give the same day. Rules are those of the code: a collector queues at most so
many batches and refuses the rest (503); a client waits 0.5 s, then twice as long each time, and after the last attempt
keeps the report until the respondent comes back.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

STEP = 0.5
DAY = 86_400.0
_EVERYTHING = 1e-6
"""A backlog below this share of a second's arrivals is none."""


@dataclass(frozen=True)
class Day:
    """What happens on one day, in seconds from its beginning."""

    reports: float
    peak: float = 3.0
    """The busiest moment, as a multiple of the mean."""
    flash: float = 1.5
    """At the busiest moment arrivals are so many times more still, for a minute: an article, a match, a release."""
    flash_seconds: float = 60.0
    lost_from: float = DAY / 2 - 300
    lost_seconds: float = 900.0
    """One collector is gone for so long, around the busiest moment."""
    notice_seconds: float = 10.0
    """Until the load balancer sends it nothing any more."""

    def curve(self) -> Callable[[float], float]:
        """New reports per second, by the second of the day."""
        # A power of a raised cosine: its maximum is at noon, its mean 1 / peak of that, and it never falls below zero.
        most, power = self.reports / DAY * self.peak, _power(self.peak)

        def arrivals(second: float) -> float:
            wave = (0.5 - 0.5 * math.cos(2 * math.pi * second / DAY)) ** power
            near = abs(second - DAY / 2) <= self.flash_seconds / 2
            return most * wave * (self.flash if near else 1.0)

        return arrivals


def _power(peak: float) -> float:
    """The power of a raised cosine with maximum 1 whose mean is 1 / peak, by bisection."""
    low, high = 0.0, 1e4
    for _ in range(60):
        middle = (low + high) / 2
        mean = math.exp(math.lgamma(middle + 0.5) - math.lgamma(middle + 1)) / math.sqrt(math.pi)
        low, high = (middle, high) if mean > 1 / peak else (low, middle)
    return low


@dataclass(frozen=True)
class Fleet:
    """The collectors."""

    collectors: int
    per_second: float
    """Reports that one of them stores per second."""
    queue: int = 4096
    """Reports that one of them holds at most before it refuses."""


@dataclass(frozen=True)
class Patience:
    """What clients do when they are refused."""

    attempts: int = 5
    first_wait: float = 0.5
    comes_back: float = 3600.0
    """After so long a respondent whose client gave up opens the page again."""

    def wait(self, attempt: int) -> float:
        """Mean seconds before the next attempt: clients draw from the upper half of the interval."""
        return 0.75 * self.first_wait * 2**attempt


@dataclass
class Course:
    """What a day was like."""

    arrived: float = 0.0
    stored: float = 0.0
    refused: float = 0.0
    """Refusals; a report may be refused several times."""
    queued: float = 0.0
    longest_queue: float = 0.0
    """Per collector."""
    again: float = 0.0
    """Reports that wait on devices to be sent again, at present and at most."""
    most_again: float = 0.0
    parked: float = 0.0
    """Those of them whose clients have given up for now."""
    most_parked: float = 0.0
    backlog_seconds: float = 0.0
    """How long anybody was waiting to send again."""
    due: dict[int, list[float]] = field(default_factory=dict[int, list[float]])
    """By step, what will be sent then, by the number of its attempt."""
    back: dict[int, float] = field(default_factory=dict[int, float])
    """By step, what comes back then."""


class Simulation:
    """One day, step by step."""

    def __init__(self, day: Day, fleet: Fleet, patience: Patience | None = None) -> None:
        self.day, self.fleet, self.patience = day, fleet, patience or Patience()
        self.course, self.step = Course(), 0
        self._arrivals = day.curve()

    def run(self, seconds: float = DAY) -> Course:
        """Go on for so long."""
        for _ in range(round(seconds / STEP)):
            self.advance()
        return self.course

    @property
    def second(self) -> float:
        """The time of day."""
        return self.step * STEP

    def advance(self) -> None:
        """One step: what arrives is taken or refused, and what is queued is stored."""
        course, fleet = self.course, self.fleet
        offered = course.due.pop(self.step, [0.0] * self.patience.attempts)
        offered[0] += (back := course.back.pop(self.step, 0.0))
        course.parked -= back
        course.again -= sum(offered)
        fresh = self._arrivals(self.second) * STEP
        course.arrived += fresh
        offered[0] += fresh
        alive, reachable = self._alive()
        if alive < fleet.collectors and self.second - STEP < self.day.lost_from <= self.second:
            self._lose()
        able = alive * fleet.per_second * STEP
        served = min(course.queued, able)
        course.queued -= served
        course.stored += served
        self._take(offered, alive * fleet.queue, able - served, reachable)
        self._note(alive, fresh)
        self.step += 1

    def _alive(self) -> tuple[int, float]:
        """Collectors that work, and the share of requests that reach one of them."""
        since = self.second - self.day.lost_from
        if not 0 <= since < self.day.lost_seconds:
            return self.fleet.collectors, 1.0
        left = self.fleet.collectors - 1
        return left, left / self.fleet.collectors if since < self.day.notice_seconds else float(left > 0)

    def _lose(self) -> None:
        """What a collector had not stored was not acknowledged either: its clients send it again."""
        lost = self.course.queued / self.fleet.collectors
        self.course.queued -= lost
        self._send_again(0, lost)

    def _take(self, offered: list[float], places: float, able: float, reachable: float) -> None:
        """Take what there is room for, of which as much is stored at once as the step has left (`able`)."""
        course, total = self.course, sum(offered)
        # After a loss more may be queued than there are places left.
        taken = min(total * reachable, max(0.0, places + able - course.queued))
        at_once = min(taken, able)
        course.stored += at_once
        course.queued += taken - at_once
        course.refused += total - taken
        if taken < total:
            for attempt, number in enumerate(offered):
                self._send_again(attempt, number * (1 - taken / total))

    def _send_again(self, attempt: int, number: float) -> None:
        patience = self.patience
        self.course.again += number
        if attempt + 1 == patience.attempts:
            at = self.step + round(patience.comes_back / STEP)
            self.course.back[at] = self.course.back.get(at, 0.0) + number
            self.course.parked += number
            return
        at = self.step + max(1, round(patience.wait(attempt) / STEP))
        self.course.due.setdefault(at, [0.0] * patience.attempts)[attempt + 1] += number

    def _note(self, alive: int, fresh: float) -> None:
        course = self.course
        course.longest_queue = max(course.longest_queue, course.queued / max(1, alive))
        course.most_again = max(course.most_again, course.again)
        course.most_parked = max(course.most_parked, course.parked)
        course.backlog_seconds += STEP * (course.again > _EVERYTHING * max(1.0, fresh))
