"""Post-processing: estimates in, consistent estimates out. It never sees a report, so it costs no privacy.

Four rooms by what is made consistent: `frequencies` (one histogram), `trees` (levels of a hierarchy over one ordered
attribute), `grids` (hierarchies over several attributes) and `views` (overlapping marginal tables). Least squares keeps
estimates unbiased; steps that do not (clipping, projections, priors) say "Biased" in their docstring.
"""
