//! Policy decisions about calls. Only this module turns a [`Call`] into a [`PermittedCall`].
//!
//! The word "call" includes not only tool calls but also reading a resource, getting a prompt, and listing
//! resources or prompts.

pub(crate) mod pending;
pub(crate) mod permitted;

use crate::call::{Call, ClientName};
use crate::condition::PathResolution;
use crate::denial::Denial;
use crate::effect::Effect;
use crate::policy::Policy;
use crate::source::SourceLocation;

use pending::PendingCall;
use permitted::PermittedCall;

/// The text that is shown as the location of a permission that the user gave on the command line.
const COMMAND_LINE: &str = "given on the command line";

/// The decision of a policy about one call.
#[must_use = "a call must not go out unless the decision allows it"]
#[derive(Debug)]
pub enum Decision {
    /// The policy permits the call. The [`PermittedCall`] can be sent once.
    Allow(PermittedCall),
    /// The policy requires that a user approves the call before it is sent.
    Ask(PendingCall),
    /// The policy denies the call; the [`Denial`] says why.
    Deny(Denial),
}

impl Policy {
    /// Decides one call. A call that no list or rule of the policy permits is denied. Saving a skill is an exception:
    /// it requires approval if the policy has no table `[servers.skills]`.
    pub fn decide(&self, call: Call) -> Decision {
        let (view, statement) = self.strictest_statement(&call);
        let location = || statement.location(view.layer).unwrap_or_else(|| view.layer.location(0));
        match statement.effect() {
            Effect::Deny => Decision::Deny(Denial::new(&call, view, statement)),
            Effect::Ask => {
                let rule = location();
                let is_only_approval_requirement = self.layers_requiring_approval(&call) == 1;
                let mut requirement = self.requirement_for(&call);
                // Roles decide who approves, and so whether the person for whom the call is made does.
                let approves =
                    |client: &ClientName| !client.is_authenticated() || self.may_approve(client, &call);
                requirement.not_requester |=
                    self.has_roles() && call.client.as_ref().is_some_and(|client| !approves(client));
                Decision::Ask(PendingCall::new(call, rule, requirement, is_only_approval_requirement))
            }
            Effect::Allow => {
                let rule = location();
                let Call { server, item, arguments, beside, .. } = call;
                Decision::Allow(PermittedCall { server, item, arguments, beside, rule })
            }
        }
    }

    /// Decides a call that the user has ordered on the command line, such as reading a file that the user gives to one
    /// run. The user's order takes the place of a permission and of an approval. Only a statement that denies the call,
    /// in any document, denies it; a default does not.
    pub fn decide_given(&self, call: Call) -> Decision {
        let paths = PathResolution::Known(&call.resolved_paths);
        let decided =
            self.views(call.client.as_ref()).map(|view| (view, view.deciding_statement(&call, paths)));
        let mut denied =
            decided.filter(|(_, statement)| statement.effect() == Effect::Deny && !statement.is_fallback());
        if let Some((view, statement)) = denied.next() {
            return Decision::Deny(Denial::new(&call, view, statement));
        }
        let rule = SourceLocation { path: COMMAND_LINE.to_owned(), line: 0 };
        let Call { server, item, arguments, beside, .. } = call;
        Decision::Allow(PermittedCall { server, item, arguments, beside, rule })
    }
}
