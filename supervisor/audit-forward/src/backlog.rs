//! The backlog of a destination: the segments of the log, how much of each was delivered, and how old the oldest
//! undelivered record is.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use lockhouse_audit::{SegmentName, segments};
use nix::time::{ClockId, clock_gettime};

use crate::cursor_file::Position;
use crate::segment_reader::{BatchLimits, read_batch};

/// The list of segments is read again if the directory changed within this time: its time of change may be too coarse to
/// tell of a further change.
const RECENT: Duration = Duration::from_secs(2);

/// The segments of a log and how much of each was delivered to one destination.
#[derive(Debug)]
pub(crate) struct Backlog {
    directory: PathBuf,
    segments: BTreeMap<SegmentName, Progress>,
    /// When the directory had last changed at the time its segments were listed.
    listed: Option<SystemTime>,
}

/// How much of one segment was sent and delivered.
#[derive(Debug, Default)]
struct Progress {
    delivered: Position,
    /// What was sent. It is ahead of `delivered` for a destination that does not acknowledge at once.
    sent: Position,
    /// Number of bytes of the file, and when it was written last. `None` if the file was not seen yet.
    file: Option<FileState>,
    /// The state of the file in which no further complete record was found.
    examined: Option<FileState>,
    /// The oldest record that was not delivered. `None` if there is none.
    oldest: Option<Undelivered>,
    /// Whether the file could not be read in the last scan, for example because it is a link.
    is_unreadable: bool,
}

/// What a scan of the log found.
#[derive(Debug, Default)]
pub(crate) struct ScanFindings {
    /// The segments that have gone.
    pub(crate) vanished: Vec<VanishedSegment>,
    /// A segment that cannot be read. The others can.
    pub(crate) unreadable: Option<(SegmentName, io::Error)>,
}

/// The size of a segment's file in bytes, and when it was written last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileState {
    length: u64,
    modified: Option<SystemTime>,
}

/// The first record after the delivered part of a segment.
#[derive(Debug)]
struct Undelivered {
    /// Where it begins.
    offset: u64,
    written: Option<SystemTime>,
    /// The time since boot at which it was first seen.
    seen: Duration,
}

/// A segment whose file has gone.
#[derive(Debug)]
pub(crate) struct VanishedSegment {
    pub(crate) name: SegmentName,
    /// Sequence number of the first record that was not delivered.
    pub(crate) first: u64,
    /// Whether the segment had records that were not delivered, or may have had some that nobody has seen.
    pub(crate) may_have_more: bool,
}

impl Backlog {
    pub(crate) fn new(directory: &Path) -> Self {
        Self { directory: directory.to_owned(), segments: BTreeMap::new(), listed: None }
    }

    /// Sets what was delivered, as the cursor says. Forgets what was sent beyond it.
    pub(crate) fn restore(&mut self, positions: &BTreeMap<SegmentName, Position>) {
        for (segment, position) in positions {
            let progress = self.segments.entry(segment.clone()).or_default();
            progress.delivered.clone_from(position);
            progress.sent.clone_from(position);
        }
    }

    /// Sets what was delivered of a segment. Returns false if the segment has gone.
    pub(crate) fn set_delivered(&mut self, segment: &SegmentName, position: &Position) -> bool {
        let Some(progress) = self.segments.get_mut(segment) else { return false };
        progress.delivered.clone_from(position);
        // The next record is found by the next scan.
        progress.oldest = progress.oldest.take().filter(|_| progress.has_undelivered());
        true
    }

