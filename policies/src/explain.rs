//! Explanations of policy decisions: the statement that decides a call, and the other statements that were
//! considered.

use std::fmt;

use lockhouse_protocol::ServerName;

use crate::approval_requirement::ApprovalRequirement;
use crate::call::Call;
use crate::call_target::CallTarget;
use crate::condition::PathResolution;
use crate::denial::{Denial, describe_result};
use crate::effect::Effect;
use crate::layer::{Layer, LayerView};
use crate::policy::Policy;
use crate::precedence::{NotApplicable, Statement};
use crate::printable::{printable, truncate_chars};
use crate::rule::Rule;
use crate::source::SourceLocation;

/// The maximum length of a policy line that an explanation quotes, in characters. Longer lines are truncated.
const QUOTE_CHARS_MAX: usize = 160;

/// The maximum number of non-deciding statements that an explanation lists. Further statements are only
/// counted.
const OTHERS_MAX: usize = 20;

/// The decision about a call, with all policy statements that were considered for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The upstream server that the call is for.
    pub server: ServerName,
    /// The tool, resource, prompt or list that the call requests.
    pub item: CallTarget,
    /// The policy's decision about the call, equal to that of [`Policy::decide`].
    pub effect: Effect,
    /// What an approval of the call must prove; `None` if it requires no approval, or no rule says so.
    pub requirement: ApprovalRequirement,
    /// The policy statement that decides the call.
    pub deciding: ConsideredStatement,
    /// The other policy statements that match the call. Those of the same policy layer are together, the one of highest
    /// precedence first.
    pub others: Vec<ConsideredStatement>,
    /// What a user can do to allow the call; `None` if the call is not denied.
    pub hint: Option<String>,
}

/// A policy statement that was considered for a call, and why it decides the call or does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsideredStatement {
    /// The effect that the statement has on calls to which it applies.
    pub effect: Effect,
    /// A description of the policy statement, such as `"list_*" in allow`.
    pub what: String,
    /// Why the statement decides the call, or why it does not. The text contains no argument's value.
    pub why: String,
    /// The location of the statement in the policy; `None` for a default that no policy line states.
    pub location: Option<SourceLocation>,
    /// The text of the policy line at `location`, without control characters; `None` if there is no location.
    pub quoted: Option<String>,
}

/// Explains a policy's decision about a call: which statement decides, and why the others do not.
#[must_use]
pub fn explain(policy: &Policy, call: &Call) -> Explanation {
    let (view, statement) = policy.strictest_statement(call);
    let effect = statement.effect();
    let denial = (effect == Effect::Deny).then(|| Denial::new(call, view, statement));
    let why = match (&denial, statement) {
        (Some(denial), _) => denial.reason.describe(&call.item),
        (None, Statement::Rule(rule)) => format!("{rule} applies"),
        (None, Statement::Skills) => {
            "saving a skill requires approval unless [servers.skills] says otherwise".to_owned()
        }
        (None, Statement::Listing(_)) => format!("there is {}", what(statement, view, call)),
        (None, _) => format!("it matches {}", what(statement, view, call)),
    };
    Explanation {
        server: call.server.clone(),
        item: call.item.clone(),
        effect,
        requirement: match effect {
            Effect::Ask => policy.requirement_for(call),
            Effect::Allow | Effect::Deny => ApprovalRequirement::default(),
        },
        deciding: consider(view, statement, call, why),
        others: others(policy, call, view, statement),
        hint: denial.map(|denial| denial.hint),
    }
}

fn others(
    policy: &Policy,
    call: &Call,
    winner: LayerView<'_>,
    deciding_statement: Statement<'_>,
) -> Vec<ConsideredStatement> {
    let paths = PathResolution::Known(&call.resolved_paths);
    let mut others = Vec::new();
    for view in policy.views(call.client.as_ref()) {
        let is_winner = view.has_same_tables(winner);
        let mut first = None;
        for statement in view.statements(&call.server, &call.item) {
            let why = match (statement.evaluate(call, paths), first) {
                (Err(NotApplicable::Condition(condition, result)), _) => describe_result(condition, result),
                (Err(NotApplicable::Pinned), _) => "the definition is the one that is pinned".to_owned(),
                (Ok(()), None) => {
                    first = Some(statement);
                    if is_winner {
                        continue;
                    }
                    why_not_deciding(statement.effect(), deciding_statement.effect())
                }
                // A default matters only where no other statement applies.
                (Ok(()), Some(_)) if statement.is_fallback() => continue,
                (Ok(()), Some(first)) => why_outranked(statement, first),
            };
            others.push(consider(view, statement, call, why));
        }
    }
    others
}

