//! The change of one AI client's file: servers are moved out, and the entry for Lockhouse is added.

use std::path::PathBuf;

use lockhouse_base::text_files::{replace, write_target};
use lockhouse_client_files::{AiClient, EntryPlace, Insertion, LaunchCommand, own_place, take_out};
use lockhouse_config::{ConfigError, Environment};
use lockhouse_policies::Source;

use super::journal::{Change, Journal};
use crate::cli::init::{self, read_or_empty, show_entry};
use crate::cli::print_config_error;
use crate::cli::terminal::sanitize;

/// An AI client's file, and what to change in it.
pub(super) struct ClientFile {
    pub(super) client: AiClient,
    pub(super) path: PathBuf,
    /// Whether the file gets the entry for Lockhouse.
    pub(super) registers: bool,
    /// The servers to remove.
    pub(super) moved: Vec<EntryPlace>,
}

struct Changed {
    text: String,
    insertion: Option<Insertion>,
}

impl ClientFile {
    /// Prints the change. Returns whether there is one. Servers are shown by name, since their entries may contain
    /// secrets.
    pub(super) fn show(&self, start: &LaunchCommand, environment: &Environment) -> bool {
        let path = sanitize(&self.path.display().to_string());
        let changed = read_or_empty(&self.path).and_then(|source| self.change(&source, start, environment));
        let changed = match changed {
            Ok(Some(changed)) => changed,
            Ok(None) => {
                if self.registers {
                    println!("{} needs no change: {path}", self.client.name());
                }
                return false;
            }
            Err(error) => {
                print_config_error(&error);
                return false;
            }
        };
        println!("{}: {path}", self.client.name());
        if let Some(insertion) = &changed.insertion {
            show_entry(insertion);
        }
        if !self.moved.is_empty() {
            let names: Vec<&str> = self.moved.iter().map(|place| place.name.as_str()).collect();
            println!("moved out: {}", sanitize(&names.join(", ")));
        }
        println!();
        true
    }

    /// Changes the file, after the journal has recorded the change. The file is read again, since the AI client may have
    /// changed it after it was shown.
    pub(super) fn write(
        &self,
        start: &LaunchCommand,
        environment: &Environment,
        journal: &mut Journal,
    ) -> Result<(), ConfigError> {
        // A symbolic link is kept: its target is changed.
        let path = write_target(&self.path);
        let path = path.map_err(|source| ConfigError::Unwritable { path: self.path.clone(), source })?;
        let source = read_or_empty(&path)?;
        let Some(changed) = self.change(&source, start, environment)? else { return Ok(()) };
        let before = path.exists().then_some(source.text.as_str());
        let own = changed.insertion.is_some().then(|| own_place(self.client, &source));
        let change = Change::Client { client: self.client, own, moved: self.moved.clone() };
        let written = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        let written = written.and_then(|()| journal.record(&path, before, &changed.text, change));
        let written = written.and_then(|()| replace(&path, &changed.text));
        written.map_err(|source| ConfigError::Unwritable { path: path.clone(), source })?;
        println!("wrote {}", sanitize(&self.path.display().to_string()));
        Ok(())
    }

    fn change(
        &self,
        source: &Source,
        start: &LaunchCommand,
        environment: &Environment,
    ) -> Result<Option<Changed>, ConfigError> {
        let mut changed = Changed { text: source.text.clone(), insertion: None };
        if !self.moved.is_empty() {
            changed.text = take_out(self.client, source, &self.moved)?;
        }
        if self.registers {
            let rest = Source { path: source.path.clone(), text: changed.text.clone() };
            if let Some(insertion) = init::change(self.client, &rest, start, environment)? {
                changed.text.clone_from(&insertion.text);
                changed.insertion = Some(insertion);
            }
        }
        Ok((changed.text != source.text).then_some(changed))
    }
}
