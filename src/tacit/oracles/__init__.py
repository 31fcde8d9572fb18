"""Frequency oracles: mechanisms that estimate how many respondents hold each value. One family per file.

Every class joins the device half (sampling, `tacit.device.kinds`) with the collector's half (counting and estimating,
`tacit.core`), so that both read the same exact probabilities.
"""
