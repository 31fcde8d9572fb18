"""The cache of tallies: what is read twice is added up once, and what retention drops does not come back."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

from tacit.collector.ingest.totals import TallyCache

ACTIVE = cast("Any", SimpleNamespace(id="a", collection=SimpleNamespace(shuffle=None, windows=None), mechanism=None))
STORE = cast("Any", SimpleNamespace(tallies=lambda _: [SimpleNamespace(content=b"x")]))


class CountingFolder:
    """Counts how often tallies are added up, and does something else meanwhile."""

    def __init__(self) -> None:
        self.sums, self.meanwhile = 0, cast("Callable[[], None]", lambda: None)

    def sum(self, *_: object) -> Any:
        self.sums += 1
        self.meanwhile()
        return SimpleNamespace(n=self.sums)


def test_the_same_bytes_are_added_up_once() -> None:
    folder = CountingFolder()
    cache = TallyCache(STORE, cast("Any", folder))
    assert cache.total(ACTIVE) is cache.total(ACTIVE)
    assert folder.sums == 1


def test_a_tally_that_is_forgotten_while_it_is_read_is_not_cached() -> None:
    folder = CountingFolder()
    cache = TallyCache(STORE, cast("Any", folder))
    folder.meanwhile = cache.forget
    cache.total(ACTIVE)
    folder.meanwhile = lambda: None
    cache.total(ACTIVE)
    assert folder.sums == 2
    cache.total(ACTIVE)
    assert folder.sums == 2
