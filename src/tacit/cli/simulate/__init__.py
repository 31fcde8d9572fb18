"""`tacit simulate`: rehearse a collection on simulated respondents; one module per task, `group.py` joins them."""
