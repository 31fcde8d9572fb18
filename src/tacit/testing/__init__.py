"""The conformance suite: laws that every mechanism must keep, shipped so that new kinds can be tested with it.

`laws.py` has the laws, `examples.py` an instance of every kind to run them on, `guarantees.py` enumerates every stated
privacy guarantee, `statistics.py` has assertions with a known false-alarm probability.
"""
