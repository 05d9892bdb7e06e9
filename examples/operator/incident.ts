// When did it begin, what was changed just before, and by whom: a log, a repository and the team's clock.
const log = (await files.read_text_file({ path: "service.log" })).content.split("\n");
const errors = log.filter((line) => line.includes(" ERROR ")).map((line) => /^(\S+) ERROR (.*)$/.exec(line));
const began = errors[0][1];

// The newest commit comes first; the suspect is the last one before the first error.
const gitLog = await git.git_log({ repo_path: "repository", max_count: 50 });
const commits = [...gitLog.matchAll(/^Commit: (\w+)\nAuthor: (.+?)(?: <.*)?\nDate: (\S+ ?\S*)\nMessage: (.+)/gm)];
const before = commits.filter((commit) => commit[3].replace(" ", "T").slice(0, 19) < began.slice(0, 19));
const [, revision, author, , message] = before[0];
const change = (await git.git_show("repository", revision)).split("\n").filter((line) => /^[+-]\w/.test(line));

const tokyo = await time.convert_time({ source_timezone: "UTC", time: began.slice(11, 16), target_timezone: "Asia/Tokyo" });
const kinds: Record<string, number> = {};
for (const [, , text] of errors) kinds[text] = (kinds[text] ?? 0) + 1;
return {
  began,
  in_tokyo: tokyo.target.datetime.slice(11, 16),
  errors: errors.length,
  kinds,
  suspect: { author, message: message.trim(), change },
  commits_since: commits.length - before.length,
};
