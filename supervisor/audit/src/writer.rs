//! The chain of one process: what is written, signed, begun anew each day, and told of when it could not be written.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::index::Index;
use super::line::{Body, Chain, moment};
use super::segment::{Lines, SegmentName, day};
use super::sign::Secrets;
use data_encoding::HEXLOWER;

/// Of the format. A reader that knows another one says so.
pub(super) const VERSION: u32 = 1;

/// When what is written is signed, and when another file is begun.
#[derive(Clone, Copy, Debug)]
pub(super) struct Intervals {
    pub(super) records: u64,
    pub(super) time: Duration,
    pub(super) segment_bytes: u64,
}

impl Default for Intervals {
    fn default() -> Self {
        Self { records: 1_000, time: Duration::from_secs(60), segment_bytes: 256 * 1024 * 1024 }
    }
}

/// What is left to do off the way of calls.
#[derive(Debug)]
pub(super) struct Upkeep {
    /// To be brought to the disk.
    pub(super) to_sync: Option<Arc<File>>,
    /// Whether there is something that a later look must sign.
    pub(super) goes_on: bool,
    /// Whether a segment was begun since the last look.
    pub(super) has_begun: bool,
}

#[derive(Debug)]
pub(super) struct Writer {
    directory: PathBuf,
    secrets: Arc<Secrets>,
    intervals: Intervals,
    segment: Option<Segment>,
    /// The segment before, and how it ended.
    previous: Option<(SegmentName, Chain)>,
    gap: Option<Gap>,
    has_begun: bool,
}

#[derive(Debug)]
struct Segment {
    name: SegmentName,
    lines: Lines,
    chain: Chain,
    /// Records since the last signature.
    unsigned: u64,
    /// When the first of them was written.
    unsigned_since: SystemTime,
    dirty: bool,
}

/// Records that could not be written.
#[derive(Debug)]
struct Gap {
    since: SystemTime,
    records: u64,
    reason: String,
    /// Bytes before this that are no record.
    torn: u64,
}

impl Writer {
    pub(super) fn new(directory: PathBuf, secrets: Arc<Secrets>, intervals: Intervals) -> Self {
        Self { directory, secrets, intervals, segment: None, previous: None, gap: None, has_begun: false }
    }

    /// Whether the last record could not be written.
    pub(super) fn lacks_records(&self) -> bool {
        self.gap.is_some()
    }

    /// Where the records go, or would go.
    pub(super) fn path(&self) -> PathBuf {
        let name = self.segment.as_ref().map(|segment| segment.name.as_str());
        name.map_or_else(|| self.directory.clone(), |name| self.directory.join(name))
    }

    /// Writes one record. When this returns, the system has it.
    pub(super) fn append(&mut self, now: SystemTime, body: &Body) -> io::Result<()> {
        let written = self.try_append(now, body);
        if let Err(error) = &written {
            self.missed(now, 1, error.to_string());
        }
        written
    }

    fn try_append(&mut self, now: SystemTime, body: &Body) -> io::Result<()> {
        self.rotate_if_due(now);
        let segment = match &mut self.segment {
            Some(segment) => segment,
            none => {
                self.has_begun = true;
                none.insert(begin(&self.directory, &self.secrets, self.previous.as_ref(), now)?)
            }
        };
        let (mut chain, mut lines) = (segment.chain, Vec::new());
        if let Some(gap) = &self.gap {
            gap.tell(&mut chain, &mut lines, now);
        }
        chain.push(&mut lines, now, body);
        if let Err(unwritten) = segment.lines.add(&lines) {
            let gap = self.gap.get_or_insert_with(|| Gap::new(now));
            gap.torn += unwritten.torn;
            return Err(unwritten.source);
        }
        self.gap = None;
        if segment.unsigned == 0 {
            segment.unsigned_since = now;
        }
        segment.unsigned += chain.seq - segment.chain.seq;
        segment.dirty = true;
        segment.chain = chain;
        if segment.unsigned >= self.intervals.records {
            self.checkpoint(now);
        }
        Ok(())
    }

