//! The proof that a policy permits a call. Code outside of the module `decision` cannot construct this proof.

use std::borrow::Cow;

use lockhouse_protocol::ServerName;
use serde_json::{Map, Value};

use crate::call::everything_sent;
use crate::call_target::CallTarget;
use crate::source::SourceLocation;

/// The proof that a policy permits one request to an upstream server: a call of a tool with these arguments, the
/// reading of a resource, the getting of a prompt, or the listing of resources or prompts.
///
/// Only [`Policy::decide`](crate::Policy::decide), or an approval of a [`PendingCall`](crate::PendingCall), makes a
/// `PermittedCall`. It cannot be cloned, and the function that sends a call takes it by value, so each call that is
/// sent has its own decision.
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
    pub(super) beside: Option<Value>,
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

    /// Returns the arguments that the policy has permitted.
    #[must_use]
    pub fn arguments(&self) -> &Map<String, Value> {
        &self.arguments
    }

    /// Returns the arguments, and what is sent beside them.
    #[must_use]
    pub fn everything_sent(&self) -> Cow<'_, Map<String, Value>> {
        everything_sent(&self.arguments, self.beside.as_ref())
    }

    /// Consumes the permission and returns the arguments to send to the server.
    #[must_use]
    pub fn into_arguments(self) -> Map<String, Value> {
        self.arguments
    }

    /// Returns the location of the policy line that permits the call. This is a pattern or a rule; for a request
    /// to list resources or prompts, it is the key `resources` or `prompts`.
    #[must_use]
    pub fn rule(&self) -> &SourceLocation {
        &self.rule
    }
}
