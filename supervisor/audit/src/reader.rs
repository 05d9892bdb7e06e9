//! Reads the audit log: the records of all processes, merged in order of time. Records are streamed, so memory use does
//! not grow with the size of the log.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use lockhouse_base::files;

use super::client_names::NamesById;
use super::hash_chain::timestamp;
use super::record::{Record, RecordMembers};
use super::segment::{SegmentName, segments};

/// Maximum number of bytes of a line of the audit log. Lockhouse itself writes only shorter lines.
/// Bound: the audit log.
pub const LINE_BYTES_MAX: u64 = 1024 * 1024;

/// The audit log, or one of its segments, cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{} cannot be read: {source}", path.display())]
pub struct ReadError {
    pub path: PathBuf,
    pub source: io::Error,
}

/// Selects audit records. A record matches if it matches each field; a field that is `None` matches every record.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub event: Option<String>,
    pub server: Option<String>,
    pub tool: Option<String>,
    pub client: Option<String>,
    /// Outcome of a call, question or approval, or status of an execution. Only records with this outcome or
    /// status match.
    pub outcome: Option<String>,
    /// Policy decision to match: `allow`, `ask` or `deny`.
    pub decision: Option<String>,
    /// Text with which the execution ID must start.
    pub execution: Option<String>,
    pub since: Option<SystemTime>,
    pub until: Option<SystemTime>,
}

/// An audit record with the name of the segment that contains it.
#[derive(Clone, Debug)]
pub struct LocatedRecord {
    pub segment: SegmentName,
    /// The line of the record in the segment, without its line feed, and with the names that the log knows in place of
    /// their ids.
    pub text: String,
    pub record: Record,
}

impl LocatedRecord {
    /// Parses a line of a segment, without its line feed. Returns `None` if it is not a valid record.
    pub fn parse(segment: SegmentName, line: String, names: &NamesById) -> Option<Self> {
        let text = names.put_into(line);
        let members: RecordMembers = serde_json::from_str(&text).ok()?;
        Some(Self { segment, text, record: members.into_record() })
    }
}

/// Returns the audit records that match the filter, in order of time. Lines that are not valid records are skipped;
/// `lockhouse audit verify` reports them.
///
/// # Errors
/// [`ReadError`] if the directory cannot be read. The iterator returns a [`ReadError`] for each segment that cannot be
/// read.
pub fn records(directory: &Path, filter: &Filter) -> Result<Records, ReadError> {
    let to_read_error = |source| ReadError { path: directory.to_owned(), source };
    let mut waiting = segments(directory).map_err(to_read_error)?;
    let (since, until) = (filter.since.map(timestamp), filter.until.map(timestamp));
    let day = |timestamp: &Option<String>| timestamp.as_ref().map(|timestamp| timestamp[..10].to_owned());
    if let Some(first) = day(&since) {
        waiting.retain(|name| *name.day() >= *first);
    }
    if let Some(last) = day(&until) {
        waiting.retain(|name| *name.day() <= *last);
    }
    waiting.reverse();
    let (directory, filter) = (directory.to_owned(), filter.clone());
    let names =
        NamesById::read(&directory).map_err(|source| ReadError { path: directory.clone(), source })?;
    Ok(Records { directory, names, filter, since, until, waiting, open: BinaryHeap::new() })
}

/// Iterator over the audit records that match a filter, created by [`records`].
#[derive(Debug)]
pub struct Records {
    directory: PathBuf,
    names: NamesById,
    filter: Filter,
    since: Option<String>,
    until: Option<String>,
    /// Names of the segments that were not opened yet, sorted from the latest to the earliest start time.
    waiting: Vec<SegmentName>,
    open: BinaryHeap<Reverse<OpenSegment>>,
}

/// An open segment, with the record that is returned next from it. Its later records are still unread.
#[derive(Debug)]
struct OpenSegment {
    time: String,
    name: SegmentName,
    reader: BufReader<File>,
    line: String,
    members: RecordMembers,
}

impl Ord for OpenSegment {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        // Records of the same time are ordered by segment, which keeps those of one process together.
        (&self.time, &self.name).cmp(&(&other.time, &other.name))
    }
}

