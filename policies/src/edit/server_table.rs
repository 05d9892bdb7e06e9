//! The table `[servers.NAME]` in the text of a policy, and the rules in it.

use lockhouse_protocol::ServerName;
use toml_edit::{DocumentMut, Item, Table, TableLike};

use crate::effect::Effect;
use crate::rule::APPROVAL_KEYS;

/// Returns the table of a server, which applies to all AI clients. `None` if the policy has no such table.
pub(super) fn server_table<'d>(document: &'d Table, server: &ServerName) -> Option<&'d dyn TableLike> {
    document.get("servers")?.as_table_like()?.get(server.as_str())?.as_table_like()
}

/// Returns the table of a server for an edit. `None` if the policy has no such table.
pub(super) fn server_item<'d>(document: &'d mut DocumentMut, server: &ServerName) -> Option<&'d mut Item> {
    document
        .get_mut("servers")?
        .as_table_like_mut()?
        .get_mut(server.as_str())
        .filter(|item| item.is_table_like())
}

/// Changes the effect of the rule with this index in a server's table, and removes what an approval requires if nothing is
/// asked any more.
/// Returns `None` if the rule cannot be edited.
pub(super) fn set_rule_effect(server: &mut Item, index: usize, wanted: Effect) -> Option<()> {
    let rule: &mut dyn TableLike = match server.as_table_like_mut()?.get_mut("rules")? {
        Item::ArrayOfTables(tables) => tables.get_mut(index)?,
        Item::Value(inline) => inline.as_array_mut()?.get_mut(index)?.as_inline_table_mut()?,
        _ => return None,
    };
    if wanted != Effect::Ask {
        for key in APPROVAL_KEYS {
            rule.remove(key);
        }
    }
    let effect = rule.get_mut("effect")?.as_value_mut()?;
    let decor = effect.decor().clone();
    *effect = wanted.as_str().into();
    *effect.decor_mut() = decor;
    Some(())
}
