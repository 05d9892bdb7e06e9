//! Tests of the commands that read the audit log: `lockhouse audit show`, `query`, `tail` and `key`.

use lockhouse_tests::{Lockhouse, Table, ensure, equal};
use serde_json::Value;

use crate::audit::{ADD, POLICY, assert_verified};

/// Runs two programs, so that the audit log has two executions, and returns the Lockhouse test fixture with the answers
/// of both. The Python program makes a successful, a failed and a denied call; the TypeScript program makes one call.
pub(crate) fn example_log() -> (Lockhouse, Vec<Value>) {
    let lockhouse = Lockhouse::new().server("fixture", &[]).policy(POLICY);
    let code = "from mcp_tools import call_tool, ToolError\nfrom mcp_tools.fixture import add, fail\nadd(a=1, b=2)\n\
                for f in [lambda: fail(message='no'), lambda: call_tool('fixture', 'delete_everything', {})]:\n  \
                try: f()\n  except ToolError: pass";
    let answers = vec![
        lockhouse.answer("python", code),
        lockhouse.answer("typescript", "(await fixture.text({text: 'x'}))"),
    ];
    (lockhouse, answers)
}

#[test]
fn audit_show_prints_the_code_and_the_calls_of_an_execution() {
    let (lockhouse, answers) = example_log();
    let id = answers[0]["execution"].as_str().unwrap();
    let mut table = Table::new("audit show");
    for (name, argument) in
        [("whole", id.to_owned()), ("prefix", id[..24].to_owned()), ("capitals", id.to_uppercase())]
    {
        let printed = lockhouse.run(&["audit", "show", &argument]);
        assert_eq!(printed.status, Some(0), "{printed:?}");
        for reported in [
            id,
            "the command line",
            "     3  add(a=1, b=2)",
            "fixture.add",
            "(a: integer, b: integer) allow",
            "policy.toml:3)",
            "tool_failed",
            "delete_everything",
            "it matches \"delete_everything\" in deny",
            "3 calls",
        ] {
            table.row(
                format!("{name}: {reported}"),
                ensure(printed.stdout.contains(reported), &printed.stdout),
            );
        }
        let other = answers[1]["execution"].as_str().unwrap();
        table.row(
            format!("{name}: no records of another execution"),
            ensure(!printed.stdout.contains(other), &printed.stdout),
        );
    }
    // An identifier begins with its time: eight digits stay the same for a minute, four digits for seven weeks.
    let several = lockhouse.run(&["audit", "show", &id[..4]]);
    table.row("an ambiguous prefix", ensure(several.stderr.contains("several runs match"), &several));
    let none = lockhouse.run(&["audit", "show", "ffffffff"]);
    table.row(
        "an unknown identifier",
        ensure(none.status == Some(7) && none.stderr.contains("has no run"), &none),
    );
    table.finish();
}

#[test]
fn audit_query_filters_records_by_their_fields() {
    let (lockhouse, answers) = example_log();
    let id = answers[1]["execution"].as_str().unwrap().to_owned();
    let cases: [(&[&str], &[&str]); 12] = [
        (&["--tool", "add"], &["call", "outcome"]),
        (&["--tool", "add", "--decision", "allow"], &["call"]),
        (&["--decision", "deny"], &["denial"]),
        (&["--outcome", "tool_failed"], &["outcome"]),
        (&["--outcome", "ok"], &["outcome", "end", "outcome", "end"]),
        (&["--server", "elsewhere"], &[]),
        (&["--client", "somebody"], &[]),
        (&["--execution", &id], &["execution", "call", "outcome", "end"]),
        (&["--execution", &id, "--tool", "text", "--outcome", "ok"], &["outcome"]),
        (&["--since", "1h", "--tool", "fail"], &["call", "outcome"]),
        (&["--until", "1h", "--tool", "fail"], &[]),
        (&["--since", "2020-01-01", "--until", "2020-01-01T12:00:00Z"], &[]),
    ];
    let mut table = Table::new("audit query");
    for (options, events) in cases {
        let all = [&["audit", "query", "--json"], options].concat();
        let found = lockhouse.run(&all);
        let records: Vec<Value> =
            found.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let found: Vec<&str> = records.iter().filter_map(|record| record["event"].as_str()).collect();
        table.row(options.join(" "), ensure(found == events, &found));
        let rows = lockhouse.run(&[&["audit", "query"], options].concat()).stdout;
        table.row(
            format!("{}, as text", options.join(" ")),
            ensure(rows.lines().count() == events.len(), &rows),
        );
    }
    table.finish();
}

