//! The hostile programs of the endurance suites, each of which never ends by itself or exhausts a resource.

/// A hostile program of the endurance suites.
#[derive(Debug)]
pub(super) struct Hostile {
    pub(super) language: &'static str,
    pub(super) name: &'static str,
    pub(super) code: &'static str,
    /// Whether the program ends only at its deadline, and not earlier at another limit or with an error.
    pub(super) spins: bool,
}

const fn spin(language: &'static str, name: &'static str, code: &'static str) -> Hostile {
    Hostile { language, name, code, spins: true }
}

/// Creates a hostile program that ends with an error or at a limit, unless its deadline comes first.
const fn bomb(language: &'static str, name: &'static str, code: &'static str) -> Hostile {
    Hostile { language, name, code, spins: false }
}

const PY: &str = "python";
const TS: &str = "typescript";

/// All hostile programs. The languages alternate, so that any two consecutive programs have different languages.
pub(super) const HOSTILE: [Hostile; 36] = [
    spin(PY, "loop", "while True: pass"),
    spin(TS, "loop", "for (;;);"),
    spin(PY, "loop, catching all", "while True:\n try:\n  while True: pass\n except BaseException: pass"),
    spin(TS, "loop, catching all", "for (;;) { try { for (;;); } catch {} finally { continue } }"),
    spin(
        PY,
        "loop, SIGINT ignored",
        "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass",
    ),
    spin(TS, "microtasks", "const f = () => Promise.resolve().then(f); f(); await new Promise(() => {})"),
    spin(PY, "regular expression", "import re\nre.match('(a+)+$', 'a' * 60 + 'b')"),
    spin(TS, "regular expression", "/^(a+)+$/.test('a'.repeat(60) + 'b')"),
    spin(PY, "one huge number", "3 ** 200_000_000"),
    spin(TS, "one huge number", "for (;;) 3n ** 600000n"),
    bomb(PY, "memory", "x = []\nwhile True: x.append(bytearray(1 << 20))"),
    bomb(TS, "memory", "const x = []; for (;;) x.push(new Uint8Array(1 << 20))"),
    bomb(
        PY,
        "memory, caught",
        "x = []\nwhile True:\n try: x.append(bytearray(1 << 20))\n except MemoryError: pass",
    ),
    bomb(
        TS,
        "memory, caught",
        "const x = []; for (;;) { try { x.push(new Uint8Array(1 << 20).fill(1)) } catch {} }",
    ),
    bomb(PY, "memory in small pieces", "x = []\nwhile True: x.append([0] * 100)"),
    bomb(TS, "memory in small pieces", "const x = []; for (;;) x.push([1, 2, 3, 4, 5, 6])"),
    bomb(PY, "output", "while True: print('x' * 1000)"),
    bomb(TS, "output", "for (;;) console.log('x'.repeat(1000))"),
    bomb(PY, "calls, one by one", "from mcp_tools.fixture import add\nwhile True: add(a=1, b=1)"),
    bomb(TS, "calls, one by one", "for (;;) await fixture.add({a: 1, b: 1})"),
    bomb(
        PY,
        "calls in threads",
        "import threading\nfrom mcp_tools.fixture import slow\nwhile True: threading.Thread(target=slow, args=(60000,)).start()",
    ),
    bomb(TS, "calls that nobody awaits", "for (;;) fixture.slow({ms: 60000})"),
    spin(PY, "a call that takes a minute", "from mcp_tools.fixture import slow\nslow(ms=60000)"),
    spin(TS, "a call that takes a minute", "await fixture.slow({ms: 60000})"),
    bomb(PY, "questions about tools", "from mcp_tools import search_tools\nwhile True: search_tools('add')"),
    bomb(TS, "questions about tools", "for (;;) await searchTools('add')"),
    bomb(PY, "forks", "import os\nwhile True: os.fork()"),
    bomb(TS, "timers", "for (;;) setTimeout(() => {}, 60000)"),
    spin(PY, "forks, caught", "import os\nwhile True:\n try: os.fork()\n except BaseException: pass"),
    spin(TS, "a wait without end", "await new Promise(done => setTimeout(done, 60000))"),
    spin(
        PY,
        "threads, caught",
        "import threading, time\nwhile True:\n try: threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n except BaseException: pass",
    ),
    bomb(TS, "promises", "const x = []; for (;;) x.push(new Promise(() => {}))"),
    bomb(PY, "descriptors", "import os\nx = []\nwhile True: x.append(os.pipe())"),
    bomb(TS, "recursion in microtasks", "async function f() { await f() }\nawait f()"),
    spin(
        PY,
        "descriptors, caught",
        "import os\nx = []\nwhile True:\n try: x.append(os.pipe())\n except BaseException: pass",
    ),
    spin(TS, "sorting without end", "for (;;) [...Array(1e5).keys()].sort(() => 0)"),
];
