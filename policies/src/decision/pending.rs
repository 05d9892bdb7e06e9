//! A call that requires approval by a user.

use std::borrow::Cow;

use lockhouse_protocol::ServerName;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::permitted::PermittedCall;
use crate::approval_requirement::ApprovalRequirement;
use crate::call::{Call, everything_sent};
use crate::call_target::CallTarget;
use crate::source::SourceLocation;

/// The SHA-256 digest of a call, which binds an approval to exactly this call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallDigest([u8; 32]);

impl CallDigest {
    /// Returns the digest as 64 lowercase hexadecimal digits.
    #[must_use]
    pub fn to_hex(self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// A call for which the policy requires approval. [`approve`](Self::approve) turns the call into a [`PermittedCall`] if
/// the approval contains the digest of the call.
#[must_use = "the call requires approval before it can be sent"]
#[derive(Debug)]
pub struct PendingCall {
    call: Call,
    rule: SourceLocation,
    requirement: ApprovalRequirement,
    is_only_approval_requirement: bool,
}

impl PendingCall {
    pub(super) fn new(
        call: Call,
        rule: SourceLocation,
        requirement: ApprovalRequirement,
        is_only_approval_requirement: bool,
    ) -> Self {
        Self { call, rule, requirement, is_only_approval_requirement }
    }

    /// Returns the upstream server that would be called.
    #[must_use]
    pub fn server(&self) -> &ServerName {
        &self.call.server
    }

    /// Returns the tool, resource, prompt or list that would be requested.
    #[must_use]
    pub fn item(&self) -> &CallTarget {
        &self.call.item
    }

    /// Returns what would be sent: the arguments, and what is sent beside them.
    #[must_use]
    pub fn everything_sent(&self) -> Cow<'_, Map<String, Value>> {
        everything_sent(&self.call.arguments, self.call.beside.as_ref())
    }

    /// Whether anything would be sent beside the arguments.
    #[must_use]
    pub fn sends_beside_arguments(&self) -> bool {
        self.call.beside.is_some()
    }

    /// Returns the call as it was before the decision, so that another policy can decide it too.
    #[must_use]
    pub fn call(&self) -> &Call {
        &self.call
    }

    /// Returns the location of the policy line that requires the approval. If several documents of the policy require
    /// approval, this is the line of the first of them.
    #[must_use]
    pub fn rule(&self) -> &SourceLocation {
        &self.rule
    }

    /// Returns what the approval requires, as the rules that require it say together.
    #[must_use]
    pub fn requirement(&self) -> ApprovalRequirement {
        self.requirement
    }

    /// Whether the policy line at [`rule`](Self::rule) is the only one that requires approval. The result is false if
    /// another policy document, or the policy table of the AI client, requires approval too.
    #[must_use]
    pub fn is_only_approval_requirement(&self) -> bool {
        self.is_only_approval_requirement
    }

    /// Returns the SHA-256 digest of `occasion` and this call: the server, the requested item, and the arguments in the
    /// order in which they are sent, with what is sent beside them. `occasion` identifies one call of one execution, so that two calls with the same
    /// arguments have different digests.
    #[must_use]
    pub fn digest(&self, occasion: &str) -> CallDigest {
        let Call { server, item, .. } = &self.call;
        let whole = json!([occasion, server.as_str(), item.kind(), item.as_str(), *self.everything_sent()]);
        CallDigest(Sha256::digest(whole.to_string()).into())
    }

    /// Turns the call into a permitted call. `digest` is the digest of the call that a user approved.
    ///
    /// # Errors
    /// Returns the call unchanged when `digest` is not the digest of this call for `occasion`.
    pub fn approve(self, occasion: &str, digest: CallDigest) -> Result<PermittedCall, Box<Self>> {
        if self.digest(occasion) != digest {
            return Err(Box::new(self));
        }
        let Self { call: Call { server, item, arguments, beside, .. }, rule, .. } = self;
        Ok(PermittedCall { server, item, arguments, beside, rule })
    }
}