    /// Finds new segments and new records. Segments that have gone are returned again until [`Self::forget`] is called.
    ///
    /// # Errors
    /// The directory of the log cannot be read.
    pub(crate) fn scan(&mut self) -> io::Result<ScanFindings> {
        let changed = std::fs::metadata(&self.directory)?.modified()?;
        let is_recent = self.listed.is_none() || changed.elapsed().map_or(true, |since| since < RECENT);
        if is_recent || self.listed != Some(changed) {
            for name in segments(&self.directory)? {
                self.segments.entry(name).or_default();
            }
            self.listed = Some(changed);
        }
        let mut found = ScanFindings::default();
        for (name, progress) in &mut self.segments {
            // A segment with its last record does not grow, and only its removal is of interest.
            if progress.delivered.is_closed && !is_recent {
                continue;
            }
            match progress.examine(&self.directory, name) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    let (first, may_have_more) = (progress.delivered.next_seq, progress.may_have_more());
                    found.vanished.push(VanishedSegment { name: name.clone(), first, may_have_more });
                }
                Err(error) => found.unreadable = Some((name.clone(), error)),
            }
        }
        Ok(found)
    }

    /// Forgets a segment that has gone.
    pub(crate) fn forget(&mut self, segment: &SegmentName) {
        self.segments.remove(segment);
    }

    /// Returns the first segment after the segment `after` with records that were not sent, and what was sent of it. After
    /// the last segment the first one follows.
    pub(crate) fn next_unsent(&self, after: Option<&SegmentName>) -> Option<(SegmentName, Position)> {
        let has_unsent =
            |(_, progress): &(&SegmentName, &Progress)| progress.oldest.is_some() && progress.has_unsent();
        let mut unsent = self.segments.iter().filter(has_unsent).peekable();
        let first = unsent.peek().copied();
        let next = unsent.find(|(name, _)| after.is_none_or(|after| *name > after)).or(first);
        next.map(|(name, progress)| (name.clone(), progress.sent.clone()))
    }

    pub(crate) fn set_sent(&mut self, segment: &SegmentName, position: Position) {
        if let Some(progress) = self.segments.get_mut(segment) {
            progress.sent = position;
        }
    }

    /// Notes that a segment has no further complete record to send, until its file changes.
    pub(crate) fn set_examined(&mut self, segment: &SegmentName) {
        if let Some(progress) = self.segments.get_mut(segment) {
            progress.examined = progress.file;
        }
    }

    /// Forgets what was sent and not acknowledged: it is sent again.
    pub(crate) fn rewind(&mut self) {
        for progress in self.segments.values_mut() {
            progress.sent.clone_from(&progress.delivered);
        }
    }

    /// Returns the age of the oldest record that was not delivered. `None` if everything was.
    pub(crate) fn lag(&self) -> Option<Duration> {
        let (now, up) = (SystemTime::now(), uptime());
        let oldest = self.segments.values().filter_map(|progress| progress.oldest.as_ref());
        oldest.map(|oldest| oldest.age(now, up)).max()
    }

    /// Returns the number of segments with records that were not delivered.
    pub(crate) fn undelivered_segments(&self) -> usize {
        self.segments.values().filter(|progress| progress.oldest.is_some()).count()
    }
}

impl Progress {
    /// Whether the file has something after what was sent, or is shorter.
    fn has_unsent(&self) -> bool {
        !self.is_unreadable
            && self.file != self.examined
            && self.file.is_some_and(|file| file.length != self.sent.offset)
    }

    fn has_undelivered(&self) -> bool {
        self.file.is_some_and(|file| file.length != self.delivered.offset)
    }

    /// Whether a file that has gone had records that were not delivered. What was written shortly before may not have been
    /// seen.
    fn may_have_more(&self) -> bool {
        let is_idle = |modified: SystemTime| modified.elapsed().is_ok_and(|since| since > RECENT);
        let is_known = self.file.and_then(|file| file.modified).is_some_and(is_idle);
        !self.delivered.is_closed && (self.oldest.is_some() || !is_known)
    }

    /// Finds the first record that was not delivered. A segment that cannot be read counts as undelivered since it was
    /// written last.
    fn examine(&mut self, directory: &Path, name: &SegmentName) -> io::Result<()> {
        let metadata = std::fs::symlink_metadata(directory.join(name.as_str()))?;
        let modified = metadata.modified().ok();
        self.file = Some(FileState { length: metadata.len(), modified });
        let found = self.find_oldest(directory, name);
        self.is_unreadable = found.is_err();
        if self.is_unreadable && self.oldest.is_none() {
            self.oldest = Some(Undelivered { offset: u64::MAX, written: modified, seen: uptime() });
        }
        found
    }

    /// Finds the first record that was not delivered, unless it is known already.
    fn find_oldest(&mut self, directory: &Path, name: &SegmentName) -> io::Result<()> {
        let offset = self.delivered.offset;
        if self.file.is_none_or(|file| file.length == offset) {
            self.oldest = None;
            return Ok(());
        }
        let is_known = self.oldest.as_ref().is_some_and(|oldest| oldest.offset == offset);
        if is_known || (self.oldest.is_none() && self.file == self.examined) {
            return Ok(());
        }
        let one = BatchLimits { records: 1, ..BatchLimits::default() };
        let batch = read_batch(directory, name, &self.delivered, one)?;
        self.oldest = batch.records.first().map(|record| Undelivered {
            offset,
            written: humantime::parse_rfc3339(&record.time).ok(),
            seen: uptime(),
        });
        if self.oldest.is_none() {
            self.examined = self.file;
        }
        Ok(())
    }
}

impl Undelivered {
    /// Returns the age by the clock that says more. So a clock that was set back does not make a record younger.
    fn age(&self, now: SystemTime, up: Duration) -> Duration {
        let by_record = self.written.and_then(|written| now.duration_since(written).ok());
        by_record.unwrap_or_default().max(up.saturating_sub(self.seen))
    }
}

