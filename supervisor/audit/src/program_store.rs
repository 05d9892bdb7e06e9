//! Stores submitted programs beside the audit log. Each distinct program is stored once, in a file that is named by the
//! SHA-256 of its content.
//!
//! Secrets of the configuration are redacted in stored programs. The audit record of an execution therefore has two
//! hashes: of the program as it ran (`code`) and of the stored file (`code_kept`).

use parking_lot::Mutex;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use super::hash_chain::hash;
use data_encoding::HEXLOWER;
use lockhouse_base::files::{self, FileVersion};
use lockhouse_protocol::Language;

const DIRECTORY: &str = "code";
/// Maximum number of bytes that are read from a stored program: 16 MiB. The configuration limits submitted
/// programs to a smaller size.
const BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Maximum number of new program files that wait to be synced to disk together. Further files are synced one by one
/// when they are written.
const UNSYNCED_MAX: usize = 1_000;
/// Start of the text that replaces a secret in a stored program. Older versions wrote audit records without
/// `code_kept`; this text shows that the stored program of such a record was redacted.
const REDACTED: &str = "[redacted ";

/// Returns the path of the file of a stored program, by its language and the SHA-256 of its stored text.
fn path(directory: &Path, language: &str, hash: &str) -> PathBuf {
    let ending = if language == Language::Python.as_str() { "py" } else { "ts" };
    directory.join(DIRECTORY).join(format!("{hash}.{ending}"))
}

/// Returns the directory of the stored programs of a log.
pub(super) fn programs_directory(log: &Path) -> PathBuf {
    log.join(DIRECTORY)
}

/// Maximum number of stored programs that are remembered. Each is remembered for the time `REMEMBERED_FOR`. A
/// remembered program that is submitted again is not read from its file again.
const REMEMBERED_MAX: usize = 256;
const REMEMBERED_FOR: Duration = Duration::from_secs(3_600);

/// Stores the submitted programs of one process beside its audit log.
#[derive(Debug)]
pub(super) struct ProgramStore {
    directory: PathBuf,
    unsynced: Mutex<Vec<PathBuf>>,
    /// The files that this process has stored, or has compared with a submitted program and found equal, by their paths.
    /// A hash alone would not do: one text in two languages is two files.
    remembered: Mutex<HashMap<PathBuf, StoredFile>>,
}

/// The state of the file of a stored program when its content was known to be correct.
#[derive(Debug)]
struct StoredFile {
    version: FileVersion,
    since: Instant,
}

impl ProgramStore {
    /// Creates a store for the programs of the audit log in this directory.
    pub(super) fn new(directory: PathBuf) -> Self {
        Self { directory, unsynced: Mutex::default(), remembered: Mutex::default() }
    }

    /// Whether a program in this language with this hash was stored recently and its file is unchanged. Takes one
    /// system call.
    pub(super) fn is_kept(&self, language: Language, hash: &str) -> bool {
        let path = path(&self.directory, language.as_str(), hash);
        let remembered = self.remembered.lock();
        remembered.get(&path).is_some_and(|stored| {
            stored.since.elapsed() < REMEMBERED_FOR && FileVersion::of(&path) == Some(stored.version)
        })
    }

    fn remember(&self, path: PathBuf) -> io::Result<()> {
        let version = FileVersion::try_of(&path)?.ok_or(io::ErrorKind::NotFound)?;
        let stored = StoredFile { version, since: Instant::now() };
        let mut remembered = self.remembered.lock();
        if remembered.len() >= REMEMBERED_MAX {
            remembered.clear();
        }
        remembered.insert(path, stored);
        Ok(())
    }

    /// Stores a program in a file that is named by `hash`. If the file already contains the program, only its
    /// modification time is renewed. If the file has another content, it is rewritten.
    pub(super) fn keep(&self, language: Language, text: &str, hash: &str) -> io::Result<()> {
        let path = path(&self.directory, language.as_str(), hash);
        match files::open_to_read(&path).and_then(|file| Ok((has(&file, text)?, file))) {
            Ok((true, file)) => {
                file.set_modified(SystemTime::now())?;
                return self.remember(path);
            }
            Ok((false, _)) => tracing::warn!("{} was changed; rewriting it", path.display()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => tracing::warn!("{} cannot be read; rewriting it: {error}", path.display()),
        }
        if is_replaced_directory(&self.directory)? {
            return Err(io::Error::other("the directory `code` of the audit log is a link or a file"));
        }
        files::replace(&path, text.as_bytes())?;
        self.remember(path.clone())?;
        let mut unsynced = self.unsynced.lock();
        if unsynced.len() >= UNSYNCED_MAX {
            return sync(&path);
        }
        unsynced.push(path);
        Ok(())
    }

    /// Syncs new program files to disk. A power failure could lose files that are not synced, and a lost file would
    /// look like tampering.
    pub(super) fn sync(&self) -> io::Result<()> {
        let new = std::mem::take(&mut *self.unsynced.lock());
        if new.is_empty() {
            return Ok(());
        }
        new.iter().try_for_each(|path| sync(path))?;
        File::open(self.directory.join(DIRECTORY))?.sync_all()
    }
}

fn sync(path: &Path) -> io::Result<()> {
    match files::open_to_read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        file => file?.sync_all(),
    }
}

