# Search, filter and store: a hundred papers pass through the program, and one line comes out.
from mcp_tools.chroma import query, add_documents
from mcp_tools.arxiv import search_papers

# Chain operations locally - no context pollution
papers = search_papers(query="transformer architectures", max_results=100)
filtered = [p for p in papers if p['year'] >= 2023 and p['citations'] > 100]
add_documents(collection="research", documents=filtered)

print(f"Added {len(filtered)} high-impact papers")
# Only this summary returns to the AI's context!
