"""Answers to SQL over rows whose private columns are known only as noisy reports.

Everything here may use pyarrow and sqlglot, which come with the extra `analytics`. Whoever can do without SQL (the
command line, a collector that starts, the table of tasks) imports this package inside the function that needs it, and
without the extra gets the one sentence that names it.
"""

from tacit.core.extras import need

need("analytics")
