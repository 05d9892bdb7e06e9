//! Tests of commands whose standard output is closed early or cannot be written, and of the exit status of commands
//! after an upstream server has failed.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use lockhouse_tests::{CommandOutput, Lockhouse, Table, ensure};

/// Runs `lockhouse ARGUMENTS` in a shell with this redirection of its output. The exit status of Lockhouse is appended
/// to standard error.
fn run_redirected(lockhouse: &Lockhouse, arguments: &[&str], redirection: &str) -> CommandOutput {
    let command = lockhouse.command(arguments);
    let mut shell = Command::new("/bin/bash");
    shell.arg("-c").arg(format!("\"$0\" \"$@\" {redirection}; echo status ${{PIPESTATUS[0]}} >&2"));
    shell.arg(command.get_program()).args(command.get_args()).env_clear();
    shell.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?)))).stdin(Stdio::null());
    CommandOutput::run(&mut shell, b"")
}

#[test]
fn a_reader_that_closes_early_causes_no_error() {
    let lockhouse = Lockhouse::with_fixture();
    let mut table = Table::new("output without a reader");
    for arguments in [
        &["tools", "list", "--json"][..],
        &["server", "list", "--json"],
        &["server", "get", "fixture"],
        &["server", "test", "fixture"],
        &["doctor", "--json"],
        &["policy", "explain", "fixture.add"],
        &["run", "-c", "print('x' * 100_000)", "--language", "python"],
    ] {
        let whole = lockhouse.run(arguments).status;
        let cut = run_redirected(&lockhouse, arguments, "| true");
        let holds =
            !cut.stderr.contains("panicked") && cut.stderr.contains(&format!("status {}", whole.unwrap()));
        table.row(arguments.join(" "), ensure(holds, (whole, cut)));
    }
    let complaint = run_redirected(&lockhouse, &["server", "get", "none"], "2>&1 | true");
    table.row("a complaint", ensure(complaint.stderr.contains("status 2"), complaint));
    table.finish();
}

#[test]
fn a_followed_log_ends_when_its_reader_closes() {
    let lockhouse = Lockhouse::new().server("fixture", &[]);
    let log = lockhouse.file("state/lockhouse/logs/fixture.log", "T 7 first\n");
    let append = |line: &str| {
        let mut file = std::fs::OpenOptions::new().append(true).open(&log).unwrap();
        file.write_all(line.as_bytes()).unwrap();
    };
    let mut command = lockhouse.command(&["server", "logs", "fixture", "--follow"]);
    let mut following = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(following.stdout.take().unwrap()).read_line(&mut first).unwrap();
    assert_eq!(first, "T 7 first\n");
    assert!(following.try_wait().unwrap().is_none(), "control");
    append("T 7 nobody reads this\n");
    assert!(following.wait().unwrap().success());
}

#[test]
fn unwritable_output_is_reported() {
    let lockhouse = Lockhouse::with_fixture();
    let full = run_redirected(&lockhouse, &["server", "list"], "> /dev/full");
    assert!(
        full.stderr.contains("cannot write to standard output") && full.stderr.contains("status 7"),
        "{full:?}"
    );
    let room = run_redirected(&lockhouse, &["server", "list"], "> /dev/null");
    assert!(room.stderr.contains("status 0"), "control: {room:?}");
}

#[test]
fn a_failed_server_is_reported_once_and_changes_the_exit_status() {
    let lockhouse = Lockhouse::new().server("fixture", &[]).server("broken", &["--fail-start"]);
    let listed = lockhouse.run(&["tools", "list"]);
    assert_eq!(listed.stderr.matches("broken").count(), 1, "{listed:?}");
    assert_eq!((listed.stderr.matches("told to fail").count(), listed.status), (1, Some(7)), "{listed:?}");
    let lockhouse = Lockhouse::new().server("fixture", &[]);
    assert_eq!(lockhouse.run(&["tools", "list"]).status, Some(0), "control");
}
