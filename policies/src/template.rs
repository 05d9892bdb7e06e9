//! Renders the policy that a user starts from: read-only tools are allowed, and all other tools are listed as
//! comments.

use std::collections::BTreeMap;

use lockhouse_protocol::{ServerName, ToolName};

use crate::document::{PATTERNS_MAX, TEXT_BYTES_MAX};
use crate::printable::one_line;

/// The maximum length of the summary that the policy shows after a tool's name, in characters.
pub const SUMMARY_CHARS_MAX: usize = 80;

/// The number of bytes that are reserved at the end of the generated policy, for closing brackets and for the comments
/// that state how many tools and servers were left out.
const TAIL_BYTES: usize = 1024;

const HEADER: &str = "\
# A Lockhouse policy, written by `lockhouse policy init`.
#
# It allows the tools that their server annotates as read-only, and denies all others. Annotations, names and summaries
# are written by the server and may be wrong: review the lists before you rely on them.
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

/// The tools that one upstream server offers, as input of [`render_template`].
#[derive(Clone, Debug)]
pub struct ServerOffer {
    /// The server's name in the configuration.
    pub name: ServerName,
    /// The server's tools, in any order.
    pub tools: Vec<ToolOffer>,
}

/// A tool as its upstream server describes it.
#[derive(Clone, Debug)]
pub struct ToolOffer {
    /// The tool's name.
    pub name: ToolName,
    /// Whether the server annotates the tool as read-only.
    pub read_only: bool,
    /// What the tool does, in the server's words. The generated policy shows at most [`SUMMARY_CHARS_MAX`] characters
    /// of this text on one line, without hidden characters.
    pub summary: String,
}

/// Renders a policy that allows exactly the read-only tools. All other tools are commented out; a user can
/// delete their `#` to allow them.
///
/// A tool that is offered twice is allowed only if it is read-only both times. Tools and servers that exceed the
/// size limits of a policy are left out and therefore denied; comments state their number.
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

/// Adds a line for each tool to `text`, read-only tools first, and the number of added lines to `patterns`. Returns the
/// number of tools that did not fit into the policy. Commented-out tools count towards the maximum number of patterns
/// too, so that users can delete their `#` without exceeding it.
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

/// Sorts the offered tools by server and name, and merges duplicates, since a duplicate table or entry would make the
/// policy invalid.
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
