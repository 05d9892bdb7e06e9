//! Warnings about valid policy lines that have no effect, because the upstream server has no such tool or parameter.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use lockhouse_protocol::ServerName;

use crate::diagnostic::{DIAGNOSTICS_MAX, Diagnostic, Diagnostics};
use crate::layer::Layer;
use crate::pattern::Pattern;
use crate::policy::Policy;
use crate::rule::Rule;
use crate::schema_parameters::SchemaParameters;
use crate::similar_names::most_similar_name;
use crate::source::Source;
use crate::table::ServerTable;

/// The maximum number of tool or parameter names that a help text lists.
const LISTED_MAX: usize = 8;

/// Returns warnings about names in the policy tables of `server` that match nothing: patterns, rules, pins
/// and limits without a matching tool in `tools`, and conditions on an argument that no matching tool has.
/// `members` returns the parameters of a tool. Each document gets at most [`DIAGNOSTICS_MAX`] warnings, and
/// one more that states the number of further warnings.
#[must_use]
pub fn unmatched_names(
    policy: &Policy,
    server: &ServerName,
    tools: &[&str],
    members: &dyn Fn(&str) -> SchemaParameters,
) -> Diagnostics {
    let mut all = Vec::new();
    for layer in policy.layers() {
        let Some(source) = &layer.source else { continue };
        let mut search = UnmatchedNames {
            source,
            server,
            tools,
            exact: tools.iter().copied().collect(),
            members,
            read: HashMap::new(),
            found: Vec::new(),
            left_out: 0,
        };
        tables(layer, server).for_each(|table| search.table(table));
        all.extend(search.into_warnings());
    }
    Diagnostics(all)
}

/// Returns the tables of the server in a policy document: the one for all AI clients, and those of single clients and of
/// roles.
fn tables<'l>(layer: &'l Layer, server: &'l ServerName) -> impl Iterator<Item = &'l ServerTable> {
    let of_clients = layer.clients.all.iter().filter_map(|client| client.servers.as_ref());
    std::iter::once(&layer.servers)
        .chain(of_clients)
        .chain(layer.servers_of_roles())
        .filter_map(|servers| servers.get(server))
}

/// The search for names in one policy document that match no tool or parameter of the server.
struct UnmatchedNames<'s> {
    source: &'s Source,
    server: &'s ServerName,
    tools: &'s [&'s str],
    exact: HashSet<&'s str>,
    members: &'s dyn Fn(&str) -> SchemaParameters,
    read: HashMap<&'s str, SchemaParameters>,
    /// The warnings found so far, each with its byte offset in the policy document. They are sorted by this offset at
    /// the end of the search.
    found: Vec<(usize, Diagnostic)>,
    left_out: usize,
}

impl<'s> UnmatchedNames<'s> {
    fn table(&mut self, table: &ServerTable) {
        for (key, list) in table.lists().filter(|(key, _)| matches!(*key, "allow" | "ask" | "deny")) {
            // A pattern with a colon is a resource URI. Servers do not list all of their URIs, so it cannot be checked.
            let tool_limits = list.entries.iter().filter(|entry| !entry.pattern.stem().contains(':'));
            for entry in tool_limits.filter(|entry| !entry.pattern.stem().is_empty()) {
                let label = match key {
                    "allow" => "this allows nothing",
                    "ask" => "this asks about nothing",
                    _ => "this denies nothing",
                };
                self.pattern(&entry.pattern, label, || entry.span.clone());
            }
        }
        for rule in table.rules.iter() {
            let matches = self.pattern(&rule.tool, "this rule never applies", || rule.span.clone());
            if matches {
                self.conditions(rule);
            }
        }
        for (tool, pin) in &table.pins {
            if !self.exact.contains(tool.as_str()) {
                let span = in_line(&self.source.text, pin.line, tool.as_str());
                self.no_tool(tool.as_str(), false, "this pins nothing", span);
            }
        }
        for (pattern, bounds) in &table.tool_limits.all {
            // `line` is that of the first limit. The pattern is in the table header above it, or on the same line.
            self.pattern(pattern, "this limits nothing", || {
                let above = bounds.line.saturating_sub(1);
                let line = if line_of(&self.source.text, above).contains(pattern.stem()) {
                    above
                } else {
                    bounds.line
                };
                in_line(&self.source.text, line, pattern.stem())
            });
        }
    }

