//! The programs that the benchmark measures, each in Python and TypeScript.

use std::time::Duration;

use serde_json::{Value, json};

const PAUSE: Duration = Duration::from_millis(20);
const TRIVIAL: [(&str, &str); 2] = [("python", "1+1"), ("typescript", "1+1")];
const ONE_CALL: [(&str, &str); 2] = [
    ("python", "from mcp_tools.fixture import add\nadd(a=1, b=2)['sum']"),
    ("typescript", "(await fixture.add({a: 1, b: 2})).sum"),
];
const SEQUENCE: [(&str, &str); 2] = [
    ("python", "from mcp_tools.fixture import add\nsum(add(a=i, b=1)['sum'] for i in range(100))"),
    ("typescript", "let s = 0; for (let i = 0; i < 100; i++) s += (await fixture.add({a: i, b: 1})).sum;\ns"),
];
const PARALLEL: [(&str, &str); 2] = [
    (
        "python",
        "import asyncio\nfrom mcp_tools.aio.fixture import add\n\
         sum(r['sum'] for r in await asyncio.gather(*[add(a=i, b=1) for i in range(100)]))",
    ),
    (
        "typescript",
        "(await Promise.all(Array.from({length: 100}, (_, i) => fixture.add({a: i, b: 1})))).reduce((s, r) => s + r.sum, 0)",
    ),
];

/// Programs with one call of a bare echo server (`bench-echo`). The number in the name of the server is its number of
/// tools.
const ECHO_CALLS: [[(&str, &str); 2]; 3] = [
    [
        ("python", "from mcp_tools.echo3 import add\nadd(a=1, b=2)['sum']"),
        ("typescript", "(await echo3.add({a: 1, b: 2})).sum"),
    ],
    [
        ("python", "from mcp_tools.echo100 import add\nadd(a=1, b=2)['sum']"),
        ("typescript", "(await echo100.add({a: 1, b: 2})).sum"),
    ],
    [
        ("python", "from mcp_tools.echo870 import add\nadd(a=1, b=2)['sum']"),
        ("typescript", "(await echo870.add({a: 1, b: 2})).sum"),
    ],
];
/// Programs with one call whose result is a text of [`LARGE_BYTES`].
const LARGE_RESULT: [(&str, &str); 2] = [
    ("python", "from mcp_tools.echo3 import text\nlen(text(bytes=1000000))"),
    ("typescript", "(await echo3.text({bytes: 1000000})).length"),
];
const LARGE_BYTES: usize = 1_000_000;
/// The same with the largest result that a configuration permits.
const LARGEST_RESULT: [(&str, &str); 2] = [
    ("python", "from mcp_tools.echo3 import text\nlen(text(bytes=59000000))"),
    ("typescript", "(await echo3.text({bytes: 59000000})).length"),
];
/// Programs with 100 sequential calls of a bare echo server (`bench-echo`).
const ECHO_SEQUENCE: [(&str, &str); 2] = [
    ("python", "from mcp_tools.echo3 import add\nsum(add(a=i, b=1)['sum'] for i in range(100))"),
    ("typescript", "let s = 0; for (let i = 0; i < 100; i++) s += (await echo3.add({a: i, b: 1})).sum;\ns"),
];

/// Programs with 100 parallel calls of a bare echo server (`bench-echo`).
const ECHO_PARALLEL: [(&str, &str); 2] = [
    (
        "python",
        "import asyncio\nfrom mcp_tools.aio.echo3 import add\n\
         sum(r['sum'] for r in await asyncio.gather(*[add(a=i, b=1) for i in range(100)]))",
    ),
    (
        "typescript",
        "(await Promise.all(Array.from({length: 100}, (_, i) => echo3.add({a: i, b: 1})))).reduce((s, r) => s + r.sum, 0)",
    ),
];

