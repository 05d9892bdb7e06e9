//! Why a call is decided as it is, at the length a person wants when they ask.

use std::fmt;

use lockhouse_protocol::ServerName;

use crate::call::Call;
use crate::condition::World;
use crate::denial::{Denial, unmet};
use crate::effect::Effect;
use crate::item::Item;
use crate::judge::{Ground, Unmet};
use crate::layer::{Layer, View};
use crate::policy::Policy;
use crate::printable::{clipped, printable};
use crate::rule::Rule;
use crate::source::Place;

/// The longest part of a source line that is quoted, in characters.
const QUOTE_CHARS_MAX: usize = 160;

/// How many of the others the text shows; of more, only the number.
const OTHERS_MAX: usize = 20;

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
    /// Why it decides, or why it does not. No value of an argument is in it.
    pub why: String,
    /// Where it stands. What a policy does not have stands nowhere.
    pub place: Option<Place>,
    /// The text of that line, fit to be shown.
    pub quoted: Option<String>,
}

/// What decides about a call, and what else was considered.
#[must_use]
pub fn explain(policy: &Policy, call: &Call) -> Explanation {
    let (view, ground) = policy.verdict(call);
    let effect = ground.effect();
    let denial = (effect == Effect::Deny).then(|| Denial::of(call, view, ground));
    let why = match (&denial, ground) {
        (Some(denial), _) => denial.reason.describe(&call.item),
        (None, Ground::Rule(rule)) => format!("{rule} applies"),
        (None, Ground::Skills) => "saving a skill is left to a person where nothing is said of it".to_owned(),
        (None, Ground::Listing(_)) => format!("there is {}", what(ground, view, call)),
        (None, _) => format!("it matches {}", what(ground, view, call)),
    };
    Explanation {
        server: call.server.clone(),
        item: call.item.clone(),
        effect,
        deciding: considered(view, ground, call, why),
        others: others(policy, call, (view, ground)),
        hint: denial.map(|denial| denial.hint),
    }
}

fn others(policy: &Policy, call: &Call, (winner, decisive): (View<'_>, Ground<'_>)) -> Vec<Considered> {
    let world = World::Known(&call.links);
    let mut others = Vec::new();
    for view in policy.views(call.client.as_ref()) {
        let is_winner = view.is(winner);
        let mut first = None;
        for ground in view.grounds(&call.server, &call.item) {
            let why = match (ground.judge(call, world), first) {
                (Err(Unmet::Condition(condition, judged)), _) => unmet(condition, judged),
                (Err(Unmet::Pinned), _) => "met: the definition is the one that is pinned".to_owned(),
                (Ok(()), None) => {
                    first = Some(ground);
                    if is_winner {
                        continue;
                    }
                    beside(ground.effect(), decisive.effect())
                }
                // That nothing permits it matters only where nothing does.
                (Ok(()), Some(_)) if ground.is_last() => continue,
                (Ok(()), Some(first)) => outranked(ground, first),
            };
            others.push(considered(view, ground, call, why));
        }
    }
    others
}

fn considered(view: View<'_>, ground: Ground<'_>, call: &Call, why: String) -> Considered {
    Considered {
        effect: ground.effect(),
        what: what(ground, view, call),
        why,
        place: ground.line().map(|line| view.layer.place(line)),
        quoted: ground.line().map(|line| quoted(view.layer, line)),
    }
}

/// Why what another layer says does not decide.
fn beside(effect: Effect, decisive: Effect) -> String {
    let why = if effect == decisive { "says the same as what decides" } else { "what decides is stricter" };
    why.to_owned()
}

/// Why what applies does not count, beside `first`.
fn outranked(ground: Ground<'_>, first: Ground<'_>) -> String {
    let why = match (first, ground) {
        (Ground::InDeny(_), Ground::InDeny(_)) => "another pattern in deny is more specific",
        (Ground::InDeny(_), _) => "deny is absolute",
        (Ground::Pin(_), _) => "a pin outranks rules and lists",
        (Ground::Rule(first), Ground::Rule(rule)) => outranked_rule(rule, first),
        (Ground::Rule(_), _) => "a rule outranks the lists",
        (Ground::Ask(_), Ground::Allow(_)) => "the pattern in ask is as specific, or more",
        _ => "another pattern is more specific",
    };
    why.to_owned()
}

fn outranked_rule(rule: &Rule, first: &Rule) -> &'static str {
    if rule.tool != first.tool {
        "another rule names the tool more exactly"
    } else if rule.conditions.len() != first.conditions.len() {
        "another rule has more conditions"
    } else if rule.effect != first.effect {
        "another rule is as specific and stricter"
    } else {
        "another rule is as specific and comes first"
    }
}

fn what(ground: Ground<'_>, view: View<'_>, call: &Call) -> String {
    let list = call.item.list();
    match ground {
        Ground::InDeny(entry) => format!("\"{}\" in deny", entry.pattern),
        Ground::Ask(entry) => format!("\"{}\" in ask", entry.pattern),
        Ground::Allow(entry) => format!("\"{}\" in {list}", entry.pattern),
        Ground::Pin(_) => format!("the pin of {}", call.item),
        Ground::Rule(rule) => rule.to_string(),
        Ground::Listing(_) => format!("a {list} list"),
        Ground::NotInAllow(table, _) => format!("the {list} list of [{}], which lacks it", table.name),
        Ground::NoAllowList(table) => format!("[{}], which has no {list} list", table.name),
        Ground::Skills => format!(
            "the lack of a [{}] table, which leaves skills to a person",
            view.table_name(&call.server)
        ),
        Ground::NoServerTable => format!("the lack of a [{}] table", view.table_name(&call.server)),
        Ground::NoPolicy => "the lack of a policy".to_owned(),
    }
}

fn quoted(layer: &Layer, line: usize) -> String {
    let text = layer.line_text(line).unwrap_or_default().replace('\t', "    ");
    printable(&clipped(&text, QUOTE_CHARS_MAX))
}

/// The decision, the line that decides with its text, for a denial what to do, and what else was considered. Ends with a
/// newline.
impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { server, item, effect, deciding, others, hint } = self;
        write!(f, "{server}.{item} is {}: {}", effect.outcome(), printable(&deciding.why))?;
        match (&deciding.place, &deciding.quoted) {
            (Some(place), Some(text)) => writeln!(f, ", at {place}\n\n{:>5} | {text}\n", place.line)?,
            _ => writeln!(f)?,
        }
        if let Some(hint) = hint {
            writeln!(f, "hint: {hint}")?;
        }
        if !others.is_empty() {
            writeln!(f, "also considered:")?;
        }
        for other in others.iter().take(OTHERS_MAX) {
            writeln!(f, "  {other}")?;
        }
        match others.len().checked_sub(OTHERS_MAX) {
            Some(more @ 1..) => writeln!(f, "  and {more} more"),
            _ => Ok(()),
        }
    }
}

/// On one line.
impl fmt::Display for Considered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<5}  {}", self.effect.as_str(), printable(&self.what))?;
        self.place.as_ref().map_or(Ok(()), |place| write!(f, " ({place})"))?;
        write!(f, ": {}", printable(&self.why))
    }
}
