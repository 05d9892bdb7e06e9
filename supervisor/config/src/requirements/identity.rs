//! Identifies an upstream server independently of its name: by the program that it executes, or by its URL.

use std::path::{Path, PathBuf};

use lockhouse_upstream::{Endpoint, Proxy, REQUIRED_PATH, ServerCommand, ServerDefinition, program_digest};
use nix::unistd::{AccessFlags, access};
use url::Url;

use super::address::is_at;

/// The identity of an upstream server, as far as it is known before the server starts.
#[derive(Debug)]
pub(super) enum Identity {
    /// The server is a process: the absolute path to which its command resolves.
    Program(PathBuf),
    Address(Url),
    /// The server's program is not known: its command resolves to no program, or was not resolved because no
    /// requirements file applies.
    Unknown,
}

/// A pattern in a requirements file that describes approved or denied servers. Its paths are absolute.
#[derive(Debug)]
pub(super) enum ServerMatcher {
    Program {
        path: Option<PathBuf>,
        arguments: Vec<String>,
        variables: Option<Vec<String>>,
        directory: Option<PathBuf>,
        sha256: Option<String>,
    },
    /// The server must have this URL. With `and_below`, its URL may also be any URL of the same origin whose path
    /// begins with the path of `url`. It may have only this proxy.
    Address { url: Url, and_below: bool, proxy: Option<Url> },
}

/// How a server differs from an approved entry of a requirements file. The messages contain no value that may be a
/// secret.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum Mismatch {
    #[error("its command is {0}")]
    Command(PathBuf),
    #[error("its command is not found")]
    NoCommand,
    #[error("its arguments do not begin as approved")]
    Arguments,
    #[error("its env sets {0}, which is not approved: `env` of the entry does not name it")]
    Variable(String),
    #[error("its cwd is {0}, which is not approved: `cwd` of the entry does not name it")]
    Directory(PathBuf),
    #[error("it has no cwd, and the approved one has {0}")]
    NoDirectory(PathBuf),
    #[error("its program {path} has the sha256 {found}")]
    Digest { path: PathBuf, found: String },
    #[error("its program {path} cannot be read: {reason}")]
    Unreadable { path: PathBuf, reason: String },
    #[error("it is reached at {0}")]
    Address(String),
    #[error("its proxy is not approved: `proxy` of the entry does not name it")]
    Proxy,
    #[error("it has a command where a url is approved, or a url where a command is")]
    OtherKind,
}

impl Identity {
    /// Determines the identity of a server. The program of a server that requirements fix (`is_fixed`) is not looked up in
    /// the user's PATH.
    pub(super) fn from_endpoint(reach: &Endpoint, is_fixed: bool) -> Self {
        match reach {
            Endpoint::Stdio(command) => {
                resolve_program(command, is_fixed).map_or(Self::Unknown, Self::Program)
            }
            Endpoint::Http(endpoint) => Self::Address(endpoint.url.clone()),
            // Only a requirements file that fixes the servers permits one of these.
            Endpoint::Socket(_) => Self::Unknown,
        }
    }
}

/// Resolves a server's program to an absolute path as exec does: with the server's PATH and working directory. `None`
/// if there is no such program.
fn resolve_program(command: &ServerCommand, is_fixed: bool) -> Option<PathBuf> {
    let directory = command.directory.clone().unwrap_or_default();
    if command.program.contains('/') {
        return std::path::absolute(directory.join(&command.program)).ok();
    }
    let own = command.environment.get("PATH").map(Into::into);
    let inherited = || if is_fixed { Some(REQUIRED_PATH.into()) } else { std::env::var_os("PATH") };
    let path = own.or_else(inherited)?;
    let is_program = |path: &PathBuf| path.is_file() && access(path, AccessFlags::X_OK).is_ok();
    let candidates = std::env::split_paths(&path).map(|folder| directory.join(folder).join(&command.program));
    candidates.filter_map(|path| std::path::absolute(path).ok()).find(is_program)
}

impl ServerMatcher {
    /// Returns the SHA-256 that this pattern requires of a server's program.
    pub(super) fn sha256(&self) -> Option<&str> {
        match self {
            Self::Program { sha256, .. } => sha256.as_deref(),
            Self::Address { .. } => None,
        }
    }

    /// Returns the proxy that this pattern approves for a server.
    pub(super) fn proxy(&self) -> Option<&Url> {
        match self {
            Self::Program { .. } => None,
            Self::Address { proxy, .. } => proxy.as_ref(),
        }
    }

