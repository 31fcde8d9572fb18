"""The central model, NOT LOCAL: a trusted curator holds the true counts and releases them with noise.

Histograms (`flat`, `sorted`, `tree`, `wavelet`) and mechanisms for the count of a small group. Nothing here protects
a respondent from whoever holds the counts; for that, see the oracles. What is shared with the rest of Tacit: no float
decides about privacy, and randomness is coins.
"""

MODEL = "central, NOT LOCAL: whoever runs this holds the true counts"
"""The label that every output of this package carries."""
