"""The door to the desk for shuffled collections: it is opened, with the libraries it needs, when one is published."""

from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING

from tacit.collector.collections.active import Active, Shelf, parsed_json
from tacit.collector.ports import Store
from tacit.core.extras import need
from tacit.errors import InvalidSpec
from tacit.hosting.clock import Clock
from tacit.hosting.problems import Problem
from tacit.wire.document import Collection

if TYPE_CHECKING:
    from tacit.collector.shuffle.desk import ShuffleDesk

SESSION_STATES = ("DRAFT", "PUBLISHED", "COLLECTING", "SHUFFLING", "VERIFIED", "RELEASED", "ABORTED")
NOT_ALONE = "shuffled collections on a folder need it for one process alone; serve with --workers 1, or with --database"


class ShuffleFront:
    """Makes the desk at first need, and starts and stops it with the collector."""

    def __init__(
        self,
        store: Store,
        shelf: Shelf,
        touch: Callable[[str], None],
        clock: Clock,
        *,
        phase_seconds: int = 600,
        alone: bool = True,
    ) -> None:
        """Serve the collections of a store; `touch` hears of those with something to fold.

        A process that is not `alone` in a folder has no desk: the sessions in a file go on where one process serves.
        """
        self._may_open = alone
        self._store, self._shelf, self._touch, self._clock = store, shelf, touch, clock
        self._phase_seconds = phase_seconds
        self._lock, self._desk, self._started = Lock(), None, False
        self.url = ""
        """The address at which shufflers reach this collector; set by whoever serves it."""

    @property
    def desk(self) -> "ShuffleDesk":
        """The desk; MissingExtra if this collector cannot have one."""
        with self._lock:
            if self._desk is None:
                self._desk = self._open()
                if self._started:
                    self._desk.start()
            # Set every time, as a server learns its address after the collector was made.
            self._desk.url = self.url
            return self._desk

    def _open(self) -> "ShuffleDesk":
        need("shuffle")
        if not self._may_open:
            raise InvalidSpec(f"draft.shuffle: {NOT_ALONE}")
        from tacit.collector.shuffle.desk import ShuffleDesk
        from tacit.shuffler.party_store import PartyStore

        party = PartyStore(self._store.open_party())
        clock, seconds = self._clock, self._phase_seconds
        return ShuffleDesk(party, self._store, self._shelf, touch=self._touch, clock=clock, phase_seconds=seconds)

    @property
    def is_open(self) -> bool:
        """Whether the desk has been needed so far."""
        return self._desk is not None

    def start(self) -> None:
        """Go on with the sessions of shuffled collections, if there are any."""
        self._started = True
        if not self._may_open:
            return
        if any(_is_shuffled(record.document) for record in self._store.collections() if record.state != "draft"):
            self.desk.start()

    def stop(self) -> None:
        """Stop the desk, if it was needed."""
        with self._lock:
            if self._desk is not None:
                self._desk.stop()

    def check(self, collection: Collection) -> None:
        """Refuse a shuffled collection that could not be run on this collector."""
        if collection.shuffle is not None:
            self.desk.check(collection)

    def published(self, collection: str) -> None:
        """Open the first session of a collection that has just been published, soon."""
        active = self._shelf.find(collection)
        # On a folder, without a server, nobody could reach it; the next server opens the session.
        if self._started and active is not None and active.collection.shuffle is not None:
            self.desk.start()
            self.desk.wake()

    def of(self, active: Active) -> "ShuffleDesk":
        """The desk for a collection; Problem `conflict` if the collection is not shuffled."""
        if active.collection.shuffle is None:
            raise Problem("conflict", "the collection is not shuffled, so it has no sessions")
        return self.desk

    def refuse_closing(self, active: Active) -> None:
        """Problem `conflict` for a shuffled collection whose session goes on: its reports would have no place."""
        if active.collection.shuffle is not None and self.desk.is_busy(active):
            raise Problem(
                "conflict",
                "a session of the collection goes on; close or abort the session, which closes the collection",
            )

    def invited(self, active: Active, invitations: list[bytes]) -> None:
        """Announce invitations to the shufflers of a collection."""
        if active.collection.shuffle is not None:
            self.desk.admit(active, invitations)


def _is_shuffled(document: bytes) -> bool:
    return parsed_json(document).get("shuffle") is not None
