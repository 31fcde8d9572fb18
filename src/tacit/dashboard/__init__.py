"""The pages: the survey a respondent fills in, and the dashboard an operator reads.

Pages are HTML rendered from templates with plain ES modules beside them; everything they show is fetched from the
collector's JSON endpoints. Nothing is inline, so the content security policy allows this origin alone.
"""

from tacit.dashboard.pages import routes
from tacit.dashboard.session import COOKIE

__all__ = ["COOKIE", "routes"]
