//! Whether the log is as it was written: each chain by itself, the segments among each other, and all of them against the
//! index.

mod chain;
mod lines;
mod programs;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io::{self, BufReader, Read as _};
use std::path::Path;

use nix::fcntl::FlockArg;

use super::code;
use super::index::{self, INDEX};
use super::line::Hash;
use super::read::ReadError;
use super::segment::{SegmentName, segments};
use super::sign::PublicKey;
use super::writer::VERSION;
use chain::{Rules, Walked, walk};
use data_encoding::HEXLOWER;
use lines::{Lines, Members};
use lockhouse_base::files;
use programs::Programs;

const SIGNED: [&str; 3] = ["open", "checkpoint", "close"];

/// Something about the log.
#[derive(Clone, Debug)]
pub struct Finding {
    pub kind: Kind,
    pub file: String,
    /// Counted from 1.
    pub line: Option<u64>,
    pub seq: Option<u64>,
    pub what: String,
}

/// Whether a finding is against the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It is not as it was written.
    Fault,
    /// It is, and there is something to know about it.
    Note,
}

/// Where the log is that is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Where it is written: all of it must be there.
    Home,
    /// A part of it, or a copy elsewhere, which may be without programs.
    Copy,
    /// Anywhere, and nothing is said of programs.
    ChainAlone,
}

/// What was looked at.
#[derive(Clone, Copy, Debug, Default)]
pub struct Verified {
    pub segments: u64,
    /// Programs beside the log that are the ones that ran.
    pub programs: u64,
    pub records: u64,
    /// Records after the last signature of their segment.
    pub unsigned: u64,
    pub faults: u64,
}

/// What the index says of one segment.
#[derive(Debug, Default)]
struct Listed {
    opened: Option<String>,
    closed: Option<(u64, String)>,
    is_expired: bool,
}

/// What a segment says of itself.
#[derive(Debug, Default)]
struct Told {
    walked: Walked,
    previous: Option<String>,
    is_closed: bool,
}

/// Verifies a directory, or one segment of it, against the key that is trusted.
///
/// # Errors
/// [`ReadError`] for what cannot be read.
pub fn verify(
    path: &Path,
    place: Place,
    key: &PublicKey,
    tell: &mut dyn FnMut(Finding),
) -> Result<Verified, ReadError> {
    let mut faults = 0;
    let mut counted = |finding: Finding| {
        faults += u64::from(finding.kind == Kind::Fault);
        tell(finding);
    };
    let one =
        path.is_file().then(|| path.file_name().and_then(|name| SegmentName::of(name.to_str()?))).flatten();
    let directory = match &one {
        Some(_) => path.parent().unwrap_or(Path::new(".")),
        None => path,
    };
    let told = |source| ReadError { path: directory.to_owned(), source };
    let (listed, names) = match survey(directory, key, &mut counted) {
        // Nothing was recorded here yet, or everything was removed.
        Err(error) if place == Place::Home && error.kind() == io::ErrorKind::NotFound => (None, Vec::new()),
        surveyed => surveyed.map_err(told)?,
    };
    if names.is_empty() && listed.as_ref().is_none_or(BTreeMap::is_empty) {
        empty(directory, &mut counted);
    }
    let wanted: Vec<&SegmentName> =
        names.iter().filter(|name| one.as_ref().is_none_or(|one| one == *name)).collect();
    let mut programs = Programs::new(directory.to_owned(), place);
    let read = each_segment(directory, &wanted, listed.as_ref(), key, &mut programs, &mut counted)?;
    if one.is_none() {
        among_each_other(&read, &mut counted);
        none_removed(listed.as_ref(), &names, &mut counted);
    }
    programs.finish(&mut counted);
    Ok(Verified {
        segments: read.len() as u64,
        programs: programs.verified,
        records: read.values().map(|segment| segment.walked.records).sum(),
        unsigned: read.values().map(|segment| segment.walked.unsigned).sum(),
        faults,
    })
}

