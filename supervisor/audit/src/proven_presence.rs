//! How somebody who approved or changed something has proven that a person is there.

use super::LocalUser;
use super::hash_chain::RecordBody;

/// How somebody who approved or changed something has proven that a person is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProvenPresence {
    /// `root`, `polkit`, `sudo` or `key`.
    pub method: &'static str,
    /// The account that gave its password, if root states one.
    pub uid: Option<u32>,
    /// The id of the credential of a key.
    pub credential: Option<String>,
}

impl ProvenPresence {
    /// Returns a proof that names neither an account nor a credential.
    pub fn by(method: &'static str) -> Self {
        Self { method, uid: None, credential: None }
    }

    /// Returns the user whom a record names: the account that gave its password, if `peer`, a process of root, states one.
    pub fn person(&self, peer: LocalUser) -> LocalUser {
        LocalUser { uid: self.uid.unwrap_or(peer.uid), ..peer }
    }

    pub(super) fn write_to(&self, body: RecordBody) -> RecordBody {
        body.text("presence", self.method).text_if("credential", self.credential.as_deref())
    }
}
