//! Tests of the resource limits of programs. Each limit is tested with a program below it and a program above it.

use lockhouse_tests::{Lockhouse, Table, ensure};

struct Row {
    name: &'static str,
    config: &'static str,
    language: &'static str,
    below: &'static str,
    beyond: &'static str,
    status: &'static str,
    says: &'static str,
}

#[test]
fn a_limit_ends_a_program_that_exceeds_it_with_a_reason_and_no_other() {
    let memory = "[limits]\nmemory_mib = 64\n";
    let cpu = "[limits]\ncpu_seconds = 1\n";
    let output = "[limits]\noutput_kib = 16\n";
    let calls = "[limits]\ncalls = 5\n";
    let frame = "[limits]\nframe_kib = 512\n";
    let python = "python";
    let typescript = "typescript";
    let rows = [
        Row {
            name: "CPU",
            config: cpu,
            language: python,
            status: "limit",
            says: "CPU time limit of 1 s",
            below: "sum(range(1000))",
            beyond: "while True: pass",
        },
        Row {
            name: "CPU",
            config: cpu,
            language: typescript,
            status: "limit",
            says: "CPU time limit of 1 s",
            below: "1",
            beyond: "for(;;);",
        },
        Row {
            name: "CPU, with its signal ignored",
            config: "[limits]\ncpu_seconds = 1\n[python]\npreload = [\"ctypes\"]\n",
            language: python,
            status: "limit",
            says: "CPU time limit of 1 s",
            below: "1",
            beyond: "import ctypes\nctypes.CDLL(None).signal(24, 1)\nwhile True: pass",
        },
        Row {
            name: "CPU, caught",
            config: cpu,
            language: python,
            status: "limit",
            says: "CPU time limit of 1 s",
            below: "1",
            beyond: "while True:\n try:\n  while True: pass\n except BaseException: pass",
        },
        Row {
            name: "memory",
            config: memory,
            language: python,
            status: "limit",
            says: "64 MiB",
            below: "len(bytearray(20 << 20))",
            beyond: "x = bytearray(300 << 20)",
        },
        Row {
            name: "memory in small pieces",
            config: memory,
            language: python,
            status: "limit",
            says: "64 MiB",
            below: "len([[] for _ in range(1000)])",
            beyond: "x = []\nwhile True: x.append([0] * 100)",
        },
        Row {
            name: "memory",
            config: memory,
            language: typescript,
            status: "limit",
            says: "64 MiB",
            below: "new Uint8Array(10 << 20).length",
            beyond: "new Uint8Array(300 << 20).length",
        },
        Row {
            name: "memory in small pieces",
            config: memory,
            language: typescript,
            status: "limit",
            says: "64 MiB",
            below: "[...Array(1000)].map(() => []).length",
            beyond: "const x = []; for (;;) x.push([1, 2, 3, 4, 5, 6])",
        },
        Row {
            name: "output",
            config: output,
            language: python,
            status: "limit",
            says: "16 KiB",
            below: "print('x' * 10_000)",
            beyond: "while True: print('x' * 1000)",
        },
        Row {
            name: "output",
            config: output,
            language: typescript,
            status: "limit",
            says: "16 KiB",
            below: "console.log('x'.repeat(10_000))",
            beyond: "for (;;) console.log('x'.repeat(1000))",
        },
        Row {
            name: "output on stderr",
            config: output,
            language: python,
            status: "limit",
            says: "16 KiB",
            below: "1",
            beyond: "import sys\nwhile True: print('x' * 1000, file=sys.stderr)",
        },
        Row {
            name: "calls",
            config: calls,
            language: python,
            status: "limit",
            says: "limit of 5",
            below: "from mcp_tools.fixture import add\n[add(a=1, b=1) for _ in range(5)]",
            beyond: "from mcp_tools.fixture import add\n[add(a=1, b=1) for _ in range(6)]",
        },
        Row {
            name: "calls",
            config: calls,
            language: typescript,
            status: "limit",
            says: "limit of 5",
            below: "for (let i = 0; i < 5; i++) await fixture.add({a: 1, b: 1})",
            beyond: "for (let i = 0; i < 6; i++) await fixture.add({a: 1, b: 1})",
        },
        Row {
            name: "calls, caught",
            config: calls,
            language: python,
            status: "limit",
            says: "limit of 5",
            below: "1",
            beyond: "from mcp_tools.fixture import add\nwhile True:\n try: add(a=1, b=1)\n except BaseException: pass",
        },
        Row {
            name: "value beyond a frame",
            config: frame,
            language: python,
            status: "error",
            says: "the result exceeds the limit",
            below: "'x' * 100_000",
            beyond: "'x' * 1_000_000",
        },
        Row {
            name: "value beyond a frame",
            config: frame,
            language: typescript,
            status: "error",
            says: "the result exceeds the limit",
            below: "'x'.repeat(100_000)",
            beyond: "'x'.repeat(1_000_000)",
        },
        Row {
            name: "value nested too deeply",
            config: "",
            language: python,
            status: "error",
            says: "nested",
            below: "x = []\nfor _ in range(50): x = [x]\nx",
            beyond: "x = []\nfor _ in range(5000): x = [x]\nx",
        },
        Row {
            name: "value nested too deeply",
            config: "",
            language: typescript,
            status: "error",
            says: "nested",
            below: "let x: any = []; for (let i = 0; i < 50; i++) x = [x]\nx",
            beyond: "let x: any = []; for (let i = 0; i < 5000; i++) x = [x]\nx",
        },
        Row {
            name: "recursion",
            config: "",
            language: python,
            status: "error",
            says: "recursion",
            below: "f = lambda n: n and f(n - 1)\nf(100)",
            beyond: "f = lambda: f()\nf()",
        },
        Row {
            name: "recursion",
            config: "",
            language: typescript,
            status: "error",
            says: "stack",
            below: "const f = (n: number): number => n && f(n - 1)\nf(100)",
            beyond: "const f = (): any => f()\nf()",
        },
    ];
    let mut table = Table::new("limits");
    for row in rows {
        let lockhouse = Lockhouse::with_fixture().config(row.config);
        let below = lockhouse.answer(row.language, row.below);
        table.row(format!("{}: below: {}", row.language, row.name), ensure(below["status"] == "ok", &below));
        let beyond = lockhouse.answer(row.language, row.beyond);
        let message = beyond["error"]["message"].as_str().unwrap_or_default();
        let told = beyond["status"] == row.status && message.contains(row.says);
        // The answer may be long, so the table shows only a part of it.
        let shown: String = beyond.to_string().chars().filter(|c| *c != 'x').take(600).collect();
        table.row(format!("{}: beyond: {}", row.language, row.name), ensure(told, shown));
    }
    table.finish();
}

