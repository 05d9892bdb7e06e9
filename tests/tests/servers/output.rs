//! What becomes of output that nobody reads, and of a server that failed.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use lockhouse_tests::{Finished, Lockhouse, Table, ensure};

/// The command in a shell, with its output led elsewhere.
fn led(lockhouse: &Lockhouse, arguments: &[&str], redirection: &str) -> Finished {
    let command = lockhouse.command(arguments);
    let mut shell = Command::new("/bin/bash");
    shell.arg("-c").arg(format!("\"$0\" \"$@\" {redirection}; echo status ${{PIPESTATUS[0]}} >&2"));
    shell.arg(command.get_program()).args(command.get_args()).env_clear();
    shell.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?)))).stdin(Stdio::null());
    Finished::of(&mut shell, b"")
}

#[test]
fn a_reader_that_leaves_early_does_no_harm() {
    let lockhouse = Lockhouse::with_fixture();
    let mut table = Table::new("output that nobody reads");
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
        let cut = led(&lockhouse, arguments, "| true");
        let holds =
            !cut.stderr.contains("panicked") && cut.stderr.contains(&format!("status {}", whole.unwrap()));
        table.row(arguments.join(" "), ensure(holds, (whole, cut)));
    }
    let complaint = led(&lockhouse, &["server", "get", "none"], "2>&1 | true");
    table.row("a complaint", ensure(complaint.stderr.contains("status 2"), complaint));
    table.finish();
}

#[test]
fn a_followed_log_ends_with_its_reader() {
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
fn output_that_cannot_be_written_is_told() {
    let lockhouse = Lockhouse::with_fixture();
    let full = led(&lockhouse, &["server", "list"], "> /dev/full");
    assert!(
        full.stderr.contains("cannot write to standard output") && full.stderr.contains("status 7"),
        "{full:?}"
    );
    let room = led(&lockhouse, &["server", "list"], "> /dev/null");
    assert!(room.stderr.contains("status 0"), "control: {room:?}");
}

#[test]
fn a_server_that_failed_is_told_once_and_changes_the_status() {
    let lockhouse = Lockhouse::new().server("fixture", &[]).server("broken", &["--fail-start"]);
    let listed = lockhouse.run(&["tools", "list"]);
    assert_eq!(listed.stderr.matches("broken").count(), 1, "{listed:?}");
    assert_eq!((listed.stderr.matches("told to fail").count(), listed.status), (1, Some(7)), "{listed:?}");
    let lockhouse = Lockhouse::new().server("fixture", &[]);
    assert_eq!(lockhouse.run(&["tools", "list"]).status, Some(0), "control");
}
