//! Where a server's files are kept.

use std::path::PathBuf;
use std::time::Duration;

use lockhouse_protocol::ServerName;
use sha2::{Digest, Sha256};

use super::definition::{Reach, ServerDefinition};
use data_encoding::HEXLOWER;

/// Characters of a definition's digest in a file's name.
const DIGEST_CHARS: usize = 16;

/// The directories of this installation; without one, what would be in it is not kept.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// What can be found out again.
    pub cache: Option<PathBuf>,
    /// What cannot.
    pub state: Option<PathBuf>,
    /// How long the tools that were last seen stand for a server that is not connected.
    pub tools_lifetime: Duration,
    /// Whether it is kept what results look like.
    pub learns_shapes: bool,
}

impl Places {
    /// The tools of a server as they were last seen.
    pub(super) fn tools(&self, name: &ServerName, definition: &ServerDefinition) -> Option<PathBuf> {
        Some(self.cache.as_ref()?.join("tools").join(file(name, definition)))
    }

    /// What results of the server's tools look like.
    pub(super) fn shapes(&self, name: &ServerName, definition: &ServerDefinition) -> Option<PathBuf> {
        Some(self.cache.as_ref()?.join("shapes").join(file(name, definition)))
    }

    /// What of a server can be found out again.
    pub fn cached(&self, name: &ServerName, definition: &ServerDefinition) -> impl Iterator<Item = PathBuf> {
        self.tools(name, definition).into_iter().chain(self.shapes(name, definition))
    }

    /// The tools of a server as a person knows them.
    pub fn pins(&self, name: &ServerName, definition: &ServerDefinition) -> Option<PathBuf> {
        Some(self.state.as_ref()?.join("pins").join(file(name, definition)))
    }

    /// What a server wrote to its standard error.
    pub fn log(&self, name: &ServerName) -> Option<PathBuf> {
        Some(self.state.as_ref()?.join("logs").join(format!("{name}.log")))
    }
}

/// A server that is reached in another way is another server, whatever its name.
fn file(name: &ServerName, definition: &ServerDefinition) -> String {
    format!("{name}-{}.json", &identity(definition)[..DIGEST_CHARS])
}

/// A digest of how the server is reached. Values of its environment are left out: a new token makes no new server.
fn identity(definition: &ServerDefinition) -> String {
    let mut hasher = Sha256::new();
    let mut part = |part: &str| hasher.update(format!("{}:{part}", part.len()));
    match &definition.reach {
        Reach::Stdio(command) => {
            part("stdio");
            part(&command.program);
            command.arguments.iter().for_each(|argument| part(argument));
            part("environment");
            command.environment.keys().for_each(|name| part(name));
            command.directory.iter().for_each(|directory| part(&directory.to_string_lossy()));
        }
        Reach::Http(endpoint) => {
            part("http");
            part(endpoint.url.as_str());
        }
    }
    HEXLOWER.encode(&hasher.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::{ServerCommand, ServerLimits};

    #[test]
    fn a_server_is_known_by_how_it_is_reached_and_not_by_its_secrets() {
        let definition = |arguments: &[&str], token: &str| {
            let command = ServerCommand {
                program: "npx".into(),
                arguments: arguments.iter().map(ToString::to_string).collect(),
                environment: [("TOKEN".to_owned(), token.to_owned())].into(),
                ..ServerCommand::default()
            };
            ServerDefinition::new(Reach::Stdio(command), ServerLimits::default(), String::new())
        };
        let one = identity(&definition(&["a", "b"], "x"));
        assert_eq!(one, identity(&definition(&["a", "b"], "y")));
        assert_ne!(one, identity(&definition(&["ab"], "x")));
        assert_ne!(one, identity(&definition(&["a"], "x")));
    }
}
