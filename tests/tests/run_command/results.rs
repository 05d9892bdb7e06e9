//! Tests of the results of programs under `lockhouse run`: values, output and exit statuses.

use lockhouse_tests::{LANGUAGES, Lockhouse, Table, ensure, equal};
use serde_json::{Value, json};

#[test]
fn a_program_on_the_command_line_runs_in_either_language() {
    let lockhouse = Lockhouse::new();
    for (language, code) in [("python", "print(1+1)"), ("typescript", "console.log(1+1)")] {
        let finished = lockhouse.run(&["run", "-c", code, "--language", language]);
        assert_eq!((finished.status, finished.stdout.as_str()), (Some(0), "2\n"), "{finished:?}");
        assert_eq!(finished.errors(), "", "{language}");
    }
}

#[test]
fn the_json_answer_has_every_field_and_omits_empty_ones() {
    let lockhouse = Lockhouse::with_fixture();
    let programs = [
        ("python", "from mcp_tools.fixture import add\nprint('out')\nadd(a=1, b=2)['sum']"),
        ("typescript", "console.log('out')\n;(await fixture.add({a: 1, b: 2})).sum"),
    ];
    for (language, code) in programs {
        let answer = lockhouse.answer(language, code);
        assert_eq!(answer["status"], "ok", "{answer}");
        assert_eq!(answer["value"], 3, "{answer}");
        assert_eq!(answer["stdout"], "out\n", "{answer}");
        assert!(answer["execution"].as_str().is_some_and(|id| id.len() == 36), "{answer}");
        let call = &answer["calls"][0];
        let named = (call["server"].as_str(), call["tool"].as_str(), call["outcome"].as_str());
        assert_eq!(named, (Some("fixture"), Some("add"), Some("ok")), "{answer}");
        assert_eq!(call["changes"], false, "{answer}");
        assert!(call["ms"].is_number() && call["bytes"].as_u64().is_some_and(|bytes| bytes > 0), "{answer}");
        for stat in ["wall_ms", "cpu_ms", "peak_memory_bytes", "bytes_kept_out"] {
            assert!(answer["stats"][stat].is_number(), "{stat}: {answer}");
        }
        assert_eq!(answer["stats"]["tool_calls"], 1, "{answer}");
        let level = answer["sandbox"]["level"].as_str();
        assert!(matches!(level, Some("full" | "reduced")), "{answer}");
        for absent in ["stderr", "error", "truncated"] {
            assert!(answer.get(absent).is_none(), "{absent}: {answer}");
        }
    }
}

#[test]
fn the_file_extension_selects_the_language() {
    let lockhouse = Lockhouse::new();
    let mut table = Table::new("endings");
    let programs = [
        ("program.py", "f'{1+1}'"),
        ("program.ts", "const x: number = 2; `${x}`"),
        ("program.mts", "const x: number = 2; `${x}`"),
        ("program.js", "`${1+1}`"),
        ("program.mjs", "`${1+1}`"),
    ];
    for (name, code) in programs {
        let file = lockhouse.file(name, code);
        let finished = lockhouse.run(&["run", file.to_str().unwrap()]);
        table.row(name, equal(finished.stdout.as_str(), "2\n"));
    }
    let file = lockhouse.file("program.txt", "1+1");
    let finished = lockhouse.run(&["run", file.to_str().unwrap()]);
    let says = finished.status == Some(2) && finished.stderr.contains("--language");
    table.row("program.txt needs --language", ensure(says, finished));
    table.finish();
}

#[test]
fn a_program_can_come_from_standard_input() {
    let finished = Lockhouse::new().run_with_input(&["run", "-", "--language", "python"], b"print('in')");
    assert_eq!((finished.status, finished.stdout.as_str()), (Some(0), "in\n"), "{finished:?}");
}

#[test]
fn the_exit_status_says_how_the_execution_ended() {
    let rows = [
        ("ok", 0, "1", "1", None),
        ("error", 1, "1/0", "throw new Error('x')", None),
        ("timeout", 3, "while True: pass", "for(;;);", Some("0.3")),
        ("limit", 4, "print('x' * 3_000_000)", "console.log('x'.repeat(3_000_000))", None),
    ];
    let lockhouse = Lockhouse::new();
    let mut table = Table::new("exit status by the way a program ends");
    for (status, code, python, typescript, timeout) in rows {
        for (language, program) in LANGUAGES.into_iter().zip([python, typescript]) {
            let mut arguments = vec!["run", "-c", program, "--language", language, "--json"];
            arguments.extend(timeout.into_iter().flat_map(|timeout| ["--timeout", timeout]));
            let finished = lockhouse.run(&arguments);
            let found = (finished.status, finished.json()["status"].clone());
            table.row(format!("{language}: {status}"), equal(found, (Some(code), json!(status))));
        }
    }
    table.finish();
}

