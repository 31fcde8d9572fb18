"""The one abstraction of the collector's side: mechanism, tally, estimate.

A mechanism (`mechanism.py`) privatizes values and reads reports; a tally (`tally.py`) is the sum over reports and adds
to other tallies; an estimate (`estimate.py`) is unbiased and always carries its variance. Everything else here serves
one of the three. Concrete mechanisms are in `tacit.oracles` and `tacit.numeric`.
"""
