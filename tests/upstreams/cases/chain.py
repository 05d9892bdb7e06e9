# Four servers, each called with results of the previous one: files, git, time, memory.
import json
import re

from mcp_tools import filesystem, git, memory, time

entities = []
for deployment in json.loads(filesystem.read_text_file("@FILES@/deployments.json")["content"]):
    shown = git.git_show("@REPOSITORY@", deployment["revision"])
    author = re.search(r"^Author: (.+?) <", shown, re.M)[1]
    clock = re.search(r"^Date: .*?(\d\d:\d\d):\d\d", shown, re.M)[1]
    there = time.convert_time(source_timezone="UTC", time=clock, target_timezone=deployment["zone"])
    local = there["target"]["datetime"][11:16]
    name, observations = f"@PREFIX@{deployment['service']}-live", [author, local, deployment["zone"]]
    entities.append({"name": name, "entityType": "deployment", "observations": observations})

memory.create_entities(entities=entities)
kept = memory.open_nodes([entity["name"] for entity in entities])["entities"]
sorted([entity["name"].removeprefix("@PREFIX@").removesuffix("-live"), *entity["observations"]] for entity in kept)
