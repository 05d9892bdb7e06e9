//! Every server of every file, in the order in which files count.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lockhouse_audit::digest;
use lockhouse_base::text_files::read_source;
use lockhouse_policies::SKILLS;
use lockhouse_protocol::ServerName;
use lockhouse_upstream::{ServerDefinition, ServerLimits};

use super::dialects::{self, Listed};
use super::error::ConfigError;
use super::left_out::LeftOut;
use super::permissions;
use super::references::Surroundings;
use super::roster::{Roster, usable};
use super::unused::Unused;

/// Servers of all files. Each is a process or a connection, held for as long as we run.
const SERVERS_MAX: usize = 500;

/// Collects servers. Of two with one name the first counts, and the other one is told.
pub(super) struct Gathering<'s> {
    roster: Roster,
    surroundings: &'s Surroundings,
    limits: ServerLimits,
    unused: Vec<Unused>,
    /// The SHA-256 of each file.
    digests: Vec<String>,
}

impl<'s> Gathering<'s> {
    pub(super) fn new(surroundings: &'s Surroundings, limits: ServerLimits) -> Self {
        Self { roster: Roster::default(), surroundings, limits, unused: Vec::new(), digests: Vec::new() }
    }

    /// A file that was named on the command line.
    pub(super) fn file(&mut self, path: &Path) -> Result<(), ConfigError> {
        permissions::refuse_if_writable(path)?;
        let source = read_source(path)?;
        self.digests.push(digest::of_text(&source.text));
        let listing = dialects::read(&source, self.surroundings)?;
        let listing = listing.ok_or_else(|| dialects::without_servers(&source))?;
        self.list(&source.path, listing.servers);
        Ok(())
    }

    /// A file that the configuration names: another program's, which may take it away.
    pub(super) fn named_file(&mut self, path: &str, configuration: &Path) -> Result<(), ConfigError> {
        let path = self.surroundings.expand_home(path);
        let path: PathBuf = configuration.parent().unwrap_or(Path::new("")).join(path);
        match self.file(&path) {
            Err(ConfigError::Unreadable { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                tracing::warn!(
                    "{}: there is no such file; servers_files of the configuration names it",
                    path.display()
                );
                Ok(())
            }
            done => done,
        }
    }

    /// The hashes of the files, in the order in which they count.
    pub(super) fn digests(&self) -> &[String] {
        &self.digests
    }

    /// What a file lists. Names that need no change go first: they are what the file's author means.
    pub(super) fn list(&mut self, path: &str, servers: Vec<Listed>) {
        let (as_they_are, changed): (Vec<_>, Vec<_>) =
            servers.into_iter().partition(|listed| ServerName::new(listed.name.as_str()).is_ok());
        for listed in as_they_are.into_iter().chain(changed) {
            let place = format!("{path}:{}", listed.line);
            let taken = self.take(&listed, &place);
            let unused = taken.as_ref().err().map(|reason| Unused::left_out(&listed.name, &place, reason));
            self.unused.extend(unused);
            match taken {
                Ok(()) => {}
                Err(LeftOut::Disabled) => tracing::debug!("{place}: server {:?} is disabled", listed.name),
                Err(reason) => {
                    tracing::warn!("{place}: server {:?} is left out: {reason}", listed.name);
                }
            }
        }
    }

    fn take(&mut self, listed: &Listed, place: &str) -> Result<(), LeftOut> {
        let entry = listed.entry.as_ref().map_err(Clone::clone)?;
        if self.roster.len() >= SERVERS_MAX {
            return Err(LeftOut::TooMany { max: SERVERS_MAX });
        }
        let name = usable(&listed.name).ok_or(LeftOut::Name)?;
        if name.as_str() == SKILLS {
            return Err(LeftOut::ReservedName);
        }
        let definition = entry.resolve(self.surroundings, self.limits, place.to_owned())?;
        match self.roster.add(name.clone(), definition) {
            Ok(()) if name.as_str() != listed.name => {
                tracing::warn!("{place}: server {:?} is called {name} here", listed.name);
                Ok(())
            }
            Err(clash) if clash.is_same => {
                tracing::debug!("{place}: server {name} is the same as at {}", clash.origin);
                Ok(())
            }
            Err(clash) if clash.name == name => Err(LeftOut::NameTaken { origin: clash.origin }),
            Err(clash) => Err(LeftOut::SameInCode { name: clash.name, origin: clash.origin }),
            Ok(()) => Ok(()),
        }
    }

    /// The servers, and those that are left out.
    pub(super) fn into_servers(self) -> (BTreeMap<ServerName, ServerDefinition>, Vec<Unused>) {
        (self.roster.into_servers(), self.unused)
    }
}
