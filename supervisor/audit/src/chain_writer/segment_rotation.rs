//! Starts a new segment of the audit log each day and when the current segment is full.

use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use data_encoding::HEXLOWER;

use super::{Segment, VERSION, Writer};
use crate::hash_chain::{Chain, RecordBody};
use crate::moment::Moment;
use crate::segment::SegmentName;
use crate::segment_append::SegmentFile;
use crate::segment_index::Index;
use crate::signing::SigningKeys;

/// A segment ends at the latest after this time, also if the wall clock was set back.
/// Bound: the audit log.
const SEGMENT_TIME_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// Minimum time between two checks whether the segment's file was removed. These checks are part of appending records.
/// If each record were checked, writing would take a third longer.
const REMOVAL_CHECK_INTERVAL: Duration = Duration::from_millis(10);

impl Writer {
    /// Ends the current segment if its day is over, if it is full, or if its file was removed. The next record starts
    /// a new segment.
    pub(super) fn rotate_if_due(&mut self, now: Moment) {
        let Some(segment) = &mut self.segment else { return };
        if segment.is_removed(now) {
            let reason = format!("{} was removed while it was written", segment.name);
            tracing::error!("the audit log's {reason}");
            let (name, chain) = (segment.name.clone(), segment.chain);
            self.previous = Some((name, chain));
            self.segment = None;
            self.record_gap(now, 0, reason);
        } else if day_number(now.wall) > segment.day
            || now.elapsed_since(segment.began) >= SEGMENT_TIME_MAX
            || segment.file.bytes() >= self.intervals.segment_bytes
        {
            self.close(now, "rotation");
        }
    }

    /// Returns whether a segment was started since the last call of this function.
    pub(crate) fn take_new_segment(&mut self) -> bool {
        std::mem::take(&mut self.has_new_segment)
    }

    /// Ends the current segment with a signed `close` record, which contains `reason`. A later record starts a new
    /// segment.
    pub(crate) fn close(&mut self, now: Moment, reason: &str) {
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
    fn is_removed(&mut self, now: Moment) -> bool {
        if now.elapsed_since(self.removal_checked) < REMOVAL_CHECK_INTERVAL {
            return false;
        }
        self.removal_checked = now;
        self.file.is_removed()
    }

    fn close(
        &mut self,
        directory: &Path,
        secrets: &SigningKeys,
        now: Moment,
        reason: &str,
    ) -> io::Result<()> {
        let mut index = Index::open(directory)?;
        let (mut chain, mut line) = (self.chain, Vec::new());
        chain.push_signed(&mut line, now.wall, &RecordBody::new("close").text("reason", reason), secrets);
        self.file.append(&line).map_err(|unwritten| unwritten.source)?;
        self.chain = chain;
        self.file.file().sync_data()?;
        index.closed(now, secrets, &self.name, chain.seq - 1, chain.prev)
    }
}

/// Starts a segment: creates the log file with a signed `open` record, and adds its entry to the index of segments. If
/// one of the two fails, neither remains. `previous` is the previous segment of this process with the end of its hash
/// chain, which the new segment continues. Returns the segment, and when the index was last written before.
pub(super) fn open_segment(
    directory: &Path,
    secrets: &SigningKeys,
    previous: Option<&(SegmentName, Chain)>,
    now: Moment,
) -> io::Result<(Segment, Option<Moment>)> {
    let mut index = Index::open(directory)?;
    let last_written = index.last;
    let name = SegmentName::new(now.wall);
    let path = directory.join(name.as_str());
    let mut start = [0; 16];
    getrandom::fill(&mut start)?;
    let body = RecordBody::new("open").number("version", VERSION).text("segment", name.as_str());
    let body = body.text("key", &secrets.public_key().to_hex()).number("process", std::process::id());
    let body = body.text("lockhouse", env!("CARGO_PKG_VERSION")).text("start", &HEXLOWER.encode(&start));
    let body = body.text_if("previous", previous.map(|(name, _)| name.as_str()));
    let mut chain = Chain { seq: 0, prev: previous.map_or([0; 32], |(_, chain)| chain.prev) };
    let mut line = Vec::new();
    chain.push_signed(&mut line, now.wall, &body, secrets);
    let mut file = SegmentFile::create(&path)?;
    let begun = file.append(&line).map_err(|unwritten| unwritten.source);
    if let Err(error) = begun.and_then(|()| index.opened(now, secrets, &name, chain.prev)) {
        let _ = std::fs::remove_file(&path);
        return Err(error);
    }
    let (day, began, removal_checked, unsigned_since) = (day_number(now.wall), now, now, now);
    let segment =
        Segment { name, day, began, file, removal_checked, chain, unsigned: 0, unsigned_since, dirty: true };
    Ok((segment, last_written))
}

/// Returns the number of days from the Unix epoch to `time`, in UTC.
fn day_number(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs() / (24 * 60 * 60)
}
