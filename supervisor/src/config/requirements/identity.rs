//! What a server is, apart from its name: the file that is executed, or the address that is spoken to.

use std::io::Read;
use std::path::{Path, PathBuf};

use lockhouse_upstream::{Reach, ServerCommand, ServerDefinition};
use nix::unistd::{AccessFlags, access};
use sha2::{Digest, Sha256};
use url::Url;

use data_encoding::HEXLOWER;

/// Bytes of a program that is compared by its digest.
const PROGRAM_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// As far as it can be known before the server is started.
#[derive(Debug)]
pub(super) enum Identity {
    /// The absolute path that its command stands for now.
    Program(PathBuf),
    Address(Url),
    /// Its command stands for nothing, or nobody asks.
    Unknown,
}

/// What an entry wants a server to be. Paths are absolute.
#[derive(Debug)]
pub(super) enum Wanted {
    Program {
        path: Option<PathBuf>,
        arguments: Vec<String>,
        variables: Option<Vec<String>>,
        directory: Option<PathBuf>,
        sha256: Option<String>,
    },
    /// With `*` at the end of its path for everything that begins so.
    Address { url: Url, and_below: bool },
}

/// In what a server differs from what is wanted. No value that may be a secret is in it.
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
    #[error("it is not reached in the approved way")]
    OtherKind,
}

impl Identity {
    pub(super) fn of(reach: &Reach) -> Self {
        match reach {
            Reach::Stdio(command) => executed(command).map_or(Self::Unknown, Self::Program),
            Reach::Http(endpoint) => Self::Address(endpoint.url.clone()),
        }
    }

    /// The server, whose command stands from now on for the file that was looked at, whatever comes into PATH later.
    pub(super) fn pinned(self, mut definition: ServerDefinition) -> ServerDefinition {
        if let (Self::Program(path), Reach::Stdio(command)) = (self, &mut definition.reach) {
            command.program = path.to_string_lossy().into_owned();
        }
        definition
    }
}

/// As exec finds it: with the server's own PATH, from its own directory.
fn executed(command: &ServerCommand) -> Option<PathBuf> {
    let directory = command.directory.clone().unwrap_or_default();
    if command.program.contains('/') {
        return std::path::absolute(directory.join(&command.program)).ok();
    }
    let own = command.environment.get("PATH").map(Into::into);
    let path = own.or_else(|| std::env::var_os("PATH"))?;
    let is_program = |path: &PathBuf| path.is_file() && access(path, AccessFlags::X_OK).is_ok();
    let candidates = std::env::split_paths(&path).map(|place| directory.join(place).join(&command.program));
    candidates.filter_map(|path| std::path::absolute(path).ok()).find(is_program)
}

impl Wanted {
    /// Exactly: another name of the same file is another program for those that look at their name.
    pub(super) fn fits(&self, definition: &ServerDefinition, identity: &Identity) -> Result<(), Mismatch> {
        match (self, identity, &definition.reach) {
            (Self::Program { path: wanted, .. }, Identity::Program(path), Reach::Stdio(command)) => {
                match wanted {
                    Some(wanted) if wanted != path => Err(Mismatch::Command(path.clone())),
                    _ => self.fits_surroundings(command).and_then(|()| self.fits_program(path, command)),
                }
            }
            (Self::Program { .. }, Identity::Unknown, Reach::Stdio(_)) => Err(Mismatch::NoCommand),
            (Self::Address { url: wanted, and_below }, Identity::Address(url), _) => {
                match is_at(url, wanted, *and_below) {
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

    /// More widely: also through a link, since what is denied must not come in by another name, and whatever else it says.
    pub(super) fn resembles(&self, definition: &ServerDefinition, identity: &Identity) -> bool {
        match (self, identity, &definition.reach) {
            (
                Self::Program { path: wanted, variables, directory, .. },
                Identity::Program(path),
                Reach::Stdio(command),
            ) => {
                let target = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
                let is_there =
                    |wanted: &PathBuf| command.directory.as_deref().map(target) == Some(target(wanted));
                let mut names = command.environment.keys();
                wanted.as_ref().is_none_or(|wanted| target(wanted) == target(path))
                    && directory.as_ref().is_none_or(is_there)
                    && variables.as_ref().is_none_or(|wanted| names.all(|name| wanted.contains(name)))
                    && self.fits_program(path, command).is_ok()
            }
            _ => self.fits(definition, identity).is_ok(),
        }
    }

    /// What chooses the code that a program runs as much as its arguments do: variables (`LD_PRELOAD`, `NODE_OPTIONS`), and
    /// the directory in which it looks for files that its arguments name. What the entry does not name is not approved.
    fn fits_surroundings(&self, command: &ServerCommand) -> Result<(), Mismatch> {
        let Self::Program { variables, directory, .. } = self else { return Ok(()) };
        let approved = variables.as_deref().unwrap_or_default();
        if let Some(name) = command.environment.keys().find(|name| !approved.contains(name)) {
            return Err(Mismatch::Variable(name.clone()));
        }
        match (&command.directory, directory) {
            (Some(own), wanted) if wanted.as_ref() != Some(own) => Err(Mismatch::Directory(own.clone())),
            (None, Some(wanted)) => Err(Mismatch::NoDirectory(wanted.clone())),
            _ => Ok(()),
        }
    }

    fn fits_program(&self, path: &Path, command: &ServerCommand) -> Result<(), Mismatch> {
        let Self::Program { arguments, sha256, .. } = self else { return Ok(()) };
        if !command.arguments.starts_with(arguments) {
            return Err(Mismatch::Arguments);
        }
        let Some(wanted) = sha256 else { return Ok(()) };
        let unreadable =
            |error: std::io::Error| Mismatch::Unreadable { path: path.to_owned(), reason: error.to_string() };
        let found = digest(path).map_err(unreadable)?;
        if found == *wanted { Ok(()) } else { Err(Mismatch::Digest { path: path.to_owned(), found }) }
    }
}

/// What follows the path in a URL is data.
fn is_at(url: &Url, wanted: &Url, and_below: bool) -> bool {
    let is_path = if and_below { url.path().starts_with(wanted.path()) } else { url.path() == wanted.path() };
    url.origin() == wanted.origin() && is_path
}

fn digest(path: &Path) -> std::io::Result<String> {
    let mut file = std::fs::File::open(path)?.take(PROGRAM_BYTES_MAX + 1);
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
    use super::*;

    #[test]
    fn an_address_is_an_origin_and_a_path() {
        let url = |text: &str| Url::parse(text).expect("a URL");
        for (address, wanted, and_below, expected) in [
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
            assert_eq!(is_at(&url(address), &url(wanted), and_below), expected, "{address} as {wanted}");
        }
    }
}
