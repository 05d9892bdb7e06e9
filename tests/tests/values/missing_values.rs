//! Tests of programs whose value is null, and of programs without a value: the answer says how to get one, or what was
//! undefined, and a function at the end of a program is called.

use lockhouse_tests::{Lockhouse, Session, Table, equal};
use serde_json::{Value, json};

/// Returns the value of an answer, `None` if it has none, and the advice for a missing value.
fn value_and_advice(answer: &Value) -> (Option<Value>, Option<String>) {
    (answer.get("value").cloned(), answer["no_value"].as_str().map(str::to_owned))
}

/// Runs programs, and compares their values and the advice for missing ones.
async fn check(session: &Session, title: &str, rows: &[(&str, &str, &str, Option<Value>, Option<&str>)]) {
    let mut table = Table::new(title);
    for (language, name, code, value, advice) in rows {
        let answer = session.run_code(language, code).await;
        let found = (answer["status"].clone(), value_and_advice(&answer));
        let expected = (json!("ok"), (value.clone(), advice.map(str::to_owned)));
        table.row(format!("{language}: {name}"), equal(found, expected));
    }
    table.finish();
}

#[tokio::test]
async fn null_is_a_value_and_output_is_none() {
    let lockhouse = Lockhouse::with_fixture();
    let session = lockhouse.serve().await;
    let null = || Some(Value::Null);
    let rows = [
        ("python", "None", "None", null(), None),
        ("python", "a method that returns None", "x = [2, 1]\nx.sort()", null(), None),
        ("python", "None after output", "print(1)\nNone", null(), None),
        ("python", "a function that returns nothing", "def main():\n    x = 1\nmain()", null(), None),
        ("python", "a coroutine that returns None", "import asyncio\nawait asyncio.sleep(0)", null(), None),
        ("python", "print", "print(1)", None, None),
        ("python", "print of a module", "import pprint\npprint.pprint(1)", None, None),
        ("python", "a function that prints", "def main():\n    print(1, end='')\nmain()", None, None),
        (
            "python",
            "an async one",
            "import asyncio\nasync def main():\n    print(1)\nasyncio.run(main())",
            None,
            None,
        ),
        (
            "python",
            "a function that prints and returns None",
            "def f():\n    print(1)\n    return None\nf()",
            null(),
            None,
        ),
        ("python", "an exit", "exit(0)", None, None),
        ("typescript", "null", "null", null(), None),
        ("typescript", "return null", "if (1) return null; return 2", null(), None),
        ("typescript", "null after output", "console.log(1); null", null(), None),
        ("typescript", "an object that is null in JSON", "({ toJSON: () => null })", null(), None),
        ("typescript", "a main that returns null", "async function main() { return null }", null(), None),
        ("typescript", "console.log", "console.log(1)", None, None),
        ("typescript", "console.log of null", "return console.log(null)", None, None),
        ("typescript", "a function that prints", "function f() { console.log(1) }\nf()", None, None),
        ("typescript", "a loop that prints", "[1].forEach((n) => console.log(n))", None, None),
    ];
    check(&session, "null", &rows).await;
}

#[tokio::test]
async fn what_was_undefined_is_named_with_what_there_is() {
    let lockhouse = Lockhouse::with_fixture();
    let session = lockhouse.serve().await;
    let sum = "const r = await fixture.add({a: 1, b: 2});\n";
    let unanswered = "fixture.add (line 1) has not answered yet: write await before the call";
    let rows = [
        ("a property", "r.Sum", "undefined: r.Sum; r has sum"),
        ("a property of a missing one", "r?.total?.value", "undefined: r?.total; r has sum"),
        ("an optional property", "r['total'] ?? r.Sum", "undefined: r['total'], r.Sum; r has sum"),
        ("in an object", "({ n: r.Sum, m: { k: r.total } })", "undefined: r.Sum, r.total; r has sum"),
        ("in a list", "[r.Sum]", "undefined: r.Sum; r has sum"),
        ("in a variable", "const n = r.Sum;\nn", "undefined: r.Sum; r has sum"),
        ("taken apart", "const { total } = r;\nreturn total", "undefined: total; r has sum"),
        ("of items", "[r].map((x) => ({ n: x.Sum }))", "undefined: x.Sum; the result of fixture.add has sum"),
        (
            "in a loop",
            "const out = [];\nfor (const x of [1, 2]) out.push({ n: r.Sum });\nout",
            "undefined: r.Sum; r has sum",
        ),
        ("in a function", "const f = () => ({ n: r.Sum });\nf()", "undefined: r.Sum; r has sum"),
        (
            "of an object of the program",
            "const o = { id: 1, name: 'a' };\no.Name",
            "undefined: o.Name; o has id, name",
        ),
        (
            "of a call",
            "(await fixture.add({a: 1, b: 2})).total",
            "undefined: (await fixture.add({a: 1, b: 2})).total; the result of fixture.add has sum",
        ),
        ("a call", "[1].forEach(String)", "undefined: [1].forEach(String)"),
        ("a function without return", "function f() { r.sum }\nf()", "f() returns nothing"),
        ("a function of map", "[1, 2].map((n) => { n })", "the function given to .map returns nothing"),
    ];
    let mut programs: Vec<_> = rows
        .iter()
        .map(|(name, code, advice)| {
            ("typescript", *name, format!("{sum}{code}"), None, Some((*advice).to_owned()))
        })
        .collect();
    let without_await = "const r = fixture.add({a: 1, b: 2});\n";
    for (name, code, text) in
        [("without await", "r.sum", "r.sum"), ("without await, in an object", "({ n: r.sum })", "r.sum")]
    {
        let advice = format!("undefined: {text}; {unanswered}");
        programs.push(("typescript", name, format!("{without_await}{code}"), None, Some(advice)));
    }
    // Values with content, and those without a property that is missing.
    for (name, code, value) in [
        ("a part that is there", "({ n: r.Sum, m: r.sum })", json!({"m": 3})),
        ("a name that there is", "[r].map((x) => ({ n: x.sum }))", json!([{"n": 3}])),
        ("an empty object", "({})", json!({})),
        ("an empty list", "[]", json!([])),
        ("lists of empty objects", "[{}, {}]", json!([{}, {}])),
        ("undefined on purpose", "({ a: undefined })", json!({})),
        ("null", "({ a: null, b: r.Sum })", json!({"a": null})),
        ("an instance", "new (class { a = undefined })()", json!({})),
    ] {
        programs.push(("typescript", name, format!("{sum}{code}"), Some(value), None));
    }
    let rows: Vec<_> = programs
        .iter()
        .map(|(language, name, code, value, advice)| {
            (*language, *name, code.as_str(), value.clone(), advice.as_deref())
        })
        .collect();
    check(&session, "undefined values", &rows).await;
}

