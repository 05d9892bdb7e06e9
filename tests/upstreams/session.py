"""Functions for sessions with `lockhouse serve` that several checks use."""

import json
from pathlib import Path


def own_environment(place: Path) -> dict[str, str]:
    """Returns environment variables that isolate a check from the user's files."""
    return {"HOME": str(place), "XDG_CONFIG_HOME": f"{place}/config", "XDG_STATE_HOME": f"{place}/state"}


def parse_answer(result) -> dict:
    """Returns the answer, after a check that text and structured content are equal."""
    assert json.loads(result.content[0].text) == result.structured_content, "text and structured content differ"
    return result.structured_content
