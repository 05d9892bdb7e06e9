//! Tests of the writer of one process: segments, signatures, gaps, and clocks that were set.

use std::io::Write as _;
use std::path::Path;

use super::*;
use crate::moment::tests::at;
use crate::moment::{Moment, Uptime};
use crate::segment::{day, segments};
use crate::segment_index::Index;
use crate::verify::{Finding, FindingKind, LogLocation, TrustedKey, verify};

const DAY: Duration = Duration::from_secs(24 * 3_600);

fn writer(directory: &Path, intervals: Intervals) -> Writer {
    Writer::new(directory.to_owned(), directory.join("keys"), intervals)
}

fn noon() -> Moment {
    after(Duration::ZERO)
}

/// Returns a moment some time after noon of a day, by both clocks.
fn after(time: Duration) -> Moment {
    at(SystemTime::UNIX_EPOCH + DAY * 20_000 + DAY / 2 + time)
}

/// Returns a moment at which the clocks disagree: `wall` and `up` after noon.
fn wrong(wall: Duration, up: Duration) -> Moment {
    Moment { wall: after(wall).wall, ..after(up) }
}

fn verified(writer: &Writer) -> Vec<Finding> {
    let mut findings = Vec::new();
    let trust = TrustedKey::Local { keys: &writer.keys, log: &writer.directory }.into();
    verify(&writer.directory, LogLocation::Copy, &trust, &mut |finding| findings.push(finding))
        .expect("readable");
    assert!(findings.iter().all(|finding| finding.kind == FindingKind::Note), "{findings:?}");
    findings
}

fn names(writer: &Writer) -> Vec<SegmentName> {
    segments(&writer.directory).expect("readable")
}

#[test]
fn no_segment_is_created_before_the_first_record() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut writer = writer(directory.path(), Intervals::default());
    writer.maintain(noon());
    writer.close(noon(), "exit");
    assert!(names(&writer).is_empty());
}

#[test]
fn each_day_has_a_segment_that_continues_the_previous_chain() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut writer = writer(directory.path(), Intervals::default());
    for time in [Duration::ZERO, DAY / 3, DAY, DAY / 3, 4 * DAY].map(after) {
        writer.append(time, &RecordBody::new("call")).expect("written");
    }
    assert_eq!(
        names(&writer).iter().map(SegmentName::day).collect::<Vec<_>>(),
        ["2024-10-04", "2024-10-05", "2024-10-08"]
    );
    // The process continues past midnight without writing more records.
    assert!(!writer.maintain(after(5 * DAY)).needs_signature);
    let findings = verified(&writer);
    let is_jump = |finding: &Finding| finding.what.starts_with("the clock was set back by 16 hours");
    assert!(findings.len() == 1 && is_jump(&findings[0]), "each is closed: {findings:?}");
}

#[test]
fn a_segment_is_bounded() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut writer = writer(directory.path(), Intervals { segment_bytes: 2_000, ..Intervals::default() });
    for _ in 0..50 {
        writer.append(noon(), &RecordBody::new("call")).expect("written");
    }
    assert!(names(&writer).len() > 3);
    for name in names(&writer) {
        let bytes = std::fs::metadata(directory.path().join(name.as_str())).expect("there").len();
        assert!(bytes < 3_000, "{name}: {bytes}");
    }
    verified(&writer);
}

#[test]
fn unsigned_records_are_signed_within_the_interval() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut writer = writer(directory.path(), Intervals::default());
    writer.append(noon(), &RecordBody::new("call")).expect("written");
    let first = writer.maintain(after(Duration::from_secs(1)));
    assert!(first.needs_signature && first.to_sync.is_some() && first.has_new_segment, "{first:?}");
    let idle = writer.maintain(after(Duration::from_secs(2)));
    assert!(idle.needs_signature && idle.to_sync.is_none() && !idle.has_new_segment, "{idle:?}");
    let signed = writer.maintain(after(Duration::from_secs(60)));
    assert!(!signed.needs_signature && signed.to_sync.is_some(), "{signed:?}");
    let verification = format!("{:?}", verified(&writer));
    assert!(verification.contains("all records are signed"), "{verification}");
}

#[test]
fn an_incomplete_write_is_recorded_as_a_gap_and_is_no_fault() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut writer = writer(directory.path(), Intervals::default());
    writer.append(noon(), &RecordBody::new("call")).expect("written");
    for piece in ["{\"seq\":2,\"pre", "{\"seq\":2\n{\"a\n{"] {
        let segment = writer.segment.as_mut().expect("one");
        (&*segment.file.file()).write_all(piece.as_bytes()).expect("written");
        writer.record_gap(noon(), 1, "no space".into());
        writer.gap.as_mut().expect("one").torn = piece.len() as u64;
        writer.append(noon(), &RecordBody::new("call")).expect("written");
    }
    writer.close(noon(), "exit");
    let verification = format!("{:?}", verified(&writer));
    assert!(verification.contains("13 bytes before it are an incomplete record: no space"), "{verification}");
}

