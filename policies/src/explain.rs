//! Why a call is decided as it is, at the length a person wants when they ask.

use std::fmt;

use lockhouse_protocol::ServerName;

use crate::call::Call;
use crate::effect::Effect;
use crate::item::Item;
use crate::policy::Policy;
use crate::source::Place;

/// A decision with everything that was considered for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The server of the call.
    pub server: ServerName,
    /// What is asked of it.
    pub item: Item,
    /// The decision, as [`Policy::decide`] makes it.
    pub effect: Effect,
    /// What decides.
    pub deciding: Considered,
    /// What else speaks of the call, in the order of its precedence.
    pub others: Vec<Considered>,
    /// Of a denial: what a person could do about it.
    pub hint: Option<String>,
}

/// A line that speaks of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Considered {
    /// What it does with calls that it fits.
    pub effect: Effect,
    /// What it is: `"list_*" in allow`.
    pub what: String,
    /// Why it decides, or why it does not.
    pub why: String,
    /// Where it stands. What a policy does not have stands nowhere.
    pub place: Option<Place>,
    /// The text of that line, fit to be shown.
    pub quoted: Option<String>,
}

/// What decides about a call, and what else was considered.
#[must_use]
pub fn explain(_policy: &Policy, call: &Call) -> Explanation {
    let deciding = Considered {
        effect: Effect::Deny,
        what: String::new(),
        why: String::new(),
        place: None,
        quoted: None,
    };
    Explanation {
        server: call.server.clone(),
        item: call.item.clone(),
        effect: Effect::Deny,
        deciding,
        others: Vec::new(),
        hint: None,
    }
}

/// The decision, the line that decides with its text, what else was considered, and for a denial what to do. Ends with a
/// newline.
impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}.{} is {}", self.server, self.item, self.effect.outcome())
    }
}
