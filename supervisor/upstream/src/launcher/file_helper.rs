//! The helper of the server `files` in the session of the person: it uses files with the rights of this person, within a
//! sandbox of the configured folders.

use std::path::{Path, PathBuf};

use tokio::process::{ChildStdin, ChildStdout};
use tokio::time::Instant;

use super::launched_process::LaunchedProcess;
use super::messages::LaunchRequest;
use super::{LaunchError, Launchers};
use crate::definition::{Confinement, ServerCommand};

/// A helper, and the engine's ends of its standard input and output. Dropping this ends the helper.
pub struct FileHelperProcess {
    pub input: ChildStdin,
    pub output: ChildStdout,
    process: LaunchedProcess,
}

impl FileHelperProcess {
    /// Whether the launcher has not reported its end.
    pub fn is_running(&self) -> bool {
        self.process.is_running()
    }
}

impl Launchers {
    /// Starts a helper that reaches these folders, and those above them if they do not exist. Waits for a launcher until
    /// `deadline`.
    ///
    /// # Errors
    /// If no launcher is connected, or the helper cannot be started.
    pub async fn start_file_helper(
        &self,
        read: Vec<PathBuf>,
        write: Vec<PathBuf>,
        deadline: Instant,
    ) -> Result<FileHelperProcess, LaunchError> {
        let request = LaunchRequest::FileHelper { read, write };
        // The helper prints nothing that the engine needs.
        let (process, (input, output, _)) = self.launch(&request, deadline).await?;
        Ok(FileHelperProcess { input, output, process })
    }
}

/// Returns the command that starts a helper.
pub(super) fn command(read: &[PathBuf], write: &[PathBuf]) -> ServerCommand {
    let confinement = Confinement {
        read: read.iter().map(|path| existing(path).to_owned()).collect(),
        write: write.iter().map(|path| folder_of_changes(path).to_owned()).collect(),
        ..Confinement::default()
    };
    ServerCommand {
        program: "/proc/self/exe".into(),
        arguments: vec!["file-helper".into()],
        directory: Some("/".into()),
        confinement: Some(confinement),
        ..ServerCommand::default()
    }
}

/// Returns the path, or the folder above it that exists: the kernel can permit only what exists.
fn existing(path: &Path) -> &Path {
    path.ancestors().find(|path| path.exists()).unwrap_or(path)
}

/// Returns the folder in which a file with this path is written: a new file takes the place of the old one.
fn folder_of_changes(path: &Path) -> &Path {
    path.ancestors().find(|path| path.is_dir()).unwrap_or(path)
}