/// Whether the file contains exactly this text.
fn has(file: &File, text: &str) -> io::Result<bool> {
    if file.metadata()?.len() != text.len() as u64 {
        return Ok(false);
    }
    let mut content = Vec::with_capacity(text.len());
    file.take(text.len() as u64 + 1).read_to_end(&mut content)?;
    Ok(content == text.as_bytes())
}

/// Whether the directory of stored programs, in the audit log's directory `directory`, was replaced by something else,
/// for example a link. Returns `false` if nothing exists at its path.
fn is_replaced_directory(directory: &Path) -> io::Result<bool> {
    match std::fs::symlink_metadata(directory.join(DIRECTORY)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        metadata => Ok(!metadata?.is_dir()),
    }
}

/// Whether the directory of stored programs exists in the audit log's directory `directory`.
pub(super) fn directory_exists(directory: &Path) -> bool {
    std::fs::symlink_metadata(directory.join(DIRECTORY)).is_ok()
}

/// Whether the directory of stored programs, in the audit log's directory `directory`, contains any file.
pub(super) fn contains_programs(directory: &Path) -> bool {
    std::fs::read_dir(directory.join(DIRECTORY)).is_ok_and(|mut entries| entries.next().is_some())
}

/// What the audit record of an execution says about its program.
#[derive(Clone, Copy, Debug)]
pub struct ProgramRecord<'a> {
    pub language: &'a str,
    /// SHA-256 of the program as it ran.
    pub code: &'a str,
    /// SHA-256 of the file in which the program was stored. `None` if the program was not stored.
    pub kept: Option<&'a str>,
}

/// Result of comparing the stored file of a program with the audit record of its execution.
#[derive(Debug, PartialEq, Eq)]
pub enum ProgramComparison {
    /// The stored file contains exactly the program that ran: this text.
    Genuine(String),
    /// The stored file is as recorded, and contains this text: the program with its secrets redacted.
    Redacted(String),
    /// The stored file contains this text with redacted secrets. It cannot be verified, because the audit record comes
    /// from an older version and has no hash of the redacted text.
    Unverifiable(String),
    /// The file does not have the recorded content: it or its directory was changed or replaced. `found` describes what
    /// is there now.
    Replaced { file: PathBuf, found: String },
    /// The audit record says that the program was stored, but the file is missing.
    Removed { file: PathBuf },
    /// There is nothing to compare: the audit record has no hash of a stored file ([`ProgramRecord::kept`] is `None`),
    /// and no stored file exists for the program. This is not reported as tampering.
    Absent,
}

/// Compares the stored file of a program with the audit record of its execution.
///
/// # Errors
/// The file or its directory cannot be read, or the record has no valid hash.
pub fn compare(directory: &Path, recorded: ProgramRecord<'_>) -> io::Result<ProgramComparison> {
    let ProgramRecord { language, code, kept } = recorded;
    let expected = kept.unwrap_or(code);
    // Hashes from the log are validated before they become part of a path.
    let is_hash = |text: &str| text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !is_hash(expected) || !is_hash(code) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "the record has no valid hash of the program",
        ));
    }
    let file = path(directory, language, expected);
    if is_replaced_directory(directory)? {
        return Ok(ProgramComparison::Replaced { file, found: "its directory is a link or a file".into() });
    }
    let content = match files::open_to_read(&file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(if kept.is_some() {
                ProgramComparison::Removed { file }
            } else {
                ProgramComparison::Absent
            });
        }
        Err(error) if files::is_not_regular_file(&error) => {
            return Ok(ProgramComparison::Replaced { file, found: error.to_string() });
        }
        opened => {
            let mut content = Vec::new();
            opened?.take(BYTES_MAX).read_to_end(&mut content)?;
            content
        }
    };
    let found = HEXLOWER.encode(&hash(&content));
    Ok(match String::from_utf8(content) {
        Ok(text) if found == code => ProgramComparison::Genuine(text),
        Ok(text) if found == expected => ProgramComparison::Redacted(text),
        Ok(text) if kept.is_none() && text.contains(REDACTED) => ProgramComparison::Unverifiable(text),
        _ => ProgramComparison::Replaced { file, found: format!("its SHA-256 is {found}") },
    })
}

