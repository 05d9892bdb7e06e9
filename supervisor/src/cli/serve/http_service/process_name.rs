//! The names of the processes of the HTTP service.

use std::fmt::{Display, Formatter};

use crate::cli::{http_front, tls_signer};

/// A process of the HTTP service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServiceProcess {
    Front,
    Signer,
}

impl ServiceProcess {
    /// Returns the hidden command that the process runs, which is also its name in errors.
    pub(super) fn command(self) -> &'static str {
        match self {
            Self::Front => http_front::COMMAND,
            Self::Signer => tls_signer::COMMAND,
        }
    }
}

impl Display for ServiceProcess {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.command())
    }
}