    /// Something is not in the log. The next record that is written comes after one that says so.
    pub(super) fn missed(&mut self, now: SystemTime, records: u64, reason: String) {
        let gap = self.gap.get_or_insert_with(|| Gap::new(now));
        gap.records += records;
        gap.reason = reason;
    }

    /// Signs everything so far.
    fn checkpoint(&mut self, now: SystemTime) {
        let Some(segment) = &mut self.segment else { return };
        let (mut chain, mut line) = (segment.chain, Vec::new());
        chain.push_signed(&mut line, now, &Body::new("checkpoint"), &self.secrets);
        match segment.lines.add(&line) {
            Ok(()) => {
                (segment.chain, segment.unsigned, segment.dirty) = (chain, 0, true);
            }
            Err(unwritten) => {
                tracing::error!("the audit log cannot be signed: {}", unwritten.source);
                let gap = self.gap.get_or_insert_with(|| Gap::new(now));
                gap.torn += unwritten.torn;
                gap.reason = unwritten.source.to_string();
            }
        }
    }

    /// What is due at this time.
    pub(super) fn keep_up(&mut self, now: SystemTime) -> Upkeep {
        self.rotate_if_due(now);
        let waited = |segment: &Segment| now.duration_since(segment.unsigned_since).unwrap_or_default();
        let time = self.intervals.time;
        if self.segment.as_ref().is_some_and(|segment| segment.unsigned > 0 && waited(segment) >= time) {
            self.checkpoint(now);
        }
        let has_begun = self.take_begun();
        let Some(segment) = &mut self.segment else {
            return Upkeep { to_sync: None, goes_on: false, has_begun };
        };
        let to_sync = std::mem::take(&mut segment.dirty).then(|| segment.lines.file());
        Upkeep { to_sync, goes_on: segment.unsigned > 0, has_begun }
    }

    fn rotate_if_due(&mut self, now: SystemTime) {
        let Some(segment) = &self.segment else { return };
        if segment.lines.is_removed() {
            let reason = format!("{} was removed while it was written", segment.name);
            tracing::error!("the audit log's {reason}");
            let (name, chain) = (segment.name.clone(), segment.chain);
            self.previous = Some((name, chain));
            self.segment = None;
            self.missed(now, 0, reason);
        } else if *day(now) > *segment.name.day() || segment.lines.bytes() >= self.intervals.segment_bytes {
            self.close(now, "rotation");
        }
    }

    /// Whether a segment was begun since somebody last looked.
    pub(super) fn take_begun(&mut self) -> bool {
        std::mem::take(&mut self.has_begun)
    }

    /// Signs everything and ends the segment. Another record begins another one.
    pub(super) fn close(&mut self, now: SystemTime, reason: &str) {
        let Some(mut segment) = self.segment.take() else { return };
        if let Err(error) = segment.close(&self.directory, &self.secrets, now, reason) {
            tracing::error!("the end of the audit log {} was not written: {error}", segment.name);
        }
        self.previous = Some((segment.name, segment.chain));
    }
}

impl Segment {
    fn close(
        &mut self,
        directory: &Path,
        secrets: &Secrets,
        now: SystemTime,
        reason: &str,
    ) -> io::Result<()> {
        let mut index = Index::open(directory)?;
        let (mut chain, mut line) = (self.chain, Vec::new());
        chain.push_signed(&mut line, now, &Body::new("close").text("reason", reason), secrets);
        self.lines.add(&line).map_err(|unwritten| unwritten.source)?;
        self.chain = chain;
        self.lines.file().sync_data()?;
        index.closed(now, secrets, &self.name, chain.seq - 1, chain.prev)
    }
}

