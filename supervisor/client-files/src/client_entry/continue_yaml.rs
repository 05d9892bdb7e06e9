//! Inserts the server entry that starts Lockhouse into the configuration file of Continue, which is YAML. Lines are
//! inserted as text, so that comments and the layout of the file stay.

use lockhouse_policies::{Diagnostic, Diagnostics, Source};

use super::{Insertion, LaunchCommand, NAME};

/// The key of the list of MCP servers, at the top level of the file.
const SECTION: &str = "mcpServers";
/// The first lines of a new configuration file: the keys that Continue requires.
const HEADER: &str = "name: Main\nversion: 1.0.0\nschema: v1\n";

pub(super) fn insert(source: &Source, start: &LaunchCommand) -> Result<Option<Insertion>, Diagnostics> {
    let text = &source.text;
    let line_of_section = text.lines().position(|line| line.trim_end() == format!("{SECTION}:"));
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let entry = match line_of_section {
        Some(at) => {
            if names_lockhouse(&lines[at..]) {
                return Ok(None);
            }
            let items = lines[at + 1..].iter().find(|line| line.trim_start().starts_with("- "));
            let indent = items.map_or("  ", |line| &line[..line.len() - line.trim_start().len()]).to_owned();
            let entry = entry_lines(start, &indent);
            lines.splice(at + 1..at + 1, entry.iter().cloned());
            entry
        }
        None if text.lines().any(|line| line.starts_with(&format!("{SECTION}:"))) => {
            let label =
                format!("{SECTION} is not a list with one server on each line that begins with \"- \"");
            let fault = Diagnostic::new(source, None, "the file cannot be changed", label);
            return Err(fault.with_help("write the list so, or add the entry by hand").into());
        }
        None => {
            if text.trim().is_empty() {
                lines = HEADER.lines().map(str::to_owned).collect();
            }
            let entry = entry_lines(start, "  ");
            lines.push(format!("{SECTION}:"));
            lines.extend(entry.iter().cloned());
            entry
        }
    };
    let text = format!("{}\n", lines.join("\n"));
    let after = entry.iter().map(|line| format!("{line}\n")).collect();
    Ok(Some(Insertion { text, before: String::new(), after, section: SECTION.into() }))
}

/// Whether the list of MCP servers has an entry named `lockhouse`. `lines` begins with the line of the list's key.
/// The list ends before the next key at the top level.
fn names_lockhouse(lines: &[String]) -> bool {
    let ends = |line: &&String| line.starts_with(|c: char| c.is_ascii_alphabetic());
    let items = lines.iter().skip(1).take_while(|line| !ends(line));
    items.into_iter().any(|line| {
        let item = line.trim_start().trim_start_matches("- ");
        item.strip_prefix("name:").is_some_and(|name| name.trim().trim_matches(['"', '\'']) == NAME)
    })
}

/// Returns the lines of the Lockhouse entry. Strings are written as JSON strings, which YAML reads as the same text.
fn entry_lines(start: &LaunchCommand, indent: &str) -> Vec<String> {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let arguments: Vec<String> = start.arguments.iter().map(|argument| quoted(argument)).collect();
    vec![
        format!("{indent}- name: {NAME}"),
        format!("{indent}  command: {}", quoted(&start.program.to_string_lossy())),
        format!("{indent}  args: [{}]", arguments.join(", ")),
    ]
}
