//! Compares two policies by content: the entries, rules, pinned tool definitions and limits that differ.
//! Differences in formatting are ignored.

use std::collections::BTreeMap;
use std::fmt;

use crate::layer::Layer;
use crate::policy::Policy;
use crate::printable::printable;
use crate::role::{RoleKind, RoleTable};
use crate::source::SourceLocation;
use crate::table::{LimitsEntry, ServerTable};

/// One difference between an old and a new policy: a value that was added, removed or changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The name of the policy table that differs, as written in the document: `servers.github`,
    /// `clients.cursor.servers.github` or `limits`. If the table is in a document that restricts the policy, the path
    /// of that document follows in parentheses.
    pub table: String,
    /// The part of the policy table that differs, such as `tool "list_*"`, `rule for "create_issue" when ...` or
    /// `rate`.
    pub subject: String,
    /// The value in the old policy; `None` if the old policy has no such value.
    pub old: Option<PolicyValue>,
    /// The value in the new policy; `None` if the new policy has no such value.
    pub new: Option<PolicyValue>,
}

/// The value of one part of a policy table, with its location in the document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyValue {
    /// The value as text, such as `allow` or `60/min`.
    pub what: String,
    /// The location of the policy line that sets the value.
    pub location: SourceLocation,
}

/// The values of entries and rules, from the mildest to the strictest.
const EFFECTS: [&str; 5] = ["allow", "ask", "ask, with a password", "ask, with a key", "deny"];
const DENY: usize = EFFECTS.len() - 1;

impl Change {
    /// Whether the change may permit a call, or require less of it, that the old policy does not. A change is taken for one
    /// that does, unless it certainly does not: an entry that no longer allows, or one that denies.
    #[must_use]
    pub fn may_widen(&self) -> bool {
        let text = |value: &'_ Option<PolicyValue>| value.as_ref().map(|value| value.what.clone());
        let strictness =
            |what: Option<String>| EFFECTS.iter().position(|effect| Some(*effect) == what.as_deref());
        let (old, new) = (text(&self.old), text(&self.new));
        match (strictness(old), new.is_none(), strictness(new)) {
            // Nothing is milder than an entry that allows, and nothing stricter than one that denies.
            (Some(0), true, _) | (_, _, Some(DENY)) => false,
            (Some(old), _, Some(new)) => new < old,
            _ => true,
        }
    }
}

/// Returns the differences between two policies, sorted by table and subject. Differences in the order of lines, in
/// comments and in notation are ignored.
#[must_use]
pub fn diff(old: &Policy, new: &Policy) -> Vec<Change> {
    let (mut old, new) = (PolicyValues::from_policy(old).0, PolicyValues::from_policy(new).0);
    let mut changes = Vec::new();
    for (key, new) in new {
        let old = old.remove(&key);
        if old.as_ref().is_none_or(|old| old.what != new.what) {
            changes.push(Change { table: key.0, subject: key.1, old, new: Some(new) });
        }
    }
    let removed =
        old.into_iter().map(|((table, subject), old)| Change { table, subject, old: Some(old), new: None });
    changes.extend(removed);
    changes.sort_by(|one, other| (&one.table, &one.subject).cmp(&(&other.table, &other.subject)));
    changes
}

/// All values of a policy. The key of each value is the pair of table name and subject, such as `limits` and
/// `rate`.
#[derive(Default)]
struct PolicyValues(BTreeMap<(String, String), PolicyValue>);

impl PolicyValues {
    fn from_policy(policy: &Policy) -> Self {
        let mut facts = Self::default();
        for (number, layer) in policy.layers().enumerate() {
            let of = if number == 0 { String::new() } else { format!(" ({})", printable(layer.path())) };
            facts.add_layer(layer, &of);
        }
        facts
    }

    fn add(&mut self, layer: &Layer, table: String, subject: String, what: impl Into<String>, line: usize) {
        self.0.insert((table, subject), PolicyValue { what: what.into(), location: layer.location(line) });
    }

    fn add_layer(&mut self, layer: &Layer, of: &str) {
        for table in layer.servers.values() {
            self.add_server(layer, table, of);
        }
        for client in &layer.clients.all {
            let name = client.table() + of;
            // A client's own table, even an empty one, replaces that of `*`.
            self.add(layer, name.clone(), "the table".to_owned(), "there", client.line);
            if client.servers.is_some() {
                self.add(layer, name.clone(), "servers".to_owned(), "only these", client.line);
            }
            self.add_bounds(layer, &name, client.limits);
            for table in client.servers.iter().flat_map(BTreeMap::values) {
                self.add_server(layer, table, of);
            }
        }
        for role in layer.roles.iter().flatten() {
            self.add_role(layer, role, of);
        }
        self.add_bounds(layer, &format!("limits{of}"), layer.limits);
    }