impl PartialOrd for OpenSegment {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for OpenSegment {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for OpenSegment {}

impl Iterator for Records {
    type Item = Result<LocatedRecord, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Err(error) = self.open_due_segments() {
                return Some(Err(error));
            }
            let Reverse(OpenSegment { name, mut reader, line, members, .. }) = self.open.pop()?;
            match next_record(&mut reader, &self.names) {
                Ok(Some((line, members))) => {
                    let time = members.time.clone();
                    self.open.push(Reverse(OpenSegment { time, name: name.clone(), reader, line, members }));
                }
                Ok(None) => {}
                Err(source) => {
                    return Some(Err(ReadError { path: self.directory.join(name.as_str()), source }));
                }
            }
            if self.matches(&members) {
                return Some(Ok(LocatedRecord { segment: name, text: line, record: members.into_record() }));
            }
        }
    }
}

impl Records {
    /// Opens every segment that may contain an earlier record than the next record of the open segments.
    fn open_due_segments(&mut self) -> Result<(), ReadError> {
        while let Some(name) = self.waiting.last() {
            let next = self.open.peek().map(|Reverse(open)| &open.time);
            let began = name.started_at().map(timestamp).unwrap_or_default();
            // Segment names have a precision of milliseconds, records of microseconds.
            if next.is_some_and(|next| began > *next) {
                return Ok(());
            }
            let Some(name) = self.waiting.pop() else { return Ok(()) };
            let path = self.directory.join(name.as_str());
            let to_read_error = |source| ReadError { path: path.clone(), source };
            let mut reader = match files::open_to_read(&path) {
                Ok(file) => BufReader::new(file),
                // The segment has expired and was removed since it was listed.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(to_read_error(error)),
            };
            if let Some((line, members)) = next_record(&mut reader, &self.names).map_err(to_read_error)? {
                let time = members.time.clone();
                self.open.push(Reverse(OpenSegment { time, name, reader, line, members }));
            }
        }
        Ok(())
    }

    fn matches(&self, members: &RecordMembers) -> bool {
        let Filter { event, server, tool, client, outcome, decision, execution, .. } = &self.filter;
        let is = |wanted: &Option<String>, found: &Option<String>| wanted.is_none() || wanted == found;
        let begins = |wanted: &Option<String>, found: &Option<String>| match (wanted, found) {
            (None, _) => true,
            (Some(wanted), found) => found.as_ref().is_some_and(|found| found.starts_with(wanted.as_str())),
        };
        event.as_ref().is_none_or(|event| members.event == *event)
            && is(server, &members.server)
            && is(tool, &members.tool)
            && is(client, &members.client)
            && (is(outcome, &members.outcome) || is(outcome, &members.status))
            && is(decision, &members.decision)
            && begins(execution, &members.execution)
            && self.since.as_ref().is_none_or(|since| members.time >= *since)
            && self.until.as_ref().is_none_or(|until| members.time <= *until)
    }
}

/// Returns the next complete line that is a valid audit record, as text and parsed; skips other lines. `None` means
/// that the file has no further complete line.
fn next_record(
    reader: &mut BufReader<File>,
    names: &NamesById,
) -> io::Result<Option<(String, RecordMembers)>> {
    while let Some(line) = next_line(reader)? {
        if let Some(line) = line.map(|line| names.put_into(line))
            && let Ok(members) = serde_json::from_str(&line)
        {
            return Ok(Some((line, members)));
        }
    }
    Ok(None)
}

/// Returns the next complete line. `Some(None)` is a line that is too long or not UTF-8. `None` means that the file has
/// no further complete line.
fn next_line(reader: &mut BufReader<File>) -> io::Result<Option<Option<String>>> {
    let mut line = Vec::new();
    reader.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
    if line.pop_if(|last| *last == b'\n').is_some() {
        return Ok(Some(String::from_utf8(line).ok()));
    }
    if (line.len() as u64) < LINE_BYTES_MAX {
        return Ok(None);
    }
    skip_line(reader)?;
    Ok(Some(None))
}

/// Skips the rest of a line of any length. Returns the number of skipped bytes, and whether the line ends with a line
/// feed.
pub(super) fn skip_line(reader: &mut impl io::BufRead) -> io::Result<(u64, bool)> {
    let mut skipped = 0;
    loop {
        let part = reader.fill_buf()?;
        let end = part.iter().position(|byte| *byte == b'\n');
        let count = end.map_or(part.len(), |end| end + 1);
        reader.consume(count);
        skipped += count as u64;
        if count == 0 || end.is_some() {
            return Ok((skipped, end.is_some()));
        }
    }
}
