# Reads all papers, keeps who cites whom as a knowledge graph, and tells what the graph shows.
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from mcp_tools import files, memory


def paper(name):
    text = files.read_text_file(path=name)["content"]
    head = dict(line.split(": ", 1) for line in text.partition("\n\n")[0].splitlines() if ": " in line)
    listed = lambda key: [word for word in head.get(key, "").split(", ") if word]
    return {"key": name.removesuffix(".md"), "title": head["title"], "topics": listed("topics"), "cites": listed("cites")}


names = [line.removeprefix("[FILE] ") for line in files.list_directory(".")["content"].splitlines()]
with ThreadPoolExecutor(8) as pool:
    papers = list(pool.map(paper, names))

memory.create_entities(
    [{"name": p["key"], "entityType": "paper", "observations": [p["title"]]} for p in papers]
)
memory.create_relations(
    [{"from": p["key"], "to": cited, "relationType": "cites"} for p in papers for cited in p["cites"]]
)

graph = memory.read_graph()
cited = Counter(edge["to"] for edge in graph["relations"] if edge["relationType"] == "cites")
{
    "papers": len(graph["entities"]),
    "most_cited": [[key, times] for key, times in sorted(cited.items(), key=lambda row: (-row[1], row[0]))[:3]],
    "topics": dict(sorted(Counter(topic for p in papers for topic in p["topics"]).items())),
    "cited_by_nobody": sorted(p["key"] for p in papers if p["key"] not in cited),
}
