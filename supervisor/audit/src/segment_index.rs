//! The index of the audit log, `segments.jsonl`. It lists all segments, so that a removed or truncated segment is
//! detected.
//!
//! All processes share one hash chain in this file. Every line is signed with the key of the log, and names the key of the
//! next line. Signing each line is affordable, because a process writes few lines to the index and thousands to a segment. A process locks the index before it creates,
//! closes or removes a segment, and releases the lock after it has written the line about the segment. Another process
//! that locks the index therefore finds that the index and the segments agree.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::{Duration, SystemTime};

pub(super) use lockhouse_base::audit_files::{INDEX, INDEX_LINE_BYTES_MAX};
use lockhouse_base::files;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use serde::Deserialize;

use super::hash_chain::{Chain, Hash, RecordBody, hash};
use super::log_key::{ExpectedKey, LogKey};
use super::moment::{Moment, Uptime};
use super::segment::SegmentName;
use super::signing::{KeyError, PublicKey, SigningKey};
use data_encoding::HEXLOWER;

/// How many times a process tries to lock the index, at intervals of 2 ms, before it gives up. Other processes hold the
/// lock only for a few writes.
const LOCK_TRIES: u32 = 200;
const LOCK_AGAIN_AFTER: Duration = Duration::from_millis(2);

/// The index of segments, locked by this process.
#[derive(Debug)]
pub(super) struct Index {
    file: Flock<File>,
    key: LogKey,
    chain: Chain,
    bytes: u64,
    /// When the last line was written. `None` if there is none.
    pub(super) last: Option<Moment>,
}

#[derive(Deserialize)]
struct Numbered {
    seq: u64,
    #[serde(default)]
    time: String,
    /// The boot and the time since it. `None` in lines of earlier versions.
    boot: Option<String>,
    up_ms: Option<u64>,
    /// The key of the next line. `None` in lines of version 1.
    next: Option<String>,
}

impl Numbered {
    fn moment(&self) -> Option<Moment> {
        let uptime = |(boot, time)| Uptime { boot, time: Duration::from_millis(time) };
        let boot = self.boot.as_ref().and_then(|boot| boot.parse().ok()).zip(self.up_ms).map(uptime);
        Some(Moment { wall: humantime::parse_rfc3339(&self.time).ok()?, boot })
    }
}

/// Locks the index of segments, shared or exclusive. Fails if another process does not release its lock within about
/// 0.4 s.
pub(super) fn lock(mut file: File, how: FlockArg) -> io::Result<Flock<File>> {
    for _ in 0..LOCK_TRIES {
        file = match Flock::lock(file, how) {
            Ok(locked) => return Ok(locked),
            Err((file, Errno::EWOULDBLOCK | Errno::EINTR)) => file,
            Err((_, error)) => return Err(error.into()),
        };
        std::thread::sleep(LOCK_AGAIN_AFTER);
    }
    let message = format!("another process does not release its lock on {INDEX}");
    Err(io::Error::new(io::ErrorKind::TimedOut, message))
}

/// Opens the index of segments, and creates it if it is missing. A new file gets the owner of its directory, who may
/// differ from the current user.
fn open_or_create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).append(true).mode(0o600);
    match files::open_regular_file(&mut options, path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        opened => return opened,
    }
    match files::open_regular_file(options.create_new(true), path) {
        Ok(file) => files::give_to_owner_of_directory(&file, path).map(|()| file),
        // Another process created the file at the same time.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            files::open_regular_file(options.create_new(false), path)
        }
        Err(error) => Err(error),
    }
}

/// The end of the index: what its next line continues.
#[derive(Debug)]
pub(super) struct IndexEnd {
    pub(super) chain: Chain,
    pub(super) key: ExpectedKey,
    /// When the last line was written. `None` if there is none.
    last: Option<Moment>,
}

