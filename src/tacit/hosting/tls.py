"""TLS of servers, and whom a process believes when it connects to others."""

import ssl
from dataclasses import dataclass
from pathlib import Path

from tacit.errors import InvalidSpec


@dataclass(frozen=True)
class TlsFiles:
    """A certificate with its chain and the key of it, in PEM files."""

    cert: Path
    key: Path

    @classmethod
    def given(cls, cert: Path | None, key: Path | None) -> "TlsFiles | None":
        """Both files, or none of them for a server without TLS."""
        if cert is None and key is None:
            return None
        if cert is None or key is None:
            raise InvalidSpec("serve: --tls-cert and --tls-key go together")
        return cls(cert, key)

    def context(self) -> ssl.SSLContext:
        """How a server shows the certificate: TLS 1.2 or newer."""
        found = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        found.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            found.load_cert_chain(self.cert, self.key)
        except (OSError, ssl.SSLError) as error:
            raise InvalidSpec(f"serve: the certificate or its key cannot be read ({type(error).__name__})") from None
        return found


def trusting(ca_file: Path | None) -> ssl.SSLContext:
    """How connections to others are checked: by the system's authorities, or by those of a PEM file alone."""
    try:
        return ssl.create_default_context(cafile=str(ca_file) if ca_file else None)
    except (OSError, ssl.SSLError) as error:
        raise InvalidSpec(f"--ca-file: {ca_file} holds no certificates ({type(error).__name__})") from None
