//! The one place where a call becomes a permitted one.
//!
//! Reading a resource, getting a prompt and listing either are calls like that of a tool.

use std::fmt;

use lockhouse_protocol::ServerName;
use serde_json::{Map, Value};

use crate::call::Call;
use crate::item::Item;
use crate::pattern::Pattern;
use crate::pending::PendingCall;
use crate::policy::{Policy, Verdict};
use crate::printable::printable;
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

    /// The line of the pattern, or for a listing of the list, that allows it.
    #[must_use]
    pub fn rule(&self) -> &Place {
        &self.rule
    }
}

/// Why a call is not allowed. `Display` says everything but the hint, on one line.
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

/// What is against a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DenialReason {
    /// The server's `deny` list has it.
    InDeny(Pattern),
    /// The list that could permit it does not have it: `allow`, or `resources` or `prompts`.
    NotInAllow,
    /// The server's table has no such list.
    NoAllowList,
    /// The policy has no table for the server.
    NoServerTable {
        /// The policy's file, as shown to people.
        path: String,
    },
    /// There is no policy.
    NoPolicy,
}

impl Policy {
    /// Decides one call. `deny` beats every list, and whatever is not listed is denied.
    pub fn decide(&self, call: Call) -> Decision {
        if let Verdict::Asked(rule) = self.verdict(&call.server, &call.item) {
            let rule = self.place(rule.line);
            return Decision::Ask(PendingCall::new(call, rule));
        }
        match self.judge(&call.server, &call.item) {
            Ok((line, _)) => {
                let Call { server, item, arguments, .. } = call;
                Decision::Allow(PermittedCall { server, item, arguments, rule: self.place(line) })
            }
            Err(denial) => Decision::Deny(*denial),
        }
    }

    /// The paths in a call's arguments that its decision depends on. Where they lead to goes into [`Call::links`].
    #[must_use]
    pub fn paths(&self, _call: &Call) -> Vec<String> {
        Vec::new()
    }

    /// The line that allows it and its pattern, or what is against it.
    pub(crate) fn judge(
        &self,
        server: &ServerName,
        item: &Item,
    ) -> Result<(usize, Option<&Pattern>), Box<Denial>> {
        let verdict = self.verdict(server, item);
        let place = verdict.line().map(|line| self.place(line));
        let reason = match verdict {
            Verdict::Allowed { line, rule } => return Ok((line, rule.map(|rule| &rule.pattern))),
            Verdict::Asked(rule) => return Ok((rule.line, Some(&rule.pattern))),
            Verdict::InDeny(rule) => DenialReason::InDeny(rule.pattern.clone()),
            Verdict::NotInAllow(_) => DenialReason::NotInAllow,
            Verdict::NoAllowList(_) => DenialReason::NoAllowList,
            Verdict::NoServerTable(source) => DenialReason::NoServerTable { path: source.path.clone() },
            Verdict::NoPolicy => DenialReason::NoPolicy,
        };
        let hint = reason.hint(server, item);
        Err(Box::new(Denial { server: server.clone(), item: item.clone(), reason, place, hint }))
    }
}

impl DenialReason {
    fn hint(&self, server: &ServerName, item: &Item) -> String {
        let list = item.list();
        match self {
            Self::InDeny(pattern) => {
                format!("`deny` is absolute: to allow {item}, a person must remove or narrow \"{pattern}\"")
            }
            Self::NotInAllow => format!("to allow it, a person adds \"{item}\" to this list"),
            Self::NoAllowList => format!("to allow it, a person adds {list} = [\"{item}\"] to this table"),
            Self::NoServerTable { .. } => {
                format!(
                    "to allow it, a person adds [servers.{server}] with {list} = [\"{item}\"] to the policy"
                )
            }
            Self::NoPolicy => {
                "run `lockhouse policy init`, which writes a policy that allows what only reads".to_owned()
            }
        }
    }

    /// The reason as the end of a sentence.
    pub(crate) fn describe(&self, server: &ServerName, item: &Item) -> String {
        let list = item.list();
        match self {
            Self::InDeny(pattern) => format!("it matches \"{pattern}\" in deny"),
            Self::NotInAllow => format!("it is not in the {list} list of [servers.{server}]"),
            Self::NoAllowList => format!("[servers.{server}] has no {list} list"),
            Self::NoServerTable { path } => {
                format!("there is no [servers.{server}] table in {}", printable(path))
            }
            Self::NoPolicy => "there is no policy".to_owned(),
        }
    }
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, why) = (self.item.of(&self.server), self.reason.describe(&self.server, &self.item));
        write!(f, "the policy does not allow {what}: {why}")?;
        self.place.as_ref().map_or(Ok(()), |place| write!(f, " ({place})"))
    }
}

impl std::error::Error for Denial {}