/// Begins a segment: file and index say so, or neither.
fn begin(
    directory: &Path,
    secrets: &Secrets,
    previous: Option<&(SegmentName, Chain)>,
    now: SystemTime,
) -> io::Result<Segment> {
    let mut index = Index::open(directory)?;
    let name = SegmentName::new(now);
    let path = directory.join(name.as_str());
    let mut start = [0; 16];
    aws_lc_rs::rand::fill(&mut start).map_err(|_| io::Error::other("there are no random numbers"))?;
    let body = Body::new("open").number("version", VERSION).text("segment", name.as_str());
    let body = body.text("key", &secrets.public_key().to_hex()).number("process", std::process::id());
    let body = body.text("lockhouse", env!("CARGO_PKG_VERSION")).text("start", &HEXLOWER.encode(&start));
    let body = body.text_if("previous", previous.map(|(name, _)| name.as_str()));
    let mut chain = Chain { seq: 0, prev: previous.map_or([0; 32], |(_, chain)| chain.prev) };
    let mut line = Vec::new();
    chain.push_signed(&mut line, now, &body, secrets);
    let mut lines = Lines::create(&path)?;
    let begun = lines.add(&line).map_err(|unwritten| unwritten.source);
    if let Err(error) = begun.and_then(|()| index.opened(now, secrets, &name, chain.prev)) {
        let _ = std::fs::remove_file(&path);
        return Err(error);
    }
    Ok(Segment { name, lines, chain, unsigned: 0, unsigned_since: now, dirty: true })
}

impl Gap {
    fn new(since: SystemTime) -> Self {
        Self { since, records: 0, reason: String::new(), torn: 0 }
    }

    fn tell(&self, chain: &mut Chain, lines: &mut Vec<u8>, now: SystemTime) {
        if self.torn > 0 {
            lines.push(b'\n');
        }
        let body = Body::new("gap").text("since", &moment(self.since)).number("records", self.records);
        chain.push(lines, now, &body.text("reason", &self.reason).number("torn", self.torn));
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::super::segment::segments;
    use super::super::verify::{Finding, Kind, Place, verify};
    use super::*;

    const DAY: Duration = Duration::from_secs(24 * 3_600);

    fn writer(directory: &Path, intervals: Intervals) -> Writer {
        let secrets = Secrets::of(&directory.join("keys")).expect("a key");
        Writer::new(directory.to_owned(), Arc::new(secrets), intervals)
    }

    fn noon() -> SystemTime {
        SystemTime::UNIX_EPOCH + DAY * 20_000 + DAY / 2
    }

    fn verified(writer: &Writer) -> Vec<Finding> {
        let mut findings = Vec::new();
        verify(&writer.directory, Place::Copy, &writer.secrets.public_key(), &mut |finding| {
            findings.push(finding)
        })
        .expect("readable");
        assert!(findings.iter().all(|finding| finding.kind == Kind::Note), "{findings:?}");
        findings
    }

    fn names(writer: &Writer) -> Vec<SegmentName> {
        segments(&writer.directory).expect("readable")
    }

    #[test]
    fn nothing_is_begun_before_there_is_a_record() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut writer = writer(directory.path(), Intervals::default());
        writer.keep_up(noon());
        writer.close(noon(), "exit");
        assert!(names(&writer).is_empty());
    }

