//! Edits the text of a policy so that a tool has a given effect.

use lockhouse_protocol::ServerName;
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike, Value};

use super::list_layout;
use super::server_statements::{ServerStatements, Statement};
use super::server_table::{server_item, set_rule_effect};
use crate::effect::Effect;
use crate::pattern::Pattern;

/// The beginning of a policy that did not exist before.
const NEW_POLICY: &str = "version = 1\n";

/// The text of an edited policy.
#[derive(Debug, PartialEq, Eq)]
pub struct EditedPolicy {
    /// The text after the edit. Equal to the text before if the policy has the effect already.
    pub text: String,
    /// The entries of lists that were removed, with their lines in the text before.
    pub removed: Vec<Statement>,
    /// The statements that decide otherwise about some of the tools or calls, with their lines in the text after.
    pub exceptions: Vec<Statement>,
}

/// Why a policy was not edited.
#[derive(Debug, PartialEq, Eq)]
pub enum EditError {
    /// This statement overrides each entry that an edit could make.
    Overridden(Statement),
    /// The policy has a form that cannot be edited.
    Unsupported,
}

/// Edits the policy `text` so that the tools of the server that match `pattern` have this effect. `None` is a policy
/// that does not exist yet. Removes the entries that name exactly the pattern from the other lists. For `deny`, also
/// removes the entries that the new one makes ineffective. The text must be a valid policy.
///
/// # Errors
/// [`EditError::Overridden`] if an entry of `deny` or a rule with a wider pattern decides whatever the lists say.
pub fn set_effect(
    text: Option<&str>,
    server: &ServerName,
    pattern: &Pattern,
    wanted: Effect,
) -> Result<EditedPolicy, EditError> {
    let before = ServerStatements::read(text.unwrap_or_default(), server);
    if let Some(statement) = before.overriding(pattern, wanted) {
        return Err(EditError::Overridden(statement.clone()));
    }
    let mut document: DocumentMut = text.unwrap_or(NEW_POLICY).parse().map_err(|_| EditError::Unsupported)?;
    let is_removed = |entry: &&Statement| {
        let is_ineffective = wanted == Effect::Deny && pattern.covers(&entry.pattern);
        !entry.is_rule() && entry.effect != wanted && (entry.pattern == *pattern || is_ineffective)
    };
    let removed: Vec<Statement> = before.all.iter().filter(is_removed).cloned().collect();
    let has_rule =
        change_rules(&mut document, server, &before, pattern, wanted).ok_or(EditError::Unsupported)?;
    remove_entries(&mut document, server, &removed).ok_or(EditError::Unsupported)?;
    let remaining = before.without(&removed);
    let needs_entry = match wanted {
        Effect::Deny => !remaining.is_denied(pattern),
        Effect::Allow | Effect::Ask => !has_rule && remaining.unconditional_effect(pattern) != Some(wanted),
    };
    if needs_entry {
        add_entry(&mut document, server, pattern, wanted).ok_or(EditError::Unsupported)?;
    }
    let text = document.to_string();
    let exceptions = ServerStatements::read(&text, server).exceptions(pattern, wanted);
    Ok(EditedPolicy { text, removed, exceptions })
}

/// Changes the effect of the rules for exactly this pattern that apply to every call. Returns whether there are any;
/// `None` if they cannot be edited.
fn change_rules(
    document: &mut DocumentMut,
    server: &ServerName,
    before: &ServerStatements,
    pattern: &Pattern,
    wanted: Effect,
) -> Option<bool> {
    let of_pattern = |rule: &&Statement| rule.applies_always() && rule.pattern == *pattern;
    let rules: Vec<&Statement> = before.all.iter().filter(|rule| rule.is_rule()).filter(of_pattern).collect();
    for rule in rules.iter().filter(|rule| rule.effect != wanted) {
        set_rule_effect(server_item(document, server)?, rule.index, wanted)?;
    }
    Some(!rules.is_empty())
}