/// Reads the end of a locked index.
pub(super) fn read_end(file: &mut File) -> io::Result<IndexEnd> {
    let length = file.metadata()?.len();
    let from = length.saturating_sub(2 * INDEX_LINE_BYTES_MAX);
    let tail = read_from(file, from)?;
    let lines = tail.strip_suffix(b"\n").unwrap_or(&tail);
    let last = (!lines.is_empty()).then(|| {
        let start = lines.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        &lines[start..]
    });
    // A damaged last line must not stop calls. `verify` reports the damage.
    let numbered = last.and_then(|line| serde_json::from_slice::<Numbered>(line).ok());
    let chain = match last {
        None => Chain { seq: 0, prev: [0; 32] },
        Some(line) => {
            Chain { seq: numbered.as_ref().map_or(0, |line| line.seq.saturating_add(1)), prev: hash(line) }
        }
    };
    let mut next = next_key(lines);
    if next.is_none() && from > 0 {
        next = next_key(&read_from(file, 0)?);
    }
    let key = match (last, next) {
        (None, _) => ExpectedKey::Any,
        (Some(_), None) => ExpectedKey::Existing,
        (Some(_), Some(key)) => ExpectedKey::Next(key),
    };
    Ok(IndexEnd { chain, key, last: numbered.and_then(|line| line.moment()) })
}

/// Returns the bytes of a file from the offset `start` on.
pub(super) fn read_from(file: &mut File, start: u64) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    file.seek(SeekFrom::Start(start))?;
    file.read_to_end(&mut text)?;
    Ok(text)
}

/// Returns the key that the last line with a successor names. Lines of an older version, which may run beside this one,
/// have none.
fn next_key(lines: &[u8]) -> Option<PublicKey> {
    lines.split(|byte| *byte == b'\n').rev().find_map(|line| {
        let line = serde_json::from_slice::<Numbered>(line).ok()?;
        PublicKey::from_hex(&line.next?)
    })
}

/// Opens the index and locks it.
fn open_locked(directory: &Path) -> io::Result<Flock<File>> {
    let path = directory.join(INDEX);
    loop {
        let file = lock(open_or_create(&path)?, FlockArg::LockExclusiveNonblock)?;
        // Truncation may have replaced the file while this process waited for the lock.
        if std::fs::metadata(&path)
            .is_ok_and(|there| file.metadata().is_ok_and(|ours| ours.ino() == there.ino()))
        {
            return Ok(file);
        }
    }
}

impl Index {
    /// Opens and locks the index of the log in `directory`, whose key is in the directory `keys`.
    ///
    /// # Errors
    /// Also if the key that must sign the next line is missing.
    pub(super) fn open(directory: &Path, keys: &Path) -> io::Result<Self> {
        let mut file = open_locked(directory)?;
        let end = read_end(&mut file)?;
        let key = LogKey::load(keys, directory, &end.key).map_err(io::Error::other)?;
        let bytes = file.metadata()?.len();
        Ok(Self { file, key, chain: end.chain, bytes, last: end.last })
    }

    /// Opens and locks an index whose key is lost, and begins a new key. Returns it with the lost key, if a line names it;
    /// `None` if the key is not lost.
    pub(super) fn open_without_key(
        directory: &Path,
        keys: &Path,
    ) -> io::Result<Option<(Self, Option<PublicKey>)>> {
        let mut file = open_locked(directory)?;
        let end = read_end(&mut file)?;
        match LogKey::load(keys, directory, &end.key) {
            Ok(_) => return Ok(None),
            Err(KeyError::Lost { .. } | KeyError::InvalidKey(_)) => {}
            Err(error) => return Err(io::Error::other(error)),
        }
        let key = LogKey::begin_again(keys, directory).map_err(io::Error::other)?;
        let bytes = file.metadata()?.len();
        let lost = match end.key {
            ExpectedKey::Next(key) => Some(key),
            ExpectedKey::Any | ExpectedKey::Existing => None,
        };
        Ok(Some((Self { file, key, chain: end.chain, bytes, last: end.last }, lost)))
    }

    /// The key of the next line.
    pub(super) fn public_key(&self) -> PublicKey {
        self.key.key().public_key()
    }

    /// The hash of the last line.
    pub(super) fn last_hash(&self) -> Hash {
        self.chain.prev
    }

    /// Appends a line to the index: a new key begins.
    pub(super) fn rekeyed(&mut self, now: Moment, body: RecordBody) -> io::Result<()> {
        self.add(now, vec![body])
    }