/// Verifies the segments, each by itself and against the index. Those that are no longer there are not in the result.
fn each_segment<'n>(
    directory: &Path,
    names: &[&'n SegmentName],
    listed: Option<&Index>,
    key: &PublicKey,
    programs: &mut Programs,
    tell: &mut dyn FnMut(Finding),
) -> Result<BTreeMap<&'n str, Told>, ReadError> {
    let mut read = BTreeMap::new();
    for name in names {
        let path = directory.join(name.as_str());
        let segment = match segment(&path, name, key, programs, tell) {
            Ok(segment) => segment,
            // Its time was over meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) if files::is_no_file(&error) => {
                fault(tell, name.as_str(), format!("replaced: {error}"));
                continue;
            }
            Err(source) => return Err(ReadError { path, source }),
        };
        against_index(name.as_str(), &segment, listed.map(|all| all.get(name.as_str())), tell);
        read.insert(name.as_str(), segment);
    }
    Ok(read)
}

/// Whether each segment goes on where the one before it ends.
fn among_each_other(segments: &BTreeMap<&str, Told>, tell: &mut dyn FnMut(Finding)) {
    for (name, told) in segments {
        let before = told.previous.as_deref().and_then(|previous| segments.get(previous));
        if before.is_some_and(|before| before.walked.last != told.walked.before) {
            let previous = told.previous.as_deref().unwrap_or_default();
            let what = format!("it does not go on where {previous} ends: one of them was changed or cut");
            fault(tell, name, what);
        }
    }
}

/// Whether there is a file of each segment in the index whose time is not over.
fn none_removed(listed: Option<&Index>, names: &[SegmentName], tell: &mut dyn FnMut(Finding)) {
    for (name, listed) in listed.into_iter().flatten() {
        if !listed.is_expired && !names.iter().any(|there| there.as_str() == name) {
            fault(tell, name, "removed: the index has it, and there is no such file".into());
        }
    }
}

/// A log without a segment: nothing says whether there ever was one, unless programs are left over.
fn empty(directory: &Path, tell: &mut dyn FnMut(Finding)) {
    if code::has_any(directory) {
        let what = "removed: there are programs in code, and neither a segment nor an index of segments";
        return fault(tell, INDEX, what.into());
    }
    let what =
        "the log is empty: nothing was recorded here yet, or everything was removed; nothing was verified";
    tell(Finding {
        kind: Kind::Note,
        file: directory.display().to_string(),
        line: None,
        seq: None,
        what: what.into(),
    });
}

fn fault(tell: &mut dyn FnMut(Finding), file: &str, what: String) {
    tell(Finding { kind: Kind::Fault, file: file.to_owned(), line: None, seq: None, what });
}

type Index = BTreeMap<String, Listed>;

/// The index and the names of the segments, of one moment.
fn survey(
    directory: &Path,
    key: &PublicKey,
    tell: &mut dyn FnMut(Finding),
) -> io::Result<(Option<Index>, Vec<SegmentName>)> {
    let file = match files::open_to_read(&directory.join(INDEX)) {
        Ok(file) => file,
        Err(error) if files::is_no_file(&error) => {
            fault(tell, INDEX, format!("replaced: {error}"));
            return Ok((None, segments(directory)?));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let names = segments(directory)?;
            if !names.is_empty() {
                fault(tell, INDEX, "removed: there are segments, and no index of them".into());
            }
            return Ok((None, names));
        }
        Err(error) => return Err(error),
    };
    // Whoever writes waits for the lock, so no more is done under it than to see both at one moment.
    let file = index::lock(file, FlockArg::LockSharedNonblock)?;
    let (names, bytes) = (segments(directory)?, file.metadata()?.len());
    let file = file.unlock().map_err(|(_, error)| error)?;
    let mut index = Index::new();
    let rules = Rules { file: INDEX.into(), signed: None };
    walk(rules, Lines::new(BufReader::new(file.take(bytes)), key), tell, |members, _, _, _| {
        if members.segment.is_empty() {
            return;
        }
        let listed = index.entry(members.segment.clone()).or_default();
        match members.event.as_str() {
            "opened" => listed.opened = Some(members.first.clone()),
            "closed" => listed.closed = Some((members.last_seq, members.last.clone())),
            "expired" => listed.is_expired = true,
            _ => {}
        }
    })?;
    Ok((Some(index), names))
}

