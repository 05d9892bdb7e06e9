//! The policy effects (allow, ask, deny) that are possible for calls of a tool before their arguments are known. Used
//! for listings of tools.

use lockhouse_protocol::{ServerName, ToolName};

use crate::call::ClientName;
use crate::call_target::CallTarget;
use crate::effect::Effect;
use crate::layer::LayerView;
use crate::policy::Policy;
use crate::precedence::Statement;

impl Policy {
    /// Whether the policy permits calls of the tool and requires approval for at least some of them. Intended for
    /// listings of tools, where the arguments are not known yet.
    #[must_use]
    pub fn may_require_approval(
        &self,
        server: &ServerName,
        tool: &ToolName,
        client: Option<&ClientName>,
    ) -> bool {
        let item = CallTarget::from(tool);
        self.permits_target(server, &item, client)
            && self
                .views(client)
                .any(|view| view.possible_effects(server, &item).any(|effect| effect == Effect::Ask))
    }

    /// Returns the effect that the policy has on every call of `item`, or `None` if the effect depends on the
    /// arguments. Assumes that the tool's definition is the one that the policy pins.
    #[must_use]
    pub fn certain_effect(
        &self,
        server: &ServerName,
        item: &CallTarget,
        client: Option<&ClientName>,
    ) -> Option<Effect> {
        // The strictest layer counts: an effect that is open in one layer is certain when another layer always denies.
        let bounds = self.views(client).map(|view| {
            let mildest = view.possible_effects(server, item).min();
            (
                mildest.unwrap_or(Effect::Deny),
                view.possible_effects(server, item).max().unwrap_or(Effect::Deny),
            )
        });
        let (mildest, strictest) = bounds.reduce(|one, other| (one.0.max(other.0), one.1.max(other.1)))?;
        (mildest == strictest).then_some(strictest)
    }
}

impl<'p> LayerView<'p> {
    /// Returns the effects that calls of `item` can have in this policy view, in the order of precedence of the
    /// statements that have these effects. Assumes that the tool's definition is the one that the policy pins. The last
    /// effect is that of the first statement that applies to every call, because later statements are never reached.
    fn possible_effects(self, server: &ServerName, item: &CallTarget) -> impl Iterator<Item = Effect> + 'p {
        let mut settled = false;
        let statements: Vec<Statement<'p>> = self.statements(server, item).collect();
        statements.into_iter().filter(|statement| !matches!(statement, Statement::Pin(_))).map_while(
            move |statement| {
                let possible_effects = (!settled).then(|| statement.effect());
                settled |= !matches!(statement, Statement::Rule(rule) if !rule.conditions.is_empty());
                possible_effects
            },
        )
    }
}
