"""What a client needs of the shuffle model loads no numpy and nothing of the core."""

import subprocess
import sys


def test_the_client_half_loads_neither_numpy_nor_the_core():
    script = (
        "import sys; import tacit.shuffle.protocol.sealing, tacit.shuffle.protocol.words, tacit.shuffle.crypto.ohttp; "
        "print([name for name in sys.modules if name in ('numpy', 'gmpy2') or name.startswith('tacit.core')])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
