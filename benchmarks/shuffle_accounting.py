"""Time the accountants of the shuffle model, and compare planned errors with those of the published closed form.

Run with ``python benchmarks/shuffle_accounting.py``. It prints CPU seconds, and for 1,024 values, a million
respondents, delta = 1e-9 and no cap the mean squared error by the closed form over that of the plan, at least 7.
"""

import sys
from collections.abc import Callable
from decimal import Decimal
from math import log
from time import process_time

from tacit import GRR, HRR, OLH, SS
from tacit.core.mechanism import Oracle
from tacit.shuffle.accounting.published import amplified_odds, capacity
from tacit.shuffle.certificate import certify
from tacit.shuffle.plan import ShuffleGoal, mean_squared_error, plan_shuffle

N, SIZE, DELTA = 10**6, 1024, "1e-9"
EPSILONS = ("0.1", "0.2", "0.3", "0.5", "0.8", "1.0")
LEAST_GAIN = 7.0

TIMED: dict[str, tuple[Oracle, float]] = {
    "grr, 4 values, local epsilon 1": (GRR(size=4, epsilon="1"), 1.0),
    "grr, 1,024 values, local epsilon 4": (GRR(size=SIZE, epsilon="4"), 1.0),
    "grr, 1,024 values, local epsilon 9.6": (GRR(size=SIZE, epsilon="9.6"), 1.0),
    "olh, local epsilon 1": (OLH(size=SIZE, epsilon="1"), 15.0),
    "olh, local epsilon 4": (OLH(size=SIZE, epsilon="4"), 15.0),
    "hrr, local epsilon 1": (HRR(size=SIZE, epsilon="1"), 15.0),
    "ss, local epsilon 4": (SS(size=SIZE, epsilon="4"), 15.0),
}
"""What is certified for a million respondents, and the CPU seconds that it may take."""


def seconds(work: Callable[[], object]) -> float:
    """The CPU time of one run."""
    start = process_time()
    work()
    return process_time() - start


def closed_form_error(epsilon: float) -> tuple[str, float]:
    """The better of randomised response and local hashing by the closed form, and its mean squared error."""
    m = capacity(epsilon, n=N, delta=float(DELTA))
    options: list[tuple[str, Oracle]] = []
    if m > SIZE:
        local = log(amplified_odds(epsilon, n=N, delta=float(DELTA), outputs=SIZE))
        options.append(("grr", GRR(size=SIZE, epsilon=f"{local:.9f}")))
    # Wang's dissertation, proposition 9.3.5: (m + 2)/3 buckets are best.
    buckets = min(max(2, round((m + 2) / 3)), SIZE)
    local = log(amplified_odds(epsilon, n=N, delta=float(DELTA), outputs=buckets))
    options.append((f"olh {buckets}", OLH(size=SIZE, epsilon=f"{local:.9f}", buckets=buckets)))
    name, best = min(options, key=lambda option: mean_squared_error(option[1], N))
    return f"{name} at {float(best.budget.declared):.2f}", mean_squared_error(best, N)


def main() -> int:
    """Print both tables; the status is 1 if a target is missed."""
    missed = 0
    print(f"{'certify, a million respondents':40} {'CPU s':>7} {'target':>7}")
    for name, (mechanism, target) in TIMED.items():
        spent = seconds(lambda mechanism=mechanism: certify(mechanism, n_min=N, delta=DELTA))
        missed += spent > target
        print(f"{name:40} {spent:7.2f} {target:7.1f}")
    goal = ShuffleGoal(Decimal("0.5"), Decimal(DELTA), N, SIZE)
    spent = seconds(lambda: plan_shuffle(goal))
    missed += spent > 10
    print(f"{'plan with frontier':40} {spent:7.2f} {10.0:7.1f}\n")
    print(f"{'epsilon':8} {'closed form':>18} {'error':>9} {'plan':>14} {'error':>9} {'ratio':>6}")
    for epsilon in EPSILONS:
        closed, error = closed_form_error(float(epsilon))
        pick = plan_shuffle(ShuffleGoal(Decimal(epsilon), Decimal(DELTA), N, SIZE), caps=()).pick
        ratio = error / pick.rmse**2
        missed += ratio < LEAST_GAIN
        planned = f"{pick.mechanism.kind} at {pick.local_epsilon}"
        print(f"{epsilon:8} {closed:>18} {error:9.2e} {planned:>14} {pick.rmse**2:9.2e} {ratio:6.1f}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
