"""Post-processing: Estimate in, Estimate out; never sees a report. Everything biased says so."""
