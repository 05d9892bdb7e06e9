//! Tests that `lockhouse audit verify` detects changes to the audit log, and reports the file and line of each change.

use std::path::Path;

use lockhouse_tests::{Lockhouse, Table, ensure};

use crate::audit::{ADD, assert_verified, verify};

type Change = fn(&Lockhouse, &mut Vec<String>);

fn lines(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap();
    text.split_inclusive('\n').map(str::to_owned).collect()
}

#[test]
fn verify_reports_every_change_with_file_and_line() {
    // The lines of a segment: open, execution, call, outcome, end, close.
    let rows: [(&str, Change, &str); 10] = [
        (
            "a changed byte",
            |_, lines| lines[2] = lines[2].replace("fixture", "fixturf"),
            ":3  record 2  changed",
        ),
        ("a changed time", |_, lines| lines[3] = lines[3].replace("T", "t"), ":4  record 3  changed"),
        ("dropped", |_, lines| drop(lines.remove(2)), ":3  record 2  dropped"),
        ("inserted", |_, lines| lines.insert(3, lines[2].replace("add", "sub")), "record 2  inserted"),
        ("duplicated", |_, lines| lines.insert(3, lines[2].clone()), ":4  record 2  inserted"),
        ("reordered", |_, lines| lines.swap(2, 3), "reordered"),
        (
            "truncated",
            |_, lines| lines.truncate(4),
            "truncated: it ends with record 3; according to the index, the last record is 5",
        ),
        ("emptied", |_, lines| lines.clear(), "truncated"),
        ("removed", |lockhouse, _| std::fs::remove_file(&lockhouse.segments()[0]).unwrap(), "removed"),
        (
            "without its index",
            |lockhouse, _| {
                std::fs::remove_file(lockhouse.audit_directory().join("segments.jsonl")).unwrap();
            },
            "removed: there are segments",
        ),
    ];
    let mut table = Table::new("what verify finds");
    for (name, change, reported) in rows {
        let lockhouse = Lockhouse::with_fixture();
        let _ = lockhouse.answer("python", ADD);
        assert_verified(&lockhouse);
        let path = lockhouse.segments()[0].clone();
        let mut changed = lines(&path);
        change(&lockhouse, &mut changed);
        if path.exists() && name != "without its index" {
            std::fs::write(&path, changed.concat()).unwrap();
        }
        let finished = verify(&lockhouse);
        let found = finished.status == Some(1)
            && finished.stdout.contains(reported)
            && finished.stdout.contains("FAULT");
        table.row(name, ensure(found, &finished));
    }
    table.finish();
}

#[test]
fn verify_reports_exchanged_segments() {
    let lockhouse = Lockhouse::with_fixture();
    for _ in 0..2 {
        let _ = lockhouse.answer("python", ADD);
    }
    assert_verified(&lockhouse);
    let [one, other] = &lockhouse.segments()[..] else { panic!("two segments") };
    let between = lockhouse.path("between");
    std::fs::rename(one, &between).unwrap();
    std::fs::rename(other, one).unwrap();
    std::fs::rename(&between, other).unwrap();
    let finished = verify(&lockhouse);
    assert_eq!(finished.status, Some(1), "{finished:?}");
    assert_eq!(
        finished.stdout.matches("renamed: its first record names the segment").count(),
        2,
        "{finished:?}"
    );
}

#[test]
fn a_forged_log_does_not_verify_with_a_key_stored_elsewhere() {
    let lockhouse = Lockhouse::with_fixture();
    let _ = lockhouse.answer("python", ADD);
    let key = lockhouse.run(&["audit", "key"]).stdout.trim().to_owned();
    assert_eq!(key.len(), 64);
    let with_key = |key: &str| lockhouse.run(&["audit", "verify", "--key", key]);
    assert_eq!(with_key(&key).status, Some(0));
    // The owner of the account can forge a whole new log. Only a public key that was stored elsewhere reveals that.
    std::fs::remove_dir_all(lockhouse.path("state")).unwrap();
    let _ = lockhouse.answer("python", ADD);
    assert_eq!(verify(&lockhouse).status, Some(0), "not detectable from the remaining records");
    let finished = with_key(&key);
    assert_eq!(finished.status, Some(1), "{finished:?}");
    assert!(finished.stdout.contains("it is signed with another key"), "{finished:?}");
    assert_eq!(with_key("12").status, Some(2), "no key");
}

#[test]
fn verify_accepts_a_single_segment_and_a_copied_log() {
    let lockhouse = Lockhouse::with_fixture();
    let _ = lockhouse.answer("python", ADD);
    let segment = lockhouse.segments()[0].display().to_string();
    let finished = lockhouse.run(&["audit", "verify", &segment]);
    assert!(finished.status == Some(0) && finished.stdout.contains("1 segments, 6 records"), "{finished:?}");
    let copy = lockhouse.path("copy");
    std::fs::create_dir(&copy).unwrap();
    for name in [segment.as_str(), &lockhouse.audit_directory().join("segments.jsonl").display().to_string()]
    {
        std::fs::copy(name, copy.join(Path::new(name).file_name().unwrap())).unwrap();
    }
    let finished = lockhouse.run(&["audit", "verify", &copy.display().to_string()]);
    assert_eq!(finished.status, Some(0), "{finished:?}");
    let finished = lockhouse.run(&["audit", "verify", "/nowhere"]);
    assert!(finished.status == Some(7) && finished.stderr.contains("/nowhere"), "{finished:?}");
}
