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

/// One row of the benchmark's table: a program, its expected value, and the pause between runs.
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) language: &'static str,
    pub(crate) code: &'static str,
    pub(crate) expected: Value,
    pub(crate) runs: usize,
    /// The pause before each run of the program.
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
        language,
        code,
        expected: json!(expected),
        runs,
        pause: Duration::ZERO,
    })
}

/// Returns a row for the program `1+1` in each language. `name` is the name of the measurement.
pub(crate) fn trivial(name: &str) -> [Row; 2] {
    in_both_languages(name, TRIVIAL, 2, 1)
}

/// Returns a program with one tool call in each language. It is run before the measurement, because the first call
/// waits until the upstream server is connected and its tools are known.
pub(crate) fn first_calls() -> [Row; 2] {
    in_both_languages("first call", ONE_CALL, 3, 1)
}

/// Returns the programs that are measured in a warmed-up process.
pub(crate) fn warm() -> Vec<Row> {
    let cases = [
        in_both_languages("1+1", TRIVIAL, 2, 200),
        in_both_languages("one tool call", ONE_CALL, 3, 200),
        in_both_languages("100 tool calls in sequence", SEQUENCE, 5050, 30),
        in_both_languages("100 tool calls in parallel", PARALLEL, 5050, 30),
    ];
    let paces = [("back to back", Duration::ZERO), ("paced by 20 ms", PAUSE)];
    let paced = |row: Row| {
        paces.map(|(pace, pause)| Row {
            name: format!("{}, {pace}", row.name),
            expected: row.expected.clone(),
            pause,
            ..row
        })
    };
    cases.into_iter().flatten().flat_map(paced).collect()
}
