"""Starts the lockhouse program that this package contains."""

import os
import shutil
import sys

# Lockhouse finds its language engines in the directory of the program.
PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "lockhouse")
# The interpreter that Lockhouse prefers for its Python workers. Without it, Lockhouse uses the first python3 in PATH.
SYSTEM_PYTHON = "/usr/bin/python3"


def main() -> None:
    """Replaces this process by lockhouse, with the same arguments."""
    environment = dict(os.environ)
    path = environment.get("PATH", os.defpath)
    if not os.path.exists(SYSTEM_PYTHON) and shutil.which("python3", path=path) is None:
        # For instance, uv has an interpreter of its own that is not in PATH.
        environment["PATH"] = os.pathsep.join([path, os.path.dirname(sys.executable)])
    try:
        os.execve(PROGRAM, [PROGRAM, *sys.argv[1:]], environment)
    except OSError as error:
        # 7: not available on this host, as in docs/errors.md.
        print(f"lockhouse: {PROGRAM} cannot be started: {error.strerror}. Install the package lockhouse again.", file=sys.stderr)
        sys.exit(7)
