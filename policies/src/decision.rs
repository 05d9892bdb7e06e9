//! The one place where a call becomes a permitted one.
//!
//! Reading a resource, getting a prompt and listing either are calls like that of a tool.

use lockhouse_protocol::ServerName;
use serde_json::{Map, Value};

use crate::call::Call;
use crate::denial::Denial;
use crate::effect::Effect;
use crate::item::Item;
use crate::pending::PendingCall;
use crate::policy::Policy;
use crate::source::Place;

/// What a policy says about one call.
#[must_use = "a call must not go out unless the decision allows it"]
#[derive(Debug)]
pub enum Decision {
    /// The call may be made, once.
    Allow(PermittedCall),
    /// A person decides.
    Ask(PendingCall),
    /// The call must not be made.
    Deny(Denial),
}

/// Proof that a policy allows one call: of one tool with these arguments, or to read one resource, get one prompt or list
/// either. [`Policy::decide`] alone makes it, or a person's approval of what it left to them, and it cannot be copied; who
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
    pub(crate) server: ServerName,
    pub(crate) item: Item,
    pub(crate) arguments: Map<String, Value>,
    pub(crate) rule: Place,
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

impl Policy {
    /// Decides one call. What is not listed is denied.
    pub fn decide(&self, call: Call) -> Decision {
        let (view, ground) = self.verdict(&call);
        let place = || ground.place(view.layer).unwrap_or_else(|| view.layer.place(0));
        match ground.effect() {
            Effect::Deny => Decision::Deny(Denial::of(&call, view, ground)),
            Effect::Ask => {
                let rule = place();
                let alone = self.asked_by(&call) == 1;
                Decision::Ask(PendingCall::new(call, rule, alone))
            }
            Effect::Allow => {
                let rule = place();
                let Call { server, item, arguments, .. } = call;
                Decision::Allow(PermittedCall { server, item, arguments, rule })
            }
        }
    }
}
