//! Tests of programs without a value: the answer says how to get one, and a function at the end of a program is called.

use lockhouse_tests::{Lockhouse, Table, equal};
use serde_json::{Value, json};

#[tokio::test]
async fn a_missing_value_is_explained_and_a_function_at_the_end_is_called() {
    let lockhouse = Lockhouse::with_fixture();
    let session = lockhouse.serve().await;
    let assigned = |line: u32| json!(format!("end with an expression; `result` was assigned on line {line}"));
    let rows = [
        ("python", "an assignment", "x = 1\nresult = x", Value::Null, assigned(2)),
        ("python", "an assignment to an item", "d = {}\nd['a'] = 1", Value::Null, Value::Null),
        ("python", "None", "None", Value::Null, Value::Null),
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
        (
            "typescript",
            "a property of a promise",
            "const p = fixture.add({a: 1, b: 2});\np.sum",
            Value::Null,
            json!("`p` is a Promise; await it"),
        ),
        ("typescript", "undefined", "undefined", Value::Null, Value::Null),
        ("typescript", "an uncalled main", "async function main() { return 1 }", json!(1), Value::Null),
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
