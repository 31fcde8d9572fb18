"""Estimates over time: bands, differences, change points and smoothing of windows whose reports are independent."""
