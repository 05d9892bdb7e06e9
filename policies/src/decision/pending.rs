//! A call that a person decides about.

use lockhouse_protocol::ServerName;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::permitted::PermittedCall;
use crate::call::Call;
use crate::item::Item;
use crate::source::Place;

/// What binds an answer to exactly one call: its SHA-256.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallDigest([u8; 32]);

impl CallDigest {
    /// In hexadecimal.
    #[must_use]
    pub fn to_hex(self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// A call that waits for a person. It becomes a [`PermittedCall`] by an answer that names its digest.
#[must_use = "a person is to be asked"]
#[derive(Debug)]
pub struct PendingCall {
    call: Call,
    rule: Place,
    alone: bool,
}

impl PendingCall {
    pub(super) fn new(call: Call, rule: Place, alone: bool) -> Self {
        Self { call, rule, alone }
    }

    /// The upstream server that would be called.
    #[must_use]
    pub fn server(&self) -> &ServerName {
        &self.call.server
    }

    /// What it would be asked for.
    #[must_use]
    pub fn item(&self) -> &Item {
        &self.call.item
    }

    /// With exactly these arguments.
    #[must_use]
    pub fn arguments(&self) -> &Map<String, Value> {
        &self.call.arguments
    }

    /// The call as it was decided about: for deciding about it again, under another policy.
    #[must_use]
    pub fn call(&self) -> &Call {
        &self.call
    }

    /// The line that leaves it to a person.
    #[must_use]
    pub fn rule(&self) -> &Place {
        &self.rule
    }

    /// Whether nothing but that line leaves it to a person: no other layer, and no table of the client.
    #[must_use]
    pub fn is_left_by_that_line_alone(&self) -> bool {
        self.alone
    }

    /// Of the server, what is asked of it and the arguments, in the order in which they are sent, and of `occasion`: what
    /// sets this call apart from another one with the same arguments.
    #[must_use]
    pub fn digest(&self, occasion: &str) -> CallDigest {
        let Call { server, item, arguments, .. } = &self.call;
        let whole = json!([occasion, server.as_str(), item.kind(), item.as_str(), arguments]);
        CallDigest(Sha256::digest(whole.to_string()).into())
    }

    /// A person approved the call with this digest.
    ///
    /// # Errors
    /// The call itself, when it is another one that was approved.
    pub fn approved(self, occasion: &str, digest: CallDigest) -> Result<PermittedCall, Box<Self>> {
        if self.digest(occasion) != digest {
            return Err(Box::new(self));
        }
        let Self { call: Call { server, item, arguments, .. }, rule, .. } = self;
        Ok(PermittedCall { server, item, arguments, rule })
    }
}
