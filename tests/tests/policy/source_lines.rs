//! Tests of the source line in the audit record of a call: the line of the program that made the call.

use lockhouse_tests::{Lockhouse, Table, equal};
use serde_json::{Value, json};

/// Programs that make calls: the name of the case, the language and the code. Each line that contains `here` makes a
/// call.
const PROGRAMS: [(&str, &str, &str); 15] = [
    ("a call", "python", "from mcp_tools.fixture import add\n\nadd(1, 2)  # here"),
    ("over several lines", "python", "from mcp_tools import fixture\nx = fixture.add(  # here\n  1,\n  2)"),
    (
        "in a function",
        "python",
        "from mcp_tools import fixture\ndef f():\n  return fixture.add(1, 2)  # here\n\nf()",
    ),
    ("by name", "python", "from mcp_tools import call_tool\n\ncall_tool('fixture.add', a=1, b=2)  # here"),
    ("handed to map", "python", "from mcp_tools.fixture import add\nlist(map(add, [1], [2]))  # here"),
    (
        "in a thread",
        "python",
        "from mcp_tools import fixture\nfrom concurrent.futures import ThreadPoolExecutor\n\
         def f(n):\n  return fixture.add(n, 1)  # here\n\
         with ThreadPoolExecutor() as pool:\n  pool.submit(f, 1).result()",
    ),
    (
        "awaited",
        "python",
        "from mcp_tools.aio import fixture\nasync def f(n):\n  return await fixture.add(n, 1)  # here\n\nawait f(1)",
    ),
    (
        "gathered",
        "python",
        "import asyncio\nfrom mcp_tools import aio\nawait asyncio.gather(\n  aio.fixture.add(1, 2),  # here\n  \
         aio.call_tool('fixture', 'add', {'a': 3, 'b': 4}),  # here\n)",
    ),
    (
        "a task",
        "python",
        "import asyncio\nfrom mcp_tools.aio import fixture\ntask = asyncio.create_task(fixture.add(1, 2))  # here\nawait task",
    ),
    ("a call", "typescript", "interface A {\n  a: number;\n}\nawait fixture.add({ a: 1, b: 2 }); // here"),
    (
        "over several lines",
        "typescript",
        "type T = string |\n  null;\nawait fixture.add({ // here\n  a: 1,\n  b: 2 });",
    ),
    (
        "in a function",
        "typescript",
        "import { add } from \"mcp_tools/fixture\";\ninterface I {\n  a: 1;\n}\nasync function f(n: number) {\n  \
         await null;\n  return add(n, 1); // here\n}\nawait f(1);",
    ),
    ("by name", "typescript", "\nawait callTool(\"fixture.add\", { a: 1, b: 2 }); // here"),
    (
        "all at once",
        "typescript",
        "enum E {\n  A,\n}\nawait Promise.all([E.A].map((n) =>\n  fixture.add(n, 2) // here\n));",
    ),
    (
        "in a timer",
        "typescript",
        "await new Promise((done) => setTimeout(() => {\n  fixture.add(1, 2).then(done); // here\n}, 1));",
    ),
];

fn lines(lockhouse: &Lockhouse, event: &str) -> Vec<Value> {
    let records = lockhouse.audit().into_iter().filter(|record| record["event"] == event);
    records.map(|record| record["line"].clone()).collect()
}

#[test]
fn a_call_is_recorded_with_the_line_that_makes_it() {
    let mut table = Table::new("lines of calls");
    for (name, language, program) in PROGRAMS {
        let lockhouse = Lockhouse::with_fixture();
        let answer = lockhouse.answer(language, program);
        let mut found = lines(&lockhouse, "call");
        found.sort_by_key(Value::to_string);
        let expected: Vec<Value> = (1..)
            .zip(program.lines())
            .filter(|(_, line)| line.contains("here"))
            .map(|(number, _): (usize, _)| json!(number))
            .collect();
        table.row(
            format!("{language}: {name}"),
            equal(found, expected).map_err(|told| format!("{told} {answer}")),
        );
    }
    table.finish();
}

/// An audit record of a denial has the line of the denied call. The record of a call that no line of the program makes,
/// such as one from a thread pool, has no line.
#[test]
fn a_denial_has_its_line_and_a_call_outside_the_program_has_none() {
    let lockhouse = Lockhouse::with_fixture().policy(crate::policy::POLICY);
    let _ = lockhouse.answer("python", "from mcp_tools import call_tool\n\ncall_tool('fixture.fail')");
    assert_eq!(lines(&lockhouse, "denial"), [json!(3)]);
    let program = "from mcp_tools.fixture import add\nfrom concurrent.futures import ThreadPoolExecutor\n\
                   with ThreadPoolExecutor() as pool:\n  value = pool.submit(add, 1, 2).result()['sum']\nvalue";
    assert_eq!(lockhouse.answer("python", program)["value"], 3);
    assert_eq!(lines(&lockhouse, "call"), [Value::Null]);
}

/// The worker reports the line of each call, so a program can forge it. A forged line must not change a decision.
#[test]
fn forged_lines_change_no_decision() {
    let lies = [
        (
            "python",
            "from mcp_tools import fixture\ndef f(): return fixture.add(1, 2)['sum']\n\
                    f.__code__ = f.__code__.replace(co_firstlineno=2**31 - 10)\nf()",
        ),
        (
            "python",
            "import _lockhouse\n_lockhouse.call('fixture', 'add', b'[1, 2]', None, 4294967295)[0] and 3",
        ),
        (
            "typescript",
            "Error.prepareStackTrace = () => '    at f (code.ts:4294967295:1)';\n(await fixture.add(1, 2)).sum",
        ),
        ("typescript", "Error.prepareStackTrace = () => { throw 1 };\n(await fixture.add(1, 2)).sum"),
    ];
    let mut table = Table::new("forged lines");
    for (language, program) in lies {
        let lockhouse = Lockhouse::with_fixture();
        let answer = lockhouse.answer(language, program);
        table.row(
            program,
            equal(answer["value"].clone(), json!(3)).map_err(|told| format!("{told} {answer}")),
        );
    }
    table.finish();
}
