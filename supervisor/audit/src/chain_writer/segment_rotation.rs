//! Starts a new segment (log file) of the audit log each day and when the current segment is full.

use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use data_encoding::HEXLOWER;

use super::{Segment, VERSION, Writer};
use crate::hash_chain::{Chain, RecordBody};
use crate::segment::SegmentName;
use crate::segment_append::SegmentFile;
use crate::segment_index::Index;
use crate::signing::SigningKeys;

/// Minimum time between two checks whether the segment's file was removed. These checks are part of appending records.
/// If each record were checked, writing would take a third longer.
const REMOVAL_CHECK_INTERVAL: Duration = Duration::from_millis(10);

impl Writer {
    /// Ends the current segment if its day is over, if it is full, or if its file was removed. The next record starts
    /// a new segment.
    pub(super) fn rotate_if_due(&mut self, now: SystemTime) {
        let Some(segment) = &mut self.segment else { return };
        if segment.is_removed(now) {
            let reason = format!("{} was removed while it was written", segment.name);
            tracing::error!("the audit log's {reason}");
            let (name, chain) = (segment.name.clone(), segment.chain);
            self.previous = Some((name, chain));
            self.segment = None;
            self.record_gap(now, 0, reason);
        } else if day_number(now) > segment.day || segment.file.bytes() >= self.intervals.segment_bytes {
            self.close(now, "rotation");
        }
    }

    /// Returns whether a segment (log file) was started since the last call of this function.
    pub(crate) fn take_new_segment(&mut self) -> bool {
        std::mem::take(&mut self.has_new_segment)
    }

    /// Ends the current segment (log file) with a signed `close` record, which contains `reason`. A later record starts
    /// a new segment.
    pub(crate) fn close(&mut self, now: SystemTime, reason: &str) {
        let Some(mut segment) = self.segment.take() else { return };
        if let Err(error) = segment.close(&self.directory, &self.secrets, now, reason) {
            tracing::error!("cannot write the end of the audit log segment {}: {error}", segment.name);
        }
        self.previous = Some((segment.name, segment.chain));
    }
}

impl Segment {
    /// Whether the segment's file was removed from its directory. Returns false without a check if the last check was
    /// less than [`REMOVAL_CHECK_INTERVAL`] ago.
    fn is_removed(&mut self, now: SystemTime) -> bool {
        let is_recent = |age: Duration| age < REMOVAL_CHECK_INTERVAL;
        if now.duration_since(self.removal_checked).is_ok_and(is_recent) {
            return false;
        }
        self.removal_checked = now;
        self.file.is_removed()
    }

    fn close(
        &mut self,
        directory: &Path,
        secrets: &SigningKeys,
        now: SystemTime,
        reason: &str,
    ) -> io::Result<()> {
        let mut index = Index::open(directory)?;
        let (mut chain, mut line) = (self.chain, Vec::new());
        chain.push_signed(&mut line, now, &RecordBody::new("close").text("reason", reason), secrets);
        self.file.append(&line).map_err(|unwritten| unwritten.source)?;
        self.chain = chain;
        self.file.file().sync_data()?;
        index.closed(now, secrets, &self.name, chain.seq - 1, chain.prev)
    }
}

/// Starts a segment: creates the log file with a signed `open` record, and adds its entry to the index of segments. If
/// one of the two fails, neither remains. `previous` is the previous segment of this process with the end of its hash
/// chain, which the new segment continues.
pub(super) fn open_segment(
    directory: &Path,
    secrets: &SigningKeys,
    previous: Option<&(SegmentName, Chain)>,
    now: SystemTime,
) -> io::Result<Segment> {
    let mut index = Index::open(directory)?;
    let name = SegmentName::new(now);
    let path = directory.join(name.as_str());
    let mut start = [0; 16];
    getrandom::fill(&mut start)?;
    let body = RecordBody::new("open").number("version", VERSION).text("segment", name.as_str());
    let body = body.text("key", &secrets.public_key().to_hex()).number("process", std::process::id());
    let body = body.text("lockhouse", env!("CARGO_PKG_VERSION")).text("start", &HEXLOWER.encode(&start));
    let body = body.text_if("previous", previous.map(|(name, _)| name.as_str()));
    let mut chain = Chain { seq: 0, prev: previous.map_or([0; 32], |(_, chain)| chain.prev) };
    let mut line = Vec::new();
    chain.push_signed(&mut line, now, &body, secrets);
    let mut file = SegmentFile::create(&path)?;
    let begun = file.append(&line).map_err(|unwritten| unwritten.source);
    if let Err(error) = begun.and_then(|()| index.opened(now, secrets, &name, chain.prev)) {
        let _ = std::fs::remove_file(&path);
        return Err(error);
    }
    let (day, removal_checked) = (day_number(now), now);
    Ok(Segment { name, day, file, removal_checked, chain, unsigned: 0, unsigned_since: now, dirty: true })
}

/// Returns the number of days from the Unix epoch to `time`, in UTC.
fn day_number(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs() / (24 * 60 * 60)
}
