"""Sites that may show a collection or send reports to it: those of its document, and those that an operator adds.

The document is never changed: what an operator adds stands beside it, in the store, and every change is in the audit
log. Requests are judged by a copy in memory, which is read again every few seconds, as other processes may change it.
"""

from collections.abc import Sequence
from typing import Any, cast

from tacit.collector.collections.active import Active
from tacit.collector.ports import Store
from tacit.errors import InvalidSpec
from tacit.hosting.problems import Problem
from tacit.wire.document import MAX_ORIGINS, is_origin


def checked_origins(given: Any) -> tuple[str, ...]:
    """Sites as an operator gives them, each once and in order; InvalidSpec with the rule."""
    items = cast("Sequence[Any]", given) if isinstance(given, list) else [None]
    for item in items:
        if not is_origin(item):
            raise InvalidSpec(
                f"origins: {str(item)[:80]!r} is no web origin, must be such as https://example.org: scheme, host in "
                "lower case, with a port if there is one, and no path behind it; or * for all"
            )
    if len(items) > MAX_ORIGINS:
        raise InvalidSpec(f"origins: {len(items)} sites, must be at most {MAX_ORIGINS}")
    return tuple(sorted(set(cast("Sequence[str]", items))))


class Origins:
    """The sites of all collections."""

    def __init__(self, store: Store) -> None:
        """Read from a store; nothing is known before the first `look`."""
        self._store = store
        self._added: dict[str, tuple[str, ...]] = {}

    def look(self) -> None:
        """Read again what operators have added."""
        self._added = self._store.origins()

    def added(self, collection: str) -> tuple[str, ...]:
        """What an operator added."""
        return self._added.get(collection, ())

    def of(self, active: Active) -> tuple[str, ...]:
        """Everything that is allowed; never touches the store, so that the event loop may call it."""
        added = self._added.get(active.id)
        return active.collection.origins if added is None else (*active.collection.origins, *added)

    def replace(self, active: Active, given: Any) -> tuple[list[str], list[str]]:
        """Allow these sites beside those of the document; returns which are new, and which are gone."""
        wanted = checked_origins(given)
        self.look()
        before = self.added(active.id)
        self._store.set_origins(active.id, wanted)
        self.look()
        return [one for one in wanted if one not in before], [one for one in before if one not in wanted]


def refuse_foreign(origin: str, host: str, origins: Sequence[str]) -> None:
    """Problem `origin` for a page of a site that is not allowed, which names the site and what to do."""
    own = origin.partition("://")[2] == host
    if not origin or own or "*" in origins or origin in origins:
        return
    raise Problem(
        "origin",
        f"the collection does not allow pages of {origin[:200]}; its operator adds this site to the collection on the "
        "dashboard, or with: tacit collection origins ID --add ORIGIN",
    )
