"""Validation of host names and public URLs, which go into links, embed snippets and QR codes."""

import re
from urllib.parse import urlsplit

from tacit.errors import InvalidSpec

_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?|\[[0-9A-Fa-f:.]{2,45}\]")
_RULE = 'must be an address such as "https://example.org", without user, path, query or fragment'
# Stricter than RFC 9110, as the value is echoed into pages; but names inside a private network may have underscores.
_HOST_HEADER = re.compile(rb"([A-Za-z0-9_][A-Za-z0-9_.-]{0,252}|\[[0-9A-Fa-f:.]{2,45}\])(:([0-9]{0,5}))?")
_MOST_PORT = 65535
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}


def plain_host(value: bytes) -> bytes | None:
    """The value of a Host header without an empty port; None if it is not a valid host."""
    match = _HOST_HEADER.fullmatch(value)
    if match is None or int(match[3] or b"0") > _MOST_PORT:
        return None
    return match[0].removesuffix(b":")


def authority(netloc: str, scheme: str) -> str:
    """Host and port in canonical form, to compare sites: lower case, without the default port of the scheme."""
    return netloc.lower().removesuffix(":").removesuffix(_DEFAULT_PORTS.get(scheme, ""))


def public_address(text: str) -> str:
    """A public URL in canonical form, without a trailing slash; empty for none. InvalidSpec if it is no bare origin."""
    if not text:
        return ""
    try:
        parts = urlsplit(text)
        # `urlsplit` parses the port lazily, so a bad one raises here.
        port = parts.port
    except ValueError:
        raise InvalidSpec(f"public_url: {_RULE}") from None
    host = parts.netloc.removesuffix("" if port is None else f":{port}")
    bare = parts.path in ("", "/") and not parts.query and not parts.fragment and not text.endswith(("?", "#"))
    # Pages load their scripts from absolute paths, so the collector cannot be served below a path.
    if parts.scheme not in ("http", "https") or not _HOST.fullmatch(host) or port == 0 or not bare:
        raise InvalidSpec(f"public_url: {_RULE}")
    return f"{parts.scheme}://{parts.netloc.lower()}"