fn segment(
    path: &Path,
    name: &SegmentName,
    key: &PublicKey,
    programs: &mut Programs,
    tell: &mut dyn FnMut(Finding),
) -> io::Result<Told> {
    let reader = BufReader::with_capacity(256 * 1024, files::open_to_read(path)?);
    let (mut previous, mut is_closed) = (None, false);
    let rules = Rules { file: name.to_string(), signed: Some(&SIGNED) };
    let seen = |members: &Members, line: u64, _: Hash, tell: &mut dyn FnMut(Finding)| {
        let mut told = |kind: Kind, what: String| {
            tell(Finding { kind, file: name.to_string(), line: Some(line), seq: Some(members.seq), what });
        };
        if is_closed {
            told(Kind::Fault, "inserted: the segment was closed before it".into());
        }
        match (members.seq, members.event.as_str()) {
            (0, "open") => {
                previous = members.previous.clone();
                if members.version != VERSION {
                    let version = members.version;
                    told(
                        Kind::Note,
                        format!("its format is version {version}, and this Lockhouse knows {VERSION}"),
                    );
                }
                if members.segment != name.as_str() {
                    told(Kind::Fault, format!("renamed: it is the segment {}", members.segment));
                }
                if members.key != key.to_hex() {
                    told(Kind::Fault, format!("made anew: it names another key, {}", members.key));
                }
            }
            (0, _) | (_, "open") => {
                told(Kind::Fault, "inserted: a segment has one `open`, at its start".into())
            }
            (_, "close") => is_closed = true,
            (_, "gap") => {
                let Members { records, torn, reason, .. } = members;
                let piece = if *torn > 0 {
                    format!(", and {torn} bytes before it are no record")
                } else {
                    String::new()
                };
                told(
                    Kind::Note,
                    format!("{records} records could not be written before it{piece}: {reason}"),
                );
            }
            (_, "execution" | "skill") => programs.look(members, &mut told),
            _ => {}
        }
    };
    let walked = walk(rules, Lines::new(reader, key), tell, seen)?;
    Ok(Told { walked, previous, is_closed })
}

fn against_index(name: &str, told: &Told, listed: Option<Option<&Listed>>, tell: &mut dyn FnMut(Finding)) {
    let Told { walked, is_closed, .. } = told;
    if !is_closed {
        let what = match walked.unsigned {
            0 => "it is not closed: its process runs, or was killed; everything in it is signed".into(),
            count => format!(
                "it is not closed: its process runs, or was killed; {count} records are after the last signature"
            ),
        };
        tell(Finding { kind: Kind::Note, file: name.to_owned(), line: None, seq: None, what });
    }
    let Some(listed) = listed else { return };
    let Some(Listed { opened: Some(first), closed, .. }) = listed else {
        // A process that was killed between its two first writes.
        if walked.records > 1 {
            fault(tell, name, "inserted: the index does not have it, or was cut".into());
        }
        return;
    };
    if *first != HEXLOWER.encode(&walked.first) {
        fault(tell, name, "made anew: the index says that it begins otherwise".into());
    }
    match closed {
        Some((last_seq, _)) if *last_seq > walked.last_seq => {
            let what =
                format!("truncated: it ends with record {}, and the index says {last_seq}", walked.last_seq);
            fault(tell, name, what);
        }
        Some((_, last)) if *last != HEXLOWER.encode(&walked.last) => {
            fault(tell, name, "made anew: the index says that it ends otherwise".into());
        }
        _ => {}
    }
}