#[test]
fn impossible_query_filters_are_rejected_with_the_nearest_valid_value() {
    let (lockhouse, _) = example_log();
    let mut table = Table::new("filters that no record can match");
    for (options, reported) in [
        (&["--since", "yesterday"][..], "2026-01-31"),
        (&["--until", "2026-02-31"], "2026-01-31"),
        (&["--since", "1h", "--until", "2h"], "--since is later than --until"),
        (&["--event", "cal"], "did you mean \"call\"?"),
        (&["--event", "open"], "Valid events: execution, skill, call"),
        (&["--outcome", "tool_faild"], "did you mean \"tool_failed\"?"),
        (&["--decision", "denied"], "[possible values: allow, ask, deny]"),
        (&["--execution", "zz"], "or a prefix of it"),
        (&["--execution", "0191a2b3c4d5"], "or a prefix of it"),
        (&["--execution", ""], "or a prefix of it"),
    ] {
        for command in [&["audit", "query"][..], &["audit", "export", "--format", "ocsf"]] {
            let finished = lockhouse.run(&[command, options].concat());
            let is_refused = finished.status == Some(2)
                && finished.stderr.contains(reported)
                && finished.stdout.is_empty();
            table.row(format!("{} {}", command[1], options.join(" ")), ensure(is_refused, &finished));
        }
    }
    for far in ["99999999999y", "9999999999999d", "1970-01-01", "9999-12-31"] {
        for option in ["--since", "--until"] {
            let finished = lockhouse.run(&["audit", "query", option, far]);
            table.row(format!("{option} {far}"), equal(finished.status, Some(0)));
        }
        let suggested = lockhouse.run(&["policy", "suggest", "--from-audit", "--since", far]);
        table.row(
            format!("policy suggest --since {far}"),
            ensure(!suggested.stderr.contains("panicked"), &suggested),
        );
    }
    for (options, reported) in [
        (&["--server", "fixtur"][..], "the log has no server \"fixtur\"; did you mean \"fixture\"?"),
        (&["--tool", "ad"], "the log has no tool \"ad\"; did you mean \"add\"?"),
        (&["--client", "somebody"], "the log has no client \"somebody\""),
        (&["--outcome", "timeout"], ""),
        (&["--event", "login"], ""),
        (&["--until", "2020-01-01"], ""),
    ] {
        let finished = lockhouse.run(&[&["audit", "query"], options].concat());
        let answered = finished.stderr.contains("no records") && finished.stderr.contains(reported);
        let holds = finished.status == Some(0) && answered && finished.stdout.is_empty();
        table.row(format!("no record matches: {}", options.join(" ")), ensure(holds, &finished));
    }
    let control = lockhouse.run(&["audit", "query", "--event", "outcome", "--outcome", "tool_failed"]);
    let holds = control.status == Some(0) && control.stdout.lines().count() == 1 && control.stderr.is_empty();
    table.row("control: what there is", ensure(holds, &control));
    let fresh = Lockhouse::new().run(&["audit", "query"]);
    table.row("no log yet", ensure(fresh.status == Some(0) && fresh.stderr.contains("no records"), &fresh));
    table.finish();
}

#[test]
fn audit_tail_prints_the_latest_records_of_all_processes() {
    let (lockhouse, _) = example_log();
    let tail = |count: &str| lockhouse.run(&["audit", "tail", "-n", count]).stdout;
    let three = tail("3");
    let events: Vec<&str> = three.lines().filter_map(|line| line.split_whitespace().nth(3)).collect();
    assert_eq!(events, ["call", "outcome", "end"], "{three}");
    assert_eq!(tail("100").lines().count(), 11);
    assert_eq!(tail("0"), "");
    let json = lockhouse.run(&["audit", "tail", "-n", "1", "--json"]).stdout;
    assert_eq!(serde_json::from_str::<Value>(&json).unwrap()["event"], "end");
    let nothing = Lockhouse::with_fixture();
    let finished = nothing.run(&["audit", "tail"]);
    assert!(finished.status == Some(0) && finished.stdout.is_empty(), "{finished:?}");
}

#[test]
fn audit_key_prints_the_key_of_the_next_line_and_each_printed_key_verifies_the_log() {
    let lockhouse = Lockhouse::with_fixture();
    let none = lockhouse.run(&["audit", "key"]);
    assert!(none.status == Some(7) && none.stderr.contains("no audit key yet"), "{none:?}");
    let mut printed = Vec::new();
    for _ in 0..2 {
        let _ = lockhouse.answer("python", ADD);
        printed.push(lockhouse.run(&["audit", "key"]).stdout.trim().to_owned());
    }
    assert!(printed[0] != printed[1], "it moves forward: {printed:?}");
    assert!(assert_verified(&lockhouse).contains(&printed[1]));
    for key in printed {
        let finished = lockhouse.run(&["audit", "verify", "--key", &key]);
        assert!(finished.status == Some(0) && finished.stdout.contains(&key), "{finished:?}");
    }
}