/// Returns the time since the boot of the machine, with the time during which it slept.
fn uptime() -> Duration {
    clock_gettime(ClockId::CLOCK_BOOTTIME).map(Duration::from).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::io::Write as _;

    use super::*;
    use crate::segment_reader::tests::chain_of;

    const START: &str = "2026-01-31T12:00:00Z";

    struct Log(tempfile::TempDir);

    impl Log {
        fn new() -> Self {
            Self(tempfile::tempdir().expect("a directory"))
        }

        fn append(&self, segment: &SegmentName, text: &str) {
            let path = self.0.path().join(segment.as_str());
            let mut file = OpenOptions::new().append(true).create(true).open(path).expect("a file");
            file.write_all(text.as_bytes()).expect("written");
        }

        /// Sends and delivers what a backlog has. Returns the segments and numbers of the records.
        fn deliver(&self, backlog: &mut Backlog) -> Vec<String> {
            let (mut delivered, mut after) = (Vec::new(), None);
            while let Some((segment, from)) = backlog.next_unsent(after.as_ref()) {
                let limits = BatchLimits { records: 1, ..BatchLimits::default() };
                let batch = read_batch(self.0.path(), &segment, &from, limits).expect("readable");
                let Some(record) = batch.records.first() else {
                    backlog.set_examined(&segment);
                    continue;
                };
                delivered.push(format!("{}:{}", &segment.as_str()[42..43], record.seq));
                backlog.restore(&[(segment.clone(), batch.end)].into());
                after = Some(segment);
            }
            delivered
        }
    }

    fn segment(number: u32) -> SegmentName {
        SegmentName::parse(&format!("2026-01-31-{number:032x}.jsonl")).expect("a name")
    }

    /// Returns the records of a segment with these events.
    fn records(events: &[&str]) -> String {
        chain_of((0..).zip(events.iter().copied())).iter().map(|line| format!("{line}\n")).collect()
    }

    #[test]
    fn segments_take_turns_and_a_torn_end_is_not_undelivered() {
        let log = Log::new();
        log.append(&segment(1), &(records(&["open", "call", "call"]) + "{\"seq"));
        log.append(&segment(2), &records(&["open"]));
        let mut backlog = Backlog::new(log.0.path());
        assert!(backlog.scan().expect("readable").vanished.is_empty());
        let age = backlog.lag().expect("undelivered records");
        let expected = humantime::parse_rfc3339(START).expect("a time").elapsed().expect("in the past");
        assert!(expected.abs_diff(age) < Duration::from_secs(60), "{age:?}");
        assert_eq!(log.deliver(&mut backlog), ["1:0", "2:0", "1:1", "1:2"]);
        backlog.scan().expect("readable");
        assert_eq!((backlog.lag(), backlog.undelivered_segments()), (None, 0));
        log.append(&segment(1), "\":9}\n");
        backlog.scan().expect("readable");
        assert!(backlog.lag().is_some(), "the line is complete");
    }

    #[test]
    fn a_segment_that_has_gone_is_reported_with_what_was_not_delivered() {
        let log = Log::new();
        let all = records(&["open", "call", "close"]);
        for number in 1..=3 {
            log.append(&segment(number), &all);
        }
        let mut backlog = Backlog::new(log.0.path());
        backlog.scan().expect("readable");
        let end = |number, records| {
            let limits = BatchLimits { records, ..BatchLimits::default() };
            let from = Position::default();
            read_batch(log.0.path(), &segment(number), &from, limits).expect("readable").end
        };
        let delivered = [(segment(1), end(1, 3)), (segment(2), end(2, 1))];
        backlog.restore(&delivered.into());
        for number in 1..=3 {
            std::fs::remove_file(log.0.path().join(segment(number).as_str())).expect("removed");
        }
        let vanished = backlog.scan().expect("readable").vanished;
        let vanished: Vec<_> = vanished.iter().map(|gone| (gone.first, gone.may_have_more)).collect();
        assert_eq!(vanished, [(3, false), (1, true), (0, true)]);
        for number in 1..=3 {
            backlog.forget(&segment(number));
        }
        assert!(backlog.scan().expect("readable").vanished.is_empty());
    }

    #[test]
    fn a_segment_that_cannot_be_read_counts_as_undelivered_and_holds_up_no_other_one() {
        let log = Log::new();
        std::os::unix::fs::symlink("/etc/passwd", log.0.path().join(segment(1).as_str())).expect("a link");
        log.append(&segment(2), &records(&["open"]));
        let mut backlog = Backlog::new(log.0.path());
        let (name, _) = backlog.scan().expect("readable").unreadable.expect("a link");
        assert_eq!((name, log.deliver(&mut backlog)), (segment(1), vec!["2:0".to_owned()]));
        backlog.scan().expect("readable");
        assert_eq!(backlog.undelivered_segments(), 1);
        assert!(backlog.lag().is_some());
    }
}
