//! Why a tool is allowed or denied, at the length a person wants when they ask.

use lockhouse_protocol::{ServerName, ToolName};

use crate::item::Item;
use crate::policy::Policy;
use crate::printable::{clipped, printable};

/// The longest part of a source line that is quoted, in characters.
const QUOTE_CHARS_MAX: usize = 160;

/// The decision about a tool, the list and line it rests on with that line quoted, and for a denial what to do. Ends
/// with a newline.
#[must_use]
pub fn explain(policy: &Policy, server: &ServerName, tool: &ToolName) -> String {
    let item = Item::from(tool);
    match policy.judge(server, &item) {
        Ok((line, pattern)) => {
            let pattern = pattern.map(ToString::to_string).unwrap_or_default();
            let found = format!("it matches \"{pattern}\" in allow");
            format!("{server}.{tool} is allowed: {found}{}", at(policy, Some(line)))
        }
        Err(denial) => {
            let found = denial.reason.describe(server, &item);
            let at = at(policy, denial.place.map(|place| place.line));
            format!("{server}.{tool} is denied: {found}{at}hint: {}\n", denial.hint)
        }
    }
}

/// The place, and the line that stands there.
fn at(policy: &Policy, line: Option<usize>) -> String {
    let Some(line) = line else { return "\n".to_owned() };
    let text = policy.line_text(line).unwrap_or_default().replace('\t', "    ");
    let text = printable(&clipped(&text, QUOTE_CHARS_MAX));
    format!(", at {}\n\n{line:>5} | {text}\n\n", policy.place(line))
}
