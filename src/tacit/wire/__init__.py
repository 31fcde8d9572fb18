"""File and message formats: bytes to values and back. No sockets, no databases.

`document.py` and `schema.py` describe collections, `batch.py` uploads of reports, `rows.py` public columns beside them,
`files.py` report and tally files, `tallies.py` tallies in a database.
"""
