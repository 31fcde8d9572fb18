"""The shuffle model: reports lose their sender in a crowd before the collector sees them.

`crypto` has what is sealed and signed, `protocol` what the parties of a shuffle do with it: pure functions, without
sockets and databases.
"""
