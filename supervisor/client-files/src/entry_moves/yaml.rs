//! Takes servers out of the YAML file of Continue, and puts them back. Whole lines are removed and inserted.

use std::ops::Range;

use lockhouse_config::dialects::{Syntax, parse_as};
use lockhouse_policies::{Diagnostics, Source};

use super::{EntryPlace, unchangeable};

/// The key of the list of MCP servers, at the top level of the file.
const SECTION: &str = "mcpServers:";

/// The list of MCP servers in a file, by the numbers of its lines.
struct Servers<'t> {
    lines: Vec<&'t str>,
    /// The line of the list's key. `None` if the file has no list.
    section: Option<usize>,
    /// The lines of each server, with its name.
    items: Vec<(String, Range<usize>)>,
    /// The indentation of the servers.
    indent: &'t str,
}

pub(super) fn take_out(source: &Source, places: &[&EntryPlace]) -> Result<String, Diagnostics> {
    let servers = Servers::parse(&source.text);
    let mut removed = Vec::new();
    for place in places {
        let found = servers.items.iter().find(|(name, _)| *name == place.name);
        removed.push(found.ok_or_else(|| unchangeable(source))?.1.clone());
    }
    let kept = servers.lines.iter().enumerate();
    let kept = kept.filter(|(number, _)| !removed.iter().any(|lines| lines.contains(number)));
    Ok(kept.map(|(_, line)| *line).collect())
}

/// Inserts the servers at the beginning of the list, with the text that they have in `original`.
pub(super) fn put_back(
    source: &Source,
    original: &Source,
    places: &[&EntryPlace],
) -> Result<String, Diagnostics> {
    if places.is_empty() {
        return Ok(source.text.clone());
    }
    let (former, servers) = (Servers::parse(&original.text), Servers::parse(&source.text));
    let indent = if servers.items.is_empty() { former.indent } else { servers.indent };
    let mut inserted = String::new();
    for place in places {
        let found = former.items.iter().find(|(name, _)| *name == place.name);
        let (_, lines) = found.ok_or_else(|| unchangeable(source))?;
        for line in &former.lines[lines.clone()] {
            match line.strip_prefix(former.indent) {
                Some(rest) => inserted.extend([indent, rest]),
                None => inserted += line,
            }
        }
        if !inserted.ends_with('\n') {
            inserted.push('\n');
        }
    }
    let mut text = String::new();
    for (number, line) in servers.lines.iter().enumerate() {
        text += line;
        if servers.section == Some(number) {
            if !text.ends_with('\n') {
                text.push('\n');
            }
            text += &inserted;
        }
    }
    if servers.section.is_none() {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text += &format!("{SECTION}\n{inserted}");
    }
    Ok(text)
}

impl<'t> Servers<'t> {
    /// Finds the servers in the block style of YAML: each begins with a line `- `, and its other lines are indented
    /// more. A list in another form has no items here.
    fn parse(text: &'t str) -> Self {
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let is_key = |line: &&str| line.split('#').next().unwrap_or_default().trim_end() == SECTION;
        let section = lines.iter().position(is_key);
        let mut servers = Self { lines, section, items: Vec::new(), indent: "" };
        let Some(section) = section else { return servers };
        let mut items: Vec<Range<usize>> = Vec::new();
        for (number, line) in servers.lines.iter().enumerate().skip(section + 1) {
            let content = line.trim_start();
            let indent = &line[..line.len() - content.len()];
            if content.is_empty() || content.starts_with('#') {
                continue;
            }
            let is_item = content.starts_with("- ") || content.trim_end() == "-";
            match items.last_mut() {
                None if is_item => servers.indent = indent,
                Some(_) if is_item && indent == servers.indent => {}
                Some(last) if indent.len() > servers.indent.len() => {
                    last.end = number + 1;
                    continue;
                }
                _ => break,
            }
            items.push(number..number + 1);
        }
        let named = items.into_iter().filter_map(|lines| Some((servers.name(&lines)?, lines)));
        servers.items = named.collect();
        servers
    }

    fn name(&self, lines: &Range<usize>) -> Option<String> {
        let text = format!("{SECTION}\n{}", self.lines[lines.clone()].concat());
        let item = parse_as(&Source { path: String::new(), text }, Syntax::Yaml).ok()?.to_json();
        item.get("mcpServers")?.as_object()?.keys().next().cloned()
    }
}
