"""The ingest path: bytes of an upload to a durable batch (group commit), and batches to tallies (folding)."""
