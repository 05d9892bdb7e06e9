//! Writes files that a program returned into a folder that the user names.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};

use lockhouse_base::files::check_way;
use lockhouse_stores::result_files::{safe_name, unused_name};

use super::confirmation::ask_yes_no;
use super::terminal::for_stderr;

/// A folder for the files of one command. It is created with the first file.
pub(super) struct OutputFolder {
    path: PathBuf,
    /// Whether files are replaced without a question.
    overwrites: bool,
    /// The names of the files that the command has written.
    written: BTreeSet<String>,
}

/// Why a file was not written.
#[derive(Debug, thiserror::Error)]
pub(super) enum OutputError {
    #[error("{} exists: it was not replaced; use --yes to replace files without a question", .0.display())]
    Exists(PathBuf),
    #[error("{} is not a regular file, and is not replaced", .0.display())]
    NotRegular(PathBuf),
    #[error("cannot write {}: {source}", .path.display())]
    Failed { path: PathBuf, source: io::Error },
}

impl OutputFolder {
    pub(super) fn new(path: PathBuf, overwrites: bool) -> Self {
        Self { path, overwrites, written: BTreeSet::new() }
    }

    /// Writes a file, and returns its path. The name is made safe, so the file is directly in the folder. If a file with
    /// this name exists, asks on the terminal whether to replace it. A symbolic link is never followed.
    pub(super) fn write(&mut self, name: &str, content: &mut dyn Read) -> Result<PathBuf, OutputError> {
        let name = unused_name(&safe_name(name), |name| self.written.contains(name));
        let path = self.path.join(&name);
        let failed = |source| OutputError::Failed { path: path.clone(), source };
        check_way(&self.path).and_then(|()| std::fs::create_dir_all(&self.path)).map_err(failed)?;
        let replaces = match path.symlink_metadata() {
            Ok(status) if !status.is_file() => return Err(OutputError::NotRegular(path)),
            Ok(_) if !self.may_replace(&path) => return Err(OutputError::Exists(path)),
            Ok(_) => true,
            Err(_) => false,
        };
        let temporary = self.path.join(format!(".lockhouse-{}", uuid::Uuid::now_v7().simple()));
        let published = copy_to(&temporary, content).and_then(|()| publish(&temporary, &path, replaces));
        let _ = std::fs::remove_file(&temporary);
        match published {
            Ok(()) => {
                self.written.insert(name);
                Ok(path)
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(OutputError::Exists(path)),
            Err(source) => Err(failed(source)),
        }
    }

    fn may_replace(&self, path: &Path) -> bool {
        let question = format!("{} exists. Replace it?", for_stderr(&path.display().to_string()));
        self.overwrites || (io::stdin().is_terminal() && ask_yes_no(&question))
    }
}

fn copy_to(temporary: &Path, content: &mut dyn Read) -> io::Result<()> {
    let mut file: File = OpenOptions::new().write(true).create_new(true).open(temporary)?;
    io::copy(content, &mut file).map(drop)
}

/// Gives a complete file its name. Unless it replaces a file, a file of this name that appeared meanwhile is an error.
fn publish(temporary: &Path, path: &Path, replaces: bool) -> io::Result<()> {
    match replaces {
        true => std::fs::rename(temporary, path),
        // Unlike a rename, a hard link never replaces a file. Some file systems have none.
        false => match std::fs::hard_link(temporary, path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists && !path.exists() => {
                std::fs::rename(temporary, path)
            }
            linked => linked,
        },
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn files_stay_in_the_folder_and_links_are_not_followed() {
        let base = tempfile::tempdir().expect("a directory");
        let out = base.path().join("out");
        let mut folder = OutputFolder::new(out.clone(), true);
        let mut write = |name: &str| folder.write(name, &mut &b"new"[..]);
        assert_eq!(write("../x/a.csv").expect("written"), out.join("__x_a.csv"));
        assert_eq!(write("a.csv").expect("written"), out.join("a.csv"));
        assert_eq!(write("a.csv").expect("written"), out.join("a (2).csv"));
        std::fs::write(base.path().join("kept"), "old").expect("a file");
        symlink("../kept", out.join("link")).expect("a link");
        assert!(matches!(write("link"), Err(OutputError::NotRegular(_))));
        assert_eq!(std::fs::read(base.path().join("kept")).expect("a file"), b"old");
    }

    #[test]
    fn a_file_is_replaced_only_with_permission() {
        let base = tempfile::tempdir().expect("a directory");
        let path = base.path().join("a");
        std::fs::write(&path, "old").expect("a file");
        let write =
            |overwrites| OutputFolder::new(base.path().to_owned(), overwrites).write("a", &mut &b"new"[..]);
        // Without a terminal, nobody can be asked.
        if !io::stdin().is_terminal() {
            assert!(matches!(write(false), Err(OutputError::Exists(_))));
            assert_eq!(std::fs::read(&path).expect("a file"), b"old");
        }
        assert!(write(true).is_ok());
        assert_eq!(std::fs::read(&path).expect("a file"), b"new");
        assert_eq!(std::fs::read_dir(base.path()).expect("a directory").count(), 1);
    }
}