/// One row of the benchmark's table: a request with the value that it must have, the number of its measured runs, and the
/// pause before each run.
pub(crate) struct Row {
    pub(crate) name: String,
    /// The parameters of the request `tools/call`.
    pub(crate) call: Value,
    /// Where the value is in the response.
    pub(crate) value_at: &'static str,
    pub(crate) expected: Value,
    pub(crate) runs: usize,
    pub(crate) pause: Duration,
}

fn in_both_languages(
    name: &str,
    programs: [(&'static str, &'static str); 2],
    expected: u32,
    runs: usize,
) -> [Row; 2] {
    programs.map(|(language, code)| Row {
        name: format!("{language}: {name}"),
        call: json!({"name": "run_code", "arguments": {"language": language, "code": code}}),
        value_at: "/result/structuredContent/value",
        expected: json!(expected),
        runs,
        pause: Duration::ZERO,
    })
}

/// Returns the rows whose name has the text `only`.
pub(crate) fn selected(rows: impl IntoIterator<Item = Row>, only: &str) -> impl Iterator<Item = Row> {
    rows.into_iter().filter(move |row| row.name.contains(only))
}

/// Returns a row for the program `1+1` in each language. `name` is the name of the measurement.
pub(crate) fn trivial(name: &str) -> [Row; 2] {
    in_both_languages(name, TRIVIAL, 2, 1)
}

/// Returns rows whose programs make one tool call each, for every upstream server. They are run before the measurement,
/// because the first call waits until the upstream server is connected and its tools are known.
pub(crate) fn first_calls() -> Vec<Row> {
    let calls = [ONE_CALL].into_iter().chain(ECHO_CALLS);
    calls.flat_map(|programs| in_both_languages("first call", programs, 3, 1)).collect()
}

/// Returns the rows with the largest results.
pub(crate) fn largest_results() -> [Row; 2] {
    in_both_languages("one call with a result of 59 MB", LARGEST_RESULT, 59_000_000, 1)
}

fn at_both_paces(row: Row) -> [Row; 2] {
    let paces = [("back to back", Duration::ZERO), ("paced by 20 ms", PAUSE)];
    paces.map(|(pace, pause)| Row {
        name: format!("{}, {pace}", row.name),
        call: row.call.clone(),
        expected: row.expected.clone(),
        pause,
        ..row
    })
}

/// Returns a row whose requests call a tool of a bare echo server without a program, with a result of [`LARGE_BYTES`].
fn direct_call() -> Row {
    Row {
        name: "direct call with a result of 1 MB".to_owned(),
        call: json!({"name": "echo3__text", "arguments": {"bytes": LARGE_BYTES}}),
        value_at: "/result/content/0/text",
        expected: json!("x".repeat(LARGE_BYTES)),
        runs: 100,
        pause: Duration::ZERO,
    }
}

/// Returns the rows that are measured in a `lockhouse serve` process in which programs have already run.
pub(crate) fn warm() -> Vec<Row> {
    let cases = [
        in_both_languages("1+1", TRIVIAL, 2, 200),
        in_both_languages("one tool call", ONE_CALL, 3, 200),
        in_both_languages("100 tool calls in sequence", SEQUENCE, 5050, 30),
        in_both_languages("100 tool calls in parallel", PARALLEL, 5050, 30),
        in_both_languages("100 calls in sequence, bare server", ECHO_SEQUENCE, 5050, 30),
        in_both_languages("100 calls in parallel, bare server", ECHO_PARALLEL, 5050, 30),
    ];
    let [few, some, many] = ECHO_CALLS;
    let of_server = |tools, programs| {
        in_both_languages(&format!("one call, bare server with {tools} tools"), programs, 3, 200)
    };
    let bare = [of_server(3, few), of_server(100, some), of_server(870, many)];
    let paced_only = bare.into_iter().flatten().map(|row| {
        let [_, paced] = at_both_paces(row);
        paced
    });
    let large = in_both_languages("one call with a result of 1 MB", LARGE_RESULT, 1_000_000, 100);
    let of_programs = cases.into_iter().flatten().flat_map(at_both_paces).chain(paced_only);
    of_programs.chain(large).chain([direct_call()]).collect()
}
