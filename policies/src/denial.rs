//! Denials: why a policy does not allow a call, and what a user can do about it.

use std::fmt;

use lockhouse_protocol::ServerName;

use crate::call::Call;
use crate::call_target::CallTarget;
use crate::condition::{Condition, ConditionResult, PathResolution};
use crate::effect::Effect;
use crate::layer::LayerView;
use crate::pattern::Pattern;
use crate::precedence::{NotApplicable, Statement};
use crate::printable::{printable, truncate_chars};
use crate::source::SourceLocation;

/// The maximum length of a rule or condition that a denial message quotes, in characters. Longer text is truncated.
const RULE_CHARS_MAX: usize = 300;

/// The denial of a call by a policy. `Display` writes the reason and the location of the policy line on one line,
/// without the hint. No text of a denial contains an argument's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// The upstream server that the denied call is for.
    pub server: ServerName,
    /// The tool, resource, prompt or list that the denied call requests.
    pub item: CallTarget,
    /// Why the policy denies the call.
    pub reason: DenialReason,
    /// The location of the policy line that denies the call; `None` if the policy has no such line, because it has no
    /// table for the server or because there is no policy.
    pub location: Option<SourceLocation>,
    /// A hint for a user: how to change the policy so that it allows the call.
    pub hint: String,
}

/// Why a policy denies a call. A field `table` is the name of a policy table as in the document, such as
/// `servers.github`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DenialReason {
    /// This pattern of the server's `deny` list matches the target of the call.
    InDeny(Pattern),
    /// The policy pins the tool to an accepted definition (by digest), and the tool's current definition differs
    /// from it or is unknown.
    NotPinned {
        /// Whether the tool's current definition is known. If it is unknown, it cannot be compared with the pinned
        /// digest.
        known: bool,
    },
    /// A rule of the policy denies the call.
    Rule {
        /// A description of the rule that denies the call.
        rule: String,
        /// A description of the first condition of the rule that could not be evaluated and therefore counts as met;
        /// `None` if all conditions could be evaluated.
        unknown: Option<String>,
    },
    /// The list that could allow the call (`allow`, `resources` or `prompts`) has no entry that matches the target of
    /// the call.
    NotInAllow {
        /// The name of the policy table that contains the list.
        table: String,
    },
    /// The server's policy table has no list that could allow the call (`allow`, `resources` or `prompts`).
    NoAllowList {
        /// The name of the policy table that lacks the list.
        table: String,
    },
    /// The policy has no table for the server, or restricts the AI client to other servers.
    NoServerTable {
        /// The name of the missing policy table.
        table: String,
        /// The path of the policy file, as messages show it.
        path: String,
    },
    /// The policy has roles, and none permits the person to run programs.
    NoRole,
    /// There is no policy, so every call is denied.
    NoPolicy,
}

impl Denial {
    /// Creates the denial of a call that the policy statement `statement` denies. `view` is the policy view that
    /// contains the statement.
    pub(crate) fn new(call: &Call, view: LayerView<'_>, statement: Statement<'_>) -> Self {
        let reason = DenialReason::from_statement(call, view, statement);
        let hint = hint(&reason, call, view);
        let location = statement.line().map(|line| view.layer.location(line));
        Self { server: call.server.clone(), item: call.item.clone(), reason, location, hint }
    }
}

impl DenialReason {
    fn from_statement(call: &Call, view: LayerView<'_>, statement: Statement<'_>) -> Self {
        match statement {
            Statement::InDeny(entry) => Self::InDeny(entry.pattern.clone()),
            Statement::Pin(_) => Self::NotPinned { known: call.definition.is_some() },
            Statement::Rule(rule) => {
                let unknown =
                    rule.unknown(&call.arguments, PathResolution::Known(&call.resolved_paths)).next();
                let describe = |(condition, why)| {
                    format!("since {}", describe_result(condition, ConditionResult::Unknown(why)))
                };
                Self::Rule { rule: cut(&rule.to_string()), unknown: unknown.map(describe) }
            }
            Statement::NotInAllow(table, _) => Self::NotInAllow { table: table.name.clone() },
            Statement::NoAllowList(table) => Self::NoAllowList { table: table.name.clone() },
            Statement::NoPolicy => Self::NoPolicy,
            Statement::NoRole => Self::NoRole,
            Statement::NoServerTable
            | Statement::Skills
            | Statement::Ask(_)
            | Statement::Allow(_)
            | Statement::Listing(_) => Self::NoServerTable {
                table: view.table_name(&call.server),
                path: view.layer.path().to_owned(),
            },
        }
    }

