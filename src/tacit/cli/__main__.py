"""`python -m tacit.cli`, and the file that `spark-submit` is given."""

import sys
from pathlib import Path

# As a script, its own folder is searched first, where `token.py` would hide that of the standard library.
if sys.path and Path(sys.path[0]).resolve() == Path(__file__).resolve().parent:
    del sys.path[0]

from tacit.cli import main

main()
