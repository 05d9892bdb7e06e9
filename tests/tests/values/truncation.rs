//! Tests of the truncation of values and output that exceed the limit of an answer.

use lockhouse_tests::{Lockhouse, Session, Table, ensure, equal};
use serde_json::{Value, json};

const CONFIG: &str = "[limits]\nshown_bytes = 1000\n";

#[tokio::test]
async fn truncated_parts_show_head_tail_and_total_size() {
    let rows = [
        ("python", "value", "'a' + 'x' * 4998 + 'z'", 5000),
        ("python", "value", "[{'id': i, 'name': f'row {i}'} for i in range(1000)]", 27_781),
        ("python", "value", "{'rows': list(range(1000)), 'note': 'x' * 1000}", 4_910),
        ("python", "stdout", "for i in range(1000): print('line', i)", 8_890),
        ("python", "stdout", "print('a' + 'x' * 4998 + 'z')", 5001),
        ("python", "stderr", "import sys\nprint('x' * 4999, file=sys.stderr)", 5000),
        ("typescript", "value", "'a' + 'x'.repeat(4998) + 'z'", 5000),
        ("typescript", "value", "Array.from({length: 1000}, (_, id) => ({id, name: `row ${id}`}))", 27_781),
        ("typescript", "stdout", "for (let i = 0; i < 1000; i++) console.log('line', i)", 8_890),
        ("typescript", "stderr", "console.error('x'.repeat(4999))", 5000),
    ];
    let lockhouse = Lockhouse::new().config(CONFIG);
    let session: Session = lockhouse.serve().await;
    let mut table = Table::new("cut at 1000 bytes");
    for (language, part, code, bytes) in rows {
        let answer = session.run_code(language, code).await;
        let cut = &answer["truncated"][part];
        let shown = match &answer[if part == "value" { "preview" } else { part }] {
            Value::String(text) => text.len(),
            value => value.to_string().len(),
        };
        let right = cut["bytes"] == bytes && cut["shown"] == shown && (600..=1000).contains(&shown);
        let told = answer["truncated"]["hint"].is_string() && cut["handle"].is_string();
        table.row(
            format!("{language}: {part}: {code}"),
            ensure(right && told && answer["status"] == "ok", (shown, &answer)),
        );
    }
    table.finish();
}

#[tokio::test]
async fn printed_output_can_have_a_separate_limit() {
    let code = "import sys\nprint('x' * 1999)\nprint('x' * 1999, file=sys.stderr)\n'x' * 2000";
    let mut table = Table::new("shown bytes of 2000");
    for (keys, value, printed) in [
        ("shown_bytes = 1000\n", 600..=1000, 600..=1000),
        ("shown_bytes = 1000\nprinted_bytes = 300\n", 600..=1000, 100..=300),
        ("shown_bytes = 300\nprinted_bytes = 4000\n", 100..=300, 2000..=2000),
    ] {
        let lockhouse = Lockhouse::new().config(&format!("[limits]\n{keys}"));
        let session: Session = lockhouse.serve().await;
        let answer = session.run_code("python", code).await;
        for (part, expected) in [("preview", &value), ("stdout", &printed), ("stderr", &printed)] {
            let shown = answer[part].as_str().map_or(0, str::len);
            table.row(format!("{keys:?}: {part}"), ensure(expected.contains(&shown), (shown, &answer)));
        }
    }
    table.finish();
}

#[tokio::test]
async fn a_truncated_value_keeps_its_structure() {
    let lockhouse = Lockhouse::new().config(CONFIG);
    let session = lockhouse.serve().await;
    let mut table = Table::new("truncation of a long value");
    let rows = "[{'id': i, 'name': f'row {i}'} for i in range(1000)]";
    let answer = session.run_code("python", rows).await;
    let list = answer["preview"].as_array().cloned().unwrap_or_default();
    let whole = |row: &Value| *row == json!({"id": row["id"], "name": format!("row {}", row["id"])});
    let marks: Vec<usize> = (0..list.len()).filter(|at| list[*at].is_string()).collect();
    table.row("a table is a list with one mark", ensure(marks.len() == 1, &answer));
    table.row("its rows are whole", ensure(list.iter().filter(|row| row.is_object()).all(whole), &list));
    table.row(
        "its first and its last are there",
        ensure(list[0]["id"] == 0 && list[list.len() - 1]["id"] == 999, &list),
    );
    let mark = list[marks[0]].as_str().unwrap_or_default().to_owned();
    let left_out = 1000 - (list.len() - 1);
    table.row(
        "the mark counts",
        ensure(mark.contains(&format!("{left_out} more items, [{}] to", marks[0])), &mark),
    );
    let place = json!([{"path": "$", "items": 1000, "shown": list.len() - 1}]);
    table.row("and the place is told", equal(&answer["truncated"]["value"]["cut"], &place));

    let answer = session
        .run_code(
            "python",
            "{'a': 1, 'rows': [list(range(500))] * 3, 'note': 'start' + '-' * 900 + 'end', 'z': None}",
        )
        .await;
    let keys: Vec<&str> = answer["preview"].as_object().unwrap().keys().map(String::as_str).collect();
    table.row("an object keeps its keys", equal(keys, vec!["a", "rows", "note", "z"]));
    let note = answer["preview"]["note"].as_str().unwrap_or_default();
    table.row("a text keeps both ends", ensure(note.starts_with("start-") && note.ends_with("-end"), note));

    let answer = session
        .run_code(
            "python",
            "for i in range(5000): print('line', i)\nraise ValueError('a' + 'b' * 9000 + 'c')",
        )
        .await;
    let stdout = answer["stdout"].as_str().unwrap_or_default();
    let right = stdout.starts_with("line 0\nline 1\n")
        && stdout.ends_with("line 4998\nline 4999\n")
        && stdout.contains("lines left out");
    table.row("output keeps its first and its last lines", ensure(right, stdout));
    let message = answer["error"]["message"].as_str().unwrap_or_default();
    table.row(
        "a message keeps both ends",
        ensure(message.starts_with("ab") && message.ends_with("bc") && message.len() <= 4000, message.len()),
    );
    table.finish();
}

