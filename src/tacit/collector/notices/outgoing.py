"""One POST to an address that an operator chose, without letting it reach what only this machine can reach.

A collector stands inside a network that whoever may add a webhook does not (server-side request forgery). The name is
resolved once, every address that it resolves to must be public, and the connection goes to the address that was
checked, so that a second resolution cannot answer otherwise. Redirects are not followed, and answers are not read.
"""

import socket
import ssl
from contextlib import suppress
from http.client import HTTPConnection, HTTPException
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from threading import Timer
from urllib.parse import SplitResult, urlsplit

from tacit.errors import InvalidSpec

SECONDS = 10.0
"""For a whole attempt, however slowly the other side answers."""
_MOST_URL = 2000
# All that has been given to anyone (RFC 4291, section 2.4), but for 6to4, behind which any IPv4 address may hide. What
# is outside of it (site-local addresses, translated and IPv4-compatible ones) is routed where a network likes.
_UNICAST, _SIX_TO_FOUR = IPv6Network("2000::/3"), IPv6Network("2002::/16")
# For the protocols of a network itself (RFC 6890); a cloud has its metadata there, and `is_global` knows a part of it.
_PROTOCOLS = IPv4Network("192.0.0.0/24")


class NotDelivered(Exception):
    """An attempt failed; the words are for the log, and quote nothing that the other side said."""


def checked_url(url: object, *, private: bool) -> str:
    """The address of a webhook, as it may be kept; InvalidSpec for anything else."""
    if not isinstance(url, str) or len(url) > _MOST_URL or not url.isascii() or not url.isprintable() or " " in url:
        raise InvalidSpec(f"webhook: url must be an address of at most {_MOST_URL} printable ASCII characters")
    try:
        parts, port = urlsplit(url), urlsplit(url).port
    except ValueError:
        raise InvalidSpec("webhook: url cannot be read as an address; write https://host/path") from None
    if parts.scheme not in ("https", *(["http"] if private else [])) or not parts.hostname or port == 0:
        raise InvalidSpec(
            "webhook: url must begin with https:// and name a host; http:// goes with --webhook-private alone"
        )
    if parts.username is not None or parts.password is not None or parts.fragment:
        raise InvalidSpec("webhook: url must have no user, no password and no fragment; bodies are signed instead")
    return url


def is_public(address: str) -> bool:
    """Whether an IP address is one of the public internet.

    >>> is_public("192.0.43.7"), is_public("10.0.0.1"), is_public("::ffff:127.0.0.1"), is_public("64:ff9b::a00:1")
    (True, False, False, False)
    """
    found: IPv4Address | IPv6Address = ip_address(address.partition("%")[0])
    if isinstance(found, IPv6Address):
        found = found.ipv4_mapped or found
    if isinstance(found, IPv6Address):
        return found.is_global and found in _UNICAST and found not in _SIX_TO_FOUR
    return found.is_global and not found.is_multicast and found not in _PROTOCOLS


def _address(host: str, port: int, private: bool) -> str:
    try:
        found = {str(entry[4][0]) for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)}
    except (OSError, UnicodeError):
        raise NotDelivered("the name of the host is not known") from None
    # All of them: a name that has one private address is not to be trusted with the others.
    if not private and not all(is_public(address) for address in found):
        raise NotDelivered("the host has a private address; start the collector with --webhook-private to allow it")
    return sorted(found)[0]


class _Pinned(HTTPConnection):
    """A connection to an address that was checked, for the host that it was resolved from."""

    def __init__(self, parts: SplitResult, address: str, port: int) -> None:
        super().__init__(parts.hostname or "", port, timeout=SECONDS)
        self._address, self._parts, self.is_late = address, parts, False

    def connect(self) -> None:
        self.sock = socket.create_connection((self._address, self.port), self.timeout)
        if self._parts.scheme == "https":
            # The handshake comes when the socket is known, so that `give_up` can end it as well.
            self.sock = ssl.create_default_context().wrap_socket(
                self.sock, server_hostname=self._parts.hostname, do_handshake_on_connect=False
            )
        if self.is_late:
            raise TimeoutError
        if isinstance(self.sock, ssl.SSLSocket):
            self.sock.do_handshake()

    def give_up(self) -> None:
        """End an attempt that takes too long, from another thread."""
        self.is_late = True
        if self.sock is not None:
            # Not the method of TLS sockets, which takes away what the other thread is using. A socket that is not
            # connected any more, or not yet, is left alone: `connect` looks whether it is late.
            with suppress(OSError):
                socket.socket.shutdown(self.sock, socket.SHUT_RDWR)


def post(url: str, body: bytes, headers: dict[str, str], *, private: bool, seconds: float = SECONDS) -> int:
    """Send a body and return the status of the answer; NotDelivered if there was none."""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    connection = _Pinned(parts, _address(parts.hostname or "", port, private), port)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    # A timeout of the socket alone would begin anew with every byte.
    timer = Timer(seconds, connection.give_up)
    timer.daemon = True
    timer.start()
    try:
        connection.request("POST", path, body, headers)
        return connection.getresponse().status
    except (OSError, HTTPException) as error:
        if isinstance(error, ssl.SSLError) and not connection.is_late:
            raise NotDelivered("the certificate of the host, or its TLS, is not valid") from None
        raise NotDelivered(f"no answer ({type(error).__name__})") from None
    finally:
        timer.cancel()
        connection.close()
