// attack: import from files, URLs, registries and other runtimes
// outcome: ok []
// control: none: no runtime knows all of these
const places = [
  '/etc/passwd', './x.js', '../../etc/passwd', 'file://{DIR}/file', '{DIR}/file', 'https://127.0.0.1:{TCP}/x.js',
  'http://127.0.0.1:{TCP}/x.js', 'blob:x', 'npm:left-pad', 'jsr:@std/fs', 'bun', 'bun:ffi', 'bun:sqlite', 'deno',
  'ext:core/mod.js', 'std', 'os', 'bjson', 'qjs:std', 'qjs:os', 'qjs:bjson', 'libc', 'lockhouse', 'lockhouse:values',
  'lockhouse:code', 'mcp_tools/../fs', 'mcp_tools/', 'mcp_tools/__proto__', 'mcp_tools/constructor', '', '\0', '__proto__',
];
const got = [];
for (const place of places) {
  await import(place).then(() => got.push(place), () => {});
  try {
    require(place);
    got.push(`require ${place}`);
  } catch {}
}
got;