    /// Returns a time of the wall clock before which only was written what is at least so old by the log's own age, which
    /// is the sum of the times between the lines. `None` if nothing is so old.
    pub(super) fn before(&mut self, now: Moment, age: Duration) -> io::Result<Option<SystemTime>> {
        let text = read_from(&mut self.file, 0)?;
        // If the clock was wrong, later lines may have earlier times.
        let (mut later, mut total, mut earliest) = (now, Duration::ZERO, now.wall);
        for line in text.split(|byte| *byte == b'\n').rev() {
            let numbered = serde_json::from_slice::<Numbered>(line).ok();
            let Some(moment) = numbered.and_then(|line| line.moment()) else { continue };
            total += later.age_since(moment);
            earliest = earliest.min(moment.wall);
            if total >= age {
                return Ok(Some(earliest));
            }
            later = moment;
        }
        Ok(None)
    }

    /// Appends a line to the index: the segment `name` was created, and the hash of its first line is `first`.
    pub(super) fn opened(&mut self, now: Moment, name: &SegmentName, first: Hash) -> io::Result<()> {
        let body =
            RecordBody::new("opened").text("segment", name.as_str()).text("first", &HEXLOWER.encode(&first));
        self.add(now, vec![body])
    }

    /// Appends a line to the index: the segment `name` was closed. Its last line has the sequence number `last_seq`
    /// and the hash `last`.
    pub(super) fn closed(
        &mut self,
        now: Moment,
        name: &SegmentName,
        last_seq: u64,
        last: Hash,
    ) -> io::Result<()> {
        let body = RecordBody::new("closed").text("segment", name.as_str());
        self.add(now, vec![body.number("last_seq", last_seq).text("last", &HEXLOWER.encode(&last))])
    }

    /// Appends a line to the index for each of the segments `names`: it is removed because it has expired.
    pub(super) fn expired(&mut self, now: Moment, names: &[&SegmentName]) -> io::Result<()> {
        let body = |name: &&SegmentName| RecordBody::new("expired").text("segment", name.as_str());
        self.add(now, names.iter().map(body).collect())
    }

    /// Removes the first lines of the index, as far as their member `time` is before the time `before`. Does nothing if
    /// these lines have fewer than `bytes_min` bytes in total. The new index starts with a line that records the
    /// removal. Consumes the locked index, because its file is replaced.
    pub(super) fn cut(
        mut self,
        directory: &Path,
        now: Moment,
        before: &str,
        bytes_min: usize,
    ) -> io::Result<()> {
        let text = read_from(&mut self.file, 0)?;
        let (mut end, mut last) = (0, None);
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            match serde_json::from_slice::<Numbered>(line) {
                Ok(numbered) if *numbered.time < *before => {
                    end += line.len();
                    last = Some((numbered.seq, hash(line.strip_suffix(b"\n").unwrap_or(line))));
                }
                _ => break,
            }
        }
        let Some((seq, last)) = last.filter(|_| end >= bytes_min) else { return Ok(()) };
        let mut kept = Vec::new();
        let body = RecordBody::new("cut").text("last", &HEXLOWER.encode(&last));
        // The line comes before older ones, so that it names no successor: the key of the next line stays.
        Chain { seq, prev: last }.push_signed(&mut kept, now.wall, now.write_to(body), self.key.key(), None);
        kept.extend_from_slice(&text[end..]);
        files::replace_for_service(&directory.join(INDEX), &kept)
    }

    /// Appends lines to the index. Each is signed by its own key, and names the key of the next one; only the last of these
    /// keys is in a file before and after.
    fn add(&mut self, now: Moment, bodies: Vec<RecordBody>) -> io::Result<()> {
        let (mut chain, mut lines, mut last) = (self.chain, Vec::new(), None);
        for body in bodies {
            let next = SigningKey::generate()?;
            let key = last.as_ref().unwrap_or(self.key.key());
            chain.push_signed(&mut lines, now.wall, now.write_to(body), key, Some(&next.public_key()));
            last = Some(next);
        }
        let Some(next) = last else { return Ok(()) };
        self.key.prepare(&next)?;
        if let Err(error) = self.file.write_all(&lines).and_then(|()| self.file.sync_data()) {
            let _ = self.file.set_len(self.bytes);
            return Err(error);
        }
        self.key.advance(next);
        (self.chain, self.last) = (chain, Some(now));
        self.bytes += lines.len() as u64;
        Ok(())
    }
}
