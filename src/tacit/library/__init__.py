"""The library in one line: `tacit.histogram(values, epsilon=1)` and seven more, over the same tasks and mechanisms.

Every question is an `Inquiry` (planned, handed out as a device, answered from reports) and every answer a `Finding`
(values, intervals, a table, a plot). They add nothing to what mechanisms, tallies and tasks do; those are attributes.
"""
