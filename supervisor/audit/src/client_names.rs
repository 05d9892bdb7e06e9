//! Erasable names of AI clients and their users: a record has an id instead of the name, and a file beside the segments has
//! the names and their keys. Without its line in that file, an id is a random number.
//!
//! An id is the hash of a random key and the name. Nobody can therefore give the id of a record another name, although the
//! file is not a part of the hash chain.

mod name_file;
mod name_members;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use lockhouse_base::files::FileVersion;

use super::hash_chain::RecordBody;
use super::segment::{day, segments};
use name_file::{NameFile, NameLine};
use name_members::MembersOfNames;

/// Time for which a name keeps its id. Its line in the file expires with the records of that time.
const USED: std::time::Duration = std::time::Duration::from_secs(30 * 24 * 60 * 60);
/// Maximum number of names with ids, of all accounts that write a log.
/// Bound: the audit log.
const NAMES_MAX: usize = 16_384;
/// What a record has in place of a further name.
const BEYOND_LIMIT: &str = "[beyond 16,384 names]";
/// Maximum number of characters of a name. The rest of a longer one is omitted.
const NAME_CHARS_MAX: usize = 256;

/// The names of the records that one account writes.
#[derive(Debug)]
pub(super) struct ClientNames {
    directory: PathBuf,
    /// The account whose records have the names.
    uid: u32,
    /// The version of the file from which the ids are.
    version: Option<FileVersion>,
    /// The ids that are in use, by name, with the day since when they are.
    ids: HashMap<String, (String, String)>,
    /// The number of names of all accounts.
    count: usize,
}

impl ClientNames {
    pub(super) fn new(directory: PathBuf, uid: u32) -> Self {
        Self { directory, uid, version: None, ids: HashMap::new(), count: 0 }
    }

    /// Returns the record with ids in place of names.
    ///
    /// # Errors
    /// The file of names cannot be read or written. The record must then not be written.
    pub(super) fn replace_in(&mut self, body: &RecordBody, now: SystemTime) -> io::Result<RecordBody> {
        let object = body.as_object();
        let replaced = MembersOfNames::parse(&object)?.with_names(|name| self.id(name, now).map(Some))?;
        Ok(replaced.map_or_else(|| body.clone(), |object| RecordBody::from_object(&object)))
    }

    fn id(&mut self, name: &str, now: SystemTime) -> io::Result<String> {
        let name = shortened(name);
        let first_day = day(now.checked_sub(USED).unwrap_or(SystemTime::UNIX_EPOCH));
        // Another process may have added or erased a name.
        if self.version.is_none() || self.version != NameFile::version(&self.directory)? {
            self.load(&NameFile::lock(&self.directory)?)?;
        }
        if let Some(id) = self.id_in_use(name, &first_day) {
            return Ok(id);
        }
        let mut file = NameFile::lock(&self.directory)?;
        self.load(&file)?;
        if let Some(id) = self.id_in_use(name, &first_day) {
            return Ok(id);
        }
        if self.count >= NAMES_MAX {
            return Ok(BEYOND_LIMIT.to_owned());
        }
        let line = NameLine::new(name, self.uid, day(now))?;
        file.append(&line)?;
        self.load(&file)?;
        Ok(line.id())
    }

    fn id_in_use(&self, name: &str, first_day: &str) -> Option<String> {
        self.ids.get(name).filter(|(_, since)| since.as_str() > first_day).map(|(id, _)| id.clone())
    }

    fn load(&mut self, file: &NameFile) -> io::Result<()> {
        let lines = file.read()?;
        self.count = lines.len();
        // A later line of a name replaces an earlier one.
        let own = lines.into_iter().filter(|line| line.uid == self.uid);
        self.ids = own.map(|line| (line.name.clone(), (line.id(), line.since))).collect();
        self.version = NameFile::version(&self.directory)?;
        Ok(())
    }
}

fn shortened(name: &str) -> &str {
    name.char_indices().nth(NAME_CHARS_MAX).map_or(name, |(end, _)| &name[..end])
}

/// Erases names that the records of an account have.
pub(super) fn erase(directory: &Path, uid: u32, names: &[String]) -> io::Result<()> {
    NameFile::lock(directory)?
        .retain(|line| line.uid != uid || names.iter().all(|name| shortened(name) != line.name))
}

/// Erases the names of which no record can remain: those whose ids were no longer in use when the oldest segment began.
pub(super) fn expire(directory: &Path) -> io::Result<()> {
    let names = segments(directory)?;
    let oldest =
        names.first().and_then(|name| humantime::parse_rfc3339(&format!("{}T00:00:00Z", name.day())).ok());
    // A day more: the day of a segment is that of its first record.
    let unused = oldest.and_then(|oldest| oldest.checked_sub(USED + USED / 30));
    let Some(first_day) = unused.map(day) else { return Ok(()) };
    NameFile::lock(directory)?.retain(|line| line.since >= first_day)
}

/// The names by id, for readers of the log.
#[derive(Clone, Debug, Default)]
pub struct NamesById(HashMap<String, String>);

impl NamesById {
    /// Reads the names beside a log. There are none if the log has no erasable ones.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(directory: &Path) -> io::Result<Self> {
        let lines = NameFile::read_without_lock(directory)?;
        Ok(Self(lines.into_iter().map(|line| (line.id(), line.name)).collect()))
    }

    /// Returns the name of an id. `None` if it was erased, or if the text is no id.
    fn name(&self, id: &str) -> Option<&str> {
        self.0.get(id).map(String::as_str)
    }

    /// Returns a record with the names in place of their ids.
    pub(super) fn put_into(&self, line: String) -> String {
        if self.0.is_empty() {
            return line;
        }
        let named = MembersOfNames::parse(&line)
            .and_then(|members| members.with_names(|id| Ok(self.name(id).map(str::to_owned))));
        // A line that is no record has no names.
        named.ok().flatten().unwrap_or(line)
    }
}
