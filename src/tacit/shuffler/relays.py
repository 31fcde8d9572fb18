"""Which addresses are relays: those that sessions under way name, and those that the operator adds.

A relay stands for all its respondents, so that the limit for one address would be one for all of them together. Who
floods a session through a relay is stopped by the relay, which alone sees addresses, and by admission tokens.
"""

import socket
from collections.abc import Callable, Iterable, Mapping
from time import monotonic
from urllib.parse import urlsplit

from tacit.hosting.limits import Limits, RateLimit
from tacit.shuffler.party_store import PartyStore

_LOOK_SECONDS = 60.0


def addresses_of(host: str) -> set[str]:
    """All addresses of a host; none if its name is not known."""
    try:
        return {str(found[4][0]) for found in socket.getaddrinfo(host, None)}
    except OSError:
        return set()


class SessionRelays:
    """The relays of all sessions of a store that have not ended, and their limit."""

    def __init__(
        self,
        store: PartyStore,
        *,
        rate: float = 0.0,
        more: Iterable[str] = (),
        resolve: Callable[[str], set[str]] = addresses_of,
        seconds: Callable[[], float] = monotonic,
    ) -> None:
        """Allow `rate` uploads a second to each relay, 0 for no limit; `more` are addresses that relays send from."""
        self._store, self._more, self._resolve, self._seconds = store, frozenset(more), resolve, seconds
        self._limit = RateLimit(Limits(requests_per_second=rate, burst=max(1, int(10 * rate))), seconds)
        self._known, self._looked = frozenset[str](), -_LOOK_SECONDS

    def allow(self, address: str, cost: int) -> bool:
        """Whether an address is that of a relay whose limit is not used up. May ask for names: not for event loops."""
        return self._names(address) and self._limit.allows(address, cost)

    def _names(self, address: str) -> bool:
        if address in self._more:
            return True
        now = self._seconds()
        # Names are looked up at most once a minute, and only after somebody used up the limit of one respondent.
        if now - self._looked >= _LOOK_SECONDS:
            hosts = {host for record in self._store.sessions(only_live=True) if (host := _host(record.session.relay))}
            self._known, self._looked = frozenset[str]().union(*map(self._resolve, hosts)), now
        return address in self._known


def _host(relay: Mapping[str, str] | None) -> str:
    return (urlsplit(relay["url"]).hostname or "") if relay else ""
