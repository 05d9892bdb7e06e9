//! Tests of upstream servers with `sandbox` on kernels that enforce only a part of it: they start with this part, and what is
//! missing is named. Where the whole sandbox is required, they do not start.

use std::process::Command;

use lockhouse_tests::{CommandOutput, Lockhouse, Table, ensure, equal};
use serde_json::{Value, json};

use crate::sandbox::missing_protections::{command_without, run_without};
use crate::sandbox::upstream_confinement::{program, python};

/// A kernel, and what a server with `sandbox` can do on it: read, empty, and move a file that was not granted to it, open a
/// socket, and signal Lockhouse.
const KERNELS: [(&str, [bool; 5]); 5] = [
    ("landlock", [true, true, true, false, false]),
    ("landlock=1", [false, true, false, false, false]),
    ("landlock=2", [false, true, false, false, false]),
    ("landlock=3", [false; 5]),
    ("pidfd", [false; 5]),
];

const ATTEMPTS: [(&str, &str); 5] = [
    ("read a file", "cat secret/key"),
    ("empty a file", "python3 -c 'import os; os.truncate(\"secret/emptied\", 0)'"),
    ("move a file", "mv secret/moved secret/elsewhere"),
    ("open a socket", "python3 -c 'import socket; socket.socket()'"),
    ("signal Lockhouse", "kill -0 $PPID"),
];

/// Runs a script as a program in a sandbox to which nothing is granted, on such a kernel.
fn confined(lockhouse: &Lockhouse, lack: &str, options: &[&str], script: &str) -> CommandOutput {
    let arguments = [&["confine"], options, &["--", "sh", "-c", script]].concat();
    let mut command = command_without(lockhouse, lack, &arguments);
    CommandOutput::run(command.current_dir(lockhouse.path("")), b"")
}

#[test]
fn a_server_on_an_older_kernel_has_the_part_of_the_sandbox_that_the_kernel_enforces() {
    let mut table = Table::new("what a server with a sandbox can do on older kernels");
    for (lack, expected) in KERNELS {
        for ((what, script), expected) in ATTEMPTS.into_iter().zip(expected) {
            let lockhouse = Lockhouse::new();
            for name in ["key", "emptied", "moved"] {
                lockhouse.file(&format!("secret/{name}"), "SEKRET");
            }
            let done = confined(&lockhouse, lack, &[], script);
            let answer = if expected { "yes" } else { "no" };
            table.row(
                format!("{lack}: {what}: {answer}"),
                ensure((done.status == Some(0)) == expected, &done),
            );
            let mut free = Command::new("sh");
            let free = CommandOutput::run(free.args(["-c", script]).current_dir(lockhouse.path("")), b"");
            // A file can be moved only once.
            let is_over = expected && what == "move a file";
            table.row(format!("{lack}: {what}: control"), ensure(is_over || free.status == Some(0), &free));
        }
    }
    table.finish();
}

/// A server with a sandbox that names its paths, and one without.
fn with_servers() -> Lockhouse {
    let (interpreter, prefix) = python();
    let program = program();
    let command = format!("command = {interpreter:?}\nargs = [{program:?}]\n");
    let sandbox = json!([prefix, program]).to_string();
    Lockhouse::new().config(&format!(
        "[servers.held]\n{command}sandbox = {{ read = {sandbox} }}\n[servers.free]\n{command}"
    ))
}

fn listed(lockhouse: &Lockhouse, lack: &str) -> Vec<Value> {
    let rows = run_without(lockhouse, lack, &["server", "list", "--json"]).json();
    ["held", "free"]
        .map(|name| rows.as_array().unwrap().iter().find(|row| row["name"] == name).unwrap().clone())
        .to_vec()
}

#[test]
fn what_an_older_kernel_does_not_enforce_is_named() {
    let lockhouse = with_servers();
    let mut table = Table::new("names of what is missing");
    for (lack, level, missing, words) in [
        ("landlock", "reduced", &["files", "signals"][..], "can read and change every file of its user"),
        (
            "landlock=1",
            "reduced",
            &["truncation", "moves", "devices", "signals"],
            "cannot move files between folders",
        ),
        ("landlock=2", "reduced", &["truncation", "devices", "signals"], "can empty every file of its user"),
        ("landlock=3", "reduced", &["devices", "signals"], "device files in folders"),
        ("landlock=5", "reduced", &["signals"], "can send signals to other processes of its user"),
        ("landlock=7", "full", &[], ""),
    ] {
        let rows = listed(&lockhouse, lack);
        let expected = json!({"level": level, "profile": null, "missing": missing});
        table.row(format!("{lack}: server list"), equal(&rows[0]["sandbox"], &expected));
        table.row(format!("{lack}: the server starts"), equal(&rows[0]["state"], &json!("connected")));
        table.row(format!("{lack}: a server without"), equal(&rows[1]["sandbox"]["level"], &json!("none")));
        let shown = run_without(&lockhouse, lack, &["server", "get", "held"]);
        table.row(format!("{lack}: server get: {words}"), ensure(shown.stdout.contains(words), &shown));
        let doctor = run_without(&lockhouse, lack, &["doctor", "--json"]).json();
        let named = doctor["server_sandbox"]["missing"].as_array().unwrap().iter();
        let named: Vec<&str> = named.map(|gap| gap["name"].as_str().unwrap()).collect();
        table.row(format!("{lack}: doctor --json"), equal(named, missing.to_vec()));
        let doctor = run_without(&lockhouse, lack, &["doctor"]).stdout.replace("\n", " ");
        table.row(format!("{lack}: doctor"), ensure(doctor.contains(words), &doctor));
    }
    table.finish();
}

#[test]
fn a_server_with_a_required_sandbox_is_not_started_with_a_part_of_it() {
    let lockhouse = with_servers();
    let requirements = lockhouse.file("requirements.toml", "sandbox = \"required\"\n");
    let mut table = Table::new("a required sandbox");
    for (lack, words) in [
        ("landlock", "this kernel has no Landlock"),
        ("landlock=2", "this kernel has version 2 of Landlock"),
        ("landlock=3", ""),
    ] {
        let mut command = command_without(&lockhouse, lack, &["server", "list", "--json"]);
        let rows = CommandOutput::run(command.env("LOCKHOUSE_REQUIREMENTS", &requirements), b"").json();
        let of =
            |name: &str| rows.as_array().unwrap().iter().find(|row| row["name"] == name).unwrap().clone();
        let (held, free) = (of("held"), of("free"));
        let is_told = match words {
            "" => held["state"] == "connected",
            words => held["error"]
                .as_str()
                .is_some_and(|error| error.contains(words) && error.contains("required")),
        };
        table.row(format!("{lack}: the server with a sandbox"), ensure(is_told, &held));
        table.row(format!("{lack}: a server without one"), equal(&free["state"], &json!("connected")));
        let done = confined(&lockhouse, lack, &["--require-full"], "true");
        let expected = if words.is_empty() { Some(0) } else { Some(7) };
        table.row(format!("{lack}: confine --require-full"), ensure(done.status == expected, &done));
    }
    table.finish();
}