#[test]
fn a_program_stopped_at_the_output_limit_keeps_its_last_lines() {
    let lockhouse = Lockhouse::new().config("[limits]\nshown_bytes = 1000\noutput_kib = 64\n");
    let mut table = Table::new("output without end");
    for (language, code) in [
        ("python", "i = 0\nwhile True:\n  print('line', i)\n  i += 1"),
        ("typescript", "for (let i = 0; ; i++) console.log('line', i)"),
    ] {
        let answer = lockhouse.answer(language, code);
        let stdout = answer["stdout"].as_str().unwrap_or_default();
        // Lines have 9 to 10 bytes, and the limit is 64 KiB. The last line may be truncated.
        let last = stdout.lines().rev().nth(1).and_then(|line| line.strip_prefix("line ")?.parse().ok());
        let last: usize = last.unwrap_or_default();
        let right = answer["status"] == "limit" && stdout.starts_with("line 0\n") && last > 5000;
        table.row(language, ensure(right, (last, &answer["status"], stdout)));
    }
    table.finish();
}

#[tokio::test]
async fn bytes_kept_out_counts_the_bytes_that_were_not_shown() {
    let lockhouse = Lockhouse::with_fixture().config(CONFIG);
    let session = lockhouse.serve().await;
    let answer = session.run_code("python", "from mcp_tools.fixture import big\nbig(bytes=500000)").await;
    let received = answer["calls"][0]["bytes"].as_u64().unwrap();
    let shown = answer["truncated"]["value"]["shown"].as_u64().unwrap();
    assert_eq!(answer["stats"]["bytes_kept_out"], received - shown, "{answer}");
}

#[tokio::test]
async fn values_up_to_the_limit_are_not_truncated() {
    let lockhouse = Lockhouse::new().config(CONFIG);
    let session = lockhouse.serve().await;
    for code in ["'x' * 1000", "print('x' * 999)"] {
        let answer = session.run_code("python", code).await;
        assert!(answer.get("truncated").is_none() && answer["status"] == "ok", "{answer}");
    }
}

#[tokio::test]
async fn truncation_never_splits_a_character() {
    let lockhouse = Lockhouse::new().config(CONFIG);
    let session = lockhouse.serve().await;
    let answer = session.run_code("python", "'a' + 'ž' * 900 + 'b'").await;
    let text = answer["preview"].as_str().unwrap_or_default();
    assert!(text.starts_with("až") && text.ends_with("žb") && text.len() <= 1000, "{answer}");
}

#[tokio::test]
async fn errors_are_truncated_whatever_they_contain() {
    let lockhouse = Lockhouse::with_fixture().config(CONFIG);
    let session = lockhouse.serve().await;
    let rows = [
        ("python", "raise ValueError('x' * 1_000_000)"),
        ("python", "class X(Exception):\n  def __str__(self): raise ValueError\nraise X"),
        ("python", "f = lambda n: f(n + 1)\nf(0)"),
        ("python", "raise type('E' * 100_000, (Exception,), {})('x')"),
        ("python", "from mcp_tools.fixture import fail\nfail(message='x' * 1_000_000)"),
        ("typescript", "throw new Error('x'.repeat(1_000_000))"),
        ("typescript", "const f = (n: number): number => f(n + 1)\nf(0)"),
        ("typescript", "await fixture.fail({message: 'x'.repeat(1_000_000)})"),
        ("typescript", "throw {a: 'x'.repeat(1_000_000)}"),
    ];
    let mut table = Table::new("errors");
    for (language, code) in rows {
        let answer = session.run_code(language, code).await;
        let bytes = answer["error"].to_string().len();
        table
            .row(format!("{language}: {code}"), ensure(answer["status"] == "error" && bytes < 20_000, bytes));
    }
    table.finish();
}
