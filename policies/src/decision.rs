//! The one place where a call becomes a permitted one.

use std::fmt;

use lockhouse_protocol::{ServerName, ToolName};

use crate::list::Rule;
use crate::pattern::Pattern;
use crate::policy::{Policy, Verdict};
use crate::printable::printable;
use crate::source::Place;

/// What a policy says about one call.
#[must_use = "a call must not go out unless the decision allows it"]
#[derive(Debug)]
pub enum Decision {
    /// The call may be made, once.
    Allow(PermittedCall),
    /// The call must not be made.
    Deny(Denial),
}

/// Proof that a policy allows one call of one tool. [`Policy::decide`] alone makes it, and it cannot be copied; who
/// sends a call takes it by value, so that each call that goes out has had its own decision.
///
/// ```compile_fail
/// fn twice(call: lockhouse_policies::PermittedCall) {
///     let _ = call.clone();
/// }
/// ```
/// ```compile_fail
/// fn forged(call: lockhouse_policies::PermittedCall, tool: lockhouse_protocol::ToolName) {
///     let _ = lockhouse_policies::PermittedCall { tool, ..call };
/// }
/// ```
#[derive(Debug)]
pub struct PermittedCall {
    server: ServerName,
    tool: ToolName,
    rule: Place,
}

impl PermittedCall {
    /// The upstream server that may be called.
    #[must_use]
    pub fn server(&self) -> &ServerName {
        &self.server
    }

    /// The tool that may be called.
    #[must_use]
    pub fn tool(&self) -> &ToolName {
        &self.tool
    }

    /// The line of the pattern that allows it.
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
    /// The tool of the call.
    pub tool: ToolName,
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
    /// The server's `allow` list does not have it.
    NotInAllow,
    /// The server's table has no `allow` list.
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
    /// Decides one call. `deny` beats `allow`, and whatever is not listed is denied.
    pub fn decide(&self, server: &ServerName, tool: &ToolName) -> Decision {
        match self.judge(server, tool) {
            Ok(rule) => {
                let rule = self.place(rule.line);
                Decision::Allow(PermittedCall { server: server.clone(), tool: tool.clone(), rule })
            }
            Err(denial) => Decision::Deny(*denial),
        }
    }

    /// The rule that allows a tool, or what is against it.
    pub(crate) fn judge(&self, server: &ServerName, tool: &ToolName) -> Result<&Rule, Box<Denial>> {
        let verdict = self.verdict(server, tool);
        let place = verdict.line().map(|line| self.place(line));
        let reason = match verdict {
            Verdict::Allowed(rule) => return Ok(rule),
            Verdict::InDeny(rule) => DenialReason::InDeny(rule.pattern.clone()),
            Verdict::NotInAllow(_) => DenialReason::NotInAllow,
            Verdict::NoAllowList(_) => DenialReason::NoAllowList,
            Verdict::NoServerTable(source) => DenialReason::NoServerTable { path: source.path.clone() },
            Verdict::NoPolicy => DenialReason::NoPolicy,
        };
        let hint = reason.hint(server, tool);
        Err(Box::new(Denial { server: server.clone(), tool: tool.clone(), reason, place, hint }))
    }
}

impl DenialReason {
    fn hint(&self, server: &ServerName, tool: &ToolName) -> String {
        match self {
            Self::InDeny(pattern) => {
                format!("`deny` is absolute: to allow {tool}, a person must remove or narrow \"{pattern}\"")
            }
            Self::NotInAllow => format!("to allow it, a person adds \"{tool}\" to this list"),
            Self::NoAllowList => format!("to allow it, a person adds allow = [\"{tool}\"] to this table"),
            Self::NoServerTable { .. } => {
                format!(
                    "to allow it, a person adds [servers.{server}] with allow = [\"{tool}\"] to the policy"
                )
            }
            Self::NoPolicy => {
                "run `lockhouse policy init`, which writes a policy that allows what only reads".to_owned()
            }
        }
    }

    /// The reason as the end of a sentence.
    pub(crate) fn describe(&self, server: &ServerName) -> String {
        match self {
            Self::InDeny(pattern) => format!("it matches \"{pattern}\" in deny"),
            Self::NotInAllow => format!("it is not in the allow list of [servers.{server}]"),
            Self::NoAllowList => format!("[servers.{server}] has no allow list"),
            Self::NoServerTable { path } => {
                format!("there is no [servers.{server}] table in {}", printable(path))
            }
            Self::NoPolicy => "there is no policy".to_owned(),
        }
    }
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (server, tool) = (&self.server, &self.tool);
        write!(f, "the policy does not allow {server}/{tool}: {}", self.reason.describe(server))?;
        self.place.as_ref().map_or(Ok(()), |place| write!(f, " ({place})"))
    }
}

impl std::error::Error for Denial {}
