# Written once, and kept.
import skills


def analyze_paper(paper):
    return {"id": paper["id"], "title": paper["title"], "weight": paper["citations"] / (2026 - paper["year"])}


# AI writes this once, saves to skills/
def research_pipeline(topic: str, n_papers: int = 10):
    """Fetch papers, analyze, store in knowledge base."""
    from mcp_tools.arxiv import search_papers
    from mcp_tools.chroma import add_documents

    papers = search_papers(query=topic, max_results=n_papers)
    # Complex analysis happens here locally
    summaries = [analyze_paper(p) for p in papers]
    add_documents(collection="research", documents=summaries)
    return f"Added {len(papers)} papers on {topic}"


skills.save(research_pipeline, tags=["research"])["state"]
