//! The credentials that a front passes to the engine, which verifies them.

use std::fmt::{self, Debug, Formatter};

use serde::{Deserialize, Serialize};

/// What shows who sends a request. The front takes it from the transport and does not interpret it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Credential {
    /// The connection between front and engine itself: the one AI client that the front serves over standard input and
    /// output, or the front's own needs if it serves clients over HTTP.
    Connection,
    /// The token of the HTTP header `Authorization: Bearer TOKEN`.
    Bearer(String),
    /// The user of this host at the other end of a Unix domain socket, as the kernel reported it to the front's process.
    Peer { uid: u32 },
    /// The request has no credential.
    None,
}

impl Debug for Credential {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connection => f.write_str("Connection"),
            Self::Bearer(_) => f.write_str("Bearer(…)"),
            Self::Peer { uid } => f.debug_struct("Peer").field("uid", uid).finish(),
            Self::None => f.write_str("None"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_has_no_token() {
        let credential = Credential::Bearer("lh_secret".into());
        assert_eq!(format!("{credential:?}"), "Bearer(…)");
        let text = serde_json::to_string(&credential).expect("it can be written");
        assert_eq!(serde_json::from_str::<Credential>(&text).expect("it can be read"), credential);
    }
}
