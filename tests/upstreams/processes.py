"""Finds the processes of upstream servers that a Lockhouse under test has started, by their environment variables."""

import os
from pathlib import Path


def of_servers(place: Path) -> list[int]:
    """Returns processes with LOCKHOUSE_UPSTREAM, which Lockhouse sets, and with the HOME of this test run."""
    home = f"HOME={place}".encode()
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            environment = (process / "environ").read_bytes()
        except OSError:  # gone, or another user's
            continue
        variables = environment.split(b"\0")
        if home in variables and any(variable.startswith(b"LOCKHOUSE_UPSTREAM=") for variable in variables):
            found.append(int(process.name))
    return found


def command(process: int) -> str:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return "gone"


def resident_bytes(processes: list[int]) -> int:
    total = 0
    for process in processes:
        try:
            total += int(Path(f"/proc/{process}/statm").read_text().split()[1])
        except OSError:
            continue
    return total * os.sysconf("SC_PAGE_SIZE")
