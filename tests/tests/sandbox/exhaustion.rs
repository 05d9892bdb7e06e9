//! Programs that take all they can get: each ends with an error, and the server goes on.

use lockhouse_tests::{Lockhouse, Table, ensure};

#[tokio::test]
async fn a_bomb_ends_with_an_error_and_the_next_program_runs() {
    let rows = [
        ("python", "forks", "import os\nwhile True: os.fork()"),
        (
            "python",
            "forks below the library, caught",
            "import posix\nfor _ in range(100000):\n try: posix.fork()\n except OSError: pass\nposix.fork()",
        ),
        (
            "python",
            "threads",
            "import threading, time\nwhile True: threading.Thread(target=time.sleep, args=(60,), daemon=True).start()",
        ),
        (
            "python",
            "threads that are no daemons",
            "import threading, time\nwhile True: threading.Thread(target=time.sleep, args=(60,)).start()",
        ),
        (
            "python",
            "threads that make threads",
            "import threading\ndef f():\n while True: threading.Thread(target=f).start()\nf()",
        ),
        ("python", "memory", "x = []\nwhile True: x.append(bytearray(1 << 20))"),
        (
            "python",
            "memory, caught",
            "x = []\nwhile True:\n try: x.append(bytearray(1 << 20))\n except MemoryError: pass",
        ),
        ("python", "one huge number", "x = 1\nwhile True: x = x << 1_000_000"),
        ("python", "one huge text", "x = 'x'\nwhile True: x += x"),
        ("python", "descriptors", "import os\nx = []\nwhile True: x.append(os.pipe())"),
        ("python", "event loops", "import asyncio\nx = []\nwhile True: x.append(asyncio.new_event_loop())"),
        ("python", "socket pairs", "import socket\nx = []\nwhile True: x.append(socket.socketpair())"),
        (
            "python",
            "tasks",
            "import asyncio\nx = []\nwhile True: x.append(asyncio.ensure_future(asyncio.sleep(60)))",
        ),
        (
            "python",
            "calls that nobody awaits",
            "import threading\nfrom mcp_tools.fixture import slow\nwhile True: threading.Thread(target=slow, args=(60000,)).start()",
        ),
        ("typescript", "memory", "const x = []; for (;;) x.push(new Uint8Array(1 << 20))"),
        (
            "typescript",
            "memory, caught",
            "const x = []; for (;;) { try { x.push(new Uint8Array(1 << 20).fill(1)) } catch {} }",
        ),
        ("typescript", "promises", "const x = []; for (;;) x.push(new Promise(() => {}))"),
        ("typescript", "timers", "for (;;) setTimeout(() => {}, 60000)"),
        ("typescript", "calls that nobody awaits", "for (;;) fixture.slow({ms: 60000})"),
        (
            "typescript",
            "a chain of microtasks",
            "const f = () => Promise.resolve().then(f); f(); await new Promise(() => {})",
        ),
        ("typescript", "recursion in microtasks", "async function f() { await f() }\nawait f()"),
    ];
    let lockhouse = Lockhouse::with_fixture().config("[limits]\ntimeout_seconds = 3\nmemory_mib = 64\n");
    let session = lockhouse.serve().await;
    let mut table = Table::new("bombs");
    for (language, name, code) in rows {
        let answer = session.run_code(language, code).await;
        let status = answer["status"].as_str().unwrap_or_default();
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        // Where C code of the interpreter finds no memory, it may only abort.
        let aborted = status == "killed" && message.contains("for want of memory");
        let told = !message.is_empty() && ["error", "limit", "timeout"].contains(&status) || aborted;
        let shown: String = answer.to_string().chars().take(500).collect();
        table.row(format!("{language}: {name}"), ensure(told, shown));
        let next = session.run_code(language, "1 + 1").await;
        table.row(format!("{language}: after {name}"), ensure(next["value"] == 2, next));
    }
    table.finish();
}
