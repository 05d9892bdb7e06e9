//! Records of many processes in the order of time, one after the other: a log of gigabytes is never in memory.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use lockhouse_base::files;

use super::line::moment;
use super::record::{Members, Record};
use super::segment::{SegmentName, segments};

/// Longer than any line that is written.
pub(super) const LINE_BYTES_MAX: u64 = 1024 * 1024;

/// Why the log, or a part of it, cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{} cannot be read: {source}", path.display())]
pub struct ReadError {
    pub path: PathBuf,
    pub source: io::Error,
}

/// Which records are wanted. What is not said does not matter.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub event: Option<String>,
    pub server: Option<String>,
    pub tool: Option<String>,
    pub client: Option<String>,
    /// Of a call, a question, an approval or an execution.
    pub outcome: Option<String>,
    /// `allow`, `ask` or `deny`.
    pub decision: Option<String>,
    /// How its identifier begins.
    pub execution: Option<String>,
    pub since: Option<SystemTime>,
    pub until: Option<SystemTime>,
}

/// A record, and where it is.
#[derive(Clone, Debug)]
pub struct Found {
    pub segment: SegmentName,
    /// As it is written, without its end.
    pub text: String,
    pub record: Record,
}

/// The records that are wanted, as far as they can be read, in the order of time. A line that is no record is left out:
/// `verify` tells of it.
///
/// # Errors
/// [`ReadError`] when there is no such directory; later, for a segment that cannot be read on.
pub fn records(directory: &Path, filter: &Filter) -> Result<Records, ReadError> {
    let told = |source| ReadError { path: directory.to_owned(), source };
    let mut waiting = segments(directory).map_err(told)?;
    let (since, until) = (filter.since.map(moment), filter.until.map(moment));
    let day = |moment: &Option<String>| moment.as_ref().map(|moment| moment[..10].to_owned());
    if let Some(first) = day(&since) {
        waiting.retain(|name| *name.day() >= *first);
    }
    if let Some(last) = day(&until) {
        waiting.retain(|name| *name.day() <= *last);
    }
    waiting.reverse();
    let (directory, filter) = (directory.to_owned(), filter.clone());
    Ok(Records { directory, filter, since, until, waiting, open: BinaryHeap::new() })
}

/// See [`records`].
#[derive(Debug)]
pub struct Records {
    directory: PathBuf,
    filter: Filter,
    since: Option<String>,
    until: Option<String>,
    /// Segments that begin later than what comes next, the first one last.
    waiting: Vec<SegmentName>,
    open: BinaryHeap<Reverse<Open>>,
}

/// A segment, and its next line.
#[derive(Debug)]
struct Open {
    time: String,
    name: SegmentName,
    reader: BufReader<File>,
    line: String,
    members: Members,
}

impl Ord for Open {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        // Within one moment those of one process stay together.
        (&self.time, &self.name).cmp(&(&other.time, &other.name))
    }
}

impl PartialOrd for Open {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Open {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Open {}

impl Iterator for Records {
    type Item = Result<Found, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Err(error) = self.open_what_is_due() {
                return Some(Err(error));
            }
            let Reverse(Open { name, mut reader, line, members, .. }) = self.open.pop()?;
            match next_of(&mut reader) {
                Ok(Some((line, members))) => {
                    let time = members.time.clone();
                    self.open.push(Reverse(Open { time, name: name.clone(), reader, line, members }));
                }
                Ok(None) => {}
                Err(source) => {
                    return Some(Err(ReadError { path: self.directory.join(name.as_str()), source }));
                }
            }
            if self.wants(&members) {
                return Some(Ok(Found { segment: name, text: line, record: members.into_record() }));
            }
        }
    }
}

impl Records {
    /// Opens every segment that may have a record before the next one that is known.
    fn open_what_is_due(&mut self) -> Result<(), ReadError> {
        while let Some(name) = self.waiting.last() {
            let next = self.open.peek().map(|Reverse(open)| &open.time);
            let began = name.began().map(moment).unwrap_or_default();
            // An identifier has milliseconds, and a record microseconds.
            if next.is_some_and(|next| began > *next) {
                return Ok(());
            }
            let Some(name) = self.waiting.pop() else { return Ok(()) };
            let path = self.directory.join(name.as_str());
            let told = |source| ReadError { path: path.clone(), source };
            let mut reader = match files::open_to_read(&path) {
                Ok(file) => BufReader::new(file),
                // Its time was over meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(told(error)),
            };
            if let Some((line, members)) = next_of(&mut reader).map_err(told)? {
                let time = members.time.clone();
                self.open.push(Reverse(Open { time, name, reader, line, members }));
            }
        }
        Ok(())
    }

    fn wants(&self, members: &Members) -> bool {
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

/// The next whole line that is a record.
fn next_of(reader: &mut BufReader<File>) -> io::Result<Option<(String, Members)>> {
    while let Some(line) = next_line(reader)? {
        if let Some(line) = line
            && let Ok(members) = serde_json::from_str(&line)
        {
            return Ok(Some((line, members)));
        }
    }
    Ok(None)
}

/// The next whole line: `Some(None)` for one that is too long or no text, `None` at the end or before a line that is not
/// whole yet.
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

/// Goes behind the end of a line of any length: how many bytes that were.
pub(super) fn skip_line(reader: &mut impl io::BufRead) -> io::Result<u64> {
    let mut skipped = 0;
    loop {
        let part = reader.fill_buf()?;
        let (count, is_end) = match part.iter().position(|byte| *byte == b'\n') {
            Some(end) => (end + 1, true),
            None => (part.len(), part.is_empty()),
        };
        reader.consume(count);
        skipped += count as u64;
        if is_end {
            return Ok(skipped);
        }
    }
}
