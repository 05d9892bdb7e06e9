//! The user's part of the configuration: what the configuration file and the servers files say, without the
//! administrator's requirements.

use std::collections::BTreeMap;
use std::path::PathBuf;

use lockhouse_protocol::ServerName;
use lockhouse_upstream::{Confinement, ConfinementProfile, Endpoint, RunAs, ServerDefinition};

use super::config_toml::{ConfigToml, load_document};
use super::error::ConfigError;
use super::files::Files;
use super::placeholders::Environment;
use super::servers::ServerCollector;
use super::skipped_server::SkippedServer;

/// What the user's files say, with all placeholders resolved. A process keeps it, so that it can apply requirements
/// without a file of the user.
#[derive(Clone)]
pub(super) struct UserPart {
    pub(super) document: ConfigToml,
    /// The path of the configuration file; empty if there is none.
    pub(super) path: PathBuf,
    pub(super) servers: BTreeMap<ServerName, ServerDefinition>,
    pub(super) skipped: Vec<SkippedServer>,
    /// The SHA-256 of each file.
    pub(super) digests: Vec<String>,
    pub(super) environment: Environment,
}

/// Without the environment, which may hold secrets.
impl std::fmt::Debug for UserPart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UserPart").field("path", &self.path).finish_non_exhaustive()
    }
}

impl UserPart {
    /// Reads the configuration file and the servers files.
    ///
    /// # Errors
    /// [`ConfigError`] for the first file that cannot be used, with all faults of that file.
    pub(super) fn load(files: &Files) -> Result<Self, ConfigError> {
        let environment =
            Environment { owners: files.owners(), person: files.person, ..Environment::from_process() };
        let (document, path) = load_document(files, &environment)?;
        let mut collector =
            ServerCollector::new(&environment, document.server_limits(), files.expose.exposure());
        for file in &files.servers {
            collector.add_file(file)?;
        }
        collector.add_servers(&path.display().to_string(), document.servers.clone());
        for file in &document.servers_files {
            collector.add_configured_file(file, &path)?;
        }
        let digests = document.digest.iter().chain(collector.digests()).cloned().collect();
        let (servers, skipped) = collector.into_servers();
        Ok(Self { document, path, servers, skipped, digests, environment })
    }
}

/// Gives each server that is a process a sandbox, unless it has one. A server in the account of the system's engine must not
/// reach the files, sockets and processes of that engine, so it is not started with a part of the sandbox.
pub(super) fn confine(servers: &mut BTreeMap<ServerName, ServerDefinition>) {
    for definition in servers.values_mut() {
        if let Endpoint::Stdio(command) = &mut definition.endpoint {
            let default = || Confinement::with_profile(ConfinementProfile::Default);
            let confinement = command.confinement.get_or_insert_with(default);
            confinement.requires_full |= command.run_as == RunAs::Lockhouse;
        }
    }
}
