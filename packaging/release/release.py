"""What all packers share: version, date, names, and archives that have the same bytes whenever they are built from the same files."""

import gzip
import io
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import time
import zipfile
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUTPUT = ROOT / "build/packages"
# `packaging/release/stage` writes the stripped programs, manual pages and completions to this directory.
STAGE = ROOT / "build/stage"
PROGRAMS = ("lockhouse", "lockhouse-worker", "liblockhouse_python.so")
LICENCES = ("LICENSE-MIT", "LICENSE-APACHE")
# The licences of the libraries in the programs: `packaging/release/stage` writes it to the stage.
THIRD_PARTY_LICENCES = "THIRD-PARTY-LICENSES"
DESCRIPTION = "MCP server that runs model-written code in sandboxed workers, with your MCP servers as libraries"
# A GitHub account that publishes no release. Packages with this name cannot be published: see docs/packages.md.
PLACEHOLDER_OWNER = "example"
# Zip files have no earlier dates.
EARLIEST_ZIP_DATE = 315532800
REGULAR_FILE = 0o100000


class File(NamedTuple):
    """One file of an archive: its path there, its content, and whether it is a program."""

    path: str
    content: bytes
    executable: bool = False

    @property
    def mode(self) -> int:
        return 0o755 if self.executable else 0o644


def version() -> str:
    """The version of the workspace in Cargo.toml."""
    return re.search(r'^version = "(.*)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]


def date() -> int:
    """The date of all files in archives, in seconds since 1970: SOURCE_DATE_EPOCH, else the date of the packaged commit."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given is None:
        given = subprocess.check_output(["git", "-C", ROOT, "log", "-1", "--format=%ct"], text=True)
    return int(given)


def owner() -> str:
    """The GitHub account that publishes releases: LOCKHOUSE_OWNER, else a placeholder."""
    name = os.environ.get("LOCKHOUSE_OWNER", PLACEHOLDER_OWNER)
    if not re.fullmatch(r"[A-Za-z0-9](-?[A-Za-z0-9])*", name):
        sys.exit(f"LOCKHOUSE_OWNER={name} is not the name of a GitHub account: it may have letters, digits and single hyphens")
    return name


def server_name() -> str:
    """The name in the MCP registry. The descriptions of the wheel and of the npm package must contain it."""
    return f"io.github.{owner()}/lockhouse"


def repository() -> str:
    """The URL of the repository whose releases have the packages."""
    return f"https://github.com/{owner()}/lockhouse"


def readme() -> str:
    """README.md as the description of a package: with the name in the MCP registry, and with links to the repository if its owner is known."""
    text = (ROOT / "README.md").read_text()
    if owner() != PLACEHOLDER_OWNER:
        text = re.sub(r"\]\((?![a-z]+:|#)", f"]({repository()}/blob/v{version()}/", text)
    return f"{text}\n<!-- mcp-name: {server_name()} -->\n"


def staged(name: str) -> bytes:
    """The content of a file in the stage, such as bin/lockhouse."""
    path = STAGE / name
    if not path.is_file():
        sys.exit(f"{path} does not exist; write it with: BINARIES=DIRECTORY packaging/release/stage")
    return path.read_bytes()


def program(name: str) -> bytes:
    """The content of a stripped program."""
    return staged(f"bin/{name}")


def programs(folder: str, engines: str | None = None) -> list[File]:
    """The programs, in a folder of an archive. `engines`: the folder of the language engines, if it is a different one."""
    lockhouse, worker, extension = PROGRAMS
    engines = folder if engines is None else engines
    return [
        File(f"{folder}/{lockhouse}", program(lockhouse), True),
        File(f"{engines}/{worker}", program(worker), True),
        File(f"{engines}/{extension}", program(extension)),
    ]


def licences(folder: str) -> list[File]:
    """The licence files, in a folder of an archive; an empty name is the top folder."""
    contents = {name: (ROOT / name).read_bytes() for name in LICENCES} | {THIRD_PARTY_LICENCES: staged(THIRD_PARTY_LICENCES)}
    return [File(f"{folder}/{name}".lstrip("/"), content) for name, content in contents.items()]


def write(name: str, content: bytes) -> pathlib.Path:
    """Writes a package to the output directory, and prints its path."""
    OUTPUT.mkdir(parents=True, exist_ok=True)
    path = OUTPUT / name
    path.write_bytes(content)
    print(path.relative_to(ROOT))
    return path


def tar_gz(files: list[File]) -> bytes:
    """A compressed tar archive. Order, dates, owners and modes depend on the files alone."""
    archive = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=archive, mtime=0) as compressed:
        with tarfile.open(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT) as tar:
            for file in sorted(files):
                entry = tarfile.TarInfo(file.path)
                entry.size, entry.mode, entry.mtime = len(file.content), file.mode, date()
                tar.addfile(entry, io.BytesIO(file.content))
    return archive.getvalue()


def zipped(files: list[File]) -> bytes:
    """A zip archive with the files in this order, with modes and one date."""
    entry_date = time.gmtime(max(date(), EARLIEST_ZIP_DATE))[:6]
    output = io.BytesIO()
    with zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for file in files:
            entry = zipfile.ZipInfo(file.path, entry_date)
            entry.create_system = 3  # Unix: external_attr has the mode.
            entry.external_attr = (REGULAR_FILE | file.mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, file.content)
    return output.getvalue()
