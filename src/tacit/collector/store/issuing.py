"""What is kept of anonymous tokens where they are signed, in the tables of either database.

`issuers` has private keys, `issued` what was redeemed for which blinded message. Neither has anything of a token: a
blinded message is uniform whatever the token is. Tokens that came with reports are in `used`, which stores write
together with batches. Texts are as in `notices`.
"""

from collections.abc import Callable
from typing import Any

from tacit.collector.ports import CLOSED, DUPLICATE, SPENT, STORED, Outcome, TokenNumbers

Run = Callable[..., list[tuple[Any, ...]]]
Transaction = Callable[[Callable[[Run], Any]], Any]


class IssuingTables:
    """The port `IssuingStore` over a transaction of SQLite or PostgreSQL."""

    def __init__(self, transaction: Transaction) -> None:
        """Work through the transactions of a store."""
        self._transaction = transaction

    def add_key(self, collection: str, secret: bytes) -> None:
        """Keep the private key of a collection that is about to be published."""
        self._transaction(lambda run: run("INSERT INTO @issuers VALUES (?, ?)", collection, secret))

    def key(self, collection: str) -> bytes | None:
        """The private key of a collection; None if it has none, or is closed."""
        rows = self._transaction(lambda run: run("SELECT secret FROM @issuers WHERE id = ?", collection))
        return bytes(rows[0][0]) if rows else None

    def issue(self, collection: str, blinded: bytes, invitation: bytes) -> Outcome:
        """Spend an invitation (empty: none) on a blinded message, of which the hash is kept; the same again is free."""

        def issue(run: Run) -> Outcome:
            found = run("SELECT key, state FROM @collections WHERE id = ?", collection)
            key, state = found[0] if found else (0, "")
            again = "SELECT 1 FROM @issued WHERE collection = ? AND blinded = ? AND invitation = ?"
            spend = "UPDATE @invitations SET spent = 1 WHERE collection = ? AND hash = ? AND spent = 0 RETURNING hash"
            if run(again, key, blinded, invitation):
                return DUPLICATE
            if state != "published":
                return CLOSED
            if invitation and not run(spend, key, invitation):
                # Somebody else was faster: perhaps this very request, sent twice.
                return DUPLICATE if run(again, key, blinded, invitation) else SPENT
            run("INSERT INTO @issued VALUES (?, ?, ?) ON CONFLICT DO NOTHING", key, blinded, invitation)
            return STORED

        return self._transaction(issue)

    def numbers(self, collection: str) -> TokenNumbers:
        """How many tokens of a collection were signed, and how many came with reports."""
        count = "(SELECT count(*) FROM @{} AS t JOIN @collections AS c ON c.key = t.collection WHERE c.id = ?)"
        text = f"SELECT {count.format('issued')}, {count.format('used')}"
        return TokenNumbers(*map(int, self._transaction(lambda run: run(text, collection, collection))[0]))
