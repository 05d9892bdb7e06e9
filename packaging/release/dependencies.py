"""The crates of the packaged programs, as cargo resolves them: for the software bill of materials and the licence texts."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tomllib
from typing import NamedTuple

import release

PACKAGES = ("lockhouse", "lockhouse-worker", "lockhouse-python")
PROGRAM_OF_PACKAGE = dict(zip(PACKAGES, release.PROGRAMS, strict=True))
TARGET = "x86_64-unknown-linux-gnu"
# A line of `cargo tree --prefix depth`: the depth, then `NAME vVERSION`, then remarks such as `(proc-macro)` and `(*)`.
TREE_LINE = re.compile(r"(\d+)(\S+) v(\S+)")


class Key(NamedTuple):
    """What identifies a crate: all crates are from crates.io or from this workspace, which `deny.toml` enforces."""

    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.name}@{self.version}"


class Crate(NamedTuple):
    """One crate, with what its manifest and Cargo.lock say."""

    key: Key
    # A licence expression of SPDX.
    licence: str
    folder: pathlib.Path
    authors: list[str]
    repository: str | None
    # The SHA-256 of the crate's archive; none for crates of this workspace.
    checksum: str | None
    # Whether its code is in a program. Otherwise the crate only ran during the build.
    linked: bool
    dependencies: list[Key]


def run_cargo(*arguments: str) -> str:
    command = [os.environ.get("CARGO", "cargo"), *arguments]
    return subprocess.run(command, cwd=release.ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def run_rustc(*arguments: str) -> str:
    command = [os.environ.get("RUSTC", "rustc"), *arguments]
    return subprocess.run(command, cwd=release.ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def tree(edges: str) -> dict[Key, set[Key]]:
    """The crates that the packages depend on through these kinds of dependencies, and the dependencies of each."""
    packages = [argument for name in PACKAGES for argument in ("-p", name)]
    output = run_cargo("tree", "--locked", *packages, "-e", edges, "--target", TARGET, "--prefix", "depth", "--format", "{p}")
    found: dict[Key, set[Key]] = {}
    path: list[Key] = []
    for line in output.splitlines():
        match = TREE_LINE.match(line)
        if match is None:
            if line:
                sys.exit(f"cargo tree printed a line that this script cannot read: {line}")
            continue
        depth, key = int(match[1]), Key(match[2], match[3])
        del path[depth:]
        if path:
            found[path[-1]].add(key)
        path.append(key)
        found.setdefault(key, set())
    return found


def checksums() -> dict[Key, str]:
    locked = tomllib.loads((release.ROOT / "Cargo.lock").read_text())["package"]
    return {Key(package["name"], package["version"]): package["checksum"] for package in locked if "checksum" in package}


def crates() -> list[Crate]:
    """All crates that the packaged programs are built from, sorted by name and version."""
    every, linked, checksum = tree("normal,build"), tree("normal,no-proc-macro"), checksums()
    metadata = json.loads(run_cargo("metadata", "--locked", "--format-version", "1", "--filter-platform", TARGET))
    packages = {Key(package["name"], package["version"]): package for package in metadata["packages"]}
    result = []
    for key, dependencies in sorted(every.items()):
        package = packages[key]
        if package["source"] is not None and key not in checksum:
            sys.exit(f"{key} is not from crates.io: Cargo.lock has no checksum of it")
        if not package["license"]:
            sys.exit(f"the manifest of {key} names no licence")
        result.append(
            Crate(
                key,
                package["license"].replace("/", " OR "),
                pathlib.Path(package["manifest_path"]).parent,
                package["authors"],
                package["repository"],
                checksum.get(key),
                key in linked,
                sorted(dependencies),
            )
        )
    return result
