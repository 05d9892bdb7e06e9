//! Why a call is not allowed, and what a person could do about it.

use std::fmt;

use lockhouse_protocol::ServerName;

use crate::call::Call;
use crate::condition::{Condition, Judged, World};
use crate::effect::Effect;
use crate::item::Item;
use crate::judge::{Ground, Unmet};
use crate::layer::View;
use crate::pattern::Pattern;
use crate::printable::{clipped, printable};
use crate::source::Place;

/// Characters of a rule or a condition that a message repeats.
const RULE_CHARS_MAX: usize = 300;

/// Why a call is not allowed. `Display` says everything but the hint, on one line. No value of an argument is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// The server of the call.
    pub server: ServerName,
    /// What was asked for.
    pub item: Item,
    /// What is against it.
    pub reason: DenialReason,
    /// The line that decides it, when there is one.
    pub place: Option<Place>,
    /// What a person could do about it. No program may: a policy is changed by people.
    pub hint: String,
}

/// What is against a call. A `table` is as it is written: `servers.github`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DenialReason {
    /// The server's `deny` list has it.
    InDeny(Pattern),
    /// The tool's definition is not the one that is pinned.
    NotPinned {
        /// Whether it is known what it is.
        known: bool,
    },
    /// A rule denies it.
    Rule {
        /// The rule in words.
        rule: String,
        /// What of its conditions could not be judged, and so counts against the call.
        unknown: Option<String>,
    },
    /// The list that could permit it does not have it: `allow`, or `resources` or `prompts`.
    NotInAllow {
        /// Whose list.
        table: String,
    },
    /// The server's table has no such list.
    NoAllowList {
        /// Which table.
        table: String,
    },
    /// The policy has no table for the server, or none that is meant for the client.
    NoServerTable {
        /// The one that is missing.
        table: String,
        /// The policy's file, as shown to people.
        path: String,
    },
    /// There is no policy.
    NoPolicy,
}

impl Denial {
    /// Of a call about which `ground` decides.
    pub(crate) fn of(call: &Call, view: View<'_>, ground: Ground<'_>) -> Self {
        let reason = DenialReason::of(call, view, ground);
        let hint = hint(&reason, call, view);
        let place = ground.line().map(|line| view.layer.place(line));
        Self { server: call.server.clone(), item: call.item.clone(), reason, place, hint }
    }
}

impl DenialReason {
    fn of(call: &Call, view: View<'_>, ground: Ground<'_>) -> Self {
        match ground {
            Ground::InDeny(entry) => Self::InDeny(entry.pattern.clone()),
            Ground::Pin(_) => Self::NotPinned { known: call.definition.is_some() },
            Ground::Rule(rule) => {
                let unknown = rule.unknown(&call.arguments, World::Known(&call.links)).next();
                let told = |(condition, why)| {
                    format!("since a condition is {}", unmet(condition, Judged::Unknown(why)))
                };
                Self::Rule { rule: cut(&rule.to_string()), unknown: unknown.map(told) }
            }
            Ground::NotInAllow(table, _) => Self::NotInAllow { table: table.name.clone() },
            Ground::NoAllowList(table) => Self::NoAllowList { table: table.name.clone() },
            Ground::NoPolicy => Self::NoPolicy,
            Ground::NoServerTable
            | Ground::Skills
            | Ground::Ask(_)
            | Ground::Allow(_)
            | Ground::Listing(_) => Self::NoServerTable {
                table: view.table_name(&call.server),
                path: view.layer.path().to_owned(),
            },
        }
    }

    /// The reason as the end of a sentence.
    pub(crate) fn describe(&self, item: &Item) -> String {
        let list = item.list();
        match self {
            Self::InDeny(pattern) => format!("it matches \"{pattern}\" in deny"),
            Self::NotPinned { known: true } => "its definition is not the one that is pinned".to_owned(),
            Self::NotPinned { known: false } => "it is pinned, and its definition is not known".to_owned(),
            Self::Rule { rule, unknown: None } => format!("{rule} denies it"),
            Self::Rule { rule, unknown: Some(unknown) } => format!("{rule} denies it, {unknown}"),
            Self::NotInAllow { table } => format!("it is not in the {list} list of [{table}]"),
            Self::NoAllowList { table } => format!("[{table}] has no {list} list"),
            Self::NoServerTable { table, path } => {
                format!("there is no [{table}] table in {}", printable(path))
            }
            Self::NoPolicy => "there is no policy".to_owned(),
        }
    }
}

fn hint(reason: &DenialReason, call: &Call, view: View<'_>) -> String {
    let (item, list) = (&call.item, call.item.list());
    match reason {
        DenialReason::InDeny(pattern) => {
            format!("`deny` is absolute: to allow {item}, a person must remove or narrow \"{pattern}\"")
        }
        DenialReason::NotPinned { .. } => {
            format!("a person looks at what {item} is now, and pins that or leaves the tool alone")
        }
        DenialReason::Rule { .. } => "to allow it, a person changes or narrows this rule".to_owned(),
        DenialReason::NotInAllow { .. } | DenialReason::NoAllowList { .. } => nearest_rule(call, view)
            .unwrap_or_else(|| match reason {
                DenialReason::NotInAllow { .. } => {
                    format!("to allow it, a person adds \"{item}\" to this list")
                }
                _ => format!("to allow it, a person adds {list} = [\"{item}\"] to this table"),
            }),
        DenialReason::NoServerTable { table, path } => {
            format!("to allow it, a person adds [{table}] with {list} = [\"{item}\"] to {}", printable(path))
        }
        DenialReason::NoPolicy => {
            "run `lockhouse policy init`, which writes a policy that allows what only reads".to_owned()
        }
    }
}

/// A rule that would have permitted the call with other arguments: the caller may have others.
fn nearest_rule(call: &Call, view: View<'_>) -> Option<String> {
    let world = World::Known(&call.links);
    view.grounds(&call.server, &call.item).find_map(|ground| match (ground, ground.judge(call, world)) {
        (Ground::Rule(rule), Err(Unmet::Condition(condition, judged))) if rule.effect != Effect::Deny => {
            let place = view.layer.place(rule.line);
            let permits = if rule.effect == Effect::Allow { "allows it" } else { "leaves it to a person" };
            Some(format!(
                "{} ({place}) {permits}, but is {}",
                cut(&rule.to_string()),
                unmet(condition, judged)
            ))
        }
        _ => None,
    })
}

/// What became of a condition, after "is".
pub(crate) fn unmet(condition: &Condition, judged: Judged) -> String {
    let condition = cut(&condition.to_string());
    match judged {
        Judged::Met => format!("met: {condition}"),
        Judged::NotMet => format!("not met: {condition}"),
        Judged::Absent => format!("not met (the argument is not there): {condition}"),
        Judged::Unknown(why) => format!("not to be judged ({why}): {condition}"),
    }
}

fn cut(text: &str) -> String {
    printable(&clipped(text, RULE_CHARS_MAX))
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, why) = (self.item.of(&self.server), self.reason.describe(&self.item));
        write!(f, "the policy does not allow {what}: {why}")?;
        self.place.as_ref().map_or(Ok(()), |place| write!(f, " ({place})"))
    }
}

impl std::error::Error for Denial {}
