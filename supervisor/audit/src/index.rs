//! `segments.jsonl`: which segments there are, so that one that is missing or cut is missed.
//!
//! It is one chain for all processes, written under a lock of the file, and each of its lines is signed: there are a few
//! for each process, where a segment has thousands. Whoever holds the lock sees segments and index agree.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::{Duration, SystemTime};

use lockhouse_base::files;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use serde::Deserialize;

use super::line::{Body, Chain, Hash, hash};
use super::segment::SegmentName;
use super::sign::Secrets;
use data_encoding::HEXLOWER;

pub(super) const INDEX: &str = "segments.jsonl";
/// Longer than any line of it.
pub(super) const LINE_BYTES_MAX: u64 = 16 * 1024;
/// Who holds the lock writes a line or two. One that does not let go must not stop this process for good.
const LOCK_TRIES: u32 = 200;
const LOCK_AGAIN_AFTER: Duration = Duration::from_millis(2);

/// The index, while nobody else writes it.
#[derive(Debug)]
pub(super) struct Index {
    file: Flock<File>,
    chain: Chain,
    bytes: u64,
}

#[derive(Deserialize)]
struct Numbered {
    seq: u64,
    #[serde(default)]
    time: String,
}

/// Takes the lock, to write or only to look.
pub(super) fn lock(mut file: File, how: FlockArg) -> io::Result<Flock<File>> {
    for _ in 0..LOCK_TRIES {
        file = match Flock::lock(file, how) {
            Ok(locked) => return Ok(locked),
            Err((file, Errno::EWOULDBLOCK | Errno::EINTR)) => file,
            Err((_, error)) => return Err(error.into()),
        };
        std::thread::sleep(LOCK_AGAIN_AFTER);
    }
    let told = format!("another process does not let go of {INDEX}");
    Err(io::Error::new(io::ErrorKind::TimedOut, told))
}

/// A new one belongs to whoever has the directory, who may be another user than the one who runs this.
fn open_or_create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).append(true).mode(0o600);
    match files::open_own(&mut options, path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        opened => return opened,
    }
    match files::open_own(options.create_new(true), path) {
        Ok(file) => files::give_to_owner_of_directory(&file, path).map(|()| file),
        // Another process was faster.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            files::open_own(options.create_new(false), path)
        }
        Err(error) => Err(error),
    }
}

impl Index {
    pub(super) fn open(directory: &Path) -> io::Result<Self> {
        let path = directory.join(INDEX);
        let mut file = loop {
            let file = lock(open_or_create(&path)?, FlockArg::LockExclusiveNonblock)?;
            // Somebody may have put a shorter one in its place while this one was waited for.
            if std::fs::metadata(&path)
                .is_ok_and(|there| file.metadata().is_ok_and(|ours| ours.ino() == there.ino()))
            {
                break file;
            }
        };
        let length = file.metadata()?.len();
        let from = length.saturating_sub(2 * LINE_BYTES_MAX);
        file.seek(SeekFrom::Start(from))?;
        let mut tail = Vec::new();
        (&*file).take(2 * LINE_BYTES_MAX).read_to_end(&mut tail)?;
        // A process that was killed in the middle of a line had told nobody of it.
        let whole = tail.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let bytes = from + whole as u64;
        if bytes < length {
            file.set_len(bytes)?;
        }
        let last = tail[..whole].strip_suffix(b"\n").map(|lines| {
            let start = lines.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
            &lines[start..]
        });
        let chain = match last {
            None => Chain { seq: 0, prev: [0; 32] },
            // Whatever somebody made of the last line, calls go on, and `verify` finds it.
            Some(line) => Chain {
                seq: serde_json::from_slice::<Numbered>(line).map_or(0, |line| line.seq.saturating_add(1)),
                prev: hash(line),
            },
        };
        Ok(Self { file, chain, bytes })
    }

    /// A segment has begun with this line.
    pub(super) fn opened(
        &mut self,
        now: SystemTime,
        secrets: &Secrets,
        name: &SegmentName,
        first: Hash,
    ) -> io::Result<()> {
        let body = Body::new("opened").text("segment", name.as_str()).text("first", &HEXLOWER.encode(&first));
        self.add(now, secrets, &body)
    }

    /// A segment has ended with this line.
    pub(super) fn closed(
        &mut self,
        now: SystemTime,
        secrets: &Secrets,
        name: &SegmentName,
        last_seq: u64,
        last: Hash,
    ) -> io::Result<()> {
        let body = Body::new("closed").text("segment", name.as_str());
        self.add(now, secrets, &body.number("last_seq", last_seq).text("last", &HEXLOWER.encode(&last)))
    }

    /// A segment is so old that it goes.
    pub(super) fn expired(
        &mut self,
        now: SystemTime,
        secrets: &Secrets,
        name: &SegmentName,
    ) -> io::Result<()> {
        self.add(now, secrets, &Body::new("expired").text("segment", name.as_str()))
    }

    /// Lets go of the lines before a moment, once these have so many bytes. What is left begins with a line that says so.
    /// The lock is gone with the file that had it.
    pub(super) fn cut(
        mut self,
        directory: &Path,
        now: SystemTime,
        secrets: &Secrets,
        before: &str,
        bytes_min: usize,
    ) -> io::Result<()> {
        let mut text = Vec::new();
        self.file.seek(SeekFrom::Start(0))?;
        (&*self.file).read_to_end(&mut text)?;
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
        let body = Body::new("cut").text("last", &HEXLOWER.encode(&last));
        Chain { seq, prev: last }.push_signed(&mut kept, now, &body, secrets);
        kept.extend_from_slice(&text[end..]);
        files::replace_for_service(&directory.join(INDEX), &kept)
    }

    fn add(&mut self, now: SystemTime, secrets: &Secrets, body: &Body) -> io::Result<()> {
        let (mut chain, mut line) = (self.chain, Vec::new());
        chain.push_signed(&mut line, now, body, secrets);
        if let Err(error) = self.file.write_all(&line).and_then(|()| self.file.sync_data()) {
            let _ = self.file.set_len(self.bytes);
            return Err(error);
        }
        self.chain = chain;
        self.bytes += line.len() as u64;
        Ok(())
    }
}
