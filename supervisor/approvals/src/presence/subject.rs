//! What a person approves with a proof that they are there. A proof for one subject is none for another.

use lockhouse_messages::Approval;

/// What a person approves with a proof that they are there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApprovalSubject {
    /// The calls of the question with this number and this digest, and those that the scope covers.
    Calls { question: u64, digest: String, scope: Approval },
    /// The proposed policy with this digest.
    Policy { digest: String },
    /// The login of the person to the upstream server with this name.
    Login { server: String },
    /// The definitions of all tools of a server, with this digest.
    Definitions { server: String, digest: String },
}

impl ApprovalSubject {
    /// Returns what is approved: a digest, or the name of a server.
    pub(super) fn digest(&self) -> &str {
        match self {
            Self::Calls { digest, .. } | Self::Policy { digest } | Self::Definitions { digest, .. } => digest,
            Self::Login { server } => server,
        }
    }

    /// Returns for what the digest is approved. No two kinds of subjects have the same scope.
    pub(super) fn scope(&self) -> &'static str {
        match self {
            Self::Calls { scope, .. } => scope.as_str(),
            Self::Policy { .. } => "policy",
            Self::Login { .. } => "login",
            Self::Definitions { .. } => "definitions",
        }
    }
}
