//! Identifies an upstream server independently of its name: by the program that it executes, or by its URL.

use std::io::Read;
use std::path::{Path, PathBuf};

use lockhouse_upstream::{Endpoint, ServerCommand, ServerDefinition};
use nix::unistd::{AccessFlags, access};
use sha2::{Digest, Sha256};
use url::Url;

use data_encoding::HEXLOWER;

/// The maximum size in bytes of a program whose SHA-256 is compared. The SHA-256 of a larger program counts as unknown:
/// the program is not approved by it, and is denied by it.
const PROGRAM_BYTES_MAX: u64 = 1024 * 1024 * 1024;

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
    /// begins with the path of `url`.
    Address { url: Url, and_below: bool },
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
    #[error("it has a command where a url is approved, or a url where a command is")]
    OtherKind,
}

impl Identity {
    pub(super) fn from_endpoint(reach: &Endpoint) -> Self {
        match reach {
            Endpoint::Stdio(command) => resolve_program(command).map_or(Self::Unknown, Self::Program),
            Endpoint::Http(endpoint) => Self::Address(endpoint.url.clone()),
        }
    }

    /// Replaces the program in the server's definition by the absolute path to which it resolved, so that later changes
    /// of PATH have no effect.
    pub(super) fn pin(self, mut definition: ServerDefinition) -> ServerDefinition {
        if let (Self::Program(path), Endpoint::Stdio(command)) = (self, &mut definition.endpoint) {
            command.program = path.to_string_lossy().into_owned();
        }
        definition
    }
}

/// Resolves a server's program to an absolute path as exec does: with the server's PATH and working directory. `None`
/// if there is no such program.
fn resolve_program(command: &ServerCommand) -> Option<PathBuf> {
    let directory = command.directory.clone().unwrap_or_default();
    if command.program.contains('/') {
        return std::path::absolute(directory.join(&command.program)).ok();
    }
    let own = command.environment.get("PATH").map(Into::into);
    let path = own.or_else(|| std::env::var_os("PATH"))?;
    let is_program = |path: &PathBuf| path.is_file() && access(path, AccessFlags::X_OK).is_ok();
    let candidates = std::env::split_paths(&path).map(|folder| directory.join(folder).join(&command.program));
    candidates.filter_map(|path| std::path::absolute(path).ok()).find(is_program)
}

impl ServerMatcher {
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
            (Self::Address { url: required, and_below }, Identity::Address(url), _) => {
                match is_at(url, required, *and_below) {
                    true => Ok(()),
                    false => Err(Mismatch::Address(format!(
                        "{}{}",
                        url.origin().ascii_serialization(),
                        url.path()
                    ))),
                }
            }
            _ => Err(Mismatch::OtherKind),
        }
    }

    /// Whether a server is a denied one. The match is loose: symbolic links are followed, so that a denied program
    /// cannot be used under another name. A program whose SHA-256 cannot be computed matches every SHA-256, so that a
    /// user cannot hide a denied program from the check, for example by making it unreadable.
    pub(super) fn matches_loosely(&self, definition: &ServerDefinition, identity: &Identity) -> bool {
        match (self, identity, &definition.endpoint) {
            (
                Self::Program { path: required, variables, directory, .. },
                Identity::Program(path),
                Endpoint::Stdio(command),
            ) => {
                let target = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
                let is_there =
                    |required: &PathBuf| command.directory.as_deref().map(target) == Some(target(required));
                let mut names = command.environment.keys();
                required.as_ref().is_none_or(|required| target(required) == target(path))
                    && directory.as_ref().is_none_or(is_there)
                    && variables.as_ref().is_none_or(|required| names.all(|name| required.contains(name)))
                    && matches!(
                        self.matches_program(path, command),
                        Ok(()) | Err(Mismatch::Unreadable { .. })
                    )
            }
            _ => self.matches(definition, identity).is_ok(),
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

/// Whether a URL has the origin and path of `required`. With `and_below`, its path need only begin with that of
/// `required`. The query and fragment are ignored.
fn is_at(url: &Url, required: &Url, and_below: bool) -> bool {
    let is_path =
        if and_below { url.path().starts_with(required.path()) } else { url.path() == required.path() };
    url.origin() == required.origin() && is_path
}

/// Returns the SHA-256 of a program in hexadecimal digits.
///
/// # Errors
/// If the file cannot be read, or is larger than [`PROGRAM_BYTES_MAX`].
pub(crate) fn program_digest(path: &Path) -> std::io::Result<String> {
    let file = std::fs::File::open(path)?;
    if file.metadata()?.len() > PROGRAM_BYTES_MAX {
        return Err(std::io::ErrorKind::FileTooLarge.into());
    }
    let mut file = file.take(PROGRAM_BYTES_MAX + 1);
    let (mut digest, mut buffer, mut total) = (Sha256::new(), vec![0; 64 * 1024], 0);
    loop {
        let count = file.read(&mut buffer)?;
        total += count as u64;
        match count {
            0 => break,
            _ if total > PROGRAM_BYTES_MAX => return Err(std::io::ErrorKind::FileTooLarge.into()),
            count => digest.update(&buffer[..count]),
        }
    }
    Ok(HEXLOWER.encode(&digest.finalize()))
}

#[cfg(test)]
mod tests {
    use lockhouse_upstream::ServerLimits;

    use super::*;

    #[test]
    fn a_program_whose_digest_is_unknown_is_denied_by_every_digest_and_approved_by_none() {
        let folder = tempfile::tempdir().expect("a directory");
        let (program, large) = (folder.path().join("program"), folder.path().join("large"));
        std::fs::write(&program, "program").expect("written");
        // Too large only by its length: the file has no blocks.
        std::fs::File::create(&large).expect("created").set_len(PROGRAM_BYTES_MAX + 1).expect("extended");
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
            let identity = Identity::from_endpoint(&definition.endpoint);
            assert_eq!(matcher.matches(&definition, &identity).is_ok(), approved, "{matcher:?} for {path:?}");
            assert_eq!(matcher.matches_loosely(&definition, &identity), denied, "{matcher:?} for {path:?}");
        }
    }

    #[test]
    fn an_address_is_an_origin_and_a_path() {
        let url = |text: &str| Url::parse(text).expect("a URL");
        for (address, required, and_below, expected) in [
            ("https://a.example/mcp", "https://a.example/mcp", false, true),
            ("https://a.example:443/x/../mcp?team=1#x", "https://a.example/mcp", false, true),
            ("https://user@a.example/mcp", "https://a.example/mcp", false, true),
            ("https://a.example/mcp/more", "https://a.example/mcp", false, false),
            ("https://a.example/mcp/more", "https://a.example/mcp/", true, true),
            ("https://a.example/mcp/../more", "https://a.example/mcp/", true, false),
            ("http://a.example/mcp", "https://a.example/mcp", false, false),
            ("https://a.example:8443/mcp", "https://a.example/mcp", false, false),
            ("https://a.example.org/mcp", "https://a.example/mcp", false, false),
            ("https://a.example@b.example/mcp", "https://a.example/mcp", false, false),
        ] {
            assert_eq!(is_at(&url(address), &url(required), and_below), expected, "{address} as {required}");
        }
    }
}
