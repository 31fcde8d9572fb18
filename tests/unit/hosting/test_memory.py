"""A server that handles large buffers may keep what it has freed."""

import resource
import subprocess
import sys

SCRIPT = """
import resource
from tacit.hosting.memory import keep_freed_memory
kept = keep_freed_memory()
faults = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_minflt
def turns(count):
    before = faults()
    for _ in range(count):
        bytes(bytearray(8 << 20))
    return faults() - before
turns(3)
print(int(kept), turns(20))
"""


def test_freed_buffers_are_used_again():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    kept, faults = map(int, done.stdout.split())
    # Elsewhere than with the GNU C library nothing is promised.
    assert not kept or faults < 20 * (8 << 20) // resource.getpagesize()
