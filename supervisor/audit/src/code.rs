//! Programs that ran, each kept once beside the log, in a file whose name is the SHA-256 of its content.
//!
//! A program that has secrets of the configuration is kept without them. The record of its execution has two hashes then:
//! that of the program as it ran (`code`), and that of the file (`code_kept`).

use parking_lot::{Mutex, MutexGuard};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::line::hash;
use data_encoding::HEXLOWER;
use lockhouse_base::files;
use lockhouse_base::language::Language;

const DIRECTORY: &str = "code";
/// Programs are smaller than this by configuration.
const BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Files that wait to be brought to the disk together; one more is brought there at once.
const UNSYNCED_MAX: usize = 1_000;
/// What stands in place of a secret. Records without `code_kept` have no hash of a text with it.
const REDACTED: &str = "[redacted ";

/// Where a program is kept.
fn path(directory: &Path, language: &str, hash: &str) -> PathBuf {
    let ending = if language == Language::Python.as_str() { "py" } else { "ts" };
    directory.join(DIRECTORY).join(format!("{hash}.{ending}"))
}

/// Puts programs beside the log of one process.
#[derive(Debug)]
pub(super) struct Store {
    directory: PathBuf,
    unsynced: Mutex<Vec<PathBuf>>,
}

impl Store {
    /// Beside the log in this directory.
    pub(super) fn new(directory: PathBuf) -> Self {
        Self { directory, unsynced: Mutex::default() }
    }

    /// Keeps a text that has this hash. One that is there already is younger again; a file that has been changed is written
    /// anew.
    pub(super) fn keep(&self, language: Language, text: &str, hash: &str) -> io::Result<()> {
        let path = path(&self.directory, language.as_str(), hash);
        match files::open_to_read(&path).and_then(|file| Ok((has(&file, text)?, file))) {
            Ok((true, file)) => return file.set_modified(SystemTime::now()),
            Ok((false, _)) => tracing::warn!("{} was changed, and is written anew", path.display()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => tracing::warn!("{} is written anew: {error}", path.display()),
        }
        if is_elsewhere(&self.directory)? {
            return Err(io::Error::other("the directory code of the audit log is a link or a file"));
        }
        files::replace(&path, text.as_bytes())?;
        let mut unsynced = self.unsynced();
        if unsynced.len() >= UNSYNCED_MAX {
            return sync(&path);
        }
        unsynced.push(path);
        Ok(())
    }

    /// Brings what is new to the disk: a loss of power must not look like a program that somebody changed.
    pub(super) fn sync(&self) -> io::Result<()> {
        let new = std::mem::take(&mut *self.unsynced());
        if new.is_empty() {
            return Ok(());
        }
        new.iter().try_for_each(|path| sync(path))?;
        File::open(self.directory.join(DIRECTORY))?.sync_all()
    }

    fn unsynced(&self) -> MutexGuard<'_, Vec<PathBuf>> {
        self.unsynced.lock()
    }
}

fn sync(path: &Path) -> io::Result<()> {
    match files::open_to_read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        file => file?.sync_all(),
    }
}

/// Whether this is all that the file has.
fn has(file: &File, text: &str) -> io::Result<bool> {
    if file.metadata()?.len() != text.len() as u64 {
        return Ok(false);
    }
    let mut content = Vec::with_capacity(text.len());
    file.take(text.len() as u64 + 1).read_to_end(&mut content)?;
    Ok(content == text.as_bytes())
}

/// Whether something else than a directory is where programs are kept.
fn is_elsewhere(directory: &Path) -> io::Result<bool> {
    match std::fs::symlink_metadata(directory.join(DIRECTORY)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        metadata => Ok(!metadata?.is_dir()),
    }
}

/// Whether there is a directory with programs.
pub(super) fn is_there(directory: &Path) -> bool {
    std::fs::symlink_metadata(directory.join(DIRECTORY)).is_ok()
}

/// Whether any program is kept.
pub(super) fn has_any(directory: &Path) -> bool {
    std::fs::read_dir(directory.join(DIRECTORY)).is_ok_and(|mut entries| entries.next().is_some())
}

/// What a record says of a program.
#[derive(Clone, Copy, Debug)]
pub struct Recorded<'a> {
    pub language: &'a str,
    /// The SHA-256 of the program as it ran.
    pub code: &'a str,
    /// The SHA-256 of its file, if it was kept.
    pub kept: Option<&'a str>,
}

