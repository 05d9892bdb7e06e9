//! What is too long to show is cut, and says so.

use lockhouse_tests::{Lockhouse, Session, Table, ensure};

const CONFIG: &str = "[limits]\nshown_bytes = 1000\n";

#[tokio::test]
async fn parts_beyond_the_limit_are_cut_and_say_how_much_there_is() {
    let rows = [
        ("python", "value", "'x' * 5000", 5000),
        ("python", "value", "list(range(1000))", 3891),
        ("python", "stdout", "print('x' * 4999)", 5000),
        ("python", "stderr", "import sys\nprint('x' * 4999, file=sys.stderr)", 5000),
        ("typescript", "value", "'x'.repeat(5000)", 5000),
        ("typescript", "stdout", "console.log('x'.repeat(4999))", 5000),
        ("typescript", "stderr", "console.error('x'.repeat(4999))", 5000),
    ];
    let lockhouse = Lockhouse::new().config(CONFIG);
    let session: Session = lockhouse.serve().await;
    let mut table = Table::new("truncation at 1000 bytes");
    for (language, part, code, bytes) in rows {
        let answer = session.run_code(language, code).await;
        let cut = &answer["truncated"][part];
        let shown = answer[part].as_str().map(str::len);
        let right = cut["bytes"] == bytes && cut["shown"] == 1000 && shown == Some(1000);
        let hint = answer["truncated"]["hint"].is_string();
        table.row(
            format!("{language}: {part}: {code}"),
            ensure(right && hint && answer["status"] == "ok", &answer["truncated"]),
        );
    }
    table.finish();
}

#[tokio::test]
async fn what_fits_is_shown_whole() {
    let lockhouse = Lockhouse::new().config(CONFIG);
    let session = lockhouse.serve().await;
    for code in ["'x' * 1000", "print('x' * 999)"] {
        let answer = session.run_code("python", code).await;
        assert!(answer.get("truncated").is_none() && answer["status"] == "ok", "{answer}");
    }
}

#[tokio::test]
async fn a_character_is_never_cut_in_two() {
    let lockhouse = Lockhouse::new().config(CONFIG);
    let session = lockhouse.serve().await;
    let answer = session.run_code("python", "'a' + 'ž' * 900").await;
    assert_eq!(answer["truncated"]["value"]["shown"], 999, "{answer}");
    assert!(answer["value"].as_str().is_some_and(|text| text.ends_with('ž')), "{answer}");
}

#[tokio::test]
async fn an_error_stays_short_whatever_the_code_makes_of_it() {
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