    /// Checks whether a server matches this pattern of an approved server; returns the first difference otherwise. A
    /// symbolic link to the approved program does not match, since programs may behave differently under another name.
    pub(super) fn matches(&self, definition: &ServerDefinition, identity: &Identity) -> Result<(), Mismatch> {
        match (self, identity, &definition.endpoint) {
            (Self::Program { path: required, .. }, Identity::Program(path), Endpoint::Stdio(command)) => {
                match required {
                    Some(required) if required != path => Err(Mismatch::Command(path.clone())),
                    _ => self.matches_environment(command).and_then(|()| self.matches_program(path, command)),
                }
            }
            (Self::Program { .. }, Identity::Unknown, Endpoint::Stdio(_)) => Err(Mismatch::NoCommand),
            (
                Self::Address { url: required, and_below, proxy },
                Identity::Address(url),
                Endpoint::Http(own),
            ) => {
                let is_approved = |own: &Url| proxy.as_ref() == Some(own);
                match &own.proxy {
                    _ if !is_at(url, required, *and_below) => Err(Mismatch::Address(format!(
                        "{}{}",
                        url.origin().ascii_serialization(),
                        url.path()
                    ))),
                    Proxy::Address(own) if !is_approved(own) => Err(Mismatch::Proxy),
                    _ => Ok(()),
                }
            }
            _ => Err(Mismatch::OtherKind),
        }
    }

    /// Compares environment variables and working directory, which determine the executed code as much as the arguments
    /// do (`LD_PRELOAD`, `NODE_OPTIONS`). A variable or directory that the approved entry does not name is a mismatch.
    fn matches_environment(&self, command: &ServerCommand) -> Result<(), Mismatch> {
        let Self::Program { variables, directory, .. } = self else { return Ok(()) };
        let approved = variables.as_deref().unwrap_or_default();
        if let Some(name) = command.environment.keys().find(|name| !approved.contains(name)) {
            return Err(Mismatch::Variable(name.clone()));
        }
        match (&command.directory, directory) {
            (Some(own), required) if required.as_ref() != Some(own) => Err(Mismatch::Directory(own.clone())),
            (None, Some(required)) => Err(Mismatch::NoDirectory(required.clone())),
            _ => Ok(()),
        }
    }

    fn matches_program(&self, path: &Path, command: &ServerCommand) -> Result<(), Mismatch> {
        let Self::Program { arguments, sha256, .. } = self else { return Ok(()) };
        if !command.arguments.starts_with(arguments) {
            return Err(Mismatch::Arguments);
        }
        let Some(required) = sha256 else { return Ok(()) };
        let unreadable =
            |error: std::io::Error| Mismatch::Unreadable { path: path.to_owned(), reason: error.to_string() };
        let found = program_digest(path).map_err(unreadable)?;
        if found == *required { Ok(()) } else { Err(Mismatch::Digest { path: path.to_owned(), found }) }
    }
}

#[cfg(test)]
mod tests {
    use data_encoding::HEXLOWER;
    use lockhouse_upstream::ServerLimits;
    use sha2::{Digest, Sha256};

    use super::*;

    #[test]
    fn a_program_whose_digest_is_unknown_is_denied_by_every_digest_and_approved_by_none() {
        let folder = tempfile::tempdir().expect("a directory");
        let (program, large) = (folder.path().join("program"), folder.path().join("large"));
        std::fs::write(&program, "program").expect("written");
        // Too large only by its length: the file has no blocks.
        std::fs::File::create(&large).expect("created").set_len((1 << 30) + 1).expect("extended");
        let own = HEXLOWER.encode(&Sha256::digest("program"));
        let matcher = |arguments: &[&str], sha256: &str| ServerMatcher::Program {
            path: None,
            arguments: arguments.iter().map(ToString::to_string).collect(),
            variables: None,
            directory: None,
            sha256: Some(sha256.to_owned()),
        };
        let other = "0".repeat(64);
        // A directory can be opened, and fails to be read, for root too.
        for (path, matcher, approved, denied) in [
            (program.as_path(), matcher(&[], &own), true, true),
            (program.as_path(), matcher(&[], &other), false, false),
            (folder.path(), matcher(&[], &other), false, true),
            (folder.path(), matcher(&["serve"], &other), false, false),
            (large.as_path(), matcher(&[], &other), false, true),
        ] {
            let command = ServerCommand { program: path.display().to_string(), ..ServerCommand::default() };
            let definition =
                ServerDefinition::new(Endpoint::Stdio(command), ServerLimits::default(), String::new());
            let identity = Identity::from_endpoint(&definition.endpoint, false);
            assert_eq!(matcher.matches(&definition, &identity).is_ok(), approved, "{matcher:?} for {path:?}");
            assert_eq!(matcher.denies(&definition, &identity), denied, "{matcher:?} for {path:?}");
        }
    }
}
