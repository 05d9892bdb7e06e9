//! What is known of a call before its arguments are.

use lockhouse_protocol::{ServerName, ToolName};

use crate::call::ClientName;
use crate::effect::Effect;
use crate::item::Item;
use crate::judge::Ground;
use crate::layer::View;
use crate::policy::Policy;

impl Policy {
    /// Whether a person is asked before calls of the tool, or before some of them. For listing only.
    #[must_use]
    pub fn asks(&self, server: &ServerName, tool: &ToolName, client: Option<&ClientName>) -> bool {
        let item = Item::from(tool);
        self.permits_item(server, &item, client)
            && self.views(client).any(|view| view.possible(server, &item).any(|effect| effect == Effect::Ask))
    }

    /// What every call of this gets, whatever its arguments; `None` where it depends on them. A definition that is pinned
    /// is taken to be the one that is there.
    #[must_use]
    pub fn certain(&self, server: &ServerName, item: &Item, client: Option<&ClientName>) -> Option<Effect> {
        // The strictest of the layers counts: what one of them leaves open is settled where another always denies.
        let bounds = self.views(client).map(|view| {
            let mildest = view.possible(server, item).min();
            (mildest.unwrap_or(Effect::Deny), view.possible(server, item).max().unwrap_or(Effect::Deny))
        });
        let (mildest, strictest) = bounds.reduce(|one, other| (one.0.max(other.0), one.1.max(other.1)))?;
        (mildest == strictest).then_some(strictest)
    }
}

impl<'p> View<'p> {
    /// What calls of this can come to here: down to the first that applies to every one of them.
    fn possible(self, server: &ServerName, item: &Item) -> impl Iterator<Item = Effect> + 'p {
        let mut settled = false;
        let grounds: Vec<Ground<'p>> = self.grounds(server, item).collect();
        grounds.into_iter().filter(|ground| !matches!(ground, Ground::Pin(_))).map_while(move |ground| {
            let possible = (!settled).then(|| ground.effect());
            settled |= !matches!(ground, Ground::Rule(rule) if !rule.conditions.is_empty());
            possible
        })
    }
}
