//! The commands that people look into the log with.

use lockhouse_tests::{Lockhouse, Table, ensure};
use serde_json::Value;

use crate::{ADD, POLICY, assert_verified};

/// Two executions: one with a call, a failure and a denial, and one in the other language.
pub(crate) fn written() -> (Lockhouse, Vec<Value>) {
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
fn the_story_of_an_execution_has_its_code_and_its_calls() {
    let (lockhouse, answers) = written();
    let id = answers[0]["execution"].as_str().unwrap();
    let mut table = Table::new("audit show");
    for (name, argument) in
        [("whole", id.to_owned()), ("prefix", id[..24].to_owned()), ("capitals", id.to_uppercase())]
    {
        let shown = lockhouse.run(&["audit", "show", &argument]);
        assert_eq!(shown.status, Some(0), "{shown:?}");
        for told in [
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
            table.row(format!("{name}: {told}"), ensure(shown.stdout.contains(told), &shown.stdout));
        }
        let other = answers[1]["execution"].as_str().unwrap();
        table.row(
            format!("{name}: nothing of another one"),
            ensure(!shown.stdout.contains(other), &shown.stdout),
        );
    }
    // An identifier begins with the time: eight digits are the same for a minute, four for seven weeks.
    let several = lockhouse.run(&["audit", "show", &id[..4]]);
    table.row("several are meant", ensure(several.stderr.contains("several executions begin so"), &several));
    let none = lockhouse.run(&["audit", "show", "ffffffff"]);
    table.row(
        "none is meant",
        ensure(none.status == Some(7) && none.stderr.contains("has no execution"), &none),
    );
    table.finish();
}

#[test]
fn records_are_found_by_what_they_say() {
    let (lockhouse, answers) = written();
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
            format!("{}, for people", options.join(" ")),
            ensure(rows.lines().count() == events.len(), &rows),
        );
    }
    table.finish();
}

#[test]
fn options_that_no_record_can_fit_are_refused_with_what_may_be_meant() {
    let (lockhouse, _) = written();
    let mut table = Table::new("options that no record can fit");
    for (options, told) in [
        (&["--since", "yesterday"][..], "2026-01-31"),
        (&["--until", "2026-02-31"], "2026-01-31"),
        (&["--since", "1h", "--until", "2h"], "--since is later than --until"),
        (&["--event", "cal"], "did you mean \"call\"?"),
        (&["--event", "open"], "They are execution, skill, call"),
        (&["--outcome", "tool_faild"], "did you mean \"tool_failed\"?"),
        (&["--decision", "denied"], "[possible values: allow, ask, deny]"),
        (&["--execution", "zz"], "or its beginning"),
        (&["--execution", "0191a2b3c4d5"], "or its beginning"),
        (&["--execution", ""], "or its beginning"),
    ] {
        for command in [&["audit", "query"][..], &["audit", "export", "--format", "ocsf"]] {
            let finished = lockhouse.run(&[command, options].concat());
            let is_refused =
                finished.status == Some(2) && finished.stderr.contains(told) && finished.stdout.is_empty();
            table.row(format!("{} {}", command[1], options.join(" ")), ensure(is_refused, &finished));
        }
    }
    for (options, told) in [
        (&["--server", "fixtur"][..], "the log has no server \"fixtur\"; did you mean \"fixture\"?"),
        (&["--tool", "ad"], "the log has no tool \"ad\"; did you mean \"add\"?"),
        (&["--client", "somebody"], "the log has no client \"somebody\""),
        (&["--outcome", "timeout"], ""),
        (&["--event", "login"], ""),
        (&["--until", "2020-01-01"], ""),
    ] {
        let finished = lockhouse.run(&[&["audit", "query"], options].concat());
        let said = finished.stderr.contains("no records") && finished.stderr.contains(told);
        let holds = finished.status == Some(0) && said && finished.stdout.is_empty();
        table.row(format!("nothing is so: {}", options.join(" ")), ensure(holds, &finished));
    }
    let control = lockhouse.run(&["audit", "query", "--event", "outcome", "--outcome", "tool_failed"]);
    let holds = control.status == Some(0) && control.stdout.lines().count() == 1 && control.stderr.is_empty();
    table.row("control: what there is", ensure(holds, &control));
    let fresh = Lockhouse::new().run(&["audit", "query"]);
    table.row("no log yet", ensure(fresh.status == Some(0) && fresh.stderr.contains("no records"), &fresh));
    table.finish();
}

#[test]
fn the_tail_has_the_latest_records_of_all_processes() {
    let (lockhouse, _) = written();
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
fn the_public_key_is_that_of_every_segment() {
    let lockhouse = Lockhouse::with_fixture();
    let none = lockhouse.run(&["audit", "key"]);
    assert!(none.status == Some(7) && none.stderr.contains("no key yet"), "{none:?}");
    let _ = lockhouse.answer("python", ADD);
    let key = lockhouse.run(&["audit", "key"]).stdout;
    let opened = lockhouse.records();
    assert_eq!(opened[0]["key"], key.trim(), "{opened:?}");
    assert!(assert_verified(&lockhouse).contains(key.trim()));
}
