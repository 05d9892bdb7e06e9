//! Tests of the programs that are stored beside the audit log: `lockhouse audit show` prints the code that ran, or
//! reports that the stored code is not the code that ran.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use lockhouse_tests::{CommandOutput, LANGUAGES, Lockhouse, Table, ensure, equal, fixture_server};
use serde_json::{Value, json};

use crate::audit::{ADD, assert_verified, verify};

const SECRET: &str = "SEKRET-4711-value";
const PLANTED: &str = "print('a harmless program')\n";

fn code_directory(lockhouse: &Lockhouse) -> PathBuf {
    lockhouse.audit_directory().join("code")
}

/// Returns the audit record of the test's only execution.
fn execution(lockhouse: &Lockhouse) -> Value {
    lockhouse.records().into_iter().find(|record| record["event"] == "execution").expect("an execution")
}

/// Returns the path of the file in which the code of the test's only execution is stored.
fn program(lockhouse: &Lockhouse) -> PathBuf {
    let kept = execution(lockhouse)["code_kept"].as_str().expect("it is kept").to_owned();
    code_directory(lockhouse).join(format!("{kept}.py"))
}

fn show(lockhouse: &Lockhouse) -> CommandOutput {
    let id = execution(lockhouse)["execution"].as_str().expect("an id").to_owned();
    lockhouse.run(&["audit", "show", &id])
}

type Change = fn(&Lockhouse, &Path);