#[tokio::test]
async fn a_stored_result_that_is_not_awaited_is_named() {
    let lockhouse = Lockhouse::new();
    let session = lockhouse.serve().await;
    let long = session.run_code("python", "'x' * 100_000").await;
    let handle = long["truncated"]["value"]["handle"].as_str().expect("a handle");
    let answer = session.run_code("typescript", &format!("return load_result('{handle}').length")).await;
    let advice = format!(
        "undefined: load_result('{handle}').length; a kept result (line 1) has not answered yet: write await before the call"
    );
    assert_eq!(value_and_advice(&answer), (None, Some(advice)));
    let answer =
        session.run_code("typescript", &format!("return (await load_result('{handle}')).length")).await;
    assert_eq!(value_and_advice(&answer), (Some(json!(100_000)), None));
}

#[tokio::test]
async fn variables_of_earlier_runs_are_known() {
    let lockhouse = Lockhouse::new();
    let session = lockhouse.serve().await;
    session.run_in("s", "typescript", "const rows = [{ id: 1, name: 'a' }];").await;
    let answer = session.run_in("s", "typescript", "rows.map((row) => row.title)").await;
    let advice = "undefined: row.title; row has id, name".to_owned();
    assert_eq!(value_and_advice(&answer), (None, Some(advice)));
}

#[tokio::test]
async fn a_missing_value_is_explained_and_a_function_at_the_end_is_called() {
    let lockhouse = Lockhouse::with_fixture();
    let session = lockhouse.serve().await;
    let assigned = |line: u32| json!(format!("end with an expression; `result` was assigned on line {line}"));
    let rows = [
        ("python", "an assignment", "x = 1\nresult = x", Value::Null, assigned(2)),
        ("python", "an assignment to an item", "d = {}\nd['a'] = 1", Value::Null, Value::Null),
        ("python", "an uncalled main", "def main():\n    return 1", json!(1), Value::Null),
        ("python", "an async main", "async def main():\n    return 2", json!(2), Value::Null),
        (
            "python",
            "a main that is called",
            "def main():\n    return 1\nx = main()",
            Value::Null,
            json!("end with an expression; `x` was assigned on line 3"),
        ),
        ("python", "a main with a parameter", "def main(x):\n    return 1", Value::Null, Value::Null),
        ("python", "a function by its name", "def f():\n    return 3\nf", json!(3), Value::Null),
        ("python", "a lambda", "lambda: 4", json!(4), Value::Null),
        ("typescript", "a declaration", "const x = 1;\nconst result = x;", Value::Null, assigned(2)),
        ("typescript", "an assignment", "let result;\nresult = undefined", Value::Null, assigned(2)),
        ("typescript", "undefined", "undefined", Value::Null, json!("the value is undefined")),
        ("typescript", "an uncalled main", "async function main() { return 1 }", json!(1), Value::Null),
        (
            "typescript",
            "an anonymous default export",
            "export default async function () { return 5 }",
            json!(5),
            Value::Null,
        ),
        (
            "typescript",
            "a named one",
            "export default async function run() { return 6 }",
            json!(6),
            Value::Null,
        ),
        (
            "typescript",
            "a default export that is called",
            "await run();\nexport default async function run() { return 7 }",
            json!(7),
            Value::Null,
        ),
        (
            "typescript",
            "the form of other products",
            "async () => {\n  const r = await fixture.add({a: 1, b: 2});\n  return r.sum;\n}",
            json!(3),
            Value::Null,
        ),
        ("typescript", "a function by its name", "const f = () => 4; f", json!(4), Value::Null),
        ("typescript", "a tool is not called", "fixture.add", json!("[Function: add]"), Value::Null),
    ];
    let mut table = Table::new("programs without a value");
    for (language, name, code, value, advice) in rows {
        let answer = session.run_code(language, code).await;
        let found = json!([answer["status"], answer["value"], answer["no_value"]]);
        table.row(format!("{language}: {name}"), equal(found, json!(["ok", value, advice])));
    }
    table.finish();
}
