//! Where the audit sink accepts connections.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::Deserialize;

const SCHEME: &str = "unix:";
/// Maximum length of the path of a Unix domain socket, in bytes, as in the kernel's `sockaddr_un`.
const PATH_BYTES_MAX: usize = 107;

/// The address of the audit sink, `unix:PATH`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct SinkAddress(PathBuf);

/// A text that is not the address of an audit sink.
#[derive(Debug, thiserror::Error)]
#[error("the address of an audit sink is unix: and an absolute path of at most {PATH_BYTES_MAX} bytes")]
pub struct InvalidSinkAddress;

impl SinkAddress {
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl FromStr for SinkAddress {
    type Err = InvalidSinkAddress;

    fn from_str(text: &str) -> Result<Self, InvalidSinkAddress> {
        let path = text.strip_prefix(SCHEME).ok_or(InvalidSinkAddress)?;
        let is_valid = path.starts_with('/') && path.len() <= PATH_BYTES_MAX && !path.contains('\0');
        if is_valid { Ok(Self(path.into())) } else { Err(InvalidSinkAddress) }
    }
}

impl TryFrom<String> for SinkAddress {
    type Error = InvalidSinkAddress;

    fn try_from(text: String) -> Result<Self, InvalidSinkAddress> {
        text.parse()
    }
}

impl fmt::Display for SinkAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}", self.0.display())
    }
}
