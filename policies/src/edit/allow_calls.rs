//! Edits the text of a policy so that the policy allows given calls.

use std::collections::BTreeMap;

use lockhouse_protocol::ServerName;
use toml_edit::{ArrayOfTables, DocumentMut, Item, Table, value};

use super::server_statements::ServerStatements;
use super::server_table::{server_item, set_rule_effect};
use crate::call_target::CallTarget;
use crate::effect::Effect;
use crate::{Decision, PendingCall, Policy, Source};

/// A call that requires approval because of a rule or a list in the policy. The edited policy must allow the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CallToAllow<'a> {
    /// The upstream server.
    server: &'a ServerName,
    /// What is called.
    item: &'a CallTarget,
    /// The line of the rule or of the entry of the list in the policy, counted from 1.
    line: usize,
}

/// Returns the text of a policy file with the edits that allow all of these calls. Returns `None` if no edit of the text
/// can do that, if the file does not ask for approval of each call with the call's own rule, or if an approval requires
/// more than one answer: a rule that requires this is not taken away by one approval.
#[must_use]
pub fn allow_calls(source: &Source, calls: &[&PendingCall]) -> Option<String> {
    let edits: Vec<CallToAllow<'_>> = calls
        .iter()
        .map(|call| CallToAllow { server: call.server(), item: call.item(), line: call.rule().line })
        .collect();
    let after = edited_text(&source.text, &edits)?;
    if calls.iter().any(|call| call.requirement().is_special()) {
        return None;
    }
    let is = Policy::parse(source.clone()).ok()?;
    let would_be = Policy::parse(Source { text: after.clone(), ..source.clone() }).ok()?;
    let asks = |call: &PendingCall| match is.decide(call.call().clone()) {
        Decision::Ask(asked) => asked.rule() == call.rule(),
        Decision::Allow(_) | Decision::Deny(_) => false,
    };
    let allows = |call: &PendingCall| matches!(would_be.decide(call.call().clone()), Decision::Allow(_));
    calls.iter().all(|call| asks(call) && allows(call)).then_some(after)
}

/// Returns the text of the policy with the edits that allow all of these calls: a rule gets another effect, and the `ask`
/// list gets a rule beside it, which has precedence. Returns `None` if no edit of the text can do that.
fn edited_text(text: &str, calls: &[CallToAllow<'_>]) -> Option<String> {
    let mut document = text.parse::<DocumentMut>().ok()?;
    let mut known: BTreeMap<&ServerName, ServerStatements> = BTreeMap::new();
    for (at, call) in calls.iter().enumerate() {
        let CallToAllow { server, item, line } = *call;
        let statements = known.entry(server).or_insert_with(|| ServerStatements::read(text, server));
        let statement = statements.requiring_approval(item, line)?;
        let table = server_item(&mut document, server)?;
        if statement.is_rule() {
            set_rule_effect(table, statement.index, Effect::Allow)?;
        } else if !calls.get(..at)?.contains(call) {
            add_allow_rule(table.as_table_mut()?, item)?;
        }
    }
    Some(document.to_string())
}

/// Adds a new rule to the table of a server. The rule allows exactly this tool. Returns `None` if the item is not
/// a tool, or if `rules` is not an array of tables.
fn add_allow_rule(server: &mut Table, item: &CallTarget) -> Option<()> {
    let CallTarget::Tool(tool) = item else { return None };
    let mut rule = Table::new();
    rule.insert("tool", value(tool.as_str()));
    rule.insert("effect", value("allow"));
    rule.decor_mut().set_prefix("\n");
    server
        .entry("rules")
        .or_insert(Item::ArrayOfTables(ArrayOfTables::new()))
        .as_array_of_tables_mut()?
        .push(rule);
    Some(())
}

#[cfg(test)]
mod tests {
    use lockhouse_protocol::ToolName;

    use super::*;

    const POLICY: &str = "\
# Ours.
version = 1

[servers.github]            # the big one
allow = [\"list_*\"]
# Writing is asked about.
ask = [
  \"create_*\",  # issues
  \"delete_x\",
]

[[servers.github.rules]]    # small ones pass
tool = \"create_issue\"
when = { size = { max = 3 } }
effect = \"ask\"              # for now

# Another.
[servers.files]
ask = [\"write\"]
";

    fn permitted(text: &str, wanted: &[(&str, &str, usize)]) -> Option<String> {
        let names: Vec<(ServerName, CallTarget)> = wanted
            .iter()
            .map(|(server, tool, _)| {
                (ServerName::new(*server).unwrap(), CallTarget::Tool(ToolName::new(*tool).unwrap()))
            })
            .collect();
        let calls: Vec<CallToAllow<'_>> = wanted
            .iter()
            .zip(&names)
            .map(|((.., line), (server, item))| CallToAllow { server, item, line: *line })
            .collect();
        edited_text(text, &calls)
    }

    fn changes(text: &str, wanted: &[(&str, &str, usize)]) -> String {
        let after = permitted(text, wanted).unwrap();
        let diff = similar::TextDiff::from_lines(text, &after);
        let changes = diff.iter_all_changes().filter(|change| change.tag() != similar::ChangeTag::Equal);
        changes.map(|change| format!("{}{change}", change.tag())).collect()
    }

    #[test]
    fn a_list_gets_a_rule_beside_it_and_a_rule_another_effect() {
        let rule = "+[[servers.github.rules]]\n+tool = \"create_pull\"\n+effect = \"allow\"\n+\n";
        assert_eq!(sorted(&changes(POLICY, &[("github", "create_pull", 8)])), sorted(rule));
        assert_eq!(
            changes(POLICY, &[("github", "create_issue", 13)]),
            "-effect = \"ask\"              # for now\n+effect = \"allow\"              # for now\n"
        );
        let files = "+\n+[[servers.files.rules]]\n+tool = \"write\"\n+effect = \"allow\"\n";
        assert_eq!(changes(POLICY, &[("files", "write", 19)]), files);
        // Identical calls cause one change, different calls several.
        assert_eq!(changes(POLICY, &[("files", "write", 19), ("files", "write", 19)]), files);
        let both = changes(POLICY, &[("files", "write", 19), ("github", "create_issue", 13)]);
        assert!(both.contains("servers.files.rules") && both.contains("# for now"), "{both}");
    }

    fn sorted(text: &str) -> Vec<&str> {
        let mut lines: Vec<&str> = text.lines().collect();
        lines.sort_unstable();
        lines
    }

    #[test]
    fn a_line_outside_of_the_policy_lists_changes_nothing() {
        for (text, wanted) in [
            (POLICY, ("github", "create_pull", 5)),
            (POLICY, ("github", "create_pull", 2_000)),
            (POLICY, ("unknown", "create_pull", 8)),
            ("version = 1\nservers = { a = { ask = [\"x\"] } }\n", ("a", "x", 2)),
            ("version = [", ("a", "x", 1)),
        ] {
            assert_eq!(permitted(text, &[wanted]), None, "{wanted:?}");
        }
    }

    #[test]
    fn inline_rules_are_changed_too() {
        let text = "version = 1\n[servers.a]\nrules = [\n  { tool = \"x\", effect = \"ask\" }, # x\n]\n";
        assert_eq!(
            changes(text, &[("a", "x", 4)]),
            "-  { tool = \"x\", effect = \"ask\" }, # x\n+  { tool = \"x\", effect = \"allow\" }, # x\n"
        );
    }
}
