//! Runs `lockhouse page-action` for actions that need the configuration with its secrets.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;

use lockhouse_page::{ActionError, ErrorCode};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;

use super::configured_action::{ConfiguredAction, action_error};
use crate::config::Files;

/// Maximum bytes of a result.
const RESULT_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// How the process for an action is started: with the configuration files of this command.
pub(super) struct ActionProcess {
    program: PathBuf,
    /// The options that name the configuration files.
    files: Vec<OsString>,
}

impl ActionProcess {
    pub(super) fn new(files: &Files) -> io::Result<Self> {
        let files = files.options().flat_map(|(option, value)| [option.into(), value.into_os_string()]);
        Ok(Self { program: std::env::current_exe()?, files: files.collect() })
    }

    /// Carries out an action in a process of its own, which is killed if the returned future is dropped.
    pub(super) async fn run(&self, action: &ConfiguredAction) -> Result<Value, ActionError> {
        let failed = |error: io::Error| action_error(ErrorCode::Failed, &error);
        let action = serde_json::to_vec(action).map_err(|error| failed(error.into()))?;
        let result = self.exchange(&action).await.map_err(failed)?;
        let without_result =
            |_| Err(ActionError::new(ErrorCode::Failed, "the command failed without a message"));
        serde_json::from_slice(&result).unwrap_or_else(without_result)
    }

    /// Returns what the process writes to its standard output.
    async fn exchange(&self, action: &[u8]) -> io::Result<Vec<u8>> {
        let mut command = Command::new(&self.program);
        command.arg("page-action").args(&self.files).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let mut result = Vec::new();
        if let (Some(mut stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) {
            stdin.write_all(action).await?;
            drop(stdin);
            stdout.take(RESULT_BYTES_MAX + 1).read_to_end(&mut result).await?;
        }
        if result.len() as u64 > RESULT_BYTES_MAX {
            return Err(io::Error::other("the result is too long for the page: run the command yourself"));
        }
        child.wait().await?;
        Ok(result)
    }
}
