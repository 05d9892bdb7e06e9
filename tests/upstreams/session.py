"""Functions for sessions with `lockhouse serve` that several checks use."""

from pathlib import Path


def own_environment(place: Path) -> dict[str, str]:
    """Returns environment variables that isolate a check from the user's files."""
    return {"HOME": str(place), "XDG_CONFIG_HOME": f"{place}/config", "XDG_STATE_HOME": f"{place}/state"}


def parse_answer(result) -> dict:
    """Returns the answer of a server that was started with `--answer structured`."""
    assert result.structured_content is not None, "no structured content"
    return result.structured_content