#[test]
fn a_replaced_or_removed_program_is_reported_and_not_shown_as_executed() {
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
            "removed: the stored program of this run",
            "has been removed",
        ),
        (
            "its directory removed",
            |lockhouse, _| fs::remove_dir_all(code_directory(lockhouse)).unwrap(),
            "removed: the directory with the 1 stored programs",
            "has been removed",
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
    let mut table = Table::new("stored programs that were changed");
    for (name, change, reported, printed) in rows {
        let lockhouse = Lockhouse::with_fixture();
        let _ = lockhouse.answer("python", ADD);
        let before = show(&lockhouse);
        let is_shown = before.status == Some(0) && before.stdout.contains("     2  add(a=1, b=2)");
        table.row(format!("{name}: control: the program is shown"), ensure(is_shown, &before));
        let verified = assert_verified(&lockhouse);
        table.row(
            format!("{name}: control: the log verifies"),
            ensure(verified.contains("; 1 programs;"), verified),
        );
        change(&lockhouse, &program(&lockhouse));
        let finished = verify(&lockhouse);
        let found = finished.status == Some(1)
            && finished.stdout.contains("FAULT")
            && finished.stdout.contains(reported);
        table.row(format!("{name}: verify"), ensure(found, &finished));
        let after = show(&lockhouse);
        let warned =
            after.status == Some(1) && after.stdout.contains("WARNING") && after.stdout.contains(printed);
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

#[tokio::test]
async fn one_text_in_both_languages_is_stored_and_verified_twice() {
    let lockhouse = Lockhouse::with_fixture();
    let session = lockhouse.serve().await;
    for language in LANGUAGES {
        assert_eq!(session.run_code(language, "1").await["value"], 1, "{language}");
    }
    session.close().await;
    assert!(assert_verified(&lockhouse).contains("; 2 programs;"), "{:?}", verify(&lockhouse));
    // The check of an installation runs the same text in both languages.
    let checked = Lockhouse::new();
    assert_eq!(checked.run(&["doctor"]).status, Some(0));
    assert!(assert_verified(&checked).contains("; 2 programs;"), "{:?}", verify(&checked));
}

#[test]
fn a_redacted_program_is_verified_by_its_own_hash() {
    let entry = json!({"command": fixture_server(), "env": {"API_KEY": SECRET}});
    let policy = "version = 1\n[servers.fixture]\nallow = [\"*\"]\n";
    let lockhouse = Lockhouse::new().servers_entry("fixture", entry).policy(policy);
    let _ = lockhouse.answer("python", &format!("x = '{SECRET}'\n{ADD}"));
    let record = execution(&lockhouse);
    assert_ne!(record["code"], record["code_kept"], "{record}");
    let kept = fs::read_to_string(program(&lockhouse)).unwrap();
    assert!(kept.contains("x = '[redacted API_KEY]'") && !kept.contains(SECRET), "{kept}");
    assert!(assert_verified(&lockhouse).contains("; 1 programs;"));
    let printed = show(&lockhouse);
    let says_so = printed.stdout.contains("with secrets of the configuration redacted")
        && printed.stdout.contains("[redacted");
    assert!(printed.status == Some(0) && says_so && !printed.stdout.contains(SECRET), "{printed:?}");
    fs::write(program(&lockhouse), kept.replace("add(a=1", "add(a=2")).unwrap();
    let finished = verify(&lockhouse);
    assert!(finished.status == Some(1) && finished.stdout.contains("replaced: "), "{finished:?}");
    let printed = show(&lockhouse);
    assert!(printed.status == Some(1) && !printed.stdout.contains("add(a=2"), "{printed:?}");
}

#[test]
fn audit_show_reports_a_record_changed_to_match_another_program() {
    let lockhouse = Lockhouse::with_fixture();
    let _ = lockhouse.answer("python", ADD);
    // Another run stores a program with a correct hash.
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
    let printed = lockhouse.run(&["audit", "show", &id]);
    let warned = printed.stdout.starts_with("WARNING: ")
        && printed.stdout.contains("was MODIFIED after it was written");
    assert!(printed.status == Some(1) && warned, "{printed:?}");
}

#[test]
fn a_changed_stored_program_is_rewritten_when_it_runs_again() {
    let lockhouse = Lockhouse::with_fixture();
    let _ = lockhouse.answer("python", ADD);
    fs::write(program(&lockhouse), PLANTED).unwrap();
    assert_eq!(verify(&lockhouse).status, Some(1), "control");
    let _ = lockhouse.answer("python", ADD);
    assert_eq!(fs::read_to_string(program(&lockhouse)).unwrap(), ADD);
    assert_verified(&lockhouse);
}

#[test]
fn programs_without_a_log_are_reported_and_an_empty_log_does_not_verify() {
    let lockhouse = Lockhouse::with_fixture();
    let _ = lockhouse.answer("python", ADD);
    let json = |lockhouse: &Lockhouse| {
        let finished = lockhouse.run(&["audit", "verify", "--json"]);
        (finished.status, serde_json::from_str::<Value>(&finished.stdout).expect("JSON"))
    };
    let (status, reported) = json(&lockhouse);
    let holds = reported["state"] == "verified" && reported["programs"] == 1 && reported["fault_count"] == 0;
    assert!(status == Some(0) && holds, "{reported}");
    for segment in lockhouse.segments() {
        fs::remove_file(segment).unwrap();
    }
    fs::remove_file(lockhouse.audit_directory().join("segments.jsonl")).unwrap();
    let (status, reported) = json(&lockhouse);
    let what = reported["faults"][0]["what"].as_str().unwrap_or_default();
    assert!(
        status == Some(1) && reported["state"] == "faults" && what.contains("there are stored programs"),
        "{reported}"
    );
    fs::remove_dir_all(code_directory(&lockhouse)).unwrap();
    let (status, reported) = json(&lockhouse);
    let what = reported["notes"][0]["what"].as_str().unwrap_or_default();
    assert!(
        status == Some(0) && reported["state"] == "empty" && what.contains("nothing was verified"),
        "{reported}"
    );
    let printed = verify(&lockhouse);
    assert!(
        printed.stdout.contains("EMPTY, nothing was verified") && !printed.stdout.contains("\nverified"),
        "{printed:?}"
    );
}

#[test]
fn symbolic_links_in_place_of_segments_or_the_index_are_not_followed() {
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
        let reported =
            finished.status == Some(1) && finished.stdout.contains("replaced: it is a symbolic link");
        table.row(format!("{name}: reported"), ensure(reported, &finished));
        let before = fs::read(&moved).unwrap();
        // With a link in place of the index, nothing runs.
        let run = lockhouse.run_with_input(&["run", "-", "--language", "python", "--json"], ADD.as_bytes());
        let runs = name != "the index";
        table.row(format!("{name}: a run"), equal(run.status == Some(0), runs));
        table.row(format!("{name}: not written to"), ensure(fs::read(&moved).unwrap() == before, ()));
    }
    table.finish();
}