    /// Adds a warning if no tool of the server matches the pattern. `label` is the warning's text about the
    /// consequence, and `span` returns the byte range that the warning marks. Returns whether a tool matches.
    fn pattern(&mut self, pattern: &Pattern, label: &str, span: impl Fn() -> Range<usize>) -> bool {
        let fits = match pattern.is_starred() {
            true => self.tools.iter().any(|tool| tool.starts_with(pattern.stem())),
            false => self.exact.contains(pattern.stem()),
        };
        if !fits && !pattern.stem().is_empty() {
            let span = span();
            self.no_tool(pattern.stem(), pattern.is_starred(), label, span);
        }
        fits
    }

    fn no_tool(&mut self, name: &str, starred: bool, label: &str, span: Range<usize>) {
        let server = self.server;
        let title = match starred {
            true => format!("{server} has no tool whose name begins with `{name}`"),
            false => format!("{server} has no tool `{name}`"),
        };
        let help = match most_similar_name(name, self.tools.iter().copied()) {
            Some(similar) => format!("did you mean `{similar}`?"),
            None => format!("its tools: {}", join_names(self.tools.iter().copied())),
        };
        self.add(span, title, label, help);
    }

    fn conditions(&mut self, rule: &Rule) {
        let (tools, members) = (self.tools, self.members);
        let fitting: Vec<&str> = tools.iter().copied().filter(|tool| rule.tool.matches(tool)).collect();
        for condition in &rule.conditions {
            let name = condition.argument.as_str();
            let mut known: Vec<String> = Vec::new();
            let mut has = |tool: &&'s str| {
                let of_tool = self.read.entry(tool).or_insert_with(|| members(tool));
                known.extend(of_tool.names().map(str::to_owned));
                of_tool.has(name)
            };
            if fitting.iter().any(&mut has) {
                continue;
            }
            let title = match rule.tool.is_starred() {
                true => format!("no tool that matches `{}` has the parameter `{name}`", rule.tool),
                false => format!("{}.{} has no parameter `{name}`", self.server, rule.tool),
            };
            known.sort_unstable();
            known.dedup();
            let known = || known.iter().map(String::as_str);
            let help = match most_similar_name(name, known()) {
                Some(similar) => format!("did you mean `{similar}`? Its parameters: {}", join_names(known())),
                None if known().next().is_none() => "it has no parameters".to_owned(),
                None => format!("its parameters: {}", join_names(known())),
            };
            self.add(condition.span.clone(), title, "no call has this argument", help);
        }
    }

    fn add(&mut self, span: Range<usize>, title: String, label: &str, help: String) {
        if self.found.len() >= DIAGNOSTICS_MAX {
            self.left_out += 1;
            return;
        }
        let warning =
            Diagnostic::new(self.source, Some(span.clone()), title, label).with_help(help).as_warning();
        self.found.push((span.start, warning));
    }

    fn into_warnings(mut self) -> Vec<Diagnostic> {
        self.found.sort_by_key(|(start, _)| *start);
        let mut all: Vec<_> = self.found.into_iter().map(|(_, warning)| warning).collect();
        if self.left_out > 0 {
            let title = format!("{} more names match no tool or parameter of {}", self.left_out, self.server);
            let rest =
                Diagnostic::new(self.source, None, title, "").with_help("correct the ones above first");
            all.push(rest.as_warning());
        }
        all
    }
}