#[test]
fn code_above_its_limit_is_refused_before_it_runs() {
    let lockhouse = Lockhouse::new().config("[limits]\ncode_kib = 1\n");
    for (language, comment) in [("python", "#"), ("typescript", "//")] {
        let program = |bytes: usize| format!("1 {comment}{}", "x".repeat(bytes - 2 - comment.len()));
        assert_eq!(lockhouse.answer(language, &program(1024))["value"], 1);
        let beyond = lockhouse.answer(language, &program(1025));
        assert_eq!(beyond["error"]["message"], "the code has 1025 bytes, the limit is 1024");
    }
}

#[test]
fn output_up_to_the_limit_is_preserved_when_the_limit_ends_the_run() {
    let lockhouse = Lockhouse::new().config("[limits]\noutput_kib = 16\n");
    let answer = lockhouse.answer("python", "for i in range(100000): print(f'line {i}')");
    let stdout = answer["stdout"].as_str().unwrap_or_default();
    assert_eq!(answer["status"], "limit", "{answer}");
    assert!(stdout.starts_with("line 0\nline 1\n") && stdout.len() <= 16 * 1024, "{}", stdout.len());
}

#[test]
fn a_timeout_on_the_command_line_only_shortens_the_configured_one() {
    let lockhouse = Lockhouse::new().config("[limits]\ntimeout_seconds = 0.3\n");
    let loops = ["run", "-c", "while True: pass", "--language", "python", "--json"];
    let finished = lockhouse.run(&[&loops[..], &["--timeout", "50"]].concat());
    let message = finished.json()["error"]["message"].clone();
    assert!(message.as_str().is_some_and(|message| message.contains("0.3 s")), "{message}");
}
