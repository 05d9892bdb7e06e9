# Builds a knowledge graph and asks it questions.
from mcp_tools import memory

services = [f"@PREFIX@service-{n}" for n in range(30)]
people = [f"@PREFIX@person-{n}" for n in range(6)]

made = memory.create_entities(
    [{"name": name, "entityType": "service", "observations": [f"port {8000 + n}"]} for n, name in enumerate(services)]
    + [{"name": name, "entityType": "person", "observations": []} for name in people]
)
memory.create_relations(
    relations=[{"from": people[n * n % 6], "to": name, "relationType": "owns"} for n, name in enumerate(services)]
    + [{"from": services[n], "to": services[n // 2], "relationType": "calls"} for n in range(1, 30)]
)
memory.add_observations([{"entityName": people[3], "contents": ["on call", "speaks Welsh"]}])

graph = memory.read_graph()
mine = [edge for edge in graph["relations"] if edge["from"].startswith("@PREFIX@")]
owned = {name: sum(e["from"] == name and e["relationType"] == "owns" for e in mine) for name in people}
opened = memory.open_nodes(names=[people[3], services[7]])["entities"]
found = memory.search_nodes("speaks Welsh")["entities"]
{
    "made": len(made["entities"]),
    "relations": len(mine),
    "owned": [owned[name] for name in people],
    "opened": sorted([entity["name"], entity["observations"]] for entity in opened),
    "found": [entity["name"] for entity in found if entity["name"].startswith("@PREFIX@")],
}