#[test]
fn the_value_is_the_last_expression_a_return_value_or_an_awaited_result() {
    let rows: [(&str, &str, &str, Value); 22] = [
        ("last expression", "python", "x = 20\nx + 1", json!(21)),
        ("no expression at the end", "python", "x = 1", Value::Null),
        ("top-level await", "python", "import asyncio\nawait asyncio.sleep(0)\n5", json!(5)),
        ("await as the last expression", "python", "async def f(): return 7\nawait f()", json!(7)),
        ("a coroutine nobody awaited", "python", "async def f(): return 7\nf()", json!(7)),
        (
            "async for and with",
            "python",
            "async def g():\n yield 1\n yield 2\n[x async for x in g()]",
            json!([1, 2]),
        ),
        (
            "containers",
            "python",
            "{'a': (1, 2.5), 'b': None, 'c': {3}}",
            json!({"a": [1, 2.5], "b": null, "c": [3]}),
        ),
        (
            "a date, a decimal, a fraction",
            "python",
            "import datetime, decimal, fractions\n[datetime.date(2024, 2, 29), decimal.Decimal('1.10'), fractions.Fraction(1, 3)]",
            json!(["2024-02-29", "1.10", "1/3"]),
        ),
        (
            "a data class and an enum",
            "python",
            "from dataclasses import dataclass\nfrom enum import Enum\nclass E(Enum): A = 'a'\n@dataclass\nclass P:\n x: int\n e: E\nP(1, E.A)",
            json!({"x": 1, "e": "a"}),
        ),
        ("text beyond ASCII", "python", "'žluť 🐎'", json!("žluť 🐎")),
        (
            "what JSON has no number for",
            "python",
            "[float('nan'), float('inf'), 10**30 == 1e30]",
            json!(["NaN", "Infinity", false]),
        ),
        (
            "__name__ is __main__",
            "python",
            "def f():\n  return __name__\nif __name__ == '__main__':\n  x = f()\nx",
            json!("__main__"),
        ),
        ("last expression", "typescript", "const x = 20\nx + 1", json!(21)),
        ("return", "typescript", "return 3", json!(3)),
        ("early return", "typescript", "if (1 < 2) { return 'early' }\n'late'", json!("early")),
        ("nothing at the end", "typescript", "const x = 1", Value::Null),
        (
            "top-level await",
            "typescript",
            "await Promise.resolve(); const y = await Promise.resolve(5); y",
            json!(5),
        ),
        ("a promise as the last expression", "typescript", "Promise.resolve(8)", json!(8)),
        (
            "types, enums, interfaces",
            "typescript",
            "enum E { A = 'a' }\ninterface P { x: number; e: E }\nfunction p<T>(x: T): T { return x }\np<P>({x: 1, e: E.A} as P)",
            json!({"x": 1, "e": "a"}),
        ),
        (
            "containers",
            "typescript",
            "({a: [1, 2.5], b: null, m: new Map([['k', 1]]), s: new Set([3])})",
            json!({"a": [1, 2.5], "b": null, "m": {"k": 1}, "s": [3]}),
        ),
        ("text beyond ASCII", "typescript", "'žluť 🐎'", json!("žluť 🐎")),
        (
            "a class with a private field",
            "typescript",
            "class A { #x = 2; get x(): number { return this.#x } }\nnew A().x",
            json!(2),
        ),
    ];
    let lockhouse = Lockhouse::new();
    let mut table = Table::new("values");
    for (name, language, code, expected) in rows {
        let answer = lockhouse.answer(language, code);
        let found = (answer["status"].clone(), answer["value"].clone());
        let outcome = equal(found, (json!("ok"), expected));
        table.row(format!("{language}: {name}"), outcome.map_err(|e| format!("{e} {}", answer["error"])));
    }
    table.finish();
}

#[test]
fn standard_output_and_error_are_kept_apart_and_in_order() {
    let programs = [
        (
            "python",
            "import sys\nprint('a')\nprint('e1', file=sys.stderr)\nsys.stdout.write('b')\nprint('c', end='')\nprint('e2', file=sys.stderr)",
        ),
        ("typescript", "console.log('a'); console.error('e1'); console.log('bc'); console.warn('e2')"),
    ];
    let lockhouse = Lockhouse::new();
    for (language, code) in programs {
        let answer = lockhouse.answer(language, code);
        let stdout = answer["stdout"].as_str().map(str::trim_end);
        assert_eq!((stdout, answer["stderr"].as_str()), (Some("a\nbc"), Some("e1\ne2\n")), "{answer}");
        let file = lockhouse.file("program", code);
        let finished = lockhouse.run(&["run", "--language", language, file.to_str().unwrap()]);
        assert_eq!((finished.stdout.trim_end(), finished.errors().as_str()), ("a\nbc", "e1\ne2\n"));
    }
}

#[test]
fn output_before_an_error_is_preserved() {
    let rows = [
        ("python", "print('before')\n1/0"),
        ("typescript", "console.log('before'); throw new Error('x')"),
        ("python", "import os, time\nprint('before')\ntime.sleep(60)"),
    ];
    for (language, code) in rows {
        let answer = Lockhouse::new().config("[limits]\ntimeout_seconds = 0.5\n").answer(language, code);
        assert_ne!(answer["status"], "ok", "{answer}");
        assert_eq!(answer["stdout"], "before\n", "{code}: {answer}");
    }
}
