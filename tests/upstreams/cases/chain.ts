// Four servers, each given what the one before it said: files, git, time, memory.
type Deployment = { service: string; zone: string; revision: string };
type Entity = { name: string; entityType: string; observations: string[] };

const file = await filesystem.read_text_file({ path: "@FILES@/deployments.json" });
const entities: Entity[] = [];
for (const { service, zone, revision } of JSON.parse(file.content) as Deployment[]) {
  const shown: string = await git.git_show({ repo_path: "@REPOSITORY@", revision });
  const author = shown.match(/^Author: (.+?) </m)![1];
  const clock = shown.match(/^Date: .*?(\d\d:\d\d):\d\d/m)![1];
  const there = await time.convertTime({ source_timezone: "UTC", time: clock, target_timezone: zone });
  const local: string = there.target.datetime.slice(11, 16);
  entities.push({ name: `@PREFIX@${service}-live`, entityType: "deployment", observations: [author, local, zone] });
}

await memory.create_entities({ entities });
const kept: Entity[] = (await memory.open_nodes({ names: entities.map(({ name }) => name) })).entities;
return kept.map(({ name, observations }) => [name.slice("@PREFIX@".length, -"-live".length), ...observations]).sort();