fn consider(view: LayerView<'_>, statement: Statement<'_>, call: &Call, why: String) -> ConsideredStatement {
    ConsideredStatement {
        effect: statement.effect(),
        what: what(statement, view, call),
        why,
        location: statement.line().map(|line| view.layer.location(line)),
        quoted: statement.line().map(|line| quoted(view.layer, line)),
    }
}

/// Returns why a policy statement does not decide the call, although it has precedence in its own policy view (the
/// server tables for all clients, or for one client). `effect` is the effect of this statement, and
/// `deciding_statement` that of the statement in another view that decides.
fn why_not_deciding(effect: Effect, deciding_statement: Effect) -> String {
    let why = if effect == deciding_statement {
        "has the same effect as the deciding line"
    } else {
        "the deciding line is stricter"
    };
    why.to_owned()
}

/// Returns why a policy statement that applies to the call is not used: the statement `first` of the same policy
/// document has precedence.
fn why_outranked(statement: Statement<'_>, first: Statement<'_>) -> String {
    let why = match (first, statement) {
        (Statement::InDeny(_), Statement::InDeny(_)) => "another pattern in deny is more specific",
        (Statement::InDeny(_), _) => "deny is absolute",
        (Statement::Pin(_), _) => "a pin outranks rules and lists",
        (Statement::Rule(first), Statement::Rule(rule)) => why_rule_outranked(rule, first),
        (Statement::Rule(_), _) => "a rule outranks the lists",
        (Statement::Ask(_), Statement::Allow(_)) => "the pattern in ask is as specific, or more",
        _ => "another pattern is more specific",
    };
    why.to_owned()
}

fn why_rule_outranked(rule: &Rule, first: &Rule) -> &'static str {
    if rule.tool != first.tool {
        "another rule names the tool more exactly"
    } else if rule.conditions.len() != first.conditions.len() {
        "another rule has more conditions"
    } else if rule.strictness() != first.strictness() {
        "another rule is as specific and stricter"
    } else {
        "another rule is as specific and comes first"
    }
}

fn what(statement: Statement<'_>, view: LayerView<'_>, call: &Call) -> String {
    let list = call.item.list_key();
    match statement {
        Statement::InDeny(entry) => format!("\"{}\" in deny", entry.pattern),
        Statement::Ask(entry) => format!("\"{}\" in ask", entry.pattern),
        Statement::Allow(entry) => format!("\"{}\" in {list}", entry.pattern),
        Statement::Pin(_) => format!("the pin of {}", call.item),
        Statement::Rule(rule) => rule.to_string(),
        Statement::Listing(_) => format!("a {list} list"),
        Statement::NotInAllow(table, _) => format!("the {list} list of [{}], which lacks it", table.name),
        Statement::NoAllowList(table) => format!("[{}], which has no {list} list", table.name),
        Statement::Skills => {
            format!("the lack of a [{}] table, so skills require approval", view.table_name(&call.server))
        }
        Statement::NoServerTable => format!("the lack of a [{}] table", view.table_name(&call.server)),
        Statement::NoRole => "the lack of a role that permits to run programs".to_owned(),
        Statement::NoPolicy => "the lack of a policy".to_owned(),
    }
}

fn quoted(layer: &Layer, line: usize) -> String {
    let text = layer.line_text(line).unwrap_or_default().replace('\t', "    ");
    printable(&truncate_chars(&text, QUOTE_CHARS_MAX))
}

/// Renders the decision, the deciding policy line with its text, the hint if the call is denied, and the other
/// statements. The text ends with a newline.
impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { server, item, effect, requirement, deciding, others, hint } = self;
        write!(f, "{server}.{item} {}", effect.predicate())?;
        if requirement.is_special() {
            write!(f, " {requirement}")?;
        }
        write!(f, ": {}", printable(&deciding.why))?;
        match (&deciding.location, &deciding.quoted) {
            (Some(location), Some(text)) => {
                writeln!(f, ", at {location}\n\n{:>5} | {text}\n", location.line)?
            }
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

/// Renders the policy statement on one line, with its effect, location and reason.
impl fmt::Display for ConsideredStatement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<5}  {}", self.effect.as_str(), printable(&self.what))?;
        self.location.as_ref().map_or(Ok(()), |location| write!(f, " ({location})"))?;
        write!(f, ": {}", printable(&self.why))
    }
}
