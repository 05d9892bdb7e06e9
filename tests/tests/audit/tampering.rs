//! What `verify` says of a log that somebody changed, with the file and the line.

use std::path::Path;

use lockhouse_tests::{Lockhouse, Table, ensure};

use crate::{ADD, assert_verified, verify};

type Change = fn(&Lockhouse, &mut Vec<String>);

fn lines(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap();
    text.split_inclusive('\n').map(str::to_owned).collect()
}

#[test]
fn whatever_was_done_is_told_with_its_place() {
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
        ("truncated", |_, lines| lines.truncate(4), "truncated: it ends with record 3, and the index says 5"),
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
    for (name, change, told) in rows {
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
        let found =
            finished.status == Some(1) && finished.stdout.contains(told) && finished.stdout.contains("FAULT");
        table.row(name, ensure(found, &finished));
    }
    table.finish();
}

#[test]
fn two_segments_under_each_others_names_are_told() {
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
    assert_eq!(finished.stdout.matches("renamed: it is the segment").count(), 2, "{finished:?}");
}

#[test]
fn a_log_that_was_made_anew_does_not_fit_a_key_that_was_kept_elsewhere() {
    let lockhouse = Lockhouse::with_fixture();
    let _ = lockhouse.answer("python", ADD);
    let key = lockhouse.run(&["audit", "key"]).stdout.trim().to_owned();
    assert_eq!(key.len(), 64);
    let with_key = |key: &str| lockhouse.run(&["audit", "verify", "--key", key]);
    assert_eq!(with_key(&key).status, Some(0));
    // Whoever owns the account can make everything anew, and only the key that was kept tells.
    std::fs::remove_dir_all(lockhouse.path("state")).unwrap();
    let _ = lockhouse.answer("python", ADD);
    assert_eq!(verify(&lockhouse).status, Some(0), "nothing that is left can know");
    let finished = with_key(&key);
    assert_eq!(finished.status, Some(1), "{finished:?}");
    assert!(finished.stdout.contains("it names another key"), "{finished:?}");
    assert_eq!(with_key("12").status, Some(2), "no key");
}

#[test]
fn one_segment_and_a_copy_elsewhere_are_verified_too() {
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
