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
use crate::signing::SigningKey;

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
        if let Err(error) = segment.close(&self.directory, &self.keys, now, reason) {
            tracing::error!("cannot write the end of the audit log segment {}: {error}", segment.name);
        }
        self.previous = Some((segment.name, segment.chain));
    }

    /// Starts a segment: creates the log file with a signed `open` record, and adds its entry to the index of segments. If
    /// one of the two fails, neither remains. The segment continues the hash chain of the previous segment of this process.
    /// Returns the segment, and when the index was last written before.
    pub(super) fn open_segment(&self, now: Moment) -> io::Result<(Segment, Option<Moment>)> {
        let previous = self.previous.as_ref();
        let mut index = Index::open(&self.directory, &self.keys)?;
        let last_written = index.last;
        let name = SegmentName::new(now.wall);
        let path = self.directory.join(name.as_str());
        let mut start = [0; 16];
        getrandom::fill(&mut start)?;
        let body = RecordBody::new("open").number("version", VERSION).text("segment", name.as_str());
        let pid = self.peer.map_or(i64::from(std::process::id()), |peer| i64::from(peer.pid));
        let body = body.number_if("uid", self.peer.map(|peer| peer.uid)).number("process", pid);
        let body = body.text("lockhouse", env!("CARGO_PKG_VERSION")).text("start", &HEXLOWER.encode(&start));
        let body = body.text_if("previous", previous.map(|(name, _)| name.as_str()));
        let mut chain = Chain { seq: 0, prev: previous.map_or([0; 32], |(_, chain)| chain.prev) };
        let mut line = Vec::new();
        let (first, key) = (SigningKey::generate()?, SigningKey::generate()?);
        chain.push_signed(&mut line, now.wall, body, &first, Some(&key.public_key()));
        let mut file = SegmentFile::create(&path)?;
        let begun = file.append(&line).map_err(|unwritten| unwritten.source);
        if let Err(error) = begun.and_then(|()| index.opened(now, &name, chain.prev)) {
            let _ = std::fs::remove_file(&path);
            return Err(error);
        }
        let (day, began, removal_checked, unsigned_since) = (day_number(now.wall), now, now, now);
        let segment = Segment {
            name,
            day,
            began,
            file,
            removal_checked,
            chain,
            key,
            unsigned: 0,
            unsigned_since,
            dirty: true,
        };
        Ok((segment, last_written))
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

    fn close(&mut self, directory: &Path, keys: &Path, now: Moment, reason: &str) -> io::Result<()> {
        let mut index = Index::open(directory, keys)?;
        let (mut chain, mut line) = (self.chain, Vec::new());
        let body = RecordBody::new("close").text("reason", reason);
        chain.push_signed(&mut line, now.wall, body, &self.key, None);
        self.file.append(&line).map_err(|unwritten| unwritten.source)?;
        self.chain = chain;
        self.file.file().sync_data()?;
        index.closed(now, &self.name, chain.seq - 1, chain.prev)
    }
}

/// Returns the number of days from the Unix epoch to `time`, in UTC.
fn day_number(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs() / (24 * 60 * 60)
}
