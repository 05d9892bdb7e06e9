// attack: every object that can be reached from the global scope, looking for one of the host
// outcome: ok []
// control: none: its own, in the program: it must find what the program hides deep inside
const known = /^(native|std|os|bjson|process|Deno|Bun|lockhouse|realm|loadFile|loadScript|evalScript|execve|spawn|open|readFile.*|writeFile.*|startTimer|stopTimer|randomBytes|fromUtf8|toUtf8|settle|serve|fire|ask)$/;
globalThis[Symbol('hidden')] = new Map([[{}, { deep: [class { static loadFile() {} }] }]]);
const seen = new Set();
const found = [];
const queue = [globalThis, Object.getPrototypeOf(async () => {}), Object.getPrototypeOf(function* () {}), Object.getPrototypeOf(async function* () {})];
queue.push(Object.getPrototypeOf([][Symbol.iterator]()), Object.getPrototypeOf(/x/[Symbol.matchAll]('')), Object.getPrototypeOf(new Map().entries()));
queue.push(new Error(), setTimeout(() => {}, 0), Promise.resolve(), import('mcp_tools'));
while (queue.length) {
  const object = queue.pop();
  if (object === null || (typeof object !== 'object' && typeof object !== 'function') || seen.has(object)) continue;
  seen.add(object);
  if (object instanceof Map) queue.push(...object.keys(), ...object.values());
  queue.push(Object.getPrototypeOf(object));
  for (const key of Reflect.ownKeys(object)) {
    if (typeof key === 'string' && known.test(key)) found.push(key);
    const { value, get, set } = Object.getOwnPropertyDescriptor(object, key) ?? {};
    queue.push(value, get, set);
  }
}
if (seen.size < 500) throw new Error(`only ${seen.size} objects`);
if (!found.includes('loadFile')) throw new Error('the walk does not go deep');
found.filter((name) => name !== 'loadFile');
