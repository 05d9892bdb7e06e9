//! Makes the changes of a plan, each after the journal has recorded it.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use lockhouse_audit::ChangeTarget;
use lockhouse_audit::digest::sha256_hex;
use lockhouse_base::text_files::{read_source, replace, write_target};
use lockhouse_client_files::{AiClient, own_place};
use lockhouse_config::{ConfigEdit, ConfigError, policy_path, recorded_config_path, write_policy};
use lockhouse_policies::{ServerOffer, render_template};

use crate::client_change::{ClientFile, Installation, read_or_empty};
use crate::journal::{Change, Journal, Secret};
use crate::plan::Plan;
use crate::server_tables::write_tables;

/// A step of [`Plan::apply`] that has ended.
pub enum Applied<'p> {
    /// The servers were added to the configuration file.
    Configuration(&'p Path),
    /// The first policy was written.
    Policy(&'p Path),
    /// No first policy was written, since no server has any tools.
    NoPolicy,
    /// An AI client's file was changed.
    Client(&'p ClientFile),
    /// An AI client's file could not be changed. The steps after it are made nevertheless.
    ClientFailed(ConfigError),
}

impl Plan<'_> {
    /// Adds the servers to the configuration, writes the first policy, and changes the files of AI clients. `offers` are
    /// the tools of the servers, for the policy. Each step is reported when it has ended.
    ///
    /// # Errors
    /// The configuration or the policy cannot be written. Then no later step was made.
    pub fn apply(
        &self,
        installation: &Installation<'_>,
        edit: ConfigEdit,
        offers: &[ServerOffer],
        journal: &mut Journal,
        report: &mut dyn FnMut(Applied<'_>),
    ) -> Result<(), ConfigError> {
        if !self.servers.is_empty() {
            let path = edit.path().to_owned();
            self.add_servers(installation, edit, journal)?;
            report(Applied::Configuration(&path));
        }
        if self.writes_policy && offers.is_empty() {
            report(Applied::NoPolicy);
        } else if self.writes_policy {
            let path = policy_path(installation.files)?;
            let text = render_template(offers);
            let written = journal.record(&path, None, &text, Change::Policy);
            let written = written.and_then(|()| {
                installation
                    .record(&path, ChangeTarget::Policy, &text)?
                    .finish(write_policy(&path, &text, false))
            });
            written.map_err(|source| ConfigError::Unwritable { path: path.clone(), source })?;
            report(Applied::Policy(&path));
        }
        for file in &self.files {
            match file.write(installation, journal) {
                Ok(true) => report(Applied::Client(file)),
                Ok(false) => {}
                Err(error) => report(Applied::ClientFailed(error)),
            }
        }
        Ok(())
    }

    /// Writes the servers into the configuration file, and their secrets into files. If the configuration cannot be
    /// written, the files with secrets are removed again.
    fn add_servers(
        &self,
        installation: &Installation<'_>,
        edit: ConfigEdit,
        journal: &mut Journal,
    ) -> Result<(), ConfigError> {
        let mut secrets = Vec::new();
        let written = self.add_recorded(installation, edit, journal, &mut secrets);
        if written.is_err() {
            secrets.iter().for_each(|path| drop(std::fs::remove_file(path)));
        }
        written
    }

    fn add_recorded(
        &self,
        installation: &Installation<'_>,
        mut edit: ConfigEdit,
        journal: &mut Journal,
        secrets: &mut Vec<PathBuf>,
    ) -> Result<(), ConfigError> {
        let path = edit.path().to_owned();
        let before = if path.exists() { Some(read_source(&path)?.text) } else { None };
        let servers: Vec<_> = self.servers.iter().map(|server| (server.name(), &server.entry)).collect();
        write_tables(&mut edit, &servers, secrets)?;
        edit.share_engine_if_new();
        let mut recorded = Vec::new();
        for path in secrets.iter() {
            recorded.push(Secret { path: path.clone(), sha256: sha256_hex(&read_source(path)?.text) });
        }
        let names = self.servers.iter().map(|server| server.name().to_string()).collect();
        let change = Change::Configuration { servers: names, secrets: recorded };
        let unwritable = |source| ConfigError::Unwritable { path: path.clone(), source };
        journal.record(&path, before.as_deref(), &edit.text(), change).map_err(unwritable)?;
        let (recorded_path, text) = (recorded_config_path(installation.files), edit.text());
        let prepared = edit.prepare(installation.files)?;
        let pending = installation.record(&recorded_path, ChangeTarget::Configuration, &text);
        pending.map_err(unwritable)?.finish(prepared.commit())?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).map_err(unwritable)
    }
}

/// Replaces the text of an AI client's file, in which the entry for Lockhouse changes, after the journal has recorded it.
///
/// # Errors
/// The file cannot be read or written, or the journal cannot record the change.
pub fn replace_client_file(
    installation: &Installation<'_>,
    client: AiClient,
    path: &Path,
    text: &str,
    journal: &mut Journal,
) -> io::Result<()> {
    let named = path;
    let path = write_target(named)?;
    let before = read_or_empty(&path).map_err(io::Error::other)?;
    let change = Change::Client { client, own: Some(own_place(client, &before)), moved: Vec::new() };
    journal.record(&path, Some(&before.text), text, change)?;
    installation.record(named, ChangeTarget::Client, text)?.finish(replace(&path, text))
}
