//! The programs beside the log: whoever reads one reads what ran, or is told that it is something else.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use lockhouse_tests::{Finished, Lockhouse, Table, ensure, fixture_server};
use serde_json::{Value, json};

use crate::{ADD, assert_verified, verify};

const SECRET: &str = "SEKRET-4711-value";
const PLANTED: &str = "print('a harmless program')\n";

fn code_directory(lockhouse: &Lockhouse) -> PathBuf {
    lockhouse.audit_directory().join("code")
}

/// The record of the one execution.
fn execution(lockhouse: &Lockhouse) -> Value {
    lockhouse.records().into_iter().find(|record| record["event"] == "execution").expect("an execution")
}

/// The file of its program.
fn program(lockhouse: &Lockhouse) -> PathBuf {
    let kept = execution(lockhouse)["code_kept"].as_str().expect("it is kept").to_owned();
    code_directory(lockhouse).join(format!("{kept}.py"))
}

fn show(lockhouse: &Lockhouse) -> Finished {
    let id = execution(lockhouse)["execution"].as_str().expect("an id").to_owned();
    lockhouse.run(&["audit", "show", &id])
}

type Change = fn(&Lockhouse, &Path);

#[test]
fn a_program_that_was_replaced_or_removed_is_told_and_is_not_shown_as_what_ran() {
    let rows: [(&str, Change, &str, &str); 6] = [
        (
            "other content",
            |_, file| fs::write(file, PLANTED).unwrap(),
            "replaced: ",
            "is NOT the program that ran",
        ),
        (
            "a link to another program",
            |lockhouse, file| {
                fs::remove_file(file).unwrap();
                symlink(lockhouse.file("planted.py", PLANTED), file).unwrap();
            },
            "a symbolic link",
            "is NOT the program that ran",
        ),
        ("emptied", |_, file| fs::write(file, "").unwrap(), "replaced: ", "is NOT the program that ran"),
        (
            "removed",
            |_, file| fs::remove_file(file).unwrap(),
            "removed: the program of this run",
            "was removed",
        ),
        (
            "its directory removed",
            |lockhouse, _| fs::remove_dir_all(code_directory(lockhouse)).unwrap(),
            "removed: the directory with 1 programs",
            "was removed",
        ),
        (
            "its directory exchanged",
            |lockhouse, file| {
                let elsewhere = lockhouse.path("elsewhere");
                fs::create_dir(&elsewhere).unwrap();
                fs::write(elsewhere.join(file.file_name().unwrap()), PLANTED).unwrap();
                fs::remove_dir_all(code_directory(lockhouse)).unwrap();
                symlink(elsewhere, code_directory(lockhouse)).unwrap();
            },
            "its directory is a link",
            "is NOT the program that ran",
        ),
    ];
    let mut table = Table::new("programs that somebody changed");
    for (name, change, told, shown) in rows {
        let lockhouse = Lockhouse::with_fixture();
        let _ = lockhouse.answer("python", ADD);
        let before = show(&lockhouse);
        let is_shown = before.status == Some(0) && before.stdout.contains("     2  add(a=1, b=2)");
        table.row(format!("{name}: control: it is shown"), ensure(is_shown, &before));
        let verified = assert_verified(&lockhouse);
        table.row(
            format!("{name}: control: it is verified"),
            ensure(verified.contains("; 1 programs;"), verified),
        );
        change(&lockhouse, &program(&lockhouse));
        let finished = verify(&lockhouse);
        let found =
            finished.status == Some(1) && finished.stdout.contains("FAULT") && finished.stdout.contains(told);
        table.row(format!("{name}: verify"), ensure(found, &finished));
        let after = show(&lockhouse);
        let warned =
            after.status == Some(1) && after.stdout.contains("WARNING") && after.stdout.contains(shown);
        table.row(format!("{name}: show warns"), ensure(warned, &after));
        table.row(
            format!("{name}: and shows nothing else"),
            ensure(!after.stdout.contains("harmless"), &after),
        );
        let story = after.stdout.contains("fixture.add");
        table.row(format!("{name}: but the story"), ensure(story, &after));
    }
    table.finish();
}

#[test]
fn a_program_without_its_secrets_has_a_hash_of_its_own() {
    let entry = json!({"command": fixture_server(), "env": {"API_KEY": SECRET}});
    let policy = "version = 1\n[servers.fixture]\nallow = [\"*\"]\n";
    let lockhouse = Lockhouse::new().servers_entry("fixture", entry).policy(policy);
    let _ = lockhouse.answer("python", &format!("x = '{SECRET}'\n{ADD}"));
    let record = execution(&lockhouse);
    assert_ne!(record["code"], record["code_kept"], "{record}");
    let kept = fs::read_to_string(program(&lockhouse)).unwrap();
    assert!(kept.contains("x = '[redacted API_KEY]'") && !kept.contains(SECRET), "{kept}");
    assert!(assert_verified(&lockhouse).contains("; 1 programs;"));
    let shown = show(&lockhouse);
    let says_so =
        shown.stdout.contains("but for secrets of the configuration") && shown.stdout.contains("[redacted");
    assert!(shown.status == Some(0) && says_so && !shown.stdout.contains(SECRET), "{shown:?}");
    fs::write(program(&lockhouse), kept.replace("add(a=1", "add(a=2")).unwrap();
    let finished = verify(&lockhouse);
    assert!(finished.status == Some(1) && finished.stdout.contains("replaced: "), "{finished:?}");
    let shown = show(&lockhouse);
    assert!(shown.status == Some(1) && !shown.stdout.contains("add(a=2"), "{shown:?}");
}

