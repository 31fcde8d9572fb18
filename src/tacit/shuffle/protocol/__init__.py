"""The parties of a shuffle as pure functions: what a state and the messages it received make of it, and what it sends.

What a respondent's client needs (`session`, `words`, `sealing`) imports neither numpy nor the core.
"""
