// Makes random sequences of operations on files, and collects the result of each. SEEDS is set before.
import fs from "node:fs";
import path from "node:path";

const NAMES = ["a", "b", "c", "a/b", "a/c", "b/a", "a/b/c", "c/", "./c", "missing/a", "a/b/c/d"];
const CONTENTS = ["", "x", "žluť\n", "long ".repeat(20)];

function runSequence(seed, folder) {
  let state = seed * 2654435761 % 4294967296;
  const below = (end) => {
    state = (state * 1664525 + 1013904223) % 4294967296;
    return Math.floor(state / 65536) % end;
  };
  const pick = (list) => list[below(list.length)];
  const name = () => `${folder}/${pick(NAMES)}`;
  const operations = [
    () => fs.writeFileSync(name(), pick(CONTENTS)),
    () => fs.writeFileSync(name(), pick(CONTENTS), { flag: pick(["w", "a", "wx", "r+"]) }),
    () => fs.appendFileSync(name(), pick(CONTENTS)),
    () => fs.readFileSync(name(), "utf8"),
    () => fs.readFileSync(name(), "utf8"),
    () => fs.mkdirSync(name()),
    () => fs.mkdirSync(name(), { recursive: true }) === undefined,
    () => fs.rmdirSync(name()),
    () => fs.unlinkSync(name()),
    () => fs.rmSync(name(), { recursive: below(2) === 0, force: below(2) === 0 }),
    () => fs.renameSync(name(), name()),
    () => {
      const from = name();
      return fs.statSync(from).isDirectory() ? null : fs.copyFileSync(from, name());
    },
    () => fs.truncateSync(name(), below(20)),
    () => fs.readdirSync(name()).sort(),
    () => [fs.existsSync(name()), fs.statSync(name()).isDirectory()],
    () => fs.readdirSync(folder, { recursive: true }).sort(),
  ];
  const results = [];
  for (let step = 0; step < 60; step++) {
    const operation = pick(operations);
    try {
      results.push(operation() ?? null);
    } catch (error) {
      results.push(error.code);
    }
  }
  return results;
}

const found = SEEDS.map((seed) => {
  fs.mkdirSync(path.join(".", `sequence${seed}`));
  return runSequence(seed, `sequence${seed}`);
});
found
