//! The audit log: writes the hash chain of one process. The writer appends records, signs checkpoints, and records gaps
//! after failed writes.

mod segment_rotation;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::client_names::ClientNames;
use super::hash_chain::{Chain, RecordBody, timestamp};
use super::moment::Moment;
use super::segment::SegmentName;
use super::segment_append::{AppendError, SegmentFile};
use super::signing::SigningKey;

/// Version of the format of audit records. Since version 2, each signed record names the key of the next one. In version 1,
/// one key signs all records and the index. `lockhouse audit verify` reports segments of later versions.
pub(super) const VERSION: u32 = 2;

/// The limits of the audit log: a checkpoint is signed after `records` records or the time `time`, whichever is first,
/// and a new segment is started after `segment_bytes` bytes.
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

/// Maintenance work on the audit log that a background task must do, so that no call of an upstream server waits for
/// it.
#[derive(Debug)]
pub(super) struct MaintenanceWork {
    /// The segment that must be synced to disk. `None` if nothing was written since the last sync.
    pub(super) to_sync: Option<Arc<File>>,
    /// Whether records without a signature remain, which a later round of maintenance must sign.
    pub(super) needs_signature: bool,
    /// Whether a new segment was started since the last round of maintenance.
    pub(super) has_new_segment: bool,
}

/// The process at the other end of a connection, as the kernel reports it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer {
    pub(super) uid: u32,
    pub(super) pid: i32,
}

#[derive(Debug)]
pub(super) struct Writer {
    directory: PathBuf,
    /// Directory of the key of the log.
    keys: PathBuf,
    intervals: Intervals,
    /// The process whose records these are, if it is another one.
    peer: Option<Peer>,
    /// The names of clients, of which records have ids only. `None` if records have the names.
    names: Option<ClientNames>,
    segment: Option<Segment>,
    /// The name of the previous segment and the end of its hash chain, which the next segment continues. `None` if
    /// there is no previous segment.
    previous: Option<(SegmentName, Chain)>,
    gap: Option<Gap>,
    /// When this process last wrote a record, or before its first one, when any process last wrote to the index.
    last_written: Option<Moment>,
    has_new_segment: bool,
}

#[derive(Debug)]
struct Segment {
    name: SegmentName,
    /// The day of the segment, as the number of days from the Unix epoch in UTC.
    day: u64,
    began: Moment,
    file: SegmentFile,
    /// When this process last asked the file system whether the segment's file was removed.
    removal_checked: Moment,
    chain: Chain,
    /// The key that signs the next checkpoint, or the end of the segment. It is in the memory of this process only.
    key: SigningKey,
    /// Number of records after the last signed record.
    unsigned: u64,
    /// When the first record after the last signed record was written.
    unsigned_since: Moment,
    dirty: bool,
}

/// A part of the audit log where records could not be written or may be lost. The next successful write starts with a
/// `gap` record that describes it.
#[derive(Debug)]
struct Gap {
    since: SystemTime,
    records: u64,
    reason: String,
    /// Number of bytes of incomplete lines that failed writes left in the segment.
    torn: u64,
}

impl Writer {
    pub(super) fn new(directory: PathBuf, keys: PathBuf, intervals: Intervals) -> Self {
        Self {
            directory,
            keys,
            intervals,
            peer: None,
            names: None,
            segment: None,
            previous: None,
            gap: None,
            last_written: None,
            has_new_segment: false,
        }
    }

    /// Writes the records of another process, which the first record of each segment names.
    pub(super) fn of_peer(self, peer: Peer) -> Self {
        Self { peer: Some(peer), ..self }
    }

    /// Writes ids in place of the names of clients from now on.
    pub(super) fn write_ids(&mut self) {
        let uid = self.peer.map_or_else(|| nix::unistd::geteuid().as_raw(), |peer| peer.uid);
        self.names.get_or_insert_with(|| ClientNames::new(self.directory.clone(), uid));
    }

    /// Whether the next record begins a segment, for which the writer waits for the lock of the index.
    pub(super) fn begins_segment(&self) -> bool {
        self.segment.is_none()
    }

    /// Returns whether records may be missing from the log without a `gap` record that says so, for example because a
    /// write failed.
    pub(super) fn has_gap(&self) -> bool {
        self.gap.is_some()
    }

    pub(super) fn directory(&self) -> &std::path::Path {
        &self.directory
    }

    /// Returns the path of the current segment, or of the log's directory if there is no current segment.
    pub(super) fn path(&self) -> PathBuf {
        let name = self.segment.as_ref().map(|segment| segment.name.as_str());
        name.map_or_else(|| self.directory.clone(), |name| self.directory.join(name))
    }

