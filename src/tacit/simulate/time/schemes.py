"""Schemes that follow a yes/no stream with at most epsilon in any w windows, as `tacit simulate time` compares them.

Population division: a device reports with all of epsilon once in w windows (LPU; LSP, where all do so in the same
window; LPD and LPA, where a server asks for many devices when something changed). Budget division: every device
reports in every window with a part of epsilon (LBU; LBD and LBA with adaptive parts). LDP-IDS, Ren et al., SIGMOD 2022,
sections 5 and 6. What a server publishes between two reports of LSP, LPD, LPA, LBD and LBA is its last release.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from tacit.arrays import I64
from tacit.core.estimate import Estimate
from tacit.oracles.grr import GRR

_FEWEST = 50
"""LPD publishes nothing of a group of so few devices."""
_LEAST_EPSILON = 0.001


@dataclass(eq=False)
class StreamCrowd:
    """The devices behind a stream: who said yes in every window, and who was asked how much."""

    counts: I64
    n: int
    epsilon: float
    run: int
    rng: np.random.Generator
    asked: "list[list[tuple[float, float]]]" = field(default_factory=list["list[tuple[float, float]]"])
    """Per window: (share of the devices, epsilon of each of them) of every question that was put."""

    def ask(self, window: int, share: float, epsilon: float) -> Estimate:
        """Ask a random share of the devices, all with this epsilon, and return what they say about everybody."""
        size = min(self.n, max(1, round(share * self.n)))
        yes = int(self.counts[window])
        among = int(self.rng.hypergeometric(yes, self.n - yes, size)) if size < self.n else yes
        mechanism = oracle(epsilon)
        estimate = mechanism.estimate(mechanism.simulate_tally(np.array([size - among, among]), self.rng))
        while len(self.asked) <= window:
            self.asked.append([])
        self.asked[window].append((size / self.n, epsilon))
        # A random group speaks for all: sampling adds (1 - n/N) f(1 - f)/n, and nothing where all were asked.
        return replace(estimate, effective=size / (1 - size / self.n) if size < self.n else np.inf)

    def noise(self, share: float, epsilon: float) -> float:
        """Return the variance of the estimate from a share of the devices at frequency zero."""
        return oracle(epsilon).variance_at_zero / max(1.0, share * self.n)


_ORACLES: dict[str, GRR] = {}


def oracle(epsilon: float) -> GRR:
    """Return randomised response at an epsilon, with six decimals and never more than was asked for."""
    text = f"{np.floor(epsilon * 1e6 + 1e-6) / 1e6:.6f}"
    if text not in _ORACLES:
        _ORACLES[text] = GRR(size=2, epsilon=text)
    return _ORACLES[text]


Releases = list[Estimate]


def _lpu(crowd: StreamCrowd) -> Releases:
    """One w-th of the devices in every window, each with all of epsilon (population uniform)."""
    return [crowd.ask(t, 1 / crowd.run, crowd.epsilon) for t in range(len(crowd.counts))]


def _lbu(crowd: StreamCrowd) -> Releases:
    """Everybody in every window, each time with a w-th of epsilon (budget uniform)."""
    return [crowd.ask(t, 1.0, crowd.epsilon / crowd.run) for t in range(len(crowd.counts))]


def _lsp(crowd: StreamCrowd) -> Releases:
    """Everybody in every w-th window, and the same number in between (sampling)."""
    out: Releases = []
    for t in range(len(crowd.counts)):
        out.append(crowd.ask(t, 1.0, crowd.epsilon) if t % crowd.run == 0 else out[-1])
    return out


def _adaptive(crowd: StreamCrowd, look: Callable[[int], Estimate], publish: "_Publisher") -> Releases:
    """Look in every window whether something changed; publish anew if that is worth more than it costs."""
    out: Releases = []
    for t in range(len(crowd.counts)):
        seen, part = look(t), publish.candidate(t)
        if part is None:
            out.append(out[-1])
            continue
        # Raw values: clipping them first would bias the distance.
        distance = 0.0 if not out else float(np.mean((seen.value - out[-1].value) ** 2 - seen.variance))
        if not out or distance > publish.cost(part):
            out.append(publish.ask(t, part))
            publish.taken(t, part)
        else:
            out.append(out[-1])
    return out


@dataclass(eq=False)
class _Publisher:
    """Which part of the devices or of epsilon a publication may take: half of what is left, or what was saved up."""

    crowd: StreamCrowd
    by_devices: bool
    absorbing: bool
    parts: "dict[int, float]" = field(default_factory=dict[int, float])

    def candidate(self, t: int) -> float | None:
        """Return the part that a publication in window t would take; None where none is allowed."""
        part = self._absorbed(t) if self.absorbing else self._halved(t)
        if part is None or (self.by_devices and not self.absorbing and part * self.crowd.n <= _FEWEST):
            return None
        return part if self.by_devices or part * self.crowd.epsilon >= _LEAST_EPSILON else None

    def _halved(self, t: int) -> float:
        used = sum(part for window, part in self.parts.items() if window > t - self.crowd.run)
        return (0.5 - used) / 2

    def _absorbed(self, t: int) -> float | None:
        unit = 1 / (2 * self.crowd.run)
        if not self.parts:
            return unit
        last = max(self.parts)
        # A publication that took a units has used up those of the next a - 1 windows.
        saved = t - (last + round(self.parts[last] / unit) - 1)
        return unit * min(saved, self.crowd.run) if saved > 0 else None

    def cost(self, part: float) -> float:
        """Return the variance of a publication with this part."""
        return self.crowd.noise(*self._question(part))

    def ask(self, t: int, part: float) -> Estimate:
        """Publish an estimate made from this share of the devices."""
        return self.crowd.ask(t, *self._question(part))

    def taken(self, t: int, part: float) -> None:
        """Note how much a publication took."""
        self.parts[t] = part

    def _question(self, part: float) -> tuple[float, float]:
        return (part, self.crowd.epsilon) if self.by_devices else (1.0, part * self.crowd.epsilon)


def _divided(crowd: StreamCrowd, *, by_devices: bool, absorbing: bool) -> Releases:
    half = 1 / (2 * crowd.run)
    share, epsilon = (half, crowd.epsilon) if by_devices else (1.0, half * crowd.epsilon)
    return _adaptive(crowd, lambda t: crowd.ask(t, share, epsilon), _Publisher(crowd, by_devices, absorbing))


SCHEMES: dict[str, Callable[[StreamCrowd], Releases]] = {
    "lpu": _lpu,
    "lbu": _lbu,
    "lsp": _lsp,
    "lpd": lambda crowd: _divided(crowd, by_devices=True, absorbing=False),
    "lpa": lambda crowd: _divided(crowd, by_devices=True, absorbing=True),
    "lbd": lambda crowd: _divided(crowd, by_devices=False, absorbing=False),
    "lba": lambda crowd: _divided(crowd, by_devices=False, absorbing=True),
}
"""Every scheme, by the name of its paper."""


def largest_charge(crowd: StreamCrowd) -> float:
    """Return the largest epsilon that any run of windows charges to one device, as devices were asked.

    Devices that are asked in a window are drawn from those that were not asked within the run, so a run must not ask
    for more than all of them.
    """
    most = 0.0
    for last in range(len(crowd.asked)):
        run = [question for window in crowd.asked[max(0, last - crowd.run + 1) : last + 1] for question in window]
        most = max(most, _charge(run))
    return most


def _charge(run: "list[tuple[float, float]]") -> float:
    """The epsilon of one run: questions to everybody add; those to groups cost the largest, if the groups fit."""
    everybody = sum(epsilon for share, epsilon in run if share == 1.0)
    groups = [(share, epsilon) for share, epsilon in run if share < 1.0]
    total = sum(share for share, _ in groups)
    # Rounding of group sizes may exceed the crowd by a device per question, which then comes from a smaller group.
    fits = 1 if total <= 1 + 1e-3 else int(np.ceil(total))
    return everybody + fits * max((epsilon for _, epsilon in groups), default=0.0)
