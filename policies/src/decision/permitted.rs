//! The proof that a call may be sent. Code outside of `decision/` cannot construct one.

use lockhouse_protocol::ServerName;
use serde_json::{Map, Value};

use crate::call_target::CallTarget;
use crate::source::SourceLocation;

/// Proof that a policy allows one call of a tool with these arguments, or one reading of a resource, one getting of a
/// prompt, or one listing of either.
///
/// Only [`Policy::decide`](crate::Policy::decide), or an approval of a [`PendingCall`](crate::PendingCall), makes
/// one. It cannot be cloned, and sending a call takes it by value, so each call that is sent has its own decision.
///
/// ```compile_fail
/// fn twice(call: lockhouse_policies::PermittedCall) {
///     let _ = call.clone();
/// }
/// ```
/// ```compile_fail
/// fn forged(call: lockhouse_policies::PermittedCall, item: lockhouse_policies::CallTarget) {
///     let _ = lockhouse_policies::PermittedCall { item, ..call };
/// }
/// ```
#[derive(Debug)]
pub struct PermittedCall {
    pub(super) server: ServerName,
    pub(super) item: CallTarget,
    pub(super) arguments: Map<String, Value>,
    pub(super) rule: SourceLocation,
}

impl PermittedCall {
    /// Returns the upstream server that may be called.
    #[must_use]
    pub fn server(&self) -> &ServerName {
        &self.server
    }

    /// Returns the tool, resource, prompt or list that may be requested.
    #[must_use]
    pub fn item(&self) -> &CallTarget {
        &self.item
    }

    /// Returns the arguments that the decision is about.
    #[must_use]
    pub fn arguments(&self) -> &Map<String, Value> {
        &self.arguments
    }

    /// Consumes the permission and returns the arguments to send.
    #[must_use]
    pub fn into_arguments(self) -> Map<String, Value> {
        self.arguments
    }

    /// Returns the location of the pattern or rule that allows the call; for a listing, the location of the list.
    #[must_use]
    pub fn rule(&self) -> &SourceLocation {
        &self.rule
    }
}
