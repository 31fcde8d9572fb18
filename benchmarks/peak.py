"""Run a command and print the peak resident memory of it, in bytes.

Standard library only and a process of its own: Linux lets a child start with the peak of its parent, so the
parent has to be small.
"""

from __future__ import annotations

import resource
import subprocess
import sys

UNIT = 1 if sys.platform == "darwin" else 1024


def main() -> int:
    """Run the command of the arguments; its output goes to standard error."""
    status = subprocess.run(sys.argv[1:], stdout=sys.stderr, check=False).returncode
    print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * UNIT)
    return status


if __name__ == "__main__":
    sys.exit(main())
