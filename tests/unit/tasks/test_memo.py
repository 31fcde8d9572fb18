"""Results are computed once while the tally is held, and never more of them are held than stated."""

import pytest

from tacit.tasks.memo import MOST_RESULTS, Memo


def test_a_key_is_computed_once() -> None:
    memo, computed = Memo(), list[int]()

    def compute() -> object:
        computed.append(1)
        return object()

    assert memo.get("a", compute) is memo.get("a", compute)
    assert memo.get("b", compute) is not memo.get("a", compute)
    assert len(computed) == 2


def test_the_least_recently_used_result_gives_way() -> None:
    memo = Memo()
    for key in range(MOST_RESULTS):
        memo.get(key, lambda key=key: key)
    memo.get(0, lambda: "used again, so not computed")
    memo.get("one more", lambda: "new")
    assert memo.get(0, lambda: "again") == 0
    assert memo.get(1, lambda: "again") == "again"


def test_a_failure_is_not_cached() -> None:
    memo = Memo()
    with pytest.raises(ZeroDivisionError):
        memo.get("a", lambda: 1 // 0)
    assert memo.get("a", lambda: 1) == 1


def test_of_two_that_compute_at_once_the_first_result_is_shared() -> None:
    memo, first = Memo(), object()

    def slow() -> object:
        memo.get("a", lambda: first)  # Another thread finished in the meantime.
        return object()

    assert memo.get("a", slow) is first
