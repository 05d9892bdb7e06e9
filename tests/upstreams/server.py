"""What the table of servers.py says of each: how it is started, what it lists, a call, and what it is here to show."""

import json
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from installed import Npm, PyPI

# `server/discover` is answered, or it is not.
MODERN, LEGACY, FIRST = "2026-07-28", "2025-11-25", "2024-11-05"


class Trait(Enum):
    """What an upstream server does that a client must survive. traits.py shows that it does."""

    CRASHES_ON_DISCOVER = "crashes on server/discover"
    REFUSES_INITIALIZE = "refuses initialize after server/discover"
    IGNORES_EOF = "ignores the end of its input"
    HANGS = "hangs at its start"
    PRINTS_FIRST = "prints to stdout before it speaks"
    PRINTS_BETWEEN = "prints to stdout between its messages"


@dataclass
class Call:
    """An expression in Python, and words that its value must contain. `@FILES@`, `@REPOSITORY@`, `@PLACE@` and `@API@` stand
    for places of world.py and the address of api.py, here as in arguments and environment."""

    expression: str
    words: str
    # Whether it must come back as an error of the server, with these words.
    fails: bool = False

    def is_met_by(self, answer: Any) -> bool:
        return self.words in json.dumps(answer, ensure_ascii=False)


@dataclass
class Server:
    name: str
    package: Npm | PyPI
    # As Lockhouse lists them, which declares elicitation.
    tools: int
    call: Call | None
    arguments: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    era: str = LEGACY
    traits: set[Trait] = field(default_factory=set)
    # Only for one that never starts; the others have what Lockhouse gives by itself.
    start_timeout_s: int | None = None