/// What the file of a program is, compared with the record of its run.
#[derive(Debug, PartialEq, Eq)]
pub enum Kept {
    /// The program as it ran.
    Genuine(String),
    /// The same without secrets of the configuration.
    Redacted(String),
    /// A text without secrets, from a version that recorded no hash of it: it may be any text.
    Unverifiable(String),
    /// Not what was kept, and what it is instead.
    Replaced { file: PathBuf, found: String },
    /// It was kept, and there is no file.
    Removed { file: PathBuf },
    /// The record does not say that it was kept, and there is no file.
    Absent,
}

/// Compares the file of a program with the record of its run.
///
/// # Errors
/// That the file, or the directory, cannot be read.
pub fn compare(directory: &Path, recorded: Recorded<'_>) -> io::Result<Kept> {
    let Recorded { language, code, kept } = recorded;
    let expected = kept.unwrap_or(code);
    // What a log says is no path.
    let is_hash = |text: &str| text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !is_hash(expected) || !is_hash(code) {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the record has no valid hash of it"));
    }
    let file = path(directory, language, expected);
    if is_elsewhere(directory)? {
        return Ok(Kept::Replaced { file, found: "its directory is a link or a file".into() });
    }
    let content = match files::open_to_read(&file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(if kept.is_some() { Kept::Removed { file } } else { Kept::Absent });
        }
        Err(error) if files::is_no_file(&error) => {
            return Ok(Kept::Replaced { file, found: error.to_string() });
        }
        opened => {
            let mut content = Vec::new();
            opened?.take(BYTES_MAX).read_to_end(&mut content)?;
            content
        }
    };
    let found = HEXLOWER.encode(&hash(&content));
    Ok(match String::from_utf8(content) {
        Ok(text) if found == code => Kept::Genuine(text),
        Ok(text) if found == expected => Kept::Redacted(text),
        Ok(text) if kept.is_none() && text.contains(REDACTED) => Kept::Unverifiable(text),
        _ => Kept::Replaced { file, found: format!("its SHA-256 is {found}") },
    })
}

/// Removes what nothing has run since.
pub(super) fn expire(directory: &Path, before: SystemTime) -> io::Result<()> {
    if is_elsewhere(directory)? {
        return Err(io::Error::other("the directory code of the audit log is a link or a file"));
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
        let store = Store::new(directory.path().to_owned());
        store.keep(Language::Python, text, &hash).expect("kept");
        store.sync().expect("on the disk");
        let file = path(directory.path(), "python", &hash);
        (directory, hash, file)
    }

    #[test]
    fn a_program_is_compared_with_what_its_record_says() {
        let (directory, hash, file) = kept("print(1)");
        let other = "0".repeat(64);
        let look = |code: &str, kept: Option<&str>| {
            compare(directory.path(), Recorded { language: "python", code, kept }).expect("readable")
        };
        let text = || "print(1)".to_owned();
        assert_eq!(look(&hash, Some(&hash)), Kept::Genuine(text()));
        assert_eq!(look(&hash, None), Kept::Genuine(text()));
        assert_eq!(look(&other, Some(&hash)), Kept::Redacted(text()));
        assert_eq!(look(&other, None), Kept::Absent);
        assert!(matches!(look(&hash, Some(&other)), Kept::Removed { .. }));
        std::fs::write(&file, "print(2)").expect("written");
        assert!(matches!(look(&hash, Some(&hash)), Kept::Replaced { .. }));
        std::fs::write(&file, "print('[redacted KEY]')").expect("written");
        assert!(matches!(look(&hash, Some(&hash)), Kept::Replaced { .. }));
        assert!(matches!(look(&hash, None), Kept::Unverifiable(_)));
        for wrong in ["", "../../etc/passwd", "é"] {
            let recorded = Recorded { language: "python", code: wrong, kept: None };
            assert!(compare(directory.path(), recorded).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_file_that_was_changed_or_is_a_link_is_written_anew_and_a_directory_elsewhere_is_refused() {
        let (directory, hash, file) = kept("print(1)");
        let target = directory.path().join("target");
        std::fs::write(&target, "print(1)").expect("written");
        let store = Store::new(directory.path().to_owned());
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
