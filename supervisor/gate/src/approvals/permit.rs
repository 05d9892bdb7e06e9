//! A policy's text, changed so that it no longer leaves calls to a person. Pure: comments, order and everything else stay.

use std::ops::Range;

use lockhouse_policies::Item as Asked;
use toml_edit::{ArrayOfTables, Document, DocumentMut, Item, Table, TableLike, value};

/// A call that a line of the policy leaves to a person.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leave<'a> {
    pub server: &'a str,
    pub item: &'a Asked,
    /// Counted from 1.
    pub line: usize,
}

/// Where the line belongs to.
#[derive(Debug, PartialEq)]
enum Place {
    /// The rule with this index.
    Rule(usize),
    /// A list of patterns: a rule for this tool outranks it.
    List,
}

/// The text in which each of these is allowed. None where that cannot be written in place.
pub(super) fn permit(text: &str, leaves: &[Leave<'_>]) -> Option<String> {
    let read = Document::parse(text).ok()?;
    let mut changed = text.parse::<DocumentMut>().ok()?;
    let mut done: Vec<(&str, &Asked, Place)> = Vec::new();
    for leave in leaves {
        let server = read.as_table().get("servers")?.as_table_like()?.get(leave.server)?.as_table_like()?;
        let place = place(text, server, leave.line)?;
        if done.iter().any(|(server, item, at)| {
            *server == leave.server && *at == place && (matches!(at, Place::Rule(_)) || *item == leave.item)
        }) {
            continue;
        }
        let server = changed.get_mut("servers")?.as_table_like_mut()?.get_mut(leave.server)?;
        match place {
            Place::Rule(index) => allow(server.as_table_like_mut()?.get_mut("rules")?, index)?,
            Place::List => add(server.as_table_mut()?, leave.item)?,
        }
        done.push((leave.server, leave.item, place));
    }
    Some(changed.to_string())
}

/// What of a server's table the line belongs to.
fn place(text: &str, server: &dyn TableLike, line: usize) -> Option<Place> {
    let has = |span: Option<Range<usize>>| {
        let lines = |span: Range<usize>| line_at(text, span.start)..=line_at(text, span.end);
        span.is_some_and(|span| lines(span).contains(&line))
    };
    let rules = server.get("rules");
    let mut spans: Vec<Range<usize>> = Vec::new();
    match rules {
        Some(Item::ArrayOfTables(tables)) => spans.extend(tables.iter().filter_map(whole)),
        Some(Item::Value(inline)) => {
            spans.extend(inline.as_array()?.iter().filter_map(toml_edit::Value::span));
        }
        _ => {}
    }
    if let Some(index) = spans.into_iter().position(|span| has(Some(span))) {
        return Some(Place::Rule(index));
    }
    has(server.get("ask")?.span()).then_some(Place::List)
}

/// From a table's header to its last value.
fn whole(table: &Table) -> Option<Range<usize>> {
    let header = table.span()?;
    let ends = table.iter().filter_map(|(_, item)| Some(item.span()?.end));
    Some(header.start..ends.max().unwrap_or(header.end).max(header.end))
}

fn line_at(text: &str, offset: usize) -> usize {
    1 + text[..text.floor_char_boundary(offset)].matches('\n').count()
}

/// The rule's own effect, in place.
fn allow(rules: &mut Item, index: usize) -> Option<()> {
    let effect = match rules {
        Item::ArrayOfTables(tables) => tables.get_mut(index)?.get_mut("effect")?.as_value_mut()?,
        Item::Value(inline) => {
            inline.as_array_mut()?.get_mut(index)?.as_inline_table_mut()?.get_mut("effect")?
        }
        _ => return None,
    };
    let decor = effect.decor().clone();
    *effect = "allow".into();
    *effect.decor_mut() = decor;
    Some(())
}

/// A rule for exactly this tool, after those that are there.
fn add(server: &mut Table, item: &Asked) -> Option<()> {
    let Asked::Tool(tool) = item else { return None };
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
    use lockhouse_policies::Item as Asked;
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
        let items: Vec<Asked> =
            wanted.iter().map(|(_, tool, _)| Asked::Tool(ToolName::new(*tool).expect("a name"))).collect();
        let leaves: Vec<Leave<'_>> = wanted
            .iter()
            .zip(&items)
            .map(|((server, _, line), item)| Leave { server, item, line: *line })
            .collect();
        permit(text, &leaves)
    }

    fn changes(text: &str, wanted: &[(&str, &str, usize)]) -> String {
        let after = permitted(text, wanted).expect("a change");
        let diff = similar::TextDiff::from_lines(text, &after);
        let changes = diff.iter_all_changes().filter(|change| change.tag() != similar::ChangeTag::Equal);
        changes.map(|change| format!("{}{change}", change.tag())).collect()
    }

    #[test]
    fn a_list_gets_a_rule_beside_it_and_a_rule_another_effect() {
        let rule = "+[[servers.github.rules]]\n+tool = \"create_pull\"\n+effect = \"allow\"\n+\n";
        assert_eq!(sorted(&changes(POLICY, &[("github", "create_pull", 8)])), sorted(rule));
        assert_eq!(
            changes(POLICY, &[("github", "create_issue", 12)]),
            "-effect = \"ask\"              # for now\n+effect = \"allow\"              # for now\n"
        );
        let files = "+\n+[[servers.files.rules]]\n+tool = \"write\"\n+effect = \"allow\"\n";
        assert_eq!(changes(POLICY, &[("files", "write", 19)]), files);
        // Calls alike make one change, and several make several.
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
    fn what_cannot_be_placed_is_not_changed() {
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
