"""The collector: publish collections, take in reports, count them exactly once, and answer with error bars.

Use-cases are plain functions over a storage port; HTTP and the command line are thin layers on top.
"""
