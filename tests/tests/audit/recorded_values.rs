//! Tests of the values in audit records: secrets are never recorded, and arguments of calls are recorded only if the
//! configuration says so.

use lockhouse_tests::{Lockhouse, fixture_server};
use serde_json::{Value, json};

use crate::audit::assert_verified;

const SECRET: &str = "SEKRET-4711-token";

/// Returns a Lockhouse test fixture with the configuration `config`, and with an upstream server that has a secret in
/// its environment.
fn lockhouse(config: &str) -> Lockhouse {
    let entry = json!({"command": fixture_server(), "env": {"TOKEN": SECRET}});
    let policy = "version = 1\n[servers.fixture]\nallow = [\"*\"]\nresources = [\"*\"]\n";
    Lockhouse::new().servers_entry("fixture", entry).policy(policy).config(config)
}

/// Returns the concatenated contents of all audit segments and stored programs in the audit directory.
fn all_audit_files(lockhouse: &Lockhouse) -> String {
    let code = std::fs::read_dir(lockhouse.audit_directory().join("code")).into_iter().flatten();
    let code = code.map(|entry| entry.unwrap().path());
    lockhouse.segments().into_iter().chain(code).map(|path| std::fs::read_to_string(path).unwrap()).collect()
}

fn calls(lockhouse: &Lockhouse) -> Vec<Value> {
    lockhouse.audit().into_iter().filter(|record| record["event"] == "call").collect()
}

#[test]
fn argument_values_and_results_are_not_recorded_by_default() {
    let lockhouse = lockhouse("[audit]\ncode = false\n");
    let code =
        "from mcp_tools.fixture import echo\necho(value={'note': 'hunter2', 'deep': {'pin': 471147114711}})";
    assert_eq!(lockhouse.answer("python", code)["value"]["value"]["note"], "hunter2");
    let text = all_audit_files(&lockhouse);
    assert!(!text.contains("hunter2") && !text.contains("471147114711"), "{text}");
    let shape = json!({"value": {"note": "string", "deep": {"pin": "integer"}}});
    assert_eq!(calls(&lockhouse)[0]["arguments"], shape);
}

#[test]
fn argument_hashes_are_deterministic_and_keyed_against_guessing() {
    let lockhouse = lockhouse("");
    let code = "from mcp_tools.fixture import add\nadd(a=1, b=2)\nadd(b=2, a=1)\nadd(a=1, b=3)";
    let _ = lockhouse.answer("python", code);
    let hashes: Vec<Value> = calls(&lockhouse).iter().map(|call| call["arguments_hash"].clone()).collect();
    assert!(hashes[0] == hashes[1] && hashes[0] != hashes[2], "{hashes:?}");
    // The hash of `echo -n '{"a":1,"b":2}' | sha256sum`, without a key.
    assert_ne!(hashes[0], "43258cff783fe7036d8a43033f830adfc60ec037382473548ac742b888292777");
    let other = self::lockhouse("");
    let _ = other.answer("python", code);
    assert_ne!(calls(&other)[0]["arguments_hash"], hashes[0], "each installation has a salt of its own");
}

#[test]
fn configured_argument_values_are_recorded_with_secrets_redacted() {
    let lockhouse = lockhouse("[audit]\nvalues = true\n");
    let code = format!(
        "from mcp_tools.fixture import echo, text\nkey = 'api' + '_key'\n\
         echo(value={{'note': 'hello', key: 'abc', 'Password': 'hunter2'}})\ntext(text='is {SECRET} it?')\n\
         text(text='x' * 100000)"
    );
    let answer = lockhouse.answer("python", &code);
    assert_eq!(answer["status"], "ok", "{answer}");
    let [echo, text, long] = &calls(&lockhouse)[..] else { panic!("three calls") };
    let kept = json!({"value": {"note": "hello", "api_key": "[redacted]", "Password": "[redacted]"}});
    assert_eq!((&echo["values"], &echo["values_exact"]), (&kept, &json!(false)), "{echo}");
    assert_eq!(text["values"], json!({"text": "is [redacted TOKEN] it?"}), "{text}");
    assert!(long.to_string().len() < 4_000 && long["values_exact"] == false, "{}", long.to_string().len());
    let all = all_audit_files(&lockhouse);
    assert!(!all.contains(SECRET), "neither in a record nor in the code: {all}");
    let exact = self::lockhouse("[audit]\nvalues = true\nredact = []\n");
    let _ = exact.answer("python", "from mcp_tools.fixture import text\ntext(text='hunter2')");
    let call = &calls(&exact)[0];
    assert_eq!((&call["values"], &call["values_exact"]), (&json!({"text": "hunter2"}), &json!(true)));
    let redacted = self::lockhouse("[audit]\nvalues = true\nredact = [\"te*\"]\n");
    let _ = redacted.answer("python", "from mcp_tools.fixture import text\ntext(text='hunter2')");
    assert_eq!(calls(&redacted)[0]["values"], json!({"text": "[redacted]"}), "names of one's own");
    assert_verified(&lockhouse);
}

#[test]
fn a_configured_secret_is_redacted_from_names_uris_and_reasons() {
    let lockhouse = lockhouse("");
    let code = format!(
        "from mcp_tools import read_resource, call_tool, ToolError\nfor f in [lambda: read_resource('fixture', 'x://{SECRET}'), \
         lambda: call_tool('fixture', '{SECRET}', {{}}), \
         lambda: call_tool('fixture', 'echo', {{'value': {{'{SECRET}': 1}}}})]:\n  try: f()\n  except ToolError: pass"
    );
    let answer = lockhouse.answer("python", &code);
    assert_eq!(answer["status"], "ok", "{answer}");
    let text = all_audit_files(&lockhouse);
    assert!(!text.contains(SECRET) && text.contains("[redacted TOKEN]"), "{text}");
}
