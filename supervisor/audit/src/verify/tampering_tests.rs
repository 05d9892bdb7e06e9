//! Tests that each way to tamper with the audit log is refused, or found by verification: with the local key, with a key that
//! was stored elsewhere, or against a head that a witness kept.

use std::time::Duration;

use super::super::AuditSettings;
use super::super::chain_writer::{Intervals, Writer};
use super::super::hash_chain::{Chain, RecordBody, hash};
use super::super::log_rekey::{RekeyError, rekey};
use super::super::moment::{Moment, Uptime};
use super::super::retention;
use super::super::segment::segments;
use super::super::signing::SigningKey;
use super::history::{DAY, History, copy_directory, edit, faults, fill, lines, noon};
use super::*;

/// What finds a change.
#[derive(Clone, Copy, Debug)]
enum Finder {
    /// `verify` on the machine of the log.
    Local,
    /// `verify --key`, with the key of the first line.
    FirstKey,
    /// `verify --head`; the local key alone finds nothing.
    Head,
}

type Change = fn(&History);

fn remove(path: &Path) {
    std::fs::remove_file(path).expect("removed");
}

/// Writes a segment and its line of the index anew, from the second record on, with keys of the attacker.
fn forge_segment(history: &History) {
    let path = history.segment(0);
    let key = SigningKey::generate().expect("a key");
    edit(&path, |lines| {
        let (mut chain, mut forged) = (Chain { seq: 0, prev: [0; 32] }, Vec::new());
        let name = path.file_name().expect("a name").to_string_lossy();
        let open = RecordBody::new("open").number("version", 2).text("segment", &name);
        let next = key.public_key();
        chain.push_signed(&mut forged, noon(0).wall, open, &key, Some(&next));
        chain.push(&mut forged, noon(0).wall, &RecordBody::new("call").text("server", "forged"));
        chain.push_signed(&mut forged, noon(0).wall, RecordBody::new("close"), &key, None);
        *lines = vec![String::from_utf8(forged).expect("text")];
    });
}

/// Writes the index anew from the line `from` on: each line is signed by the stolen key.
fn forge_index(history: &History, from: usize, stolen: &SigningKey) {
    edit(&history.index(), |lines| {
        let before = from.checked_sub(1).map_or([0; 32], |before| hash(lines[before].trim_end().as_bytes()));
        let (mut chain, mut forged) = (Chain { seq: from as u64, prev: before }, Vec::new());
        for line in lines.drain(from..) {
            let line: serde_json::Value = serde_json::from_str(&line).expect("JSON");
            let mut body = RecordBody::new(if line["event"] == "closed" { "closed" } else { "opened" });
            for name in ["segment", "first", "last"] {
                body = body.text_if(name, line[name].as_str());
            }
            body = body.number_if("last_seq", line["last_seq"].as_u64());
            chain.push_signed(&mut forged, noon(0).wall, body, stolen, Some(&stolen.public_key()));
        }
        lines.push(String::from_utf8(forged).expect("text"));
    });
}

/// Appends a line to the index that ends a segment where it is now.
fn append_closed(history: &History, segment: &Path, key: &SigningKey) {
    let of_segment = lines(segment);
    let last = of_segment.last().expect("a line").trim_end();
    let name = segment.file_name().expect("a name").to_string_lossy().into_owned();
    edit(&history.index(), |lines| {
        let before = hash(lines.last().expect("a line").trim_end().as_bytes());
        let (mut chain, mut forged) = (Chain { seq: lines.len() as u64, prev: before }, Vec::new());
        let body = RecordBody::new("closed").text("segment", &name);
        let body = body.number("last_seq", of_segment.len() - 1);
        let body = body.text("last", &HEXLOWER.encode(&hash(last.as_bytes())));
        chain.push_signed(&mut forged, noon(2).wall, body, key, Some(&key.public_key()));
        lines.push(String::from_utf8(forged).expect("text"));
    });
}

/// Returns an unsigned record that continues a chain.
fn next_line(lines: &[String], event: &'static str) -> String {
    let before = hash(lines.last().expect("a line").trim_end().as_bytes());
    let (mut chain, mut line) = (Chain { seq: lines.len() as u64, prev: before }, Vec::new());
    let body = RecordBody::new(event);
    let body = if event == "gap" { body.number("records", 1).text("reason", "forged") } else { body };
    chain.push(&mut line, noon(2).wall, &body);
    String::from_utf8(line).expect("text")
}