    /// Appends one record to the audit log. After success, the kernel has the record, so it is not lost if this process
    /// is killed.
    pub(super) fn append(&mut self, now: Moment, body: &RecordBody) -> io::Result<()> {
        let written = self.try_append(now, body);
        if let Err(error) = &written {
            self.record_gap(now, 1, error.to_string());
        }
        written
    }

    fn try_append(&mut self, now: Moment, body: &RecordBody) -> io::Result<()> {
        let with_ids = match &mut self.names {
            Some(names) => Some(names.replace_in(body, now.wall)?),
            None => None,
        };
        let body = with_ids.as_ref().unwrap_or(body);
        self.rotate_if_due(now);
        let segment = match self.segment.take() {
            Some(segment) => segment,
            None => {
                self.has_new_segment = true;
                let (segment, last) = self.open_segment(now)?;
                self.last_written = self.last_written.or(last);
                segment
            }
        };
        let segment = self.segment.insert(segment);
        let (mut chain, mut lines) = (segment.chain, Vec::new());
        if let Some(gap) = &self.gap {
            gap.write(&mut chain, &mut lines, now.wall);
        }
        if let Some(jump) = self.last_written.and_then(|last| now.jump_since(last)) {
            chain.push(&mut lines, now.wall, &jump.record());
        }
        chain.push(&mut lines, now.wall, body);
        if let Err(unwritten) = segment.file.append(&lines) {
            let gap = self.gap.get_or_insert_with(|| Gap::new(now.wall));
            gap.torn += unwritten.torn;
            return Err(unwritten.source);
        }
        (self.gap, self.last_written) = (None, Some(now));
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

    /// Notes that `records` records are missing from the log, and why; 0 means that records may be missing. The next
    /// successful write starts with a `gap` record that says so.
    pub(super) fn record_gap(&mut self, now: Moment, records: u64, reason: String) {
        let gap = self.gap.get_or_insert_with(|| Gap::new(now.wall));
        gap.records = gap.records.saturating_add(records);
        gap.reason = reason;
    }

    /// Appends a `checkpoint` record, whose signature authenticates all earlier records of the segment, and which names the
    /// next key. The key that signed it is then dropped.
    fn checkpoint(&mut self, now: Moment) {
        let Some(segment) = &mut self.segment else { return };
        match segment.checkpoint(now) {
            Ok(()) => {}
            Err(unwritten) => {
                tracing::error!("the audit log cannot be signed: {}", unwritten.source);
                let gap = self.gap.get_or_insert_with(|| Gap::new(now.wall));
                gap.torn += unwritten.torn;
                gap.reason = unwritten.source.to_string();
            }
        }
    }

    /// Signs a checkpoint or ends the segment if that is due at the time `now`. Returns the work that a background
    /// task must do.
    pub(super) fn maintain(&mut self, now: Moment) -> MaintenanceWork {
        self.rotate_if_due(now);
        let waited = |segment: &Segment| now.elapsed_since(segment.unsigned_since);
        let time = self.intervals.time;
        if self.segment.as_ref().is_some_and(|segment| segment.unsigned > 0 && waited(segment) >= time) {
            self.checkpoint(now);
        }
        let has_new_segment = self.take_new_segment();
        let Some(segment) = &mut self.segment else {
            return MaintenanceWork { to_sync: None, needs_signature: false, has_new_segment };
        };
        let to_sync = std::mem::take(&mut segment.dirty).then(|| segment.file.file());
        MaintenanceWork { to_sync, needs_signature: segment.unsigned > 0, has_new_segment }
    }
}

impl Segment {
    fn checkpoint(&mut self, now: Moment) -> Result<(), AppendError> {
        let next = SigningKey::generate().map_err(AppendError::before_write)?;
        let (mut chain, mut line) = (self.chain, Vec::new());
        let body = RecordBody::new("checkpoint");
        chain.push_signed(&mut line, now.wall, body, &self.key, Some(&next.public_key()));
        self.file.append(&line)?;
        (self.chain, self.key, self.unsigned, self.dirty) = (chain, next, 0, true);
        Ok(())
    }
}

impl Gap {
    fn new(since: SystemTime) -> Self {
        Self { since, records: 0, reason: String::new(), torn: 0 }
    }

    fn write(&self, chain: &mut Chain, lines: &mut Vec<u8>, now: SystemTime) {
        if self.torn > 0 {
            lines.push(b'\n');
        }
        let body =
            RecordBody::new("gap").text("since", &timestamp(self.since)).number("records", self.records);
        chain.push(lines, now, &body.text("reason", &self.reason).number("torn", self.torn));
    }
}
