# Three servers by their names. The seed leaves out the import and the function.
from mcp_tools import arxiv, chroma, filesystem


def build_semantic_graph(papers):
    return {"nodes": [p["title"] for p in papers], "edges": [[p["id"], author] for p in papers for author in p["authors"]]}


# Librarian agent that builds knowledge graphs
papers = arxiv.search("transformers")
existing = chroma.query(collection="knowledge_base", query="transformers")
graph = build_semantic_graph(papers + existing)  # Local processing
filesystem.write(f"graphs/transformers.json", graph)
