//! Tests of the errors of programs: they have the position in the user's code, and no stack frames of Lockhouse.

use lockhouse_tests::{Lockhouse, Table, ensure};

const INTERNAL_NAMES: [&str; 6] =
    ["lockhouse_", "_lockhouse", "runner.py", "mcp_tools.py", "asyncio/", "<frozen"];

#[test]
fn a_traceback_has_only_frames_of_the_users_code_and_the_right_line() {
    let rows: [(&str, &str, &str, &str, u64); 16] = [
        ("python", "an exception", "x = 1\n\n1 / 0\n", "ZeroDivisionError", 3),
        (
            "python",
            "in a function",
            "def f():\n    return {}['k']\n\ndef g():\n    return f()\ng()",
            "KeyError",
            2,
        ),
        ("python", "a syntax error", "x = 1\ndef f(:\n    pass", "SyntaxError", 2),
        ("python", "an indentation error", "if True:\nx = 1", "IndentationError", 2),
        ("python", "an unknown name", "\n\n\nunknown_name", "NameError", 4),
        (
            "python",
            "in a coroutine",
            "import asyncio\nasync def f():\n    await asyncio.sleep(0)\n    raise ValueError('no')\nawait f()",
            "ValueError",
            4,
        ),
        (
            "python",
            "in a gathered task",
            "import asyncio\nasync def f():\n    raise ValueError('no')\nawait asyncio.gather(f())",
            "ValueError",
            3,
        ),
        ("python", "through a library", "import json\njson.loads('{')", "JSONDecodeError", 2),
        (
            "python",
            "in a tool call",
            "from mcp_tools.fixture import fail\n\nfail(message='no')",
            "ToolError",
            3,
        ),
        ("python", "exit with a status", "import sys\nsys.exit(3)", "SystemExit", 2),
        ("typescript", "an exception", "const x = 1\n\nthrow new TypeError('no')\n", "TypeError", 3),
        (
            "typescript",
            "in a function",
            "interface A { x: number }\n\nfunction f(n: any): number {\n  return n.x\n}\nfunction g() { return f(null) }\ng()",
            "TypeError",
            4,
        ),
        ("typescript", "a syntax error", "const x = 1\nconst = 2", "SyntaxError", 2),
        ("typescript", "an unknown name", "\n\n\nunknown_name", "ReferenceError", 4),
        (
            "typescript",
            "after an await",
            "enum E { A }\nasync function f() {\n  await null\n  throw new RangeError('no')\n}\nawait f()",
            "RangeError",
            4,
        ),
        (
            "typescript",
            "in a tool call",
            "type T = string\n\nawait fixture.fail({message: 'no'})",
            "ToolError",
            3,
        ),
    ];
    let lockhouse = Lockhouse::with_fixture();
    let mut table = Table::new("where code failed");
    for (language, name, code, kind, line) in rows {
        let answer = lockhouse.answer(language, code);
        let error = &answer["error"];
        let right = answer["status"] == "error" && error["type"] == kind && error["line"] == line;
        let text = format!("{} {}", error["traceback"], error["message"]);
        let ours = INTERNAL_NAMES.iter().find(|ours| text.contains(**ours));
        let shown = language == "python" || text.contains("code.ts:") || kind == "SyntaxError";
        table.row(format!("{language}: {name}"), ensure(right && ours.is_none() && shown, &answer));
    }
    table.finish();
}

#[test]
fn an_endless_loop_ends_at_its_deadline_and_reports_its_line() {
    let rows: [(&str, &str, &str, Option<u64>); 12] = [
        ("python", "a loop", "x = 1\nwhile True:\n    x += 1", None),
        (
            "python",
            "a loop that catches everything",
            "while True:\n    try:\n        x = 1\n    except BaseException:\n        pass",
            None,
        ),
        ("python", "a sleep", "import time\n\ntime.sleep(60)", Some(3)),
        ("python", "an asynchronous sleep", "import asyncio\nawait asyncio.sleep(60)", Some(2)),
        ("python", "a slow tool", "from mcp_tools.fixture import slow\nslow(ms=60000)", Some(2)),
        ("python", "one long operation", "10 ** 10 ** 8", None),
        (
            "python",
            "a thread that is joined",
            "import threading\nt = threading.Thread(target=lambda: __import__('time').sleep(60))\nt.start()\nt.join()",
            None,
        ),
        ("typescript", "a loop", "let x: number = 1\nfor (;;) {\n  x++\n}", None),
        ("typescript", "a loop of promises", "async function f() { for (;;) await null }\nawait f()", None),
        ("typescript", "a timer", "type T = 1\nawait new Promise(done => setTimeout(done, 60000))", None),
        ("typescript", "a slow tool", "enum E { A }\nawait fixture.slow({ms: 60000})", Some(2)),
        ("typescript", "one long operation", "new Array(3e8) + ''", None),
    ];
    let lockhouse = Lockhouse::with_fixture();
    let mut table = Table::new("programs that do not end");
    for (language, name, code, line) in rows {
        let file = lockhouse.file("program", code);
        let arguments = ["run", file.to_str().unwrap(), "--language", language, "--timeout", "0.4", "--json"];
        let finished = lockhouse.run(&arguments);
        let answer = finished.json();
        let timed_out = finished.status == Some(3) && answer["status"] == "timeout";
        let limit = answer["error"]["message"].as_str().is_some_and(|message| message.contains("0.4 s"));
        let right = line.is_none_or(|line| answer["error"]["line"] == line);
        let looped = name != "a loop" || answer["error"]["line"].as_u64().is_some_and(|line| line > 1);
        table.row(format!("{language}: {name}"), ensure(timed_out && limit && right && looped, &answer));
    }
    table.finish();
}

#[test]
fn the_text_output_names_position_and_reason_of_an_error() {
    let lockhouse = Lockhouse::with_fixture();
    let rows = [
        ("python_exception", "python", "def ratio(a, b):\n    return a / b\n\nprint('start')\nratio(1, 0)"),
        ("python_syntax", "python", "print('a'\nprint('b')"),
        ("python_file", "python", "open('/etc/passwd')"),
        ("python_missing_module", "python", "import requests"),
        (
            "python_tool_failed",
            "python",
            "from mcp_tools.fixture import fail\nfail(message='the disk is full')",
        ),
        (
            "typescript_exception",
            "typescript",
            "type N = number\nfunction ratio(a: N): N {\n  return (a as any).b.c\n}\nratio(1)",
        ),
        ("typescript_syntax", "typescript", "const x: = 1"),
        ("typescript_fetch", "typescript", "await fetch('https://example.com')"),
        ("typescript_tool_failed", "typescript", "await fixture.fail({message: 'the disk is full'})"),
    ];
    for (name, language, code) in rows {
        insta::assert_snapshot!(
            name,
            lockhouse.run(&["run", "-c", code, "--language", language]).transcript()
        );
    }
}
