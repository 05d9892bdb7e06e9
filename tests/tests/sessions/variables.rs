//! Tests of the variables of a session: they persist between its runs, whatever the outcome of the run that defined
//! them.

use lockhouse_tests::{Lockhouse, Table, ensure, equal};

use crate::sessions::outcome_text;

/// The consecutive runs of one session: the code of each run, and its expected value as JSON text.
type Runs<'a> = &'a [(&'a str, &'a str)];

const PYTHON: &[(&str, Runs<'_>)] = &[
    ("variables", &[("x = 1", "null"), ("x += 1; x", "2"), ("x", "2")]),
    (
        "imports",
        &[("import math as m\nfrom json import dumps", "null"), ("dumps([m.floor(1.5)])", "\"[1]\"")],
    ),
    (
        "functions see what comes later",
        &[("n = 1\ndef f(): return n + g()", "null"), ("def g(): return 10", "null"), ("n = 2; f()", "12")],
    ),
    ("classes", &[("class A:\n    def f(self): return 1", "null"), ("class B(A): pass\nB().f()", "1")]),
    ("a new definition", &[("def f(): return 1", "null"), ("def f(): return 2", "null"), ("f()", "2")]),
    (
        "a failure half-way keeps what was assigned",
        &[
            ("a = 1\nraise ValueError('x')\nb = 2", "ValueError: x"),
            ("a", "1"),
            ("'b' in globals()", "false"),
        ],
    ),
    (
        "what does not compile changes nothing",
        &[("a = 1", "null"), ("a = ", "SyntaxError: invalid syntax"), ("a", "1")],
    ),
    (
        "a task goes on in the next run that waits",
        &[
            ("import asyncio\nasync def f():\n    await asyncio.sleep(0.01)\n    return 7", "null"),
            ("t = asyncio.create_task(f()); await asyncio.sleep(0)", "null"),
            ("1 + 1", "2"),
            ("await t", "7"),
        ],
    ),
    (
        "a thread goes on while runs do",
        &[
            ("import threading, queue\nq, r = queue.Queue(), queue.Queue()", "null"),
            ("threading.Thread(target=lambda: r.put(q.get() + 1)).start()", "null"),
            ("q.put(1)", "null"),
            ("r.get(timeout=10)", "2"),
        ],
    ),
    (
        "pickle finds its classes",
        &[
            ("import pickle\nclass P:\n    x = 3\ndata = pickle.dumps(P())", "null"),
            ("pickle.loads(data).x", "3"),
        ],
    ),
    ("the result has no name", &[("41", "41"), ("[k for k in globals() if k.startswith('<')]", "[]")]),
    ("an exit", &[("x = 1; exit()", "null"), ("x", "1")]),
];

const TYPESCRIPT: &[(&str, Runs<'_>)] = &[
    ("let", &[("let x = 1", "null"), ("x += 1; x", "2"), ("x", "2")]),
    ("const, and again", &[("const x = 1", "null"), ("const x = 2; x", "2"), ("x = 3; x", "3")]),
    ("var in a block", &[("if (true) { var x = 1 }", "null"), ("x", "1")]),
    (
        "functions see what comes later",
        &[
            ("let n = 1; function f() { return n + g() }", "null"),
            ("function g() { return 10 }", "null"),
            ("n = 2; f()", "12"),
        ],
    ),
    (
        "closures change what stays",
        &[("let n = 0; function inc() { n++ }", "null"), ("inc(); inc(); n", "2")],
    ),
    (
        "a function that is a value",
        &[("const f = (a: number) => n + a", "null"), ("let n = 1; f(1)", "2"), ("f.name", "\"f\"")],
    ),
    (
        "classes",
        &[
            ("class A { static made = 0; f(): number { return ++A.made } }", "null"),
            ("class B extends A {}; new B().f()", "1"),
        ],
    ),
    ("enums", &[("enum E { A = 4, B }", "null"), ("E.B", "5"), ("E[4]", "\"A\"")]),
    (
        "patterns",
        &[
            ("const {a, b: [c = 5, ...d], ...e} = {a: 1, b: [undefined, 2, 3], x: 9, y: 8}", "null"),
            ("[a, c, d, e]", "[1,5,[2,3],{\"x\":9,\"y\":8}]"),
        ],
    ),
    (
        "loops",
        &[
            ("for (var i = 0, s = 0; i < 5; i++) s += i; for (var k of [7]);", "null"),
            ("[i, s, k]", "[5,10,7]"),
        ],
    ),
    (
        "imports that are used later",
        &[("import { callTool as c } from 'mcp_tools'", "null"), ("typeof c", "\"function\"")],
    ),
    (
        "a failure half-way keeps what was assigned",
        &[
            ("const a = 1; throw new TypeError('x'); const b = 2", "TypeError: x"),
            ("a", "1"),
            ("typeof b", "\"undefined\""),
        ],
    ),
    (
        "what does not compile changes nothing",
        &[("let a = 1", "null"), ("let a = ;", "SyntaxError: Unexpected token"), ("a", "1")],
    ),
    (
        "a promise that is awaited later",
        &[("const p = new Promise(done => setTimeout(() => done(7), 5))", "null"), ("await p", "7")],
    ),
    ("await at the top", &[("const v = await Promise.resolve(3)", "null"), ("v", "3")]),
    (
        "the name of a global",
        &[
            ("const Map = 1, URL = 'u', name = 'n'", "null"),
            ("console.log(new Set([1])); [Map, URL, name]", "[1,\"u\",\"n\"]"),
        ],
    ),
    ("functions get no this", &[("function f() { return this === undefined }", "null"), ("f()", "true")]),
    ("strict", &[("let a = 1", "null"), ("undeclared = 1", "ReferenceError: undeclared is not defined")]),
    (
        "types are for one program",
        &[("interface R { a: number }; let r: R = {a: 1}", "null"), ("r.a as number", "1")],
    ),
    (
        "generators and async",
        &[
            ("function* g() { yield 1 } async function h() { return 2 }", "null"),
            ("[[...g()], await h()]", "[[1],2]"),
        ],
    ),
    ("an export", &[("export const a = 1; export default function f() { return a }", "null"), ("f()", "1")]),
];

#[tokio::test]
async fn variables_persist_between_runs() {
    let lockhouse = Lockhouse::new().config("[sessions]\nmax = 64\n");
    let session = lockhouse.serve().await;
    let mut table = Table::new("names of a session");
    for (language, cases) in [("python", PYTHON), ("typescript", TYPESCRIPT)] {
        for (number, (name, runs)) in cases.iter().enumerate() {
            for (index, (code, expected)) in runs.iter().enumerate() {
                let answer = session.run_in(&format!("{language}-{number}"), language, code).await;
                let row = format!("{language}: {name}, run {}", index + 1);
                let told = outcome_text(&answer);
                table.row(row.clone(), ensure(told.starts_with(expected), format!("{told} for {code:?}")));
                let counted = answer["session"]["runs"] == index + 1 && answer["session"]["ended"].is_null();
                table.row(format!("{row}, counted"), ensure(counted, &answer["session"]));
                let new = answer["session"]["new"] == true;
                table.row(format!("{row}, new"), equal(new, index == 0));
            }
        }
    }
    table.finish();
}

/// A function that an earlier run of the session has defined fails in a later run. The error has the line of the later
/// program, and the traceback shows lines of both programs.
#[tokio::test]
async fn tracebacks_show_the_lines_of_the_run_that_defined_the_function() {
    let session = Lockhouse::new().serve().await;
    let mut table = Table::new("an error in a function of an earlier run");
    let python = ["\n\ndef f():\n    return [][7]", "a = 1\nf()"];
    let typescript = ["\n\nfunction f() {\n  throw new Error('x')\n}", "let a = 1\nf()"];
    for (language, [first, second], lines) in [
        (
            "python",
            python,
            [
                "File \"<code>\", line 2, in <module>\n    f()",
                "File \"<code 1>\", line 4, in f\n    return [][7]",
            ],
        ),
        ("typescript", typescript, ["code.ts:2:", "at f (code-1.ts:4:"]),
    ] {
        session.run_in(language, language, first).await;
        let answer = session.run_in(language, language, second).await;
        table.row(format!("{language}: the line"), equal(&answer["error"]["line"], &2.into()));
        let traceback = crate::sessions::text(&answer["error"]["traceback"]);
        for line in lines {
            table.row(format!("{language}: {line}"), ensure(traceback.contains(line), traceback));
        }
    }
    table.finish();
}