    #[test]
    fn a_day_has_a_segment_of_its_own_that_goes_on_from_the_one_before() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut writer = writer(directory.path(), Intervals::default());
        for time in [noon(), noon() + DAY / 3, noon() + DAY, noon() + DAY / 3, noon() + 4 * DAY] {
            writer.append(time, &Body::new("call")).expect("written");
        }
        assert_eq!(
            names(&writer).iter().map(SegmentName::day).collect::<Vec<_>>(),
            ["2024-10-04", "2024-10-05", "2024-10-08"]
        );
        // Its process runs on past midnight and says nothing more.
        assert!(!writer.keep_up(noon() + 5 * DAY).goes_on);
        assert!(verified(&writer).is_empty(), "each is closed: {:?}", verified(&writer));
    }

    #[test]
    fn a_segment_is_bounded() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut writer = writer(directory.path(), Intervals { segment_bytes: 2_000, ..Intervals::default() });
        for _ in 0..50 {
            writer.append(noon(), &Body::new("call")).expect("written");
        }
        assert!(names(&writer).len() > 3);
        for name in names(&writer) {
            let bytes = std::fs::metadata(directory.path().join(name.as_str())).expect("there").len();
            assert!(bytes < 3_000, "{name}: {bytes}");
        }
        verified(&writer);
    }

    #[test]
    fn what_waits_for_a_signature_is_signed_in_time() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut writer = writer(directory.path(), Intervals::default());
        writer.append(noon(), &Body::new("call")).expect("written");
        let first = writer.keep_up(noon() + Duration::from_secs(1));
        assert!(first.goes_on && first.to_sync.is_some() && first.has_begun, "{first:?}");
        let idle = writer.keep_up(noon() + Duration::from_secs(2));
        assert!(idle.goes_on && idle.to_sync.is_none() && !idle.has_begun, "{idle:?}");
        let signed = writer.keep_up(noon() + Duration::from_secs(60));
        assert!(!signed.goes_on && signed.to_sync.is_some(), "{signed:?}");
        let told = format!("{:?}", verified(&writer));
        assert!(told.contains("everything in it is signed"), "{told}");
    }

    #[test]
    fn a_piece_that_cannot_be_taken_back_is_told_and_is_no_fault() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut writer = writer(directory.path(), Intervals::default());
        writer.append(noon(), &Body::new("call")).expect("written");
        for piece in ["{\"seq\":2,\"pre", "{\"seq\":2}\n{\"a\n{"] {
            let segment = writer.segment.as_mut().expect("one");
            (&*segment.lines.file()).write_all(piece.as_bytes()).expect("written");
            writer.missed(noon(), 1, "no space".into());
            writer.gap.as_mut().expect("one").torn = piece.len() as u64;
            writer.append(noon(), &Body::new("call")).expect("written");
        }
        writer.close(noon(), "exit");
        let told = format!("{:?}", verified(&writer));
        assert!(told.contains("13 bytes before it are no record: no space"), "{told}");
    }

    #[test]
    fn a_segment_that_is_taken_away_is_missed_and_another_one_is_begun() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut writer = writer(directory.path(), Intervals::default());
        writer.append(noon(), &Body::new("call")).expect("written");
        std::fs::remove_file(writer.path()).expect("removed");
        writer.append(noon(), &Body::new("call")).expect("written");
        let text = std::fs::read_to_string(writer.path()).expect("another one");
        assert!(text.contains("was removed while it was written"), "{text}");
        let mut findings = Vec::new();
        verify(directory.path(), Place::Copy, &writer.secrets.public_key(), &mut |finding| {
            findings.push(finding)
        })
        .expect("readable");
        assert!(findings.iter().any(|found| found.what.starts_with("removed")), "{findings:?}");
    }

    #[test]
    fn what_is_too_old_goes_and_is_not_missed() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut writer = writer(directory.path(), Intervals::default());
        for day in [0, 1, 29, 30, 31] {
            writer.append(noon() + DAY * day, &Body::new("call")).expect("written");
        }
        let expire = |writer: &Writer| {
            super::super::retention::expire(directory.path(), &writer.secrets, 30, noon() + DAY * 31)
                .expect("done");
        };
        expire(&writer);
        expire(&writer);
        let index =
            || std::fs::read_to_string(directory.path().join(super::super::index::INDEX)).expect("an index");
        let (lines, first_kept) = (index().lines().count(), day(noon() + DAY));
        let open = Index::open(directory.path()).expect("an index");
        open.cut(directory.path(), noon() + DAY * 31, &writer.secrets, &first_kept, 0).expect("cut");
        // The beginning of the first segment is gone, and a line stands for it.
        assert!(
            index().lines().count() == lines
                && index().lines().next().is_some_and(|line| line.contains("\"cut\""))
        );
        assert_eq!(names(&writer).len(), 4, "the last thirty days and today: {:?}", names(&writer));
        verified(&writer);
    }
}
