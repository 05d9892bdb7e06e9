//! Takes the recorded changes back, the newest first.
//!
//! A file that is as setup wrote it gets its former content. In a file that was changed since, only setup's own changes
//! are taken back.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lockhouse_audit::digest::sha256_hex;
use lockhouse_audit::{Audit, ChangeTarget, Channel, Edit, LocalUser};
use lockhouse_base::directories;
use lockhouse_base::text_files::{read_source, replace, write_target};
use lockhouse_client_files::{AiClient, EntryPlace, put_back, restore_code_mode_setting, take_out};
use lockhouse_config::{ConfigEdit, ConfigError, Files};
use lockhouse_policies::{Diagnostics, Source};

use crate::journal::{Change, Journal, Secret, Step};

/// What became of a change that was taken back.
pub struct Outcome {
    pub done: &'static str,
    /// What is left for the user to do.
    pub left: Vec<String>,
}

impl From<&'static str> for Outcome {
    fn from(done: &'static str) -> Self {
        Self { done, left: Vec::new() }
    }
}

/// Why a change cannot be taken back. The file is as it was.
#[derive(Debug, thiserror::Error)]
pub enum UndoError {
    #[error(transparent)]
    Journal(#[from] io::Error),
    #[error(transparent)]
    File(#[from] ConfigError),
    /// Lockhouse's configuration cannot be edited.
    #[error("{}", .0.without_excerpts())]
    Configuration(ConfigError),
}

/// What [`Undo::run`] did with one recorded change.
pub enum StepResult {
    Done(Outcome),
    /// The change stays, since another one could not be taken back.
    Left,
    Failed(UndoError),
}

/// The recorded changes, of which there is at least one.
pub struct Undo {
    journal: Journal,
}

impl Undo {
    /// Opens the journal. `None` if it has no change.
    ///
    /// # Errors
    /// The journal cannot be read, or another process uses it.
    pub fn open() -> Result<Option<Self>, ConfigError> {
        let journal = Journal::open_existing()?.filter(|journal| !journal.steps().is_empty());
        Ok(journal.map(|journal| Self { journal }))
    }

    /// Returns the recorded changes, newest first.
    pub fn steps(&self) -> impl Iterator<Item = &Step> {
        self.journal.steps().iter().rev()
    }

    /// Takes all changes back, each after its record in the audit log, and reports each with the copy of its file before the change. Returns whether none
    /// failed.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub fn run(
        mut self,
        audit: &Arc<Audit>,
        report: &mut dyn FnMut(&Step, &StepResult, Option<PathBuf>),
    ) -> Result<bool, ConfigError> {
        let mut failed: Vec<PathBuf> = Vec::new();
        for index in (0..self.journal.steps().len()).rev() {
            let step = self.journal.steps()[index].clone();
            // Lockhouse keeps the servers that an AI client's file could not get back.
            let stays = !failed.is_empty()
                && (failed.contains(&step.path) || !matches!(step.change, Change::Client { .. }));
            let result = match stays {
                true => StepResult::Left,
                false => take_back_recorded(audit, &self.journal, &step)
                    .map_or_else(StepResult::Failed, StepResult::Done),
            };
            report(&step, &result, self.journal.backup(&step));
            match result {
                StepResult::Done(Outcome { left, .. }) => {
                    let forgotten = self.journal.forget(index, !left.is_empty());
                    forgotten.map_err(|source| ConfigError::Unwritable { path: step.path, source })?;
                }
                StepResult::Failed(_) => failed.push(step.path),
                StepResult::Left => {}
            }
        }
        self.journal.remove_if_empty();
        Ok(failed.is_empty())
    }
}

/// Takes one change back, after the audit log has recorded that.
fn take_back_recorded(audit: &Arc<Audit>, journal: &Journal, step: &Step) -> Result<Outcome, UndoError> {
    let target = match step.change {
        Change::Client { .. } => ChangeTarget::Client,
        Change::Configuration { .. } => ChangeTarget::Configuration,
        Change::Policy => ChangeTarget::Policy,
    };
    let (path, action, through) = (step.path.as_path(), "setup --undo", Channel::Command);
    let edit = Edit { target, path, action, through, text: None, presence: None };
    let pending = audit.begin_change(edit, LocalUser::current()).map_err(io::Error::other)?;
    pending.finish(take_back(journal, step))
}

/// Takes one change back.
fn take_back(journal: &Journal, step: &Step) -> Result<Outcome, UndoError> {
    // The file may have become a symbolic link since, whose target is then changed.
    let path = write_target(&step.path)?;
    let text = |name: &String| journal.copy(step, name);
    let before = step.before.as_ref().map(text).transpose()?;
    let after = text(&step.after)?;
    let present = match path.exists() {
        true => Some(read_source(&path).map_err(ConfigError::from)?),
        false => None,
    };
    let unwritable = |source| ConfigError::Unwritable { path: path.clone(), source };
    let same = |one: &Option<Source>, other: &Option<Source>| {
        one.as_ref().map(|source| &source.text) == other.as_ref().map(|source| &source.text)
    };
    let outcome = if same(&present, &before) {
        "it is as it was before setup".into()
    } else {
        match (present, &before) {
            (Some(present), Some(before)) if present.text == after.text => {
                replace(&path, &before.text).map_err(unwritable)?;
                "has its former content again".into()
            }
            (Some(present), None) if present.text == after.text => {
                std::fs::remove_file(&path).map_err(unwritable)?;
                "removed".into()
            }
            (None, _) => {
                Outcome { done: "it was removed since", left: vec!["it is not created again".into()] }
            }
            (Some(present), _) => merge(&path, present, before.as_ref(), &after, &step.change)?,
        }
    };
    if let Change::Configuration { servers, secrets } = &step.change {
        remove_secrets(&path, secrets);
        remove_folders(&path, servers);
    }
    Ok(outcome)
}

/// Takes setup's own changes back in a file that was changed since.
fn merge(
    path: &Path,
    present: Source,
    before: Option<&Source>,
    after: &Source,
    change: &Change,
) -> Result<Outcome, UndoError> {
    match change {
        Change::Policy => {
            Ok(Outcome { done: "stays", left: vec!["it was changed since; remove it yourself".into()] })
        }
        Change::Configuration { servers, .. } => remove_servers(path, &present, after, servers),
        Change::Client { client, own, moved } => {
            let (text, left) = merge_client(*client, present, before, after, own.as_ref(), moved)
                .map_err(ConfigError::from)?;
            replace(path, &text)
                .map_err(|source| ConfigError::Unwritable { path: path.to_owned(), source })?;
            Ok(Outcome { done: "setup's changes were taken back, and later changes stay", left })
        }
    }
}

/// Removes the entry for Lockhouse from the present text of an AI client's file, and puts the moved servers back.
/// Returns the new text, and what is left to do.
fn merge_client(
    client: AiClient,
    mut present: Source,
    before: Option<&Source>,
    after: &Source,
    own: Option<&EntryPlace>,
    moved: &[EntryPlace],
) -> Result<(String, Vec<String>), Diagnostics> {
    let empty = Source { path: after.path.clone(), text: String::new() };
    let before = before.unwrap_or(&empty);
    let mut left = Vec::new();
    if let Some(own) = own {
        let places = std::slice::from_ref(own);
        if !own.exists_in(client, before) {
            present.text = take_out(client, &present, places)?;
        } else if own.is_same_in(client, &present, after) {
            present.text = take_out(client, &present, places)?;
            present.text = put_back(client, &present, before, places)?.text;
        } else if !own.is_same_in(client, &present, before) {
            left.push("its entry for Lockhouse was changed since, and stays".to_owned());
        }
        if client == AiClient::Codex {
            present.text = restore_code_mode_setting(&present, before)?;
        }
    }
    let put = put_back(client, &present, before, moved)?;
    left.extend(
        put.taken.iter().map(|place| format!("it has another server {}, which was not replaced", place.name)),
    );
    Ok((put.text, left))
}

/// Removes the servers from Lockhouse's configuration that are as setup wrote them.
fn remove_servers(
    path: &Path,
    present: &Source,
    after: &Source,
    servers: &[String],
) -> Result<Outcome, UndoError> {
    let files = Files { config: Some(path.to_owned()), ..Files::default() };
    let table = |source: &Source| toml::from_str::<toml::Table>(&source.text).unwrap_or_default();
    let (now, then) = (table(present), table(after));
    let server =
        |table: &toml::Table, name: &str| table.get("servers").and_then(|all| all.get(name)).cloned();
    let mut edit = ConfigEdit::open(&files).map_err(UndoError::Configuration)?;
    let mut left = Vec::new();
    for name in servers {
        if server(&now, name) == server(&then, name) {
            edit.remove_server(name);
        } else if server(&now, name).is_some() {
            left.push(format!("server {name} was changed since, and stays"));
        }
    }
    edit.save(&files).map_err(UndoError::Configuration)?;
    Ok(Outcome { done: "setup's servers were removed, and later changes stay", left })
}

/// Removes the folders of the sandboxed servers that the configuration no longer has. They contain caches and temporary
/// files.
fn remove_folders(configuration: &Path, servers: &[String]) {
    let Some(folders) = directories::state().map(|state| state.join("servers")) else { return };
    let text = read_source(configuration).map(|source| source.text).unwrap_or_default();
    let configured = toml::from_str::<toml::Table>(&text).unwrap_or_default();
    let is_configured = |name: &str| configured.get("servers").is_some_and(|all| all.get(name).is_some());
    for entry in std::fs::read_dir(folders).into_iter().flatten().flatten() {
        let name = entry.file_name();
        // `NAME-DIGEST`
        let server = name.to_str().and_then(|name| name.rsplit_once('-')).map(|(server, _)| server);
        if server.is_some_and(|server| servers.iter().any(|name| name == server) && !is_configured(server)) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// Removes the files with secrets that are as setup wrote them, and to which the configuration does not refer.
fn remove_secrets(configuration: &Path, secrets: &[Secret]) {
    let text = match configuration.exists() {
        true => match read_source(configuration) {
            Ok(source) => source.text,
            Err(_) => return,
        },
        false => String::new(),
    };
    for Secret { path, sha256 } in secrets {
        let is_used = text.contains(&*path.to_string_lossy());
        if !is_used && read_source(path).is_ok_and(|source| sha256_hex(&source.text) == *sha256) {
            let _ = std::fs::remove_file(path);
        }
        if let Some(directory) = path.parent() {
            // Only an empty directory is removed.
            let _ = std::fs::remove_dir(directory);
        }
    }
}
