"""Time SVSM end to end on a population the size of the Kosarak click stream: 10^6 users, 4 * 10^4 items, k = 64.

Run with ``python benchmarks/itemsets.py``. Baskets are made up (popularity 1/rank, 8.1 draws on average). The time is
that of all five rounds, from sets to the result: every respondent's sampling, reports, tallies and estimates. Tallies
of randomised response are drawn at once, by exactly the law of their sum. Making the data and finding the true
itemsets are timed apart.
"""

from resource import RUSAGE_SELF, getrusage
from time import perf_counter

from tacit.simulate.baskets import pos_like
from tacit.simulate.itemsets import simulate_itemsets, true_itemsets
from tacit.tasks.itemsets.itemsets import Mining

N, SIZE, K = 990_002, 41_270, 64


def main() -> None:
    """Print the table."""
    start = perf_counter()
    sets = pos_like(N, size=SIZE, mean=8.1, most=2500, exponent=1.0, seed=0)
    generated = perf_counter()
    truth = true_itemsets(sets, SIZE, K, "svsm")
    taken = f"made in {generated - start:.1f} s, truth in {perf_counter() - generated:.1f} s"
    print(f"{N:,} baskets of {SIZE:,} items: {taken}")
    for epsilon in ("1", "2", "4"):
        outcome = simulate_itemsets(sets, Mining(epsilon, SIZE, K, N), "svsm", seed=1, truth=truth)
        print(f"svsm, epsilon {epsilon}: {outcome.seconds:6.2f} s   F1 {outcome.f1:.2f}   NCR {outcome.ncr:.2f}")
    print(f"peak memory {getrusage(RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
