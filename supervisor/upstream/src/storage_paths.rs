//! The paths of the files that Lockhouse stores for each upstream server.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use lockhouse_base::own_places::OwnPlaces;
use lockhouse_protocol::ServerName;
use sha2::{Digest, Sha256};

use super::confine::SandboxPlaces;
use super::definition::{DecodeRules, ServerDefinition};
use super::server_identity::{DIGEST_CHARS, file_name, identity};
use super::shared_files::SHAPES;
use super::user_credentials::UserCredentials;
use data_encoding::HEXLOWER;

/// The directories in which Lockhouse stores files for upstream servers. Files whose directory is `None` are not
/// stored.
#[derive(Clone, Debug, Default)]
pub struct StoragePaths {
    /// The directory for files that can be created again, such as cached tools; `None` to store none.
    pub cache_dir: Option<PathBuf>,
    /// The directory for files that cannot be created again, such as logs and pins (tool definitions that a user
    /// has accepted); `None` to store none.
    pub state_dir: Option<PathBuf>,
    /// How long cached tools are used for a server that is not connected. Older ones are used only if the server cannot
    /// be started.
    pub tools_ttl: Duration,
    /// Whether the observed result types of tools are stored.
    pub records_shapes: bool,
    /// The store of the credentials of users. `None` if there is no key that encrypts them.
    pub users: Option<UserCredentials>,
    /// The places of Lockhouse's own files, which no sandbox profile grants.
    pub own: Arc<OwnPlaces>,
}

impl StoragePaths {
    /// Returns the path of the file with a server's cached tools; `None` if Lockhouse has no cache directory.
    pub(super) fn tools_file(&self, name: &ServerName, definition: &ServerDefinition) -> Option<PathBuf> {
        Some(self.cache_dir.as_ref()?.join("tools").join(file_name(name, definition)))
    }

    /// Returns the path of the file with the observed result types of a server's tools; `None` if Lockhouse has no
    /// cache directory.
    pub(super) fn shapes_file(&self, name: &ServerName, definition: &ServerDefinition) -> Option<PathBuf> {
        // Text that is decoded in another way has other shapes.
        let decoding = match definition.decode == DecodeRules::default() {
            true => String::new(),
            false => {
                HEXLOWER.encode(&Sha256::digest(definition.decode.to_string()))[..DIGEST_CHARS].to_owned()
                    + "-"
            }
        };
        Some(self.cache_dir.as_ref()?.join(SHAPES).join(decoding + &file_name(name, definition)))
    }

    /// Returns the paths of a server's files that can be created again: its cached tools and observed result types.
    pub fn cached_files(
        &self,
        name: &ServerName,
        definition: &ServerDefinition,
    ) -> impl Iterator<Item = PathBuf> {
        self.tools_file(name, definition).into_iter().chain(self.shapes_file(name, definition))
    }

    /// Returns the path of the file with the tool definitions that a user has accepted (pins); `None` if Lockhouse has
    /// no state directory.
    pub fn pins_file(&self, name: &ServerName, definition: &ServerDefinition) -> Option<PathBuf> {
        Some(self.state_dir.as_ref()?.join("pins").join(file_name(name, definition)))
    }

    /// Returns the path of the log file with a server's standard error; `None` if Lockhouse has no state directory.
    pub fn log_file(&self, name: &ServerName) -> Option<PathBuf> {
        Some(self.state_dir.as_ref()?.join("logs").join(format!("{name}.log")))
    }

    /// Returns the path of the folder that belongs to a sandboxed server itself; `None` if Lockhouse has no state
    /// directory. The server can change everything in it.
    pub fn server_folder(&self, name: &ServerName, definition: &ServerDefinition) -> Option<PathBuf> {
        let folder = format!("{name}-{}", &identity(definition)[..DIGEST_CHARS]);
        Some(self.state_dir.as_ref()?.join("servers").join(folder))
    }

    /// Returns the places that the profile of a server's sandbox depends on.
    pub fn sandbox_places(&self, name: &ServerName, definition: &ServerDefinition) -> SandboxPlaces {
        SandboxPlaces { folder: self.server_folder(name, definition), own: self.own.clone() }
    }
}
