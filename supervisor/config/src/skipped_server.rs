//! Upstream servers that are configured but not used.

use super::requirements::ForbiddenServer;
use super::skip_reason::SkipReason;

/// An upstream server that is configured but not used. Its name is taken from the file without change and may be
/// invalid.
#[derive(Clone, Debug)]
pub struct SkippedServer {
    pub name: String,
    /// The location of the server's entry, as `FILE:LINE`.
    pub origin: String,
    /// Why the server is not used. The text contains no value of the file, which could be a secret.
    pub reason: String,
    /// Whether the configuration file itself disables the server.
    pub disabled: bool,
}

impl SkippedServer {
    pub(super) fn new(name: &str, origin: &str, reason: &SkipReason) -> Self {
        let disabled = matches!(reason, SkipReason::Disabled);
        Self { name: name.to_owned(), origin: origin.to_owned(), reason: reason.to_string(), disabled }
    }
}

impl From<&ForbiddenServer> for SkippedServer {
    fn from(refusal: &ForbiddenServer) -> Self {
        let (name, origin, reason) = refusal.parts();
        Self { name, origin, reason, disabled: false }
    }
}
