"""What both checks need of a session with `lockhouse serve`."""

import json
from pathlib import Path


def own_environment(place: Path) -> dict[str, str]:
    """Nothing of the user's own may come into a check, nor anything be left behind."""
    return {"HOME": str(place), "XDG_CONFIG_HOME": f"{place}/config", "XDG_STATE_HOME": f"{place}/state"}


def whole(result) -> dict:
    """The answer, which text and structured content both carry in full."""
    assert json.loads(result.content[0].text) == result.structured_content, "text and structured content differ"
    return result.structured_content
