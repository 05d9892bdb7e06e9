// Walks the whole log, and the changes of its newest part, per author.
type Row = { commits: number; added: number; first: string; last: string };

const log: string = await git.git_log({ repo_path: "@REPOSITORY@", max_count: 1000 });
const entries = [...log.matchAll(/^Commit: (\w+)\nAuthor: (.+)\nDate: (\S+)/gm)];
const commits = entries.map(([, name, author, day]) => ({ name, author, day }));

const rows: Record<string, Row> = {};
for (const { author, day } of commits) {
  const row = (rows[author] ??= { commits: 0, added: 0, first: day, last: day });
  row.commits += 1;
  row.first = day;
}

const newest = commits.slice(0, @SHOWN@);
const show = ({ name }: { name: string }) => git.git_show({ repo_path: "@REPOSITORY@", revision: name });
const shown: string[] = await Promise.all(newest.map(show));
shown.forEach((text, at) => {
  rows[newest[at].author].added += text.split("\n").filter((line) => /^\+(?!\+\+)/.test(line)).length;
});

const march: string = await git.gitLog("@REPOSITORY@", 1000, "2026-03-01T00:00:00Z", "2026-03-31T23:59:59Z");
return {
  authors: Object.keys(rows).sort().map((author) => [author, ...Object.values(rows[author])]),
  march: march.split("Commit: ").length - 1,
};
