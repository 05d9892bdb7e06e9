//! The one place where a call becomes a permitted one.
//!
//! Reading a resource, getting a prompt and listing either are calls like that of a tool.

pub(crate) mod pending;
pub(crate) mod permitted;

use crate::call::Call;
use crate::denial::Denial;
use crate::effect::Effect;
use crate::policy::Policy;

use pending::PendingCall;
use permitted::PermittedCall;

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