    fn add_role(&mut self, layer: &Layer, role: &RoleTable, of: &str) {
        let name = format!("roles.{}{of}", role.name);
        for (member, is_starred) in &role.members {
            let subject = format!("member \"{member}{}\"", if *is_starred { "*" } else { "" });
            self.add(layer, name.clone(), subject, "member", role.line);
        }
        for (kind, _) in RoleKind::NAMES.into_iter().filter(|(_, kind)| role.may.contains(kind)) {
            self.add(layer, name.clone(), kind.to_owned(), "permitted", role.line);
        }
        self.add_bounds(layer, &name, role.each);
        self.add_bounds(layer, &format!("roles.{}.together{of}", role.name), role.together);
        if role.break_glass {
            self.add(layer, name.clone(), "break_glass".to_owned(), "permitted", role.line);
        }
        if let Some(servers) = &role.servers {
            self.add(layer, name, "servers".to_owned(), "only these", role.line);
            for table in servers.values() {
                self.add_server(layer, table, of);
            }
        }
    }

    fn add_server(&mut self, layer: &Layer, table: &ServerTable, of: &str) {
        let name = format!("{}{of}", table.name);
        // Stricter lists come later and replace entries of milder ones.
        for (key, list) in table.lists() {
            let (kind, says) = match key {
                "resources" | "prompts" => {
                    self.add(layer, name.clone(), key.to_owned(), "listed", list.line);
                    (key.trim_end_matches('s'), "allow")
                }
                _ => ("tool", key),
            };
            for entry in &list.entries {
                let kind =
                    if key == "deny" && entry.pattern.stem().contains(':') { "resource" } else { kind };
                self.add(layer, name.clone(), format!("{kind} \"{}\"", entry.pattern), says, entry.line);
            }
        }
        // Within a table, rules are sorted with the strictest first.
        let rules: Vec<_> = table.rules.iter().collect();
        for rule in rules.into_iter().rev() {
            let subject = format!("rule for \"{}\"{}", rule.tool, rule.when());
            let requirement = rule.requirement.is_special().then(|| format!(", {}", rule.requirement));
            let what = format!("{}{}", rule.effect, requirement.unwrap_or_default());
            self.add(layer, name.clone(), subject, what, rule.line);
        }
        for (tool, pin) in &table.pins {
            self.add(
                layer,
                name.clone(),
                format!("pin of {tool}"),
                format!("sha256:{}", pin.digest),
                pin.line,
            );
        }
        if let Some((choice, line)) = table.on_change {
            self.add(layer, name.clone(), "on_change".to_owned(), choice.as_str(), line);
        }
        self.add_bounds(layer, &name, table.limits);
        for (pattern, bounds) in &table.tool_limits.all {
            self.add_bounds(layer, &format!("{}.limits.\"{pattern}\"{of}", table.name), Some(*bounds));
        }
    }

    fn add_bounds(&mut self, layer: &Layer, table: &str, bounds: Option<LimitsEntry>) {
        let Some(LimitsEntry { limits, line }) = bounds else { return };
        let limits = [
            ("rate", limits.rate.map(|rate| rate.to_string())),
            ("calls_per_execution", limits.calls_per_execution.map(|count| count.to_string())),
            (
                "argument_bytes_per_execution",
                limits.argument_bytes_per_execution.map(|count| count.to_string()),
            ),
            ("result_bytes_per_execution", limits.result_bytes_per_execution.map(|count| count.to_string())),
            ("timeout_seconds", limits.timeout.map(|timeout| timeout.as_secs().to_string())),
        ];
        for (key, what) in limits {
            if let Some(what) = what {
                self.add(layer, table.to_owned(), key.to_owned(), what, line);
            }
        }
    }
}

/// Writes the difference on one line, which begins with `+` for an added value, `-` for a removed one, `~` for a
/// changed one.
impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let subject = format!("[{}] {}", printable(&self.table), printable(&self.subject));
        match (&self.old, &self.new) {
            (None, Some(new)) => write!(f, "+ {subject}: {} ({})", new.what, new.location),
            (Some(old), None) => write!(f, "- {subject}: {} ({})", old.what, old.location),
            (Some(old), Some(new)) => {
                write!(f, "~ {subject}: {} ({}), was {} ({})", new.what, new.location, old.what, old.location)
            }
            (None, None) => Ok(()),
        }
    }
}
