"""Audits from outside: what a client, ours or not, does to privacy, seen from the reports it prints.

`program.py` runs any program that prints reports, `events.py` looks for what tells two answers apart, `client.py`
bounds epsilon from below by it (AUD-CP), `conformance.py` runs the golden vectors against any client, `longitudinal.py`
looks at many reports of one device (AUD-LONG), `presets.py` are our own clients as programs, `page.py` writes it down.
"""
