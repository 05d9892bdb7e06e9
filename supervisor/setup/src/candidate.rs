//! Decides which of the MCP servers found in AI clients' files are imported.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lockhouse_catalog::python_name;
use lockhouse_config::{
    ConfigEdit, Environment, ListedServer, PlaceholderError, ServerEntry, SkipReason, normalize_server_name,
};
use lockhouse_protocol::ServerName;
use lockhouse_upstream::{ServerDefinition, ServerLimits};

use crate::server_tables::secret_names;

/// An MCP server found in an AI client's file, and the decision whether it is imported.
pub struct Candidate {
    pub client: String,
    pub path: PathBuf,
    pub line: usize,
    pub name: String,
    pub reach: String,
    /// The directory of the project to which the server is private. `None` if its AI client uses it in all projects.
    pub project: Option<String>,
    pub verdict: Verdict,
}

pub enum Verdict {
    Import {
        name: ServerName,
        entry: Box<ServerEntry>,
        /// Why the imported server cannot start yet, such as an environment variable that is not set. `None` if it can
        /// start.
        unresolved: Option<String>,
    },
    Skip(SkipReason),
    /// Another server has the name. The text says which one.
    Conflict(String),
    /// The server is the same as the configured or imported server `name`. The text says which one that is.
    Same {
        name: ServerName,
        reason: String,
    },
}

impl Candidate {
    pub fn imported(&self) -> Option<(&ServerName, &ServerEntry)> {
        match &self.verdict {
            Verdict::Import { name, entry, .. } => Some((name, entry)),
            Verdict::Skip(_) | Verdict::Conflict(_) | Verdict::Same { .. } => None,
        }
    }

    /// Whether the server is imported only if the user confirms its transport, HTTP+SSE.
    pub fn needs_confirmation(&self) -> bool {
        self.imported().is_some_and(|(_, entry)| entry.uses_sse())
    }

    /// Describes for the user whether and under which name the server is imported, which of its secrets are moved to
    /// files, and why it is skipped or cannot start yet.
    pub fn outcome(&self) -> String {
        let (name, entry, unresolved) = match &self.verdict {
            Verdict::Skip(reason) => return format!("skipped: {reason}"),
            Verdict::Conflict(reason) | Verdict::Same { reason, .. } => return format!("skipped: {reason}"),
            Verdict::Import { name, entry, unresolved } => (name, entry, unresolved),
        };
        let mut outcome = match name.as_str() == self.name {
            true => "imported".to_owned(),
            false => format!("imported as {name}"),
        };
        if let Some(project) = &self.project {
            outcome +=
                &format!("; private to the project {project} so far, and for all projects in Lockhouse");
        }
        if entry.uses_sse() {
            outcome += "; only if you confirm its transport, HTTP+SSE, which MCP has deprecated";
        }
        let secrets = secret_names(entry);
        if !secrets.is_empty() {
            outcome += &format!("; plaintext secrets are moved to files: {}", secrets.join(", "));
        }
        if let Some(unresolved) = unresolved {
            outcome += &format!("; cannot start yet: {unresolved}");
        }
        outcome
    }
}

/// The server that already uses a name: a configured server, or a server imported before from an AI
/// client's file.
enum NameOwner {
    Configured(Box<ServerDefinition>),
    Imported { client: String, entry: Box<ServerEntry> },
}

/// Decides for each found server in turn whether it is imported. Of several servers with the same name, the first one
/// is imported.
pub struct Importer<'s> {
    edit: &'s ConfigEdit,
    environment: &'s Environment,
    /// The configured and imported servers, by the identifier under which code imports each one.
    owners: BTreeMap<String, (ServerName, NameOwner)>,
}

impl<'s> Importer<'s> {
    pub fn new(
        configured: &BTreeMap<ServerName, ServerDefinition>,
        edit: &'s ConfigEdit,
        environment: &'s Environment,
    ) -> Self {
        let owner = |(name, definition): (&ServerName, &ServerDefinition)| {
            (python_name(name.as_str()), (name.clone(), NameOwner::Configured(Box::new(definition.clone()))))
        };
        Self { edit, environment, owners: configured.iter().map(owner).collect() }
    }

    pub fn candidate(&mut self, client: &str, path: &Path, listed: ListedServer) -> Candidate {
        let reach = listed.confirmed_entry().map_or_else(|_| "-".to_owned(), |entry| entry.summary());
        let verdict = self.verdict(client, &listed).unwrap_or_else(Verdict::Skip);
        let project = listed.project().map(str::to_owned);
        let (client, path) = (client.to_owned(), path.to_owned());
        Candidate { client, path, line: listed.line, name: listed.name, reach, project, verdict }
    }

    fn verdict(&mut self, client: &str, listed: &ListedServer) -> Result<Verdict, SkipReason> {
        let name = normalize_server_name(&listed.name).ok_or(SkipReason::InvalidName)?;
        let entry = listed.confirmed_entry()?.with_env_file(self.environment)?;
        let mut endpoint = None;
        let unresolved = match entry.resolve(self.environment, ServerLimits::default(), String::new()) {
            Ok(definition) => {
                endpoint = Some(definition.endpoint);
                None
            }
            // The reference may resolve when the server is started.
            Err(SkipReason::Placeholder { key, reason })
                if !matches!(reason, PlaceholderError::ClientOnly(_)) =>
            {
                Some(format!("{key}: {reason}"))
            }
            Err(reason) => return Err(reason),
        };
        if let Some((owner, owned_by)) = self.owners.get(&python_name(name.as_str())) {
            let reason = conflict_reason(&name, &entry, owner, owned_by);
            let is_same = match owned_by {
                // A server that another file lists is not in the configuration file itself.
                NameOwner::Configured(known) => {
                    Some(&known.endpoint) == endpoint.as_ref() && self.edit.server(owner.as_str()).is_some()
                }
                NameOwner::Imported { entry: known, .. } => known.endpoint == entry.endpoint,
            };
            return Ok(match is_same {
                true => Verdict::Same { name: owner.clone(), reason },
                false => Verdict::Conflict(reason),
            });
        }
        if self.edit.server(name.as_str()).is_some() {
            return Ok(Verdict::Conflict(
                "a server of that name is configured, but disabled or incomplete".into(),
            ));
        }
        let entry = Box::new(entry);
        let owner = NameOwner::Imported { client: client.to_owned(), entry: entry.clone() };
        self.owners.insert(python_name(name.as_str()), (name.clone(), owner));
        Ok(Verdict::Import { name, entry, unresolved })
    }
}

fn conflict_reason(
    name: &ServerName,
    entry: &ServerEntry,
    owner: &ServerName,
    owned_by: &NameOwner,
) -> String {
    let who = if owner == name {
        "that name".to_owned()
    } else {
        format!("the name {owner}, which is the same name in code")
    };
    match owned_by {
        NameOwner::Configured(known) if owner == name => {
            format!("a server of that name is configured in {}", known.origin)
        }
        NameOwner::Configured(known) => {
            format!("the server in {} has {who}: rename one of them", known.origin)
        }
        NameOwner::Imported { client, entry: other } if other.endpoint == entry.endpoint => {
            format!("it is the same server as that of {client}")
        }
        NameOwner::Imported { client, .. } => {
            format!("another server of {client} has {who}: rename one of them")
        }
    }
}
