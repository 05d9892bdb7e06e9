//! The change of one AI client's file: servers are moved out, and the entry for Lockhouse is added.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lockhouse_audit::{Audit, ChangeTarget, Channel, Edit, LocalUser, PendingChange};
use lockhouse_base::text_files::{read_source, replace, write_target};
use lockhouse_client_files::{
    AiClient, EntryPlace, Insertion, LaunchCommand, insert, lists_lockhouse, own_place, take_out,
};
use lockhouse_config::{ConfigError, Environment, Files};
use lockhouse_policies::Source;

use crate::journal::{Change, Journal};

/// The Lockhouse that AI clients get: its files, and the command that starts it.
pub struct Installation<'i> {
    pub files: &'i Files,
    pub start: &'i LaunchCommand,
    pub environment: &'i Environment,
    /// The log that records each change before it is made.
    pub audit: &'i Arc<Audit>,
}

impl Installation<'_> {
    /// Records a change of a file, which then has this text.
    pub(crate) fn record(&self, path: &Path, target: ChangeTarget, text: &str) -> io::Result<PendingChange> {
        let edit = Edit {
            target,
            path,
            action: "setup",
            through: Channel::Command,
            text: Some(text),
            presence: None,
        };
        self.audit.begin_change(edit, LocalUser::current()).map_err(io::Error::other)
    }
}

/// An AI client's file, and what to change in it.
pub struct ClientFile {
    pub client: AiClient,
    pub path: PathBuf,
    /// Whether the file gets the entry for Lockhouse.
    pub registers: bool,
    /// The servers to remove.
    pub moved: Vec<EntryPlace>,
}

/// The new text of an AI client's file.
pub struct ChangedFile {
    text: String,
    /// The change of the entry for Lockhouse; `None` if the entry stays as it is.
    pub insertion: Option<Insertion>,
}

impl ClientFile {
    /// Computes the change of the file as it is now. `None` if the file needs no change.
    ///
    /// # Errors
    /// The file cannot be read or changed.
    pub fn change(&self, installation: &Installation<'_>) -> Result<Option<ChangedFile>, ConfigError> {
        self.change_of(&read_or_empty(&self.path)?, installation)
    }

    /// Changes the file, after the journal has recorded the change. The file is read again, since the AI client may have
    /// changed it after it was shown. Returns whether the file needed a change.
    pub(crate) fn write(
        &self,
        installation: &Installation<'_>,
        journal: &mut Journal,
    ) -> Result<bool, ConfigError> {
        // A symbolic link is kept: its target is changed.
        let path = write_target(&self.path);
        let path = path.map_err(|source| ConfigError::Unwritable { path: self.path.clone(), source })?;
        let source = read_or_empty(&path)?;
        let Some(changed) = self.change_of(&source, installation)? else { return Ok(false) };
        let before = path.exists().then_some(source.text.as_str());
        let own = changed.insertion.is_some().then(|| own_place(self.client, &source));
        let change = Change::Client { client: self.client, own, moved: self.moved.clone() };
        let written = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        let written = written.and_then(|()| journal.record(&path, before, &changed.text, change));
        let written = written.and_then(|()| {
            installation
                .record(&self.path, ChangeTarget::Client, &changed.text)?
                .finish(replace(&path, &changed.text))
        });
        written.map_err(|source| ConfigError::Unwritable { path, source })?;
        Ok(true)
    }

    fn change_of(
        &self,
        source: &Source,
        installation: &Installation<'_>,
    ) -> Result<Option<ChangedFile>, ConfigError> {
        let mut changed = ChangedFile { text: source.text.clone(), insertion: None };
        if !self.moved.is_empty() {
            changed.text = take_out(self.client, source, &self.moved)?;
        }
        if self.registers {
            let rest = Source { path: source.path.clone(), text: changed.text.clone() };
            let Installation { start, environment, .. } = installation;
            if let Some(insertion) = entry_change(self.client, &rest, start, environment)? {
                changed.text.clone_from(&insertion.text);
                changed.insertion = Some(insertion);
            }
        }
        Ok((changed.text != source.text).then_some(changed))
    }
}

/// Computes the entry for Lockhouse in an AI client's file. `None` if the file has one already.
///
/// # Errors
/// The file is not valid in the format of its AI client.
pub fn entry_change(
    client: AiClient,
    source: &Source,
    start: &LaunchCommand,
    environment: &Environment,
) -> Result<Option<Insertion>, ConfigError> {
    if lists_lockhouse(source, environment) {
        return Ok(None);
    }
    Ok(insert(client, source, start)?)
}

/// Reads an AI client's file. A missing file is read as an empty one.
///
/// # Errors
/// The file exists and cannot be read.
pub fn read_or_empty(path: &Path) -> Result<Source, ConfigError> {
    match path.exists() {
        true => Ok(read_source(path)?),
        false => Ok(Source { path: path.display().to_string(), text: String::new() }),
    }
}