#[test]
fn a_removed_segment_is_detected_and_a_new_one_is_started() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut writer = writer(directory.path(), Intervals::default());
    writer.append(noon(), &RecordBody::new("call")).expect("written");
    std::fs::remove_file(writer.path()).expect("removed");
    writer.append(after(Duration::from_millis(10)), &RecordBody::new("call")).expect("written");
    let text = std::fs::read_to_string(writer.path()).expect("another one");
    assert!(text.contains("was removed while it was written"), "{text}");
    let mut findings = Vec::new();
    let trust = TrustedKey::Local { keys: &writer.keys, log: directory.path() }.into();
    verify(directory.path(), LogLocation::Copy, &trust, &mut |finding| findings.push(finding))
        .expect("readable");
    assert!(findings.iter().any(|found| found.what.starts_with("removed")), "{findings:?}");
}

#[test]
fn expired_segments_are_removed_without_a_fault() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut writer = writer(directory.path(), Intervals::default());
    for day in [0, 1, 29, 30, 31] {
        writer.append(after(DAY * day), &RecordBody::new("call")).expect("written");
    }
    let expire = |writer: &Writer| {
        crate::retention::expire(directory.path(), &writer.keys, 30, after(DAY * 31)).expect("done");
    };
    expire(&writer);
    expire(&writer);
    let index =
        || std::fs::read_to_string(directory.path().join(crate::segment_index::INDEX)).expect("an index");
    let (lines, first_kept) = (index().lines().count(), day(after(DAY).wall));
    let open = Index::open(directory.path(), &writer.keys).expect("an index");
    open.cut(directory.path(), after(DAY * 31), &first_kept, 0).expect("cut");
    // The first line was replaced by a `cut` record.
    assert!(
        index().lines().count() == lines
            && index().lines().next().is_some_and(|line| line.contains("\"cut\""))
    );
    assert_eq!(names(&writer).len(), 4, "the last thirty days and today: {:?}", names(&writer));
    verified(&writer);
}

fn expire(writer: &Writer, now: Moment) -> Vec<String> {
    crate::retention::expire(&writer.directory, &writer.keys, 30, now).expect("done");
    names(writer).iter().map(|name| name.day().to_owned()).collect()
}

#[test]
fn a_jump_of_the_clock_expires_nothing_and_is_recorded() {
    let forty = DAY * 40;
    let minute = Duration::from_secs(60);
    for jumped in [wrong(forty, minute), wrong(forty, DAY * 2)] {
        let directory = tempfile::tempdir().expect("a directory");
        let mut writer = writer(directory.path(), Intervals::default());
        writer.append(noon(), &RecordBody::new("call")).expect("written");
        writer.append(jumped, &RecordBody::new("call")).expect("written");
        assert_eq!(expire(&writer, jumped).len(), 2, "{jumped:?}");
        let notes: Vec<String> = verified(&writer).into_iter().map(|finding| finding.what).collect();
        assert!(notes.iter().any(|what| what.contains("the clock was set forward by")), "{notes:?}");
    }
}

#[test]
fn a_jump_that_another_process_saw_is_recorded_by_the_next_one() {
    let directory = tempfile::tempdir().expect("a directory");
    let intervals = Intervals::default();
    let mut first = writer(directory.path(), intervals);
    first.append(noon(), &RecordBody::new("call")).expect("written");
    first.close(noon(), "exit");
    let mut second = writer(directory.path(), intervals);
    second.append(wrong(DAY, Duration::from_secs(1)), &RecordBody::new("call")).expect("written");
    second
        .append(wrong(Duration::from_secs(2), Duration::from_secs(2)), &RecordBody::new("call"))
        .expect("written");
    second.close(after(Duration::from_secs(3)), "exit");
    let notes: Vec<String> = verified(&second).into_iter().map(|finding| finding.what).collect();
    let count = |words: &str| notes.iter().filter(|what| what.contains(words)).count();
    assert_eq!([count("set forward"), count("set back")], [1, 1], "{notes:?}");
}

#[test]
fn boots_with_a_wrong_clock_age_the_log_by_a_day_each() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut writer = writer(directory.path(), Intervals::default());
    writer.append(noon(), &RecordBody::new("call")).expect("written");
    let boot = |number: u32| Moment {
        boot: Some(Uptime { boot: uuid::Uuid::from_u128(number.into()), time: Duration::ZERO }),
        ..after(DAY * 40 * number)
    };
    let mut left = Vec::new();
    for number in 2..=33 {
        writer.append(boot(number), &RecordBody::new("call")).expect("written");
        left.push(expire(&writer, boot(number)).len());
    }
    // The segment of noon ended with the second boot.
    assert!(left.is_sorted_by(|one, other| one < other || *other >= 30), "{left:?}");
    assert_eq!(left[..28], (2..30).collect::<Vec<_>>(), "nothing is thirty days old: {left:?}");
    assert!(left.last().is_some_and(|left| *left < 33), "{left:?}");
}

#[test]
fn a_segment_ends_after_a_day_also_if_the_clock_was_set_back() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut writer = writer(directory.path(), Intervals::default());
    for hours in [0, 12, 25] {
        let up = Duration::from_secs(hours * 3_600);
        writer.append(wrong(Duration::from_secs(hours), up), &RecordBody::new("call")).expect("written");
    }
    assert_eq!(names(&writer).len(), 2);
}
