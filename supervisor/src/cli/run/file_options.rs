//! The options of `lockhouse run` about files: those that the user gives to the run, and the folder for those that it
//! returns.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lockhouse_base::json::group_thousands;
use lockhouse_engine::execution::ResultFile;
use lockhouse_engine::supervisor::Supervisor;
use lockhouse_gate::GivenFile;
use lockhouse_messages::Owner;

use super::super::output_folder::OutputFolder;
use super::super::terminal::for_stderr;

/// Options of commands that run a program and can exchange files with it.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct FileOptions {
    /// Give this file to the program, which opens it by its name without the folder; may be given several times
    #[arg(long = "file", value_name = "PATH")]
    given: Vec<PathBuf>,
    /// Write the files that the program returns into this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Replace files in the folder of --out without a question
    #[arg(long, requires = "out")]
    yes: bool,
}

/// Why a file cannot be given to a run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GivenFileError {
    #[error("cannot read {path}: {source}")]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("{0} is not a regular file")]
    NotRegular(PathBuf),
    #[error("{0} has no name that a program could use")]
    NoName(PathBuf),
    #[error("two given files have the name {0}")]
    SameName(String),
}

impl FileOptions {
    /// Whether returned files are written into a folder.
    pub(crate) fn writes_files(&self) -> bool {
        self.out.is_some()
    }

    /// Opens the files that the user gives to the run.
    pub(crate) fn open_given(&self) -> Result<Vec<GivenFile>, GivenFileError> {
        let mut opened: Vec<GivenFile> = Vec::new();
        for path in &self.given {
            let file = open(path)?;
            if opened.iter().any(|other| other.name == file.name) {
                return Err(GivenFileError::SameName(file.name));
            }
            opened.push(file);
        }
        Ok(opened)
    }

    /// Writes the returned files into the folder, or prints how to get them. Returns whether all files were written.
    pub(crate) fn deliver(&self, supervisor: &Supervisor, files: &[ResultFile]) -> bool {
        let mut folder = self.out.as_ref().map(|path| OutputFolder::new(path.clone(), self.yes));
        let mut is_complete = true;
        for file in files {
            let name = file.name.as_deref().unwrap_or("file");
            let size =
                format!("{} bytes", group_thousands(usize::try_from(file.bytes).unwrap_or(usize::MAX)));
            let line = match (&mut folder, &file.handle) {
                (Some(folder), _) => {
                    match content(supervisor, file).map(|mut content| folder.write(name, &mut *content)) {
                        Some(Ok(path)) => format!("wrote {} ({size})", path.display()),
                        Some(Err(error)) => {
                            is_complete = false;
                            error.to_string()
                        }
                        None => {
                            is_complete = false;
                            format!("the file {name} is not stored any more")
                        }
                    }
                }
                (None, Some(handle)) => format!("file {name} ({size}): lockhouse result {handle} --out DIR"),
                (None, None) => continue,
            };
            eprintln!("lockhouse: {}", for_stderr(&line));
        }
        is_complete
    }
}

fn content(supervisor: &Supervisor, file: &ResultFile) -> Option<Box<dyn Read>> {
    if let Some(handle) = &file.handle {
        let (_, stored) = supervisor.result_files().open(Owner::LOCAL, handle)?;
        return Some(Box::new(stored));
    }
    Some(Box::new(io::Cursor::new(file.content.clone()?)))
}

fn open(path: &Path) -> Result<GivenFile, GivenFileError> {
    let unreadable = |source| GivenFileError::Unreadable { path: path.to_owned(), source };
    let real = path.canonicalize().map_err(unreadable)?;
    if !real.metadata().map_err(unreadable)?.is_file() {
        return Err(GivenFileError::NotRegular(path.to_owned()));
    }
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_NOFOLLOW;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(&real).map_err(unreadable)?;
    let status = file.metadata().map_err(unreadable)?;
    if !status.is_file() {
        return Err(GivenFileError::NotRegular(path.to_owned()));
    }
    // The name as the user wrote it, also if it is a link.
    let name = path.file_name().or(real.file_name()).and_then(|name| name.to_str());
    let name = name.ok_or_else(|| GivenFileError::NoName(path.to_owned()))?.to_owned();
    Ok(GivenFile { name, path: real, file: Arc::new(file), bytes: status.len() })
}
