//! Tests of the audit records of calls: there is a record before each call and one of its outcome afterwards, and no
//! call is made without a record.

use std::os::unix::fs::PermissionsExt;

use lockhouse_tests::{LANGUAGES, Lockhouse};
use serde_json::{Value, json};

use crate::policy::POLICY;

fn events(records: &[Value]) -> Vec<(&str, &str)> {
    let event = |record: &'_ Value| {
        (record["event"].as_str().unwrap().to_owned(), record["tool"].as_str().unwrap().to_owned())
    };
    records.iter().map(event).map(|(event, tool)| (&*event.leak(), &*tool.leak())).collect()
}

#[test]
fn a_call_is_recorded_before_its_outcome_with_the_rule_that_allowed_it() {
    let programs = ["from mcp_tools.fixture import add\nadd(a=1, b=2)", "await fixture.add({a: 1, b: 2})"];
    for (language, code) in LANGUAGES.into_iter().zip(programs) {
        let lockhouse = Lockhouse::new().server("fixture", &[]).policy(POLICY);
        let answer = lockhouse.answer(language, code);
        let records = lockhouse.audit();
        assert_eq!(events(&records), [("call", "add"), ("outcome", "add")], "{records:?}");
        let (call, outcome) = (&records[0], &records[1]);
        assert!(call["rule"].as_str().is_some_and(|rule| rule.ends_with("policy.toml:4")), "{call}");
        assert_eq!((&call["server"], &outcome["outcome"]), (&json!("fixture"), &json!("ok")), "{records:?}");
        for record in &records {
            assert_eq!(record["execution"], answer["execution"], "{record}");
        }
        assert_eq!(call["call"], outcome["call"], "{records:?}");
    }
}

#[tokio::test]
async fn the_record_of_a_call_exists_while_the_call_is_in_flight() {
    let lockhouse = Lockhouse::with_fixture();
    let session = lockhouse.serve().await;
    let running = session.start_code("typescript", "await fixture.slow({ms: 2000})");
    let records = lockhouse_tests::wait_until("the call is recorded", async || {
        Some(lockhouse.audit()).filter(|records| !records.is_empty())
    })
    .await;
    assert_eq!(events(&records), [("call", "slow")]);
    assert!(!running.is_finished());
    running.await.unwrap().unwrap();
    assert_eq!(events(&lockhouse.audit()), [("call", "slow"), ("outcome", "slow")]);
}

#[test]
fn a_denial_is_recorded_with_its_reason_and_without_a_call() {
    let lockhouse = Lockhouse::new().server("fixture", &[]).policy(POLICY);
    let _ = lockhouse.answer("typescript", "await callTool('fixture', 'delete_everything', {})");
    let records = lockhouse.audit();
    assert_eq!(events(&records), [("denial", "delete_everything")], "{records:?}");
    assert!(
        records[0]["reason"].as_str().is_some_and(|reason| reason.contains("policy.toml:5")),
        "{records:?}"
    );
}

#[test]
fn a_failed_call_has_an_outcome_too() {
    let lockhouse = Lockhouse::with_fixture();
    let _ = lockhouse.answer("python", "from mcp_tools.fixture import fail\nfail(message='no')");
    let _ = lockhouse.answer("python", "from mcp_tools.fixture import crash\ncrash()");
    let outcomes: Vec<Value> = lockhouse.audit().iter().map(|record| record["outcome"].clone()).collect();
    assert_eq!(outcomes, [Value::Null, json!("tool_failed"), Value::Null, json!("upstream_unavailable")]);
}

#[test]
fn the_log_contains_no_arguments_or_results_and_is_private_to_its_owner() {
    let lockhouse = Lockhouse::with_fixture();
    let answer = lockhouse.answer("python", "from mcp_tools.fixture import text\ntext(text='hunter2')");
    assert_eq!(answer["value"], "hunter2", "{answer}");
    assert!(lockhouse.audit().len() == 2 && !format!("{:?}", lockhouse.audit()).contains("hunter2"));
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&lockhouse.audit_directory()), 0o700);
    let index = lockhouse.audit_directory().join("segments.jsonl");
    let secrets = ["audit-key", "audit-salt"].map(|name| lockhouse.path("state/lockhouse").join(name));
    for file in lockhouse.segments().into_iter().chain([index]).chain(secrets) {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
    let code = lockhouse.audit_directory().join("code");
    assert_eq!(mode(&code), 0o700);
    for program in std::fs::read_dir(code).unwrap() {
        assert_eq!(mode(&program.unwrap().path()), 0o600);
    }
}

#[test]
fn without_a_writable_audit_directory_lockhouse_does_not_start() {
    let lockhouse = Lockhouse::with_fixture();
    let file = lockhouse.file("file", "not a directory");
    let below = file.join("audit").display().to_string();
    for directory in [&below, "/proc/nothing", &file.display().to_string()] {
        lockhouse.file("config/lockhouse/config.toml", format!("[audit]\ndirectory = \"{directory}\"\n"));
        let finished = lockhouse.run(&["run", "-c", "print(1)", "--language", "python"]);
        assert_eq!(finished.status, Some(7), "{finished:?}");
        assert!(finished.stderr.contains("audit") && finished.stderr.contains(directory), "{finished:?}");
        assert_eq!(finished.stdout, "");
    }
}

#[test]
fn a_call_whose_record_cannot_be_written_is_not_made() {
    let lockhouse = Lockhouse::with_fixture();
    let program = "from mcp_tools.fixture import add, ToolError\ntry: r = add(a=1, b=2)\nexcept ToolError as e: r = [e.code, e.message]\nr";
    let program = program
        .replace("fixture import add, ToolError", "fixture import add\nfrom mcp_tools import ToolError");
    assert_eq!(lockhouse.answer("python", &program)["value"]["sum"], 3, "control");
    // With a file size limit of zero Lockhouse can create the segment but cannot write any record to it.
    let mut shell = std::process::Command::new("/bin/sh");
    let command = lockhouse.command(&["run", "-", "--language", "python", "--json"]);
    shell.arg("-c").arg("trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$@\"");
    shell.arg(command.get_program()).args(command.get_args()).env_clear().current_dir(lockhouse.path("home"));
    shell.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let answer = lockhouse_tests::CommandOutput::run(&mut shell, program.as_bytes()).json();
    assert_eq!(answer["calls"][0]["outcome"], "denied", "{answer}");
    assert!(answer["value"][1].as_str().is_some_and(|told| told.contains("audit")), "{answer}");
}
