// Reads all papers, keeps who cites whom as a knowledge graph, and tells what the graph shows.
interface Paper { key: string; title: string; topics: string[]; cites: string[] }

async function paper(name: string): Promise<Paper> {
  const text = (await files.read_text_file({ path: name })).content;
  const head = new Map(text.split("\n\n")[0].split("\n").map((line) => line.split(": ", 2)));
  const listed = (key: string) => (head.get(key) ?? "").split(", ").filter((word) => word);
  return { key: name.replace(/\.md$/, ""), title: head.get("title"), topics: listed("topics"), cites: listed("cites") };
}

const names = (await files.list_directory(".")).content.split("\n").map((line) => line.replace("[FILE] ", ""));
const papers = await Promise.all(names.map(paper));

await memory.create_entities(papers.map(({ key, title }) => ({ name: key, entityType: "paper", observations: [title] })));
await memory.create_relations(
  papers.flatMap(({ key, cites }) => cites.map((to) => ({ from: key, to, relationType: "cites" }))),
);

const count = (words: string[]) => {
  const counts: Record<string, number> = {};
  for (const word of words.sort()) counts[word] = (counts[word] ?? 0) + 1;
  return counts;
};
const graph = await memory.read_graph();
const cited = count(graph.relations.filter((edge) => edge.relationType === "cites").map((edge) => edge.to));
return {
  papers: graph.entities.length,
  most_cited: Object.entries(cited).sort(([a, n], [b, m]) => m - n || a.localeCompare(b)).slice(0, 3),
  topics: count(papers.flatMap(({ topics }) => topics)),
  cited_by_nobody: papers.map(({ key }) => key).filter((key) => !(key in cited)).sort(),
};