/// Removes entries from their lists. Returns `None` if a list cannot be edited.
fn remove_entries(document: &mut DocumentMut, server: &ServerName, removed: &[Statement]) -> Option<()> {
    // From the last one to the first, so that the indexes of the others stay valid.
    for entry in removed.iter().rev() {
        let list = server_table(document, server)?.get_mut(entry.effect.as_str())?.as_array_mut()?;
        list_layout::remove(list, entry.index);
    }
    Some(())
}

/// Adds the pattern to the list of its effect. Creates the list and the server's table if they do not exist. Returns `None`
/// if the list cannot be edited.
fn add_entry(
    document: &mut DocumentMut,
    server: &ServerName,
    pattern: &Pattern,
    wanted: Effect,
) -> Option<()> {
    if server_table(document, server).is_none() {
        create_table(document, server)?;
    }
    let list = server_table(document, server)?.entry(wanted.as_str());
    let list = list.or_insert(Item::Value(Value::Array(Array::new()))).as_array_mut()?;
    list_layout::push(list, &pattern.to_string());
    Some(())
}

fn server_table<'d>(document: &'d mut DocumentMut, server: &ServerName) -> Option<&'d mut dyn TableLike> {
    server_item(document, server)?.as_table_like_mut()
}

fn create_table(document: &mut DocumentMut, server: &ServerName) -> Option<()> {
    let mut servers = Table::new();
    servers.set_implicit(true);
    let servers = document.entry("servers").or_insert(Item::Table(servers));
    let table = match servers.is_inline_table() {
        true => Item::Value(Value::InlineTable(InlineTable::new())),
        false => Item::Table(Table::new()),
    };
    servers.as_table_like_mut()?.insert(server.as_str(), table);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::PatternKind;
    use crate::{Policy, Source};

    const POLICY: &str = r#"# Ours.
version = 1

[servers.github]            # the big one
allow = ["list_*", "get_issue"]
# Writing is asked about.
ask = [
  "create_*",  # issues
  "merge",     # pull requests
]
deny = ["delete_*", "purge"]

[[servers.github.rules]]
tool = "comment"
effect = "ask"              # for now

[[servers.github.rules]]
tool = "push_*"
effect = "deny"

# Another.
[servers.files]
ask = ["write"]
"#;

    fn edit(text: &str, tool: &str, wanted: Effect) -> Result<EditedPolicy, EditError> {
        let (server, pattern) = tool.split_once('.').unwrap();
        let server = ServerName::new(server).unwrap();
        let pattern = Pattern::parse(PatternKind::Tools, pattern).unwrap();
        set_effect(Some(text), &server, &pattern, wanted)
    }

    fn changes(text: &str, tool: &str, wanted: Effect) -> String {
        let after = edit(text, tool, wanted).unwrap().text;
        let policy = Policy::parse(Source { path: "p".into(), text: after.clone() });
        assert!(policy.is_ok(), "{after}\n{policy:?}");
        let diff = similar::TextDiff::from_lines(text, &after);
        let changes = diff.iter_all_changes().filter(|change| change.tag() != similar::ChangeTag::Equal);
        changes.map(|change| format!("{}{change}", change.tag())).collect()
    }

    #[test]
    fn a_tool_is_moved_between_the_lists() {
        for (tool, wanted, expected) in [
            (
                "github.merge",
                Effect::Allow,
                "-allow = [\"list_*\", \"get_issue\"]\n+allow = [\"list_*\", \"get_issue\", \"merge\"]\n\
                 -  \"merge\",     # pull requests\n",
            ),
            (
                "github.get_issue",
                Effect::Ask,
                "-allow = [\"list_*\", \"get_issue\"]\n+allow = [\"list_*\"]\n+  \"get_issue\",\n",
            ),
            (
                "github.purge",
                Effect::Ask,
                "+  \"purge\",\n-deny = [\"delete_*\", \"purge\"]\n+deny = [\"delete_*\"]\n",
            ),
            (
                "github.create_*",
                Effect::Deny,
                "-  \"create_*\",  # issues\n-deny = [\"delete_*\", \"purge\"]\n\
                 +deny = [\"delete_*\", \"purge\", \"create_*\"]\n",
            ),
            // A rule for exactly the tool takes the effect.
            (
                "github.comment",
                Effect::Allow,
                "-effect = \"ask\"              # for now\n+effect = \"allow\"              # for now\n",
            ),
            ("files.read", Effect::Allow, "+allow = [\"read\"]\n"),
            ("new.x", Effect::Ask, "+\n+[servers.new]\n+ask = [\"x\"]\n"),
        ] {
            assert_eq!(changes(POLICY, tool, wanted), expected, "{tool} {wanted}");
        }
    }

    #[test]
    fn an_effect_that_holds_already_needs_no_change() {
        for (tool, wanted) in [
            ("github.list_issues", Effect::Allow),
            ("github.create_pull", Effect::Ask),
            ("github.delete_repo", Effect::Deny),
            ("github.comment", Effect::Ask),
        ] {
            assert_eq!(changes(POLICY, tool, wanted), "", "{tool} {wanted}");
        }
    }

    #[test]
    fn a_rule_that_no_longer_asks_requires_no_proof() {
        let asking = "version = 1\n[servers.bank]\n[[servers.bank.rules]]\ntool = \"pay\"\neffect = \"ask\"\npresence = \"key\"\n";
        let pattern = Pattern::parse(PatternKind::Tools, "pay").expect("a pattern");
        let server = ServerName::new("bank").expect("a name");
        for (wanted, keeps) in [(Effect::Allow, false), (Effect::Deny, false), (Effect::Ask, true)] {
            let edited = set_effect(Some(asking), &server, &pattern, wanted).expect("an edit").text;
            assert_eq!(edited.contains("presence"), keeps, "{edited}");
            Policy::parse(Source { path: "policy.toml".into(), text: edited }).expect("a valid policy");
        }
    }

    #[test]
    fn a_denied_prefix_and_a_wider_rule_override_an_entry() {
        for (tool, wanted, line) in [
            ("github.delete_repo", Effect::Allow, 11),
            ("github.delete_*", Effect::Ask, 0),
            ("github.push_tag", Effect::Ask, 18),
        ] {
            match edit(POLICY, tool, wanted) {
                Err(EditError::Overridden(statement)) => assert_eq!(statement.line, line, "{tool}"),
                edited => assert_eq!((edited.is_ok(), line), (true, 0), "{tool}: {edited:?}"),
            }
        }
    }

    #[test]
    fn a_denied_prefix_replaces_the_entries_that_it_makes_ineffective() {
        let edited = edit(POLICY, "github.*", Effect::Deny).unwrap();
        let removed: Vec<(String, usize)> =
            edited.removed.iter().map(|entry| (entry.describe(), entry.line)).collect();
        let expected = [
            ("\"list_*\" in allow", 5),
            ("\"get_issue\" in allow", 5),
            ("\"create_*\" in ask", 8),
            ("\"merge\" in ask", 9),
        ];
        assert_eq!(removed, expected.map(|(what, line)| (what.to_owned(), line)));
    }

    #[test]
    fn narrower_statements_are_exceptions_with_their_lines_after_the_edit() {
        let edited = edit(POLICY, "github.*", Effect::Allow).unwrap();
        let exceptions: Vec<usize> = edited.exceptions.iter().map(|entry| entry.line).collect();
        assert_eq!(exceptions, [8, 9, 11, 11, 14, 18]);
    }

    #[test]
    fn tables_of_every_form_are_edited() {
        for (text, expected) in [
            (
                "version = 1\nservers = { a = { ask = [\"x\"] } }\n",
                "version = 1\nservers = { a = { ask = [] , allow = [\"x\"] } }\n",
            ),
            (
                "version = 1\n[servers]\na.ask = [\"x\"]\n",
                "version = 1\n[servers]\na.ask = []\na.allow = [\"x\"]\n",
            ),
            ("version = 1\nservers = {}\n", "version = 1\nservers = { a = { allow = [\"x\"] } }\n"),
        ] {
            assert_eq!(edit(text, "a.x", Effect::Allow).unwrap().text, expected);
        }
        let a = ServerName::new("a").unwrap();
        let x = Pattern::parse(PatternKind::Tools, "x").unwrap();
        let created = set_effect(None, &a, &x, Effect::Deny).unwrap().text;
        assert_eq!(created, "version = 1\n\n[servers.a]\ndeny = [\"x\"]\n");
    }
}
