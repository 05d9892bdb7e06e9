//! Collects the upstream servers of all configuration files, in order of precedence.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lockhouse_audit::digest;
use lockhouse_base::text_files::read_source;
use lockhouse_policies::SKILLS;
use lockhouse_protocol::ServerName;
use lockhouse_upstream::{Exposure, ServerDefinition, ServerLimits};

use super::dialects::{self, ListedServer};
use super::error::ConfigError;
use super::file_permissions;
use super::placeholders::{Environment, placeholder_files};
use super::skip_reason::SkipReason;
use super::skipped_server::SkippedServer;
use super::unique_servers::{UniqueServers, normalize_server_name};

/// The maximum number of upstream servers. Each server takes a process or a connection for as long as Lockhouse runs.
/// Bound: upstream servers.
const SERVERS_MAX: usize = 500;

/// Collects the upstream servers of all configuration files, which are added in order of precedence. If two servers
/// have the same name, the one that was added first is used, and the other one is reported as skipped.
pub(super) struct ServerCollector<'s> {
    servers: UniqueServers,
    environment: &'s Environment,
    limits: ServerLimits,
    /// Who can use a server if its table does not say so.
    exposure: Exposure,
    skipped: Vec<SkippedServer>,
    /// The SHA-256 of each servers file, in order of precedence.
    digests: Vec<String>,
}

impl<'s> ServerCollector<'s> {
    pub(super) fn new(environment: &'s Environment, limits: ServerLimits, exposure: Exposure) -> Self {
        Self {
            servers: UniqueServers::default(),
            environment,
            limits,
            exposure,
            skipped: Vec::new(),
            digests: Vec::new(),
        }
    }

    /// Adds the servers of a file that the command line names.
    pub(super) fn add_file(&mut self, path: &Path) -> Result<(), ConfigError> {
        file_permissions::refuse_untrusted(path, &self.environment.owners)?;
        let source = read_source(path)?;
        self.digests.push(digest::sha256_hex(&source.text));
        let directory = path.parent().unwrap_or(Path::new(""));
        for written in placeholder_files(&source.text) {
            self.environment.use_file(&directory.join(self.environment.expand_home(written)));
        }
        let listing = dialects::read(&source, self.environment)?;
        let listing = listing.ok_or_else(|| dialects::without_servers(&source))?;
        self.add_servers(&source.path, listing.servers);
        Ok(())
    }

    /// Adds the servers of a file that the configuration names. A relative `path` is relative to the directory of
    /// `configuration`, the configuration file. The servers file belongs to another program, which may delete it, so a
    /// missing file is only logged.
    pub(super) fn add_configured_file(
        &mut self,
        path: &str,
        configuration: &Path,
    ) -> Result<(), ConfigError> {
        let path = self.environment.expand_home(path);
        let path: PathBuf = configuration.parent().unwrap_or(Path::new("")).join(path);
        match self.add_file(&path) {
            Err(ConfigError::Unreadable { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                tracing::warn!(
                    "{}: there is no such file, but servers_files of the configuration names it",
                    path.display()
                );
                Ok(())
            }
            result => result,
        }
    }

    /// Returns the SHA-256 of each servers file, in order of precedence.
    pub(super) fn digests(&self) -> &[String] {
        &self.digests
    }

    /// Adds the servers of one file. Of two servers whose names become the same after normalization, the one whose name
    /// is valid without normalization takes precedence.
    pub(super) fn add_servers(&mut self, path: &str, servers: Vec<ListedServer>) {
        let (valid_names, other_names): (Vec<_>, Vec<_>) =
            servers.into_iter().partition(|listed| ServerName::new(listed.name.as_str()).is_ok());
        for listed in valid_names.into_iter().chain(other_names) {
            let origin = format!("{path}:{}", listed.line);
            let result = self.add_server(&listed, &origin);
            let skipped =
                result.as_ref().err().map(|reason| SkippedServer::new(&listed.name, &origin, reason));
            self.skipped.extend(skipped);
            match result {
                Ok(()) => {}
                Err(SkipReason::Disabled) => {
                    tracing::debug!("{origin}: server {:?} is disabled", listed.name)
                }
                Err(reason) => {
                    tracing::warn!("{origin}: server {:?} is left out: {reason}", listed.name);
                }
            }
        }
    }

    fn add_server(&mut self, listed: &ListedServer, origin: &str) -> Result<(), SkipReason> {
        let entry = listed.entry.as_ref().map_err(Clone::clone)?;
        if self.servers.len() >= SERVERS_MAX {
            return Err(SkipReason::TooMany { max: SERVERS_MAX });
        }
        let name = normalize_server_name(&listed.name).ok_or(SkipReason::InvalidName)?;
        if name.as_str() == SKILLS {
            return Err(SkipReason::ReservedName);
        }
        let mut definition = entry.resolve(self.environment, self.limits, origin.to_owned())?;
        if entry.exposure.is_none() {
            definition.exposure = self.exposure.clone();
        }
        match self.servers.add(name.clone(), definition) {
            Ok(()) if name.as_str() != listed.name => {
                tracing::warn!("{origin}: server {:?} is called {name} here", listed.name);
                Ok(())
            }
            Err(conflict) if conflict.is_same => {
                tracing::debug!("{origin}: server {name} is the same as at {}", conflict.origin);
                Ok(())
            }
            Err(conflict) if conflict.name == name => Err(SkipReason::NameTaken { origin: conflict.origin }),
            Err(conflict) => {
                Err(SkipReason::IdentifierConflict { name: conflict.name, origin: conflict.origin })
            }
            Ok(()) => Ok(()),
        }
    }

    /// Returns the usable servers, by name, and the skipped servers with the reasons.
    pub(super) fn into_servers(self) -> (BTreeMap<ServerName, ServerDefinition>, Vec<SkippedServer>) {
        (self.servers.into_servers(), self.skipped)
    }
}