/// Removes the stored programs that were last run before the time `before`.
pub(super) fn expire(directory: &Path, before: SystemTime) -> io::Result<()> {
    if is_replaced_directory(directory)? {
        return Err(io::Error::other("the directory `code` of the audit log is a link or a file"));
    }
    let entries = match std::fs::read_dir(directory.join(DIRECTORY)) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let entry = entry?;
        let metadata = entry.metadata()?;
        if !metadata.is_dir() && metadata.modified()? < before {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(text: &str) -> (tempfile::TempDir, String, PathBuf) {
        let directory = tempfile::tempdir().expect("a directory");
        let hash = HEXLOWER.encode(&hash(text.as_bytes()));
        let store = ProgramStore::new(directory.path().to_owned());
        store.keep(Language::Python, text, &hash).expect("kept");
        store.sync().expect("on the disk");
        let file = path(directory.path(), "python", &hash);
        (directory, hash, file)
    }

    #[test]
    fn a_stored_program_is_compared_with_its_record() {
        let (directory, hash, file) = kept("print(1)");
        let other = "0".repeat(64);
        let look = |code: &str, kept: Option<&str>| {
            compare(directory.path(), ProgramRecord { language: "python", code, kept }).expect("readable")
        };
        let text = || "print(1)".to_owned();
        assert_eq!(look(&hash, Some(&hash)), ProgramComparison::Genuine(text()));
        assert_eq!(look(&hash, None), ProgramComparison::Genuine(text()));
        assert_eq!(look(&other, Some(&hash)), ProgramComparison::Redacted(text()));
        assert_eq!(look(&other, None), ProgramComparison::Absent);
        assert!(matches!(look(&hash, Some(&other)), ProgramComparison::Removed { .. }));
        std::fs::write(&file, "print(2)").expect("written");
        assert!(matches!(look(&hash, Some(&hash)), ProgramComparison::Replaced { .. }));
        std::fs::write(&file, "print('[redacted KEY]')").expect("written");
        assert!(matches!(look(&hash, Some(&hash)), ProgramComparison::Replaced { .. }));
        assert!(matches!(look(&hash, None), ProgramComparison::Unverifiable(_)));
        for wrong in ["", "../../etc/passwd", "é"] {
            let recorded = ProgramRecord { language: "python", code: wrong, kept: None };
            assert!(compare(directory.path(), recorded).is_err(), "{wrong}");
        }
    }

    #[test]
    fn one_text_in_two_languages_is_two_stored_programs() {
        let (directory, hash, _) = kept("1");
        let store = ProgramStore::new(directory.path().to_owned());
        store.keep(Language::Python, "1", &hash).expect("kept");
        assert!(store.is_kept(Language::Python, &hash) && !store.is_kept(Language::Typescript, &hash));
        store.keep(Language::Typescript, "1", &hash).expect("kept");
        assert!(store.is_kept(Language::Typescript, &hash));
        for language in ["python", "typescript"] {
            let recorded = ProgramRecord { language, code: &hash, kept: Some(&hash) };
            let found = compare(directory.path(), recorded).expect("readable");
            assert_eq!(found, ProgramComparison::Genuine("1".into()), "{language}");
        }
    }

    #[test]
    fn changed_files_and_links_are_rewritten_and_a_linked_directory_is_refused() {
        let (directory, hash, file) = kept("print(1)");
        let target = directory.path().join("target");
        std::fs::write(&target, "print(1)").expect("written");
        let store = ProgramStore::new(directory.path().to_owned());
        let genuine = || std::fs::read_to_string(&file).is_ok_and(|text| text == "print(1)");
        std::fs::write(&file, "print(2)").expect("written");
        store.keep(Language::Python, "print(1)", &hash).expect("kept");
        assert!(genuine());
        std::fs::remove_file(&file).expect("removed");
        std::os::unix::fs::symlink(&target, &file).expect("a link");
        store.keep(Language::Python, "print(1)", &hash).expect("kept");
        assert!(genuine() && std::fs::symlink_metadata(&file).is_ok_and(|metadata| metadata.is_file()));
        let code = directory.path().join(DIRECTORY);
        std::fs::remove_dir_all(&code).expect("removed");
        std::fs::create_dir(directory.path().join("elsewhere")).expect("a directory");
        std::os::unix::fs::symlink(directory.path().join("elsewhere"), &code).expect("a link");
        assert!(store.keep(Language::Python, "print(1)", &hash).is_err());
        assert!(expire(directory.path(), SystemTime::now()).is_err());
    }
}
