//! The proof that a call may go out. Nothing outside of this folder can make one.

use lockhouse_protocol::ServerName;
use serde_json::{Map, Value};

use crate::item::Item;
use crate::source::Place;

/// Proof that a policy allows one call: of one tool with these arguments, or to read one resource, get one prompt or list
/// either. [`Policy::decide`](crate::Policy::decide) alone makes it, or a person's approval of what it left to them, and it cannot be copied; who
/// sends a call takes it by value, so that each call that goes out has had its own decision.
///
/// ```compile_fail
/// fn twice(call: lockhouse_policies::PermittedCall) {
///     let _ = call.clone();
/// }
/// ```
/// ```compile_fail
/// fn forged(call: lockhouse_policies::PermittedCall, item: lockhouse_policies::Item) {
///     let _ = lockhouse_policies::PermittedCall { item, ..call };
/// }
/// ```
#[derive(Debug)]
pub struct PermittedCall {
    pub(super) server: ServerName,
    pub(super) item: Item,
    pub(super) arguments: Map<String, Value>,
    pub(super) rule: Place,
}

impl PermittedCall {
    /// The upstream server that may be called.
    #[must_use]
    pub fn server(&self) -> &ServerName {
        &self.server
    }

    /// What it may be asked for.
    #[must_use]
    pub fn item(&self) -> &Item {
        &self.item
    }

    /// The arguments that were decided about.
    #[must_use]
    pub fn arguments(&self) -> &Map<String, Value> {
        &self.arguments
    }

    /// The arguments, to be sent.
    #[must_use]
    pub fn into_arguments(self) -> Map<String, Value> {
        self.arguments
    }

    /// The line of the pattern or the rule, or for a listing of the list, that allows it.
    #[must_use]
    pub fn rule(&self) -> &Place {
        &self.rule
    }
}
