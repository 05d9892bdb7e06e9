//! The policy that a person starts from: what reads is allowed, the rest stands ready behind a `#`.

use std::collections::BTreeMap;

use lockhouse_protocol::{ServerName, ToolName};

use crate::document::{PATTERNS_MAX, TEXT_BYTES_MAX};
use crate::printable::one_line;

/// The longest summary written behind a tool's name, in characters.
pub const SUMMARY_CHARS_MAX: usize = 80;

/// What is kept free at the end of the text for closing it and saying what was left out.
const TAIL_BYTES: usize = 1024;

const HEADER: &str = "\
# A Lockhouse policy, written by `lockhouse policy init`.
#
# It allows the tools of which their server says that they only read, and denies everything else. That a tool only
# reads, and what stands behind its name, are the server's own words: look through the lists before you rely on them.
#
# To allow one of the other tools, delete the `#` before its name. A pattern may end in `*`, such as \"list_*\".
# To be asked about each of its calls instead, put its name into a list of its own: ask = [\"create_*\"].
# What must never be called goes into a list of its own: deny = [\"delete_*\"]. No other list overrides it.
# A server's resources and prompts have lists of their own as well, and are denied unless these have them:
# resources = [\"file:///docs/*\"] and prompts = [\"review_*\"], beside `allow`.
# Rules by arguments, limits and clients: docs/policy.md.
# `lockhouse policy explain SERVER.TOOL` says which line decides about a tool.

version = 1
";

/// What one upstream server offers.
#[derive(Clone, Debug)]
pub struct ServerOffer {
    /// The server, as the configuration names it.
    pub name: ServerName,
    /// Its tools, in any order.
    pub tools: Vec<ToolOffer>,
}

/// A tool, as its server describes it.
#[derive(Clone, Debug)]
pub struct ToolOffer {
    /// The tool's name.
    pub name: ToolName,
    /// Whether the server says that the tool only reads.
    pub read_only: bool,
    /// What the tool does. It may be anything: what is written of it is one line, without hidden characters and of at
    /// most [`SUMMARY_CHARS_MAX`].
    pub summary: String,
}

/// A policy that allows exactly the tools offered as read-only. The others stand in it as comments, which become
/// entries by deleting their `#`.
///
/// A tool offered twice is allowed only if it is read-only both times. What does not fit into the bounds of a policy
/// is left out, hence denied, and the text says how much that is.
#[must_use]
pub fn render_template(servers: &[ServerOffer]) -> String {
    let mut text = HEADER.to_owned();
    let mut patterns = 0;
    let mut servers_left_out = 0;
    for (server, tools) in sorted(servers) {
        let opening = format!("\n[servers.{server}]\nallow = [\n");
        if text.len() + opening.len() + TAIL_BYTES > TEXT_BYTES_MAX {
            servers_left_out += 1;
            continue;
        }
        text += &opening;
        let tools_left_out = add_tools(&mut text, &mut patterns, &tools);
        text += "]\n";
        if tools.is_empty() {
            text += "# This server offered no tools.\n";
        }
        if tools_left_out > 0 {
            text += &format!("# {tools_left_out} more tools of {server} did not fit into a policy.\n");
        }
    }
    if servers_left_out > 0 {
        text += &format!("\n# {servers_left_out} more servers did not fit into a policy.\n");
    }
    text
}

/// Read-only tools first. Every name counts as a pattern, also behind a `#`: it must be possible to delete that.
fn add_tools(text: &mut String, patterns: &mut usize, tools: &BTreeMap<&ToolName, Tool<'_>>) -> usize {
    let (readers, others): (Vec<_>, Vec<_>) = tools.iter().partition(|(_, tool)| tool.read_only);
    let mut left_out = 0;
    for (name, tool) in readers.into_iter().chain(others) {
        let summary = one_line(tool.summary, SUMMARY_CHARS_MAX);
        let comment = if summary.is_empty() { String::new() } else { format!("  # {summary}") };
        let off = if tool.read_only { "" } else { "# " };
        let line = format!("    {off}\"{name}\",{comment}\n");
        if *patterns == PATTERNS_MAX || text.len() + line.len() + TAIL_BYTES > TEXT_BYTES_MAX {
            left_out += 1;
            continue;
        }
        *patterns += 1;
        *text += &line;
    }
    left_out
}

struct Tool<'o> {
    read_only: bool,
    summary: &'o str,
}

/// Each server and each tool once, since a table or an entry written twice would make the policy invalid.
fn sorted(servers: &[ServerOffer]) -> BTreeMap<&ServerName, BTreeMap<&ToolName, Tool<'_>>> {
    let mut all: BTreeMap<_, BTreeMap<_, Tool<'_>>> = BTreeMap::new();
    for server in servers {
        let tools = all.entry(&server.name).or_default();
        for offer in &server.tools {
            let tool = tools.entry(&offer.name).or_insert(Tool { read_only: true, summary: &offer.summary });
            tool.read_only &= offer.read_only;
        }
    }
    all
}