#[test]
fn a_record_that_was_changed_to_fit_another_program_is_told_where_it_is_shown() {
    let lockhouse = Lockhouse::with_fixture();
    let _ = lockhouse.answer("python", ADD);
    // Another run leaves a program whose hash is right.
    let _ = lockhouse.answer("python", "print('a harmless program')");
    let [one, other] = &lockhouse.segments()[..] else { panic!("two segments") };
    let hashes = |segment: &Path| {
        let text = fs::read_to_string(segment).unwrap();
        let record = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let record = record.into_iter().find(|record| record["event"] == "execution").unwrap();
        (record["code"].as_str().unwrap().to_owned(), record["execution"].as_str().unwrap().to_owned())
    };
    let ((genuine, id), (planted, _)) = (hashes(one), hashes(other));
    fs::write(one, fs::read_to_string(one).unwrap().replace(&genuine, &planted)).unwrap();
    let shown = lockhouse.run(&["audit", "show", &id]);
    let warned = shown.stdout.starts_with("WARNING: ") && shown.stdout.contains("is NOT as it was written");
    assert!(shown.status == Some(1) && warned, "{shown:?}");
}

#[test]
fn a_program_that_was_changed_is_written_anew_when_it_runs_again() {
    let lockhouse = Lockhouse::with_fixture();
    let _ = lockhouse.answer("python", ADD);
    fs::write(program(&lockhouse), PLANTED).unwrap();
    assert_eq!(verify(&lockhouse).status, Some(1), "control");
    let _ = lockhouse.answer("python", ADD);
    assert_eq!(fs::read_to_string(program(&lockhouse)).unwrap(), ADD);
    assert_verified(&lockhouse);
}

#[test]
fn a_log_of_which_programs_alone_are_left_is_told_and_an_empty_one_is_not_verified() {
    let lockhouse = Lockhouse::with_fixture();
    let _ = lockhouse.answer("python", ADD);
    let json = |lockhouse: &Lockhouse| {
        let finished = lockhouse.run(&["audit", "verify", "--json"]);
        (finished.status, serde_json::from_str::<Value>(&finished.stdout).expect("JSON"))
    };
    let (status, told) = json(&lockhouse);
    let holds = told["state"] == "verified" && told["programs"] == 1 && told["fault_count"] == 0;
    assert!(status == Some(0) && holds, "{told}");
    for segment in lockhouse.segments() {
        fs::remove_file(segment).unwrap();
    }
    fs::remove_file(lockhouse.audit_directory().join("segments.jsonl")).unwrap();
    let (status, told) = json(&lockhouse);
    let what = told["faults"][0]["what"].as_str().unwrap_or_default();
    assert!(status == Some(1) && told["state"] == "faults" && what.contains("there are programs"), "{told}");
    fs::remove_dir_all(code_directory(&lockhouse)).unwrap();
    let (status, told) = json(&lockhouse);
    let what = told["notes"][0]["what"].as_str().unwrap_or_default();
    assert!(status == Some(0) && told["state"] == "empty" && what.contains("nothing was verified"), "{told}");
    let shown = verify(&lockhouse);
    assert!(
        shown.stdout.contains("EMPTY, nothing was verified") && !shown.stdout.contains("\nverified"),
        "{shown:?}"
    );
}

#[test]
fn links_in_place_of_segments_and_of_the_index_are_not_followed() {
    let mut table = Table::new("links in the directory of the log");
    for name in ["a segment", "the index"] {
        let lockhouse = Lockhouse::with_fixture();
        let _ = lockhouse.answer("python", ADD);
        let path = match name {
            "the index" => lockhouse.audit_directory().join("segments.jsonl"),
            _ => lockhouse.segments()[0].clone(),
        };
        let moved = lockhouse.path("moved");
        fs::rename(&path, &moved).unwrap();
        symlink(&moved, &path).unwrap();
        let finished = verify(&lockhouse);
        let told = finished.status == Some(1) && finished.stdout.contains("replaced: it is a symbolic link");
        table.row(format!("{name}: told"), ensure(told, &finished));
        let before = fs::read(&moved).unwrap();
        let _ = lockhouse.answer("python", ADD);
        table.row(format!("{name}: not written to"), ensure(fs::read(&moved).unwrap() == before, ()));
    }
    table.finish();
}
