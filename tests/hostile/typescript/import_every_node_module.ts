// attack: find one module of Node.js that was forgotten, by every way to name it; fs is one of files in memory
// outcome: ok ["buffer", "buffer", "node:buffer", "node:buffer", "crypto", "crypto", "node:crypto", "node:crypto", "fs", "fs", "node:fs", "node:fs", "path", "path", "node:path", "node:path", "url", "url", "node:url", "node:url", "util", "util", "node:util", "node:util"]
// control: outside
const names = (
  'assert async_hooks buffer child_process cluster console constants crypto dgram diagnostics_channel dns domain ' +
  'events fs http http2 https inspector module net os path perf_hooks process punycode querystring readline repl ' +
  'stream string_decoder sys timers tls tty url util v8 vm wasi worker_threads zlib internal/bootstrap'
).split(' ');
const got = [];
const { require: load } = globalThis;
for (const name of names) {
  for (const form of [name, `node:${name}`, `../${name}`, ` ${name}`, `${name}\0`, `${name}/`]) {
    try {
      await import(form);
      got.push(form);
    } catch {}
    try {
      load(form);
      got.push(form);
    } catch {}
  }
}
if (globalThis.process && !got.includes('fs')) throw new Error('the control found nothing');
got;
