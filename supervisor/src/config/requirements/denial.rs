//! Decides whether an entry of `[[denied]]` describes a server. The match is loose, so that a denied server cannot be used
//! in another form: a key that names several things denies each of them wherever it is, and what is not known is denied.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use lockhouse_upstream::{Endpoint, ServerCommand, ServerDefinition, program_digest};

use super::address::may_reach;
use super::identity::{Identity, ServerMatcher};

impl ServerMatcher {
    /// Whether a server is a denied one: all keys of this pattern match it.
    pub(super) fn denies(&self, definition: &ServerDefinition, identity: &Identity) -> bool {
        match (self, &definition.endpoint) {
            (Self::Program { path, arguments, variables, directory, sha256 }, Endpoint::Stdio(command)) => {
                let sets = |name: &String| command.environment.contains_key(name);
                path.as_ref().is_none_or(|path| may_be_program(path, identity))
                    && arguments.iter().all(|argument| has_argument(command, argument))
                    && variables.as_ref().is_none_or(|names| names.iter().any(sets))
                    && directory.as_ref().is_none_or(|directory| runs_in(directory, command))
                    && sha256.as_ref().is_none_or(|sha256| may_have_digest(sha256, identity))
            }
            (Self::Address { url, and_below, .. }, Endpoint::Http(endpoint)) => {
                may_reach(&endpoint.url, url, *and_below)
            }
            _ => false,
        }
    }
}

/// Whether a server's program is the file `denied`, also through links. A program that does not exist may be it: it may
/// appear before the server starts.
fn may_be_program(denied: &Path, identity: &Identity) -> bool {
    let file = |path: &Path| std::fs::metadata(path).map(|file| (file.dev(), file.ino())).ok();
    match identity {
        Identity::Program(path) => {
            path == denied || file(path).is_none_or(|found| file(denied) == Some(found))
        }
        Identity::Address(_) | Identity::Unknown => true,
    }
}

/// Whether a server has this argument, in any place. `--name=value` counts as both `--name` and `value`.
fn has_argument(command: &ServerCommand, denied: &str) -> bool {
    let is_it = |argument: &String| {
        let parts = argument.split_once('=').filter(|_| argument.starts_with('-'));
        argument == denied || parts.is_some_and(|(name, value)| name == denied || value == denied)
    };
    command.arguments.iter().any(is_it)
}

/// Whether a server runs in this directory. Without `cwd`, it runs in the current one.
fn runs_in(denied: &Path, command: &ServerCommand) -> bool {
    let directory = command.directory.clone().unwrap_or_else(|| PathBuf::from("."));
    let target = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    target(&directory) == target(denied)
}

/// Whether a server's program may have this SHA-256. That of a program that cannot be read is not known, so that a user
/// cannot hide a denied program from the check, for example by making it unreadable.
fn may_have_digest(denied: &str, identity: &Identity) -> bool {
    match identity {
        Identity::Program(path) => !program_digest(path).is_ok_and(|found| found != denied),
        Identity::Address(_) | Identity::Unknown => true,
    }
}
