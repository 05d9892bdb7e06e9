//! The messages between the engine and a helper: frames of the protocol. Each request has one answer.

use std::path::PathBuf;

use lockhouse_base::own_places::OwnPlaces;
use lockhouse_policies::ResolvedPaths;
use lockhouse_protocol::{Failure, ServerName};
use serde::{Deserialize, Serialize};

use crate::file_calls::FileCall;
use crate::pattern::InvalidFilePattern;
use crate::{Access, FilePattern, HostFileSettings, PathRefusal};

/// A request of the engine.
#[derive(Debug, Serialize, Deserialize)]
pub enum FileRequest {
    /// The first request: which files the configuration grants.
    Begin(HelperSettings),
    /// Find the target of the path of a call.
    Resolve {
        access: Access,
        path: String,
    },
    /// Send the whole content of the file at a path without symbolic links. The pieces follow the answer.
    Read {
        path: String,
    },
    /// Make a call with a path without symbolic links. The result has at most `bytes_max` bytes.
    Perform {
        call: FileCall,
        path: String,
        bytes_max: u32,
    },
    /// Write a file. Its content of `bytes` bytes follows in pieces. `replaces` is as in [`FileCall::Write`].
    Write {
        path: String,
        replaces: Option<String>,
        bytes: u64,
    },
    Piece(#[serde(with = "serde_bytes")] Vec<u8>),
    /// Resolve the symbolic links of paths in the arguments of a call of another server.
    ResolveLinks(Vec<String>),
}

/// An answer of the helper.
#[derive(Debug, Serialize, Deserialize)]
pub enum FileAnswer {
    Begun,
    Resolved(Result<Resolution, UnusablePath>),
    /// The size of the file, whose content follows in pieces.
    Content {
        bytes: u64,
    },
    Piece(#[serde(with = "serde_bytes")] Vec<u8>),
    /// The result of a call, as JSON.
    Performed(#[serde(with = "serde_bytes")] Vec<u8>),
    Failed(Failure),
    Links(ResolvedPaths),
}

/// The path of a call, and what is there.
#[derive(Debug, Serialize, Deserialize)]
pub struct Resolution {
    /// The path without symbolic links.
    pub target: String,
    /// What describes the file that a write would replace; `None` if there is none, or if the call does not write.
    pub replaces: Option<String>,
}

/// Why the path of a call cannot be used.
#[derive(Debug, Serialize, Deserialize)]
pub struct UnusablePath {
    /// Whether the path is no path of a file at all. Otherwise, the call is denied.
    pub is_invalid: bool,
    pub reason: String,
}

impl From<PathRefusal> for UnusablePath {
    fn from(refusal: PathRefusal) -> Self {
        let is_invalid = matches!(refusal, PathRefusal::NotNormal | PathRefusal::TooLong);
        Self { is_invalid, reason: refusal.to_string() }
    }
}

/// The part of [`HostFileSettings`] that a helper needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HelperSettings {
    name: ServerName,
    read: Vec<String>,
    write: Vec<String>,
    file_bytes: u64,
    home: Option<PathBuf>,
}

impl From<&HostFileSettings> for HelperSettings {
    fn from(settings: &HostFileSettings) -> Self {
        let HostFileSettings { name, read, write, file_bytes, home, is_in_session: _, own: _ } = settings;
        let texts = |patterns: &[FilePattern]| {
            patterns.iter().map(|pattern| pattern.as_str().to_owned()).collect::<Vec<_>>()
        };
        let (read, write, home) = (texts(read), texts(write), home.clone());
        Self { name: name.clone(), read, write, file_bytes: *file_bytes, home }
    }
}

impl HelperSettings {
    /// Returns the settings of the server for this process, in which `own` are the places that no pattern opens.
    pub(super) fn into_settings(self, own: OwnPlaces) -> Result<HostFileSettings, InvalidFilePattern> {
        let Self { name, read, write, file_bytes, home } = self;
        let parse = |texts: Vec<String>| {
            texts.iter().map(|text| FilePattern::parse(text)).collect::<Result<Vec<_>, _>>()
        };
        let (read, write) = (parse(read)?, parse(write)?);
        Ok(HostFileSettings { name, read, write, file_bytes, home, is_in_session: false, own })
    }
}
