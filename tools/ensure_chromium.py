"""Find a Chromium for the browser tests, or install Debian's; say in one line what was done.

Nothing is downloaded but through the system's own package manager, and only where that needs no password. Without a
browser the tests that need one are skipped with a reason, or fail where CI=true asks for all of them.
"""

import os
import shutil
import subprocess
import sys

NAMES = ("chromium", "chromium-browser", "google-chrome")


def find() -> str | None:
    """The path of an installed Chromium."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def install() -> bool:
    """Install Debian's package, as root."""
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        return False
    print("chromium: installing it for the browser tests", flush=True)
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for arguments in (["update"], ["install", "--yes", "--no-install-recommends", "chromium"]):
        if subprocess.run(["apt-get", *arguments], env=environment, check=False, **quiet).returncode != 0:
            return False
    return True


def main() -> int:
    if find() is None and not install():
        print("chromium: not found and not installable here; tests in a browser are left out", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