    /// Returns the reason of the denial as the end of a sentence, such as "there is no policy". `item` is the target of
    /// the denied call.
    pub(crate) fn describe(&self, item: &CallTarget) -> String {
        let list = item.list_key();
        match self {
            Self::InDeny(pattern) => format!("it matches \"{pattern}\" in deny"),
            Self::NotPinned { known: true } => "its definition is not the one that is pinned".to_owned(),
            Self::NotPinned { known: false } => {
                "it is pinned, and its current definition is unknown".to_owned()
            }
            Self::Rule { rule, unknown: None } => format!("{rule} denies it"),
            Self::Rule { rule, unknown: Some(unknown) } => format!("{rule} denies it, {unknown}"),
            Self::NotInAllow { table } => format!("it is not in the {list} list of [{table}]"),
            Self::NoAllowList { table } => format!("[{table}] has no {list} list"),
            Self::NoServerTable { table, path } => {
                format!("there is no [{table}] table in {}", printable(path))
            }
            Self::NoRole => "no role permits this person to run programs".to_owned(),
            Self::NoPolicy => "there is no policy".to_owned(),
        }
    }
}

fn hint(reason: &DenialReason, call: &Call, view: LayerView<'_>) -> String {
    let (item, list) = (call.item.pattern_text(), call.item.list_key());
    match reason {
        DenialReason::InDeny(pattern) => {
            format!(
                "`deny` overrides all other lists: to allow {item}, a user must remove or narrow \"{pattern}\""
            )
        }
        DenialReason::NotPinned { .. } => {
            format!(
                "a user must review the current definition of {item}, and update the pin if it is acceptable"
            )
        }
        DenialReason::Rule { .. } => "to allow it, a user must change or narrow this rule".to_owned(),
        DenialReason::NotInAllow { .. } | DenialReason::NoAllowList { .. } => {
            rule_allowing_other_arguments(call, view).unwrap_or_else(|| match reason {
                DenialReason::NotInAllow { .. } => {
                    format!("to allow it, a user must add \"{item}\" to this list")
                }
                _ => format!("to allow it, a user must add {list} = [\"{item}\"] to this table"),
            })
        }
        DenialReason::NoServerTable { table, path } => {
            format!(
                "to allow it, a user must add [{table}] with {list} = [\"{item}\"] to {}",
                printable(path)
            )
        }
        DenialReason::NoRole => {
            "to allow it, a user must add the person to the members of a role with may = [\"run\"]".to_owned()
        }
        DenialReason::NoPolicy => {
            "run `lockhouse policy init`, which writes a policy that allows read-only tools".to_owned()
        }
    }
}

/// Looks in `view` for an `allow` or `ask` rule that would apply if the call had other arguments. Returns a hint that
/// names this rule and its unmet condition, or `None` if there is no such rule.
fn rule_allowing_other_arguments(call: &Call, view: LayerView<'_>) -> Option<String> {
    let paths = PathResolution::Known(&call.resolved_paths);
    view.statements(&call.server, &call.item).find_map(|statement| {
        match (statement, statement.evaluate(call, paths)) {
            (Statement::Rule(rule), Err(NotApplicable::Condition(condition, result)))
                if rule.effect != Effect::Deny =>
            {
                let location = view.layer.location(rule.line);
                let permits =
                    if rule.effect == Effect::Allow { "allows it" } else { "requires approval for it" };
                Some(format!(
                    "{} ({location}) {permits}, but does not apply: {}",
                    cut(&rule.to_string()),
                    describe_result(condition, result)
                ))
            }
            _ => None,
        }
    })
}

/// Describes the result of evaluating a condition of a rule, as a sentence about the rule ("it requires that ..."). The
/// condition is named as a requirement, so that nobody takes the value in it for the value of the call.
pub(crate) fn describe_result(condition: &Condition, result: ConditionResult) -> String {
    let required = format!("it requires that {}", cut(&condition.to_string()));
    match result {
        ConditionResult::Met => format!("{required}, which holds"),
        ConditionResult::NotMet => format!("{required}, and the argument has another value"),
        ConditionResult::Absent => format!("{required}, and the argument is absent"),
        ConditionResult::Unknown(why) => format!("{required}, which cannot be evaluated ({why})"),
    }
}

fn cut(text: &str) -> String {
    printable(&truncate_chars(text, RULE_CHARS_MAX))
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, why) = (self.item.describe(&self.server), self.reason.describe(&self.item));
        write!(f, "the policy does not allow {what}: {why}")?;
        self.location.as_ref().map_or(Ok(()), |location| write!(f, " ({location})"))
    }
}

impl std::error::Error for Denial {}
