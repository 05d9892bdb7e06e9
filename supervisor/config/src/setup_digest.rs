//! The setup of an engine: everything that must be equal for AI clients to share the engine, as one digest.
//!
//! The digest names the socket of a shared engine, and other users can see that name. It is therefore keyed with random
//! bytes that only this user can read: without them, nobody can test guesses of the secrets that it covers. So is the
//! digest of each part, which tells in what two setups differ.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::hash::{Hash, Hasher};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use lockhouse_base::{directories, files};
use lockhouse_policies::Policy;
use lockhouse_protocol::ServerName;
use lockhouse_upstream::{Endpoint, ServerCommand, program_files};
use sha2::{Digest, Sha256};

use super::engine_path::engine_path;
use super::engine_variables::{SEARCH_PATH, compared_variables, passed_variables};
use super::process_rights::process_rights;
use super::{Files, Settings, policy_files};

/// The file with the key of the digest, in the state directory, and the number of its bytes.
const KEY_FILE: &str = "sharing.key";
const KEY_BYTES: usize = 32;
/// Number of bytes of a digest. That of the whole setup names a socket, whose path has at most 107 bytes.
const DIGEST_BYTES: usize = 16;

/// Why the setup of an engine cannot be determined.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    #[error("there is no state directory: set HOME, XDG_STATE_HOME or STATE_DIRECTORY")]
    NoStateDirectory,
    #[error("{path} cannot be used: {source}")]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("{0} has not {KEY_BYTES} bytes: remove it")]
    InvalidKey(PathBuf),
}

/// The setup of an engine that AI clients can share. The environment may contain secrets, so there is no debug output.
#[derive(Clone)]
pub struct Setup {
    /// The digest in hexadecimal. Equal for equal setups only.
    pub digest: String,
    pub parts: SetupParts,
    /// The directory in which the engine runs.
    pub directory: PathBuf,
    /// The environment of the engine.
    pub variables: Vec<(OsString, OsString)>,
}

/// The digest of each part of a setup, in hexadecimal, by the name of the part. Names contain no secret.
pub type SetupParts = BTreeMap<String, String>;

impl Settings {
    /// Determines the setup of an engine with these settings and this policy, which the program `program` runs.
    pub fn setup(&self, files: &Files, policy: &Policy, program: &Path) -> Result<Setup, SetupError> {
        let unreadable = |path: &Path| {
            let path = path.to_owned();
            move |source| SetupError::Unreadable { path, source }
        };
        let identity = program_identity(program).map_err(unreadable(program))?;
        let rights = process_rights().map_err(unreadable(Path::new("/proc/self")))?;
        let programs = self.server_programs();
        let mut compared = compared_variables();
        for (_, path) in compared.iter_mut().filter(|(name, _)| name == SEARCH_PATH) {
            *path = engine_path(path, &programs.values().flatten().cloned().collect::<Vec<_>>());
        }
        let directory = self.directory();
        let mut parts = PartDigests { key: key()?, parts: SetupParts::new() };
        parts.add("the program", (env!("CARGO_PKG_VERSION"), identity));
        for (name, value) in rights {
            parts.add(&format!("the right {name}"), value);
        }
        for (name, value) in &compared {
            parts.add(&format!("the variable {}", name.to_string_lossy()), value);
        }
        parts.add("--expose", files.expose.as_str());
        parts.add("the paths of configuration and policy", (&self.path, policy_files::find_policy(files)));
        parts.add("the configuration", &self.engine.digest);
        parts.add("the requirements", self.requirements.digests().collect::<Vec<_>>());
        parts.add("the policy", policy.texts().collect::<Vec<_>>());
        parts.add("the directory", &directory);
        for (name, server) in &self.engine.servers {
            parts.add(&format!("the server {name}"), server);
        }
        for (name, files) in programs {
            parts.add(&format!("the program of the server {name}"), files);
        }
        let passed = passed_variables(|name| self.used_environment.variables.contains(name));
        let digest = parts.of(&parts.parts);
        // If a definition of a server contains PATH, it is in the digest of the server, and the engine gets all of it.
        let variables = compared.into_iter().chain(passed).collect();
        Ok(Setup { digest, parts: parts.parts, directory, variables })
    }

    /// Returns the files that are executed to start each server that is a process.
    fn server_programs(&self) -> BTreeMap<&ServerName, Vec<PathBuf>> {
        let path = std::env::var_os(SEARCH_PATH);
        let files = |command: &ServerCommand| program_files(command, path.as_deref());
        let servers = self.engine.servers.iter();
        let programs = servers.filter_map(|(name, server)| match &server.endpoint {
            Endpoint::Stdio(command) => Some((name, files(command))),
            Endpoint::Http(_) | Endpoint::Socket(_) => None,
        });
        programs.collect()
    }

    /// Returns the directory in which the engine runs: that of this process if a server is started there or a definition
    /// depends on it, else `/`.
    fn directory(&self) -> PathBuf {
        let inherits = self.engine.servers.values().any(|server| match &server.endpoint {
            Endpoint::Stdio(command) => command.directory.as_ref().is_none_or(|it| it.is_relative()),
            Endpoint::Http(_) | Endpoint::Socket(_) => false,
        });
        let current = || std::env::current_dir().unwrap_or_default();
        if inherits || self.used_environment.directory { current() } else { PathBuf::from("/") }
    }
}

/// Computes the digests of the parts of a setup.
struct PartDigests {
    key: Vec<u8>,
    parts: SetupParts,
}

impl PartDigests {
    fn add(&mut self, name: &str, value: impl Hash) {
        let digest = self.of(&value);
        self.parts.insert(name.to_owned(), digest);
    }

    fn of(&self, value: &impl Hash) -> String {
        let mut hasher = DigestHasher(Sha256::new());
        (&self.key, value).hash(&mut hasher);
        HEXLOWER.encode(&hasher.0.finalize()[..DIGEST_BYTES])
    }
}

/// Feeds the digest with values that implement `Hash`. Their representation only has to be the same in one build of the
/// program.
struct DigestHasher(Sha256);

impl Hasher for DigestHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Not used: the digest is longer.
    fn finish(&self) -> u64 {
        0
    }
}

/// Returns the key of the digest, and creates it first if it does not exist.
fn key() -> Result<Vec<u8>, SetupError> {
    let path = directories::state().ok_or(SetupError::NoStateDirectory)?.join(KEY_FILE);
    let unreadable = |source| SetupError::Unreadable { path: path.clone(), source };
    let key = match files::read_bytes_bounded(&path, KEY_BYTES as u64).map_err(unreadable)? {
        Some(key) => key,
        None => {
            let mut random = [0; KEY_BYTES];
            getrandom::fill(&mut random).map_err(|error| unreadable(io::Error::other(error)))?;
            files::create_durably(&path, &random).map_err(unreadable)?
        }
    };
    if key.len() == KEY_BYTES { Ok(key) } else { Err(SetupError::InvalidKey(path)) }
}

/// Returns what identifies a build of the program: another file at its path is another build.
fn program_identity(program: &Path) -> io::Result<(PathBuf, [i64; 5])> {
    let file = std::fs::metadata(program)?;
    let identity =
        [file.dev() as i64, file.ino() as i64, file.size() as i64, file.mtime(), file.mtime_nsec()];
    Ok((program.to_owned(), identity))
}
