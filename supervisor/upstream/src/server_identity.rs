//! Identifies an upstream server by how it is reached, in the names of the files that Lockhouse stores for it.

use data_encoding::HEXLOWER;
use lockhouse_protocol::ServerName;
use sha2::{Digest, Sha256};

use super::definition::{Endpoint, ServerDefinition};

/// Number of characters of a server definition's digest in the names of the server's files.
pub(super) const DIGEST_CHARS: usize = 16;

/// Builds a file name from the server's name and a digest of how the server is reached. So a server with the same name
/// but another command or URL has files of its own.
pub(super) fn file_name(name: &ServerName, definition: &ServerDefinition) -> String {
    format!("{name}-{}.json", &identity(definition)[..DIGEST_CHARS])
}

/// Returns a digest of how the server is reached: by its command or its URL. The digest omits the values of environment
/// variables, so that it stays the same when a token in a variable changes.
pub(super) fn identity(definition: &ServerDefinition) -> String {
    let mut hasher = Sha256::new();
    let mut part = |part: &str| hasher.update(format!("{}:{part}", part.len()));
    match &definition.endpoint {
        Endpoint::Stdio(command) => {
            part("stdio");
            part(&command.program);
            command.arguments.iter().for_each(|argument| part(argument));
            part("environment");
            command.environment.keys().for_each(|name| part(name));
            command.directory.iter().for_each(|directory| part(&directory.to_string_lossy()));
        }
        Endpoint::Http(endpoint) => {
            part("http");
            part(endpoint.url.as_str());
        }
        Endpoint::Socket(path) => {
            part("socket");
            part(&path.to_string_lossy());
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
            ServerDefinition::new(Endpoint::Stdio(command), ServerLimits::default(), String::new())
        };
        let one = identity(&definition(&["a", "b"], "x"));
        assert_eq!(one, identity(&definition(&["a", "b"], "y")));
        assert_ne!(one, identity(&definition(&["ab"], "x")));
        assert_ne!(one, identity(&definition(&["a"], "x")));
    }
}
