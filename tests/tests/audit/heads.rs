//! Tests of the heads of the audit log that a witness keeps, and of a key that is lost.

use std::path::Path;

use lockhouse_tests::{CommandOutput, Lockhouse, Table, ensure};

use crate::audit::{ADD, verify};

fn copy(from: &Path, to: &Path) {
    let _ = std::fs::remove_dir_all(to);
    let copied = CommandOutput::run(std::process::Command::new("cp").arg("-a").arg(from).arg(to), b"");
    assert_eq!(copied.status, Some(0), "{copied:?}");
}

#[test]
fn a_log_that_was_rolled_back_or_begun_again_does_not_contain_a_head() {
    let lockhouse = Lockhouse::with_fixture();
    let state = lockhouse.path("state");
    let _ = lockhouse.answer("python", ADD);
    copy(&state, &lockhouse.path("earlier"));
    let _ = lockhouse.answer("python", ADD);
    let printed = lockhouse.run(&["audit", "head", "--json"]);
    assert!(printed.status == Some(0) && printed.json()["lines"] == 4, "{printed:?}");
    let head = lockhouse.file("head", &printed.stdout).display().to_string();
    let with_head = || lockhouse.run(&["audit", "verify", "--head", &head]);
    let mut table = Table::new("what a head reveals");
    table.row("control", ensure(with_head().status == Some(0), with_head()));
    let _ = lockhouse.answer("python", ADD);
    table.row("control: a log that grew", ensure(with_head().status == Some(0), with_head()));
    copy(&lockhouse.path("earlier"), &state);
    let alone = verify(&lockhouse);
    table.row("an earlier state: not found without it", ensure(alone.status == Some(0), &alone));
    let found = with_head();
    let is_found = found.status == Some(1) && found.stdout.contains("rolled back or truncated");
    table.row("an earlier state", ensure(is_found, &found));
    let _ = lockhouse.answer("python", ADD);
    let found = with_head();
    let is_found = found.status == Some(1) && found.stdout.contains("begun again or rewritten");
    table.row("an earlier state that was continued", ensure(is_found, &found));
    std::fs::remove_dir_all(lockhouse.audit_directory()).unwrap();
    let _ = lockhouse.answer("python", ADD);
    let found = with_head();
    let is_found =
        found.status == Some(1) && found.stdout.contains("rolled back or truncated: it has 2 lines");
    table.row("begun again with the present key", ensure(is_found, &found));
    let changed = printed.stdout.replace("\"lines\":4", "\"lines\":2");
    std::fs::write(lockhouse.path("head"), changed).unwrap();
    let refused = with_head();
    let is_refused = refused.status == Some(7) && refused.stderr.contains("its signature is not valid");
    table.row("a head that was changed", ensure(is_refused, &refused));
    table.finish();
}

#[test]
fn a_lost_key_stops_calls_until_a_new_key_begins() {
    let lockhouse = Lockhouse::with_fixture();
    let administrator = Lockhouse::with_fixture();
    for one in [&lockhouse, &administrator] {
        assert_eq!(one.answer("python", ADD)["value"], 3);
    }
    // The key of another log has the form that an administrator's key has.
    let administrator_key = administrator.path("state/lockhouse/audit-key").display().to_string();
    let rekey = ["audit", "rekey", "--administrator-key", administrator_key.as_str()];
    let present = lockhouse.run(&rekey);
    assert!(present.status == Some(7) && present.stderr.contains("only when it was lost"), "{present:?}");
    std::fs::remove_file(lockhouse.path("state/lockhouse/audit-key")).unwrap();
    let stopped = lockhouse.run_with_input(&["run", "-", "--language", "python"], ADD.as_bytes());
    assert!(stopped.status != Some(0) && stopped.stderr.contains("lockhouse audit rekey"), "{stopped:?}");
    let begun = lockhouse.run(&rekey);
    assert!(begun.status == Some(0) && begun.stdout.contains("countersigned"), "{begun:?}");
    assert_eq!(lockhouse.answer("python", ADD)["value"], 3);
    let untrusted = verify(&lockhouse);
    assert!(untrusted.status == Some(1) && untrusted.stdout.contains("rekeyed"), "{untrusted:?}");
    let key = begun.stdout.split_whitespace().last().unwrap_or_default();
    let trusted = lockhouse.run(&["audit", "verify", "--administrator", key]);
    assert!(trusted.status == Some(0) && trusted.stdout.contains("countersigned"), "{trusted:?}");
}