fn join_names<'n>(mut names: impl Iterator<Item = &'n str>) -> String {
    let first: Vec<&str> = names.by_ref().take(LISTED_MAX).collect();
    match names.count() {
        0 if first.is_empty() => "none".to_owned(),
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

/// Returns line number `line` of the text, counted from 1, or an empty text when there is no such line.
fn line_of(text: &str, line: usize) -> &str {
    line.checked_sub(1).and_then(|at| text.lines().nth(at)).unwrap_or_default()
}

/// Returns the byte range of `name` on line number `line` of the text. If the line contains the name only in
/// another spelling, such as with TOML escapes, returns the range of the whole line.
fn in_line(text: &str, line: usize, name: &str) -> Range<usize> {
    let start: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let line = line_of(text, line);
    match line.find(name) {
        Some(at) => start + at..start + at + name.len(),
        None => start..start + line.len(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const POLICY: &str = r#"version = 1
[servers.fs]
allow = ["read_file", "write_fle", "list_*", "lst_*"]
ask = ["*"]
deny = ["delete_*", "file:///etc/*"]
pins = { mve_file = "sha256:0000000000000000000000000000000000000000000000000000000000000000" }
[servers.fs.limits."wirte_*"]
rate = "1/min"
[[servers.fs.rules]]
tool = "write_file"
when = { pth = { under = "/srv" }, content = "x" }
effect = "allow"
[[servers.fs.rules]]
tool = "remove"
effect = "deny"
[[servers.fs.rules]]
tool = "li*"
when = { path = "/srv", depth = 3 }
effect = "deny"
[servers.other]
allow = ["anything"]
[clients.x.servers.fs]
allow = ["read_fil"]
"#;

    fn members(tool: &str) -> SchemaParameters {
        let schema = match tool {
            "list_dir" => json!({}),
            "list_all" => json!({"properties": {"path": {}}}),
            _ => json!({"properties": {"path": {}, "content": {}}}),
        };
        SchemaParameters::from_schema(&schema)
    }

    #[test]
    fn each_unmatched_name_has_a_warning_that_suggests_the_most_similar_name() {
        let policy = Policy::parse(Source { path: "p".into(), text: POLICY.into() }).unwrap();
        let server = ServerName::new("fs").unwrap();
        let tools = ["read_file", "write_file", "move_file", "list_dir", "list_all"];
        let warnings: Vec<String> = unmatched_names(&policy, &server, &tools, &members)
            .0
            .iter()
            .map(Diagnostic::to_single_line)
            .collect();
        let expected = [
            "p:3:23: warning: fs has no tool `write_fle`: this allows nothing; did you mean `write_file`?",
            "p:3:46: warning: fs has no tool whose name begins with `lst_`: this allows nothing",
            "p:5:9: warning: fs has no tool whose name begins with `delete_`: this denies nothing",
            "p:6:10: warning: fs has no tool `mve_file`: this pins nothing; did you mean `move_file`?",
            "p:7:21: warning: fs has no tool whose name begins with `wirte_`: this limits nothing; did you mean `write_file`?",
            "p:11:10: warning: fs.write_file has no parameter `pth`: no call has this argument; did you mean `path`? Its parameters: content, path",
            "p:14:8: warning: fs has no tool `remove`: this rule never applies",
            "p:23:10: warning: fs has no tool `read_fil`: this allows nothing; did you mean `read_file`?",
        ];
        assert_eq!(warnings.len(), expected.len(), "{warnings:#?}");
        for (warning, expected) in warnings.iter().zip(expected) {
            assert!(warning.starts_with(expected), "{warning}\n{expected}");
        }
    }

    #[test]
    fn a_condition_is_matched_if_one_tool_of_the_pattern_may_have_the_parameter() {
        let text = "version = 1\n[servers.fs]\n[[servers.fs.rules]]\ntool = \"list_*\"\nwhen = { depth = 3 }\neffect = \"deny\"\n";
        let policy = Policy::parse(Source { path: "p".into(), text: text.into() }).unwrap();
        let server = ServerName::new("fs").unwrap();
        assert_eq!(unmatched_names(&policy, &server, &["list_dir", "list_all"], &members).0.len(), 0);
        assert_eq!(unmatched_names(&policy, &server, &["list_all"], &members).0.len(), 1, "control");
    }
}