/// Appends bytes as if they were what a failed write left, with the `gap` that says so.
fn push_gap_after(lines: &mut Vec<String>, bytes: &str) {
    let before = hash(lines.last().expect("a line").trim_end().as_bytes());
    let (mut chain, mut gap) = (Chain { seq: lines.len() as u64, prev: before }, Vec::new());
    let body = RecordBody::new("gap").number("records", 1).text("reason", "no space");
    chain.push(&mut gap, noon(2).wall, &body.number("torn", bytes.len()));
    lines.push(format!("{bytes}\n"));
    lines.push(String::from_utf8(gap).expect("text"));
}

fn stolen_key(history: &History) -> SigningKey {
    SigningKey::load(&history.keys().join("audit-key")).expect("readable").expect("a key")
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn each_way_to_tamper_with_a_log_is_found() {
    use Finder::{FirstKey, Head, Local};
    let rows: [(&str, Change, Finder, &str); 34] = [
        ("a closed segment removed", |log| remove(&log.segment(0)), Local, "removed: it is in the index"),
        ("an open segment removed", |log| remove(&log.segment(2)), Local, "removed: it is in the index"),
        ("the index removed", |log| remove(&log.index()), Local, "removed: there are segments"),
        (
            "index and segments removed",
            |log| {
                (0..3).for_each(|_| remove(&log.segment(0)));
                remove(&log.index());
            },
            Local,
            "removed: there are stored programs",
        ),
        (
            "everything removed",
            |log| {
                std::fs::remove_dir_all(log.log()).expect("removed");
            },
            Head,
            "rolled back or truncated: it has 0 lines",
        ),
        (
            "two segments swapped",
            |log| {
                let (one, other) = (lines(&log.segment(0)), lines(&log.segment(1)));
                std::fs::write(log.segment(0), other.concat()).expect("written");
                std::fs::write(log.segment(1), one.concat()).expect("written");
            },
            Local,
            "renamed",
        ),
        (
            "a closed segment truncated",
            |log| edit(&log.segment(0), |lines| lines.truncate(8)),
            Local,
            "truncated: it ends with record 7",
        ),
        (
            "an open segment truncated after a checkpoint",
            |log| edit(&log.segment(2), |lines| lines.truncate(8)),
            Head,
            "rolled back or truncated: it has no record",
        ),
        (
            "the last line of the index removed",
            |log| edit(&log.index(), |lines| drop(lines.pop())),
            Local,
            "rolled back or made anew",
        ),
        (
            "the last segment removed with its line of the index",
            |log| {
                edit(&log.index(), |lines| drop(lines.pop()));
                remove(&log.segment(2));
            },
            Local,
            "rolled back or made anew",
        ),
        (
            "a segment rolled back",
            |log| {
                let _bytes = std::fs::copy(log.early(&log.segment(1)), log.segment(1)).expect("copied");
            },
            Head,
            "rolled back or truncated: it has no record",
        ),
        (
            "the index rolled back",
            |log| {
                let _bytes = std::fs::copy(log.early(&log.index()), log.index()).expect("copied");
            },
            Local,
            "rolled back or made anew",
        ),
        ("index and segments rolled back", |log| log.restore("log"), Local, "rolled back or made anew"),
        (
            "index, segments and key rolled back",
            |log| {
                log.restore("log");
                log.restore("keys");
            },
            Head,
            "rolled back or truncated: it has 3 lines",
        ),
        (
            "begun again with the present key",
            |log| {
                std::fs::remove_dir_all(log.log()).expect("removed");
                std::fs::create_dir(log.log()).expect("a directory");
                (0..4).for_each(|_| fill(&mut log.writer(), noon(3)));
            },
            Head,
            "begun again or rewritten",
        ),
        (
            "begun again with the present key, and the first key is known",
            |log| {
                std::fs::remove_dir_all(log.log()).expect("removed");
                std::fs::create_dir(log.log()).expect("a directory");
                fill(&mut log.writer(), noon(3));
            },
            FirstKey,
            "made anew: it is signed with another key",
        ),
        (
            "begun again with the key of an earlier time",
            |log| {
                std::fs::remove_dir_all(log.log()).expect("removed");
                std::fs::create_dir(log.log()).expect("a directory");
                log.restore("keys");
                fill(&mut log.writer(), noon(3));
            },
            FirstKey,
            "made anew: it is signed with another key",
        ),
        (
            "an older segment forged",
            forge_segment,
            Local,
            "made anew: its first record differs from the index",
        ),
        (
            "an older line of the index forged with the stolen present key",
            |log| forge_index(log, 1, &stolen_key(log)),
            Local,
            "made anew: its key is not the one that the line before it names",
        ),
        (
            "the whole index forged with the stolen present key",
            |log| forge_index(log, 0, &stolen_key(log)),
            FirstKey,
            "made anew: it is signed with another key",
        ),
        (
            "a program edited",
            |log| {
                let code = std::fs::read_dir(log.log().join("code")).expect("readable").next();
                std::fs::write(code.expect("one").expect("readable").path(), "print(2)").expect("written");
            },
            Local,
            "replaced",
        ),
        (
            "a segment replaced with a link to a copy of it",
            |log| {
                let (path, copy) = (log.segment(0), log.keys().join("copy"));
                std::fs::rename(&path, &copy).expect("moved");
                std::os::unix::fs::symlink(copy, path).expect("a link");
            },
            Local,
            "replaced: it is a symbolic link",
        ),
        (
            "a segment replaced with a pipe",
            |log| {
                let path = log.segment(0);
                remove(&path);
                nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
            },
            Local,
            "replaced",
        ),
        (
            "a segment replaced with a hard link to one of another log",
            |log| {
                let path = log.segment(0);
                remove(&path);
                let other = History::new();
                std::fs::hard_link(other.segment(0), path).expect("a link");
            },
            Local,
            "renamed",
        ),
        (
            "a hard link to a segment of another log added",
            |log| {
                let other = History::new();
                let path = other.segment(0);
                let name = path.file_name().expect("a name");
                std::fs::hard_link(&path, log.log().join(name)).expect("a link");
            },
            Local,
            "inserted: it is not in the index",
        ),
        (
            "a line of the index twice",
            |log| edit(&log.index(), |lines| lines.insert(2, lines[1].clone())),
            Local,
            "inserted: record 1",
        ),
        (
            "a line of the index that ends a segment, forged with an own key",
            |log| {
                edit(&log.segment(2), |lines| lines.truncate(8));
                let key = SigningKey::generate().expect("a key");
                append_closed(log, &log.segment(2), &key);
            },
            Local,
            "made anew: its key is not the one that the line before it names",
        ),
        (
            "a segment truncated, and its end forged with the stolen present key",
            |log| {
                edit(&log.segment(2), |lines| lines.truncate(8));
                let stolen = stolen_key(log);
                append_closed(log, &log.segment(2), &stolen);
                std::fs::write(log.keys().join("audit-key"), stolen.to_pkcs8().expect("encoded"))
                    .expect("written");
            },
            Head,
            "rolled back or truncated: it has no record",
        ),
        (
            "the key file replaced with that of an earlier time",
            |log| log.restore("keys"),
            Local,
            "rolled back or made anew",
        ),
        (
            "a record after the end of a segment",
            |log| edit(&log.segment(0), |lines| lines.push(next_line(lines, "call"))),
            Local,
            "inserted: a record after the end of the segment",
        ),
        (
            "records after the last signature replaced with a gap",
            |log| {
                edit(&log.segment(2), |lines| {
                    lines.truncate(lines.len() - 2);
                    lines.push(next_line(lines, "gap"));
                    lines.push(next_line(lines, "call"));
                });
            },
            Head,
            "rewritten: the head of",
        ),
        (
            "a record in place of the bytes of an incomplete one",
            |log| {
                edit(&log.segment(2), |lines| {
                    push_gap_after(lines, "{\"seq\":9,\"event\":\"call\",\"server\":\"forged\"}")
                })
            },
            Local,
            "inserted: a record in place of an incomplete one",
        ),
        (
            "a program replaced with a link to an equal one",
            |log| {
                let code = std::fs::read_dir(log.log().join("code")).expect("readable").next();
                let (path, copy) = (code.expect("one").expect("readable").path(), log.keys().join("copy"));
                std::fs::rename(&path, &copy).expect("moved");
                std::os::unix::fs::symlink(copy, path).expect("a link");
            },
            Local,
            "replaced",
        ),
        (
            "the programs removed",
            |log| std::fs::remove_dir_all(log.log().join("code")).expect("removed"),
            Local,
            "removed",
        ),
    ];
    let mut wrong = Vec::new();
    for (name, change, finder, words) in rows {
        let history = History::new();
        let untouched = [
            history.faults(None),
            history.faults(Some(&history.head)),
            history.faults(Some(&history.early_head)),
            history.faults_with(&history.first_key),
        ];
        change(&history);
        let found = match finder {
            Local => history.faults(None),
            FirstKey => history.faults_with(&history.first_key),
            Head => history.faults(Some(&history.head)),
        };
        let is_needed = !matches!(finder, Head) || history.faults(None).is_empty();
        if untouched.concat() != [""; 0] || !is_needed || !found.iter().any(|fault| fault.contains(words)) {
            wrong.push(format!("{name}: {words}\n  control {untouched:?}\n  {found:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A thief of the keys at one time cannot sign what the log had before. What the thief signs from then on is found against a
/// later head.
#[test]
fn a_key_that_is_stolen_later_does_not_sign_earlier_records() {
    let history = History::new();
    // The private keys that a thief finds: no one of them signed a line of the index.
    let stolen = stolen_key(&history).public_key().to_hex();
    let signed = |line: &String| line.contains(&format!("\"key\":\"{stolen}\""));
    assert!(!lines(&history.index()).iter().any(signed));
    let named = |line: &String| line.contains(&format!("\"next\":\"{stolen}\""));
    assert!(lines(&history.index()).iter().any(named), "control: it is the key of the log");
    assert_eq!(
        std::fs::read_dir(history.keys()).expect("readable").count(),
        2,
        "the key, and the path of its log"
    );
    // A checkpoint of the form of version 1, signed with the key of the log, is no signature of a segment of version 2.
    edit(&history.segment(2), |lines| {
        let last = lines.last().expect("a line").trim_end();
        let (seq, prev) = (lines.len(), HEXLOWER.encode(&hash(last.as_bytes())));
        let text = format!(
            "{{\"seq\":{seq},\"prev\":\"{prev}\",\"time\":\"2024-10-06T12:00:00Z\",\"event\":\"checkpoint\""
        );
        let signature = stolen_key(&history).sign(text.as_bytes());
        lines.push(format!("{text},\"signature\":\"{signature}\"}}\n"));
    });
    let found = history.faults(None);
    assert!(found.iter().any(|fault| fault.contains("made anew: it names no key")), "{found:?}");
}

#[test]
fn a_log_that_continues_from_a_stolen_state_is_found_with_a_later_head() {
    let history = History::new();
    history.restore("log");
    history.restore("keys");
    fill(&mut history.writer(), noon(2));
    assert_eq!(history.faults(Some(&history.early_head)), [""; 0], "control: it contains the early head");
    assert_eq!(history.faults_with(&history.first_key), [""; 0], "a key alone does not find it");
    let found = history.faults(Some(&history.head));
    assert!(found.iter().any(|fault| fault.contains("begun again or rewritten")), "{found:?}");
}

#[test]
fn clocks_and_restarts_remove_nothing() {
    let jump = |wall: i32, boot: u128| {
        let wall = match wall {
            ahead @ 0.. => noon(2).wall + DAY * ahead.unsigned_abs(),
            back => noon(2).wall - DAY * back.unsigned_abs(),
        };
        let time = if boot == 1 { noon(2).boot.expect("known").time } else { Duration::from_secs(60) };
        Moment { wall, boot: Some(Uptime { boot: uuid::Uuid::from_u128(boot), time }) }
    };
    let rows: [(&str, Vec<Moment>, usize); 4] = [
        ("control: 40 days have passed", vec![noon(42)], 2),
        ("40 days ahead", vec![jump(40, 1)], 4),
        ("40 days back", vec![jump(-40, 1)], 4),
        (
            "ten restarts, each 40 days ahead",
            (1..=10).map(|boot| jump(40 * boot, boot as u128 + 1)).collect(),
            13,
        ),
    ];
    for (name, moments, left) in rows {
        let history = History::new();
        for moment in moments {
            history.writer().append(moment, &RecordBody::new("call")).expect("written");
            retention::expire(&history.log(), &history.keys(), 30, moment).expect("done");
        }
        assert_eq!(segments(&history.log()).expect("readable").len(), left, "{name}");
        let faults: Vec<String> =
            history.faults(None).into_iter().filter(|fault| !fault.contains("code")).collect();
        assert_eq!(faults, [""; 0], "{name}");
    }
}

#[test]
fn the_log_continues_after_a_crash_at_each_step_of_a_key_change() {
    type Step = fn(&History);
    let rows: [(&str, Step); 4] = [
        ("before the next key is written", |_| {}),
        ("after the next key is written, before the line", |history| {
            let key = SigningKey::generate().expect("a key").to_pkcs8().expect("encoded");
            std::fs::write(history.keys().join("audit-key.next"), key).expect("written");
        }),
        ("within the writing of the next key", |history| {
            std::fs::write(history.keys().join("audit-key.next"), "").expect("written");
        }),
        ("after the line, before the key is renamed", |history| {
            let before = std::fs::read(history.keys().join("audit-key")).expect("a key");
            fill(&mut history.writer(), noon(2));
            let (key, next) = (history.keys().join("audit-key"), history.keys().join("audit-key.next"));
            std::fs::rename(&key, &next).expect("renamed");
            std::fs::write(&key, before).expect("written");
        }),
    ];
    for (name, step) in rows {
        let history = History::new();
        step(&history);
        assert_eq!(history.faults(None), [""; 0], "{name}: as it was left");
        fill(&mut history.writer(), noon(2));
        assert_eq!(history.faults(Some(&history.head)), [""; 0], "{name}");
        assert!(!history.keys().join("audit-key.next").exists(), "{name}");
    }
}

#[test]
fn a_lost_key_stops_the_log_until_a_new_one_begins_with_a_countersignature() {
    let administrator = SigningKey::generate().expect("a key");
    for is_countersigned in [false, true] {
        let history = History::new();
        let settings = AuditSettings {
            directory: history.log(),
            keys: history.keys(),
            values: false,
            redact: Vec::new(),
            code: true,
            keep_days: 30,
            erasable_names: false,
            sink: None,
            forward: Vec::new(),
            forward_within: None,
        };
        assert!(matches!(rekey(&settings, None), Err(RekeyError::KeyPresent)), "control");
        remove(&history.keys().join("audit-key"));
        let refused =
            history.writer().append(noon(3), &RecordBody::new("call")).expect_err("no key").to_string();
        assert!(refused.contains("lockhouse audit rekey"), "{refused}");
        let file = history.keys().join("administrator");
        std::fs::write(&file, administrator.to_pkcs8().expect("encoded")).expect("written");
        rekey(&settings, is_countersigned.then_some(file.as_path())).expect("a new key");
        fill(&mut history.writer(), noon(3));
        let (keys, log, trusted) = (history.keys(), history.log(), [administrator.public_key()]);
        let local = TrustedKey::Local { keys: &keys, log: &log };
        let found = faults(history.findings(Trust { administrators: &trusted, ..local.into() }));
        assert_eq!(found.is_empty(), is_countersigned, "{found:?}");
        assert!(is_countersigned || found.iter().all(|fault| fault.contains("rekeyed")), "{found:?}");
        let found = history.faults(None);
        assert!(
            found.len() == 1 && found[0].contains("rekeyed"),
            "the administrator is not trusted: {found:?}"
        );
        assert_eq!(history.faults_with(&history.first_key).len(), 1, "the older lines have the first key");
    }
}

#[test]
fn two_logs_with_one_directory_of_keys_have_keys_of_their_own() {
    let history = History::new();
    let other = history.log().with_file_name("other");
    std::fs::create_dir(&other).expect("a directory");
    for day in 3..6 {
        fill(&mut Writer::new(other.clone(), history.keys(), Intervals::default()), noon(day));
        fill(&mut history.writer(), noon(day));
    }
    assert_eq!(history.faults(Some(&history.head)), [""; 0]);
    let mut found = Vec::new();
    let keys = history.keys();
    let trust = TrustedKey::Local { keys: &keys, log: &other }.into();
    verify(&other, LogLocation::Original, &trust, &mut |finding| found.push(finding)).expect("readable");
    assert_eq!(faults(found), [""; 0]);
    // A log that is moved keeps its key.
    let moved = other.with_file_name("moved");
    std::fs::rename(&other, &moved).expect("moved");
    fill(&mut Writer::new(moved, history.keys(), Intervals::default()), noon(7));
}

#[test]
fn an_earlier_copy_of_the_log_verifies_with_the_local_key_and_another_log_does_not() {
    let history = History::new();
    let (log, keys) = (history.log(), history.keys());
    let copy = log.with_file_name("copy");
    copy_directory(&log, &copy);
    fill(&mut history.writer(), noon(3));
    let verified = |path: &Path| {
        let mut found = Vec::new();
        let trust = TrustedKey::Local { keys: &keys, log: &log }.into();
        verify(path, LogLocation::Copy, &trust, &mut |finding| found.push(finding)).expect("readable");
        faults(found)
    };
    assert_eq!(verified(&copy), [""; 0]);
    let other = History::new();
    let found = verified(&other.log());
    assert!(found.iter().any(|fault| fault.contains("rolled back or made anew")), "{found:?}");
}
