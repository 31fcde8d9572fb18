"""Storage adapters: the same port over an embedded and over a server database."""
