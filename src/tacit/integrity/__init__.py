"""Whether somebody pushes an answer: influence of reports, detectors on reports, and labelled repairs.

`structure.py` says which values a report supports and with which probabilities, `tails.py` bounds tails, `cosupport.py`
and `detectors.py` look for what no honest crowd does, `repair.py` takes it out again, `influence.py` says how far any
coalition could push, `inspection.py` runs everything that applies under one budget of false alarms. Nothing here knows
who sent a report. Poisoning by honest reports on a false value has the law of honest people and cannot be seen.
"""
