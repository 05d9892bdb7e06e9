// Builds a knowledge graph and asks it questions.
type Entity = { name: string; entityType: string; observations: string[] };
type Relation = { from: string; to: string; relationType: string };

const services = Array.from({ length: 30 }, (_, n) => `@PREFIX@service-${n}`);
const people = Array.from({ length: 6 }, (_, n) => `@PREFIX@person-${n}`);

const entities: Entity[] = [
  ...services.map((name, n) => ({ name, entityType: "service", observations: [`port ${8000 + n}`] })),
  ...people.map((name) => ({ name, entityType: "person", observations: [] })),
];
const made = await memory.create_entities({ entities });
await memory.createRelations({
  relations: [
    ...services.map((name, n) => ({ from: people[(n * n) % 6], to: name, relationType: "owns" })),
    ...services.slice(1).map((name, n) => ({ from: name, to: services[Math.floor((n + 1) / 2)], relationType: "calls" })),
  ],
});
await memory.add_observations({ observations: [{ entityName: people[3], contents: ["on call", "speaks Welsh"] }] });

const graph: { relations: Relation[] } = await memory.read_graph();
const mine = graph.relations.filter((edge) => edge.from.startsWith("@PREFIX@"));
const opened: Entity[] = (await memory.open_nodes({ names: [people[3], services[7]] })).entities;
const found: Entity[] = (await memory.search_nodes({ query: "speaks Welsh" })).entities;
return {
  made: made.entities.length,
  relations: mine.length,
  owned: people.map((name) => mine.filter((edge) => edge.from === name && edge.relationType === "owns").length),
  opened: opened.map(({ name, observations }) => [name, observations]).sort(),
  found: found.map(({ name }) => name).filter((name) => name.startsWith("@PREFIX@")),
};
