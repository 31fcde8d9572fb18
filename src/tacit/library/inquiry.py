"""An inquiry: a question that is planned, handed out as a device, and answered from reports."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np

from tacit.core.mechanism import Mechanism, Reports
from tacit.device.numbers.budget import Declared, Epsilon, as_epsilon
from tacit.device.numbers.coins import Coins, SystemCoins
from tacit.errors import InvalidSpec, InvalidValue, ReportRejected
from tacit.library.columns import Column
from tacit.library.domains import Scope, advice, check_missing
from tacit.library.finding import LEAKS, Finding
from tacit.library.local import LocalDevice
from tacit.tasks.task import Forecast
from tacit.wire.document import Collection, Question

RESPONDENTS = 10_000
"""How many respondents are planned for where nobody says."""


@dataclass(frozen=True, eq=False)
class Inquiry:
    """One question (or several together), planned: hand out `device`, gather its reports, `collect` them.

    Nothing here is new: `mechanism` perturbs and counts, the task of the name answers.
    """

    task: str
    mechanism: Mechanism
    """Chosen by the planner of the task."""
    scopes: tuple[Scope, ...]
    """The domain of every question."""
    n: int
    """How many respondents it was planned for."""
    find: Callable[["Inquiry", Any], Finding]
    """Makes the finding out of a tally."""
    predict: Callable[[Mechanism, int], Forecast]
    policy: str = "single"
    decimals: int = 0

    @property
    def epsilon(self) -> str:
        """What one respondent spends."""
        return str(self.mechanism.budget.to_spec())

    @property
    def is_declared(self) -> bool:
        """Whether somebody declared the domain, so that it may be asked of people."""
        return all(scope.declared for scope in self.scopes)

    @property
    def domain(self) -> Any:
        """The domain of the question; of several, all of them."""
        domains = tuple(scope.domain for scope in self.scopes)
        return domains[0] if len(domains) == 1 else domains

    @property
    def expected_error(self) -> float:
        """The standard error to expect of a typical number of the answer, with as many respondents as planned."""
        return self.forecast.standard_error

    @cached_property
    def forecast(self) -> Forecast:
        """How precise the answer will be, of what, and why this mechanism was chosen."""
        return self.predict(self.mechanism, self.n)

    @cached_property
    def _local(self) -> LocalDevice:
        """The device as this process uses it, whether or not it may be handed out."""
        questions = tuple(
            Question(getattr(scope.domain, "name", "value"), {"en": "value"}, scope.domain, self.task)
            for scope in self.scopes
        )
        document = Collection({"en": self.task}, {"en": self.task}, questions, self.policy, self.mechanism)
        return LocalDevice(document, self.decimals, self.scopes[0].missing)

    @property
    def device(self) -> LocalDevice:
        """What respondents are given: call it with one value and it returns the bytes of a report."""
        self._check_declared("device")
        # Through the reader that clients use: what it refuses could not be handed out.
        return LocalDevice.from_spec(self._local.spec())

    def collect(self, reports: Any) -> Finding:
        """Answer from reports: the bytes that devices returned, in a list or end to end, or an array of reports."""
        self._check_declared("collect")
        return self.answer(self.mechanism.tally(self.read(reports)))

    def read(self, reports: Any) -> Reports:
        """Reports as the mechanism counts them."""
        if isinstance(reports, np.ndarray):
            return cast("Reports", reports)
        if isinstance(reports, (bytes, bytearray, memoryview)):
            return self.mechanism.decode(bytes(cast("bytes", reports)))
        # A list of single reports, as they arrive from devices.
        parts: list[Any] = list(cast("Iterable[Any]", reports)) if isinstance(reports, Iterable) else [None]
        if not all(isinstance(part, bytes) for part in parts):
            raise ReportRejected(f"{self.task}: reports must be bytes that devices returned; count only what they sent")
        width = self.mechanism.report_dtype.itemsize
        if wrong := sum(len(part) != width for part in parts):
            # End to end they may look like other reports: every one is held to the width on its own.
            raise ReportRejected(
                f"{self.task}: {wrong} of {len(parts)} reports have another length, must be {width} "
                f"byte{'s' * (width > 1)} each; collect what the device of this very inquiry returned"
            )
        return self.mechanism.decode(b"".join(parts))

    def answer(self, tally: Any) -> Finding:
        """Answer from a tally, such as the sum of several."""
        return self.find(self, tally)

    def simulate(self, columns: tuple[Column, ...], coins: Coins | None) -> Finding:
        """Perturb values that are all here, count the reports and answer."""
        reports = self.mechanism.privatize(self.encode(columns), SystemCoins() if coins is None else coins)
        return self.answer(self.mechanism.tally(reports))

    def encode(self, columns: tuple[Column, ...]) -> Any:
        """Values as the mechanism takes them: indices, or a row of them per respondent."""
        encoded = [self._indices(scope, column) for scope, column in zip(self.scopes, columns, strict=True)]
        return encoded[0] if len(encoded) == 1 else np.stack(encoded, axis=1)

    def _indices(self, scope: Scope, column: Column) -> Any:
        """The index of every value; each different one is encoded once, by the code that devices run."""
        check_missing(self.task, scope.missing, column)
        # Values repeat: a dictionary finds the different ones in one pass, whatever library they came from.
        places: dict[Any, int] = {}
        try:
            at = [places.setdefault(item, len(places)) for item in column.items]
        except TypeError:
            raise InvalidValue(
                f"{self.task}: a value is a list; sets of items go to tacit.itemsets, several columns to "
                "tacit.marginals"
            ) from None
        return np.array(self._codes(scope, places, at), np.uint64)[np.array(at, np.int64)]

    def _codes(self, scope: Scope, places: Iterable[Any], at: list[int]) -> list[int]:
        """The index of every different value; values that have none are counted, and never shown."""
        read, domain, wrong = self._local, scope.domain, dict[int, InvalidValue]()
        codes, kinds = list[int](), set[type[Any]]()
        for place, value in enumerate(places):
            try:
                codes.append(domain.encode(read.scaled(domain, value) if self.decimals else scope.filled(value)))
            except InvalidValue as error:
                wrong[place] = error
                kinds.add(cast("type[Any]", type(value)))
        if wrong:
            count, reason = sum(place in wrong for place in at), next(iter(wrong.values()))
            what = f"{count} of {len(at)} values are refused ({reason})"
            raise InvalidValue(f"{self.task}: {what}; {advice(domain, kinds)}")
        return codes

    def _check_declared(self, what: str) -> None:
        if not self.is_declared:
            raise InvalidSpec(f"{self.task}: there is no {what}: {LEAKS}")

    def __repr__(self) -> str:
        error = f"expected standard error {self.expected_error:.3g} of {self.forecast.of}"
        about = f"{self.task}: {self.mechanism.kind}, epsilon {self.epsilon}, {self.n:,} respondents"
        return f"<{about}; {error}; hand out .device, answer with .collect(reports)>"


def checked_epsilon(who: str, epsilon: Declared | None) -> Epsilon:
    """The declared epsilon; InvalidSpec that names it where there is none."""
    if epsilon is None:
        raise InvalidSpec(f"{who}: epsilon is missing; write epsilon=1 (small is private, large is precise)")
    return as_epsilon(cast("Any", epsilon))


def respondents(who: str, n: Any, column: Column | None) -> int:
    """How many respondents are planned for: those that are here, or those that are expected."""
    if column is not None:
        return max(1, len(column.items))
    if type(n) is not int or n < 1:
        raise InvalidSpec(f"{who}: n must be a whole number from 1 on: how many respondents are expected")
    return n
