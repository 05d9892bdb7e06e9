"""The row of a server in the table of servers.py: its command, number of tools, a call, and its traits."""

import json
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from installed import Npm, PyPI

# Protocol versions. Servers of MODERN answer `server/discover`, the others do not.
MODERN, LEGACY, FIRST = "2026-07-28", "2025-11-25", "2024-11-05"


class Trait(Enum):
    """Unusual behaviour of an upstream server that a client must handle. traits.py checks that the server has it."""

    CRASHES_ON_DISCOVER = "crashes on server/discover"
    REFUSES_INITIALIZE = "refuses initialize after server/discover"
    IGNORES_EOF = "ignores the end of its input"
    HANGS = "hangs at its start"
    PRINTS_FIRST = "prints to stdout before it speaks"
    PRINTS_BETWEEN = "prints to stdout between its messages"


@dataclass
class Call:
    """A Python expression, and text that its value must contain. `@FILES@`, `@REPOSITORY@`, `@PLACE@` and `@API@` are
    placeholders for paths of world.py and the address of api.py, as in arguments and environment."""

    expression: str
    words: str
    # Whether the call must fail with an error of the server that contains this text.
    fails: bool = False

    def is_met_by(self, answer: Any) -> bool:
        return self.words in json.dumps(answer, ensure_ascii=False)


@dataclass
class Server:
    name: str
    package: Npm | PyPI
    # Number of tools for a client with the elicitation capability, such as Lockhouse.
    tools: int
    call: Call | None
    arguments: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    era: str = LEGACY
    traits: set[Trait] = field(default_factory=set)
    # Set only for a server that never starts. The others use Lockhouse's default.
    start_timeout_s: int | None = None
