//! `search_tools`: what a model is shown of the tools that fit, within what one answer may have.

use lockhouse_messages::Search;
use serde_json::{Value, json};

use crate::direct::Client;
use crate::supervisor::Supervisor;

/// One tool's part of an answer's bytes; the schemas of one that would have more are left out.
const LARGEST_PART: usize = 3;
/// Characters of a description that are left with the schemas out.
const FOLDED_CHARS: usize = 600;
/// Servers that are named with what was left out.
const SERVERS_MAX: usize = 8;

pub(super) async fn search(supervisor: &Supervisor, client: &Client, asked: &Search) -> Value {
    let gate = supervisor.gate();
    let scope = gate.granted(&client.principal);
    let language = Some(asked.language);
    let search =
        lockhouse_gate::Search { query: &asked.query, limit: asked.limit, detail: asked.detail, language };
    let found = gate.search(&scope, client.name.as_ref(), search).await;
    let limit = supervisor.settings().display.part_bytes;
    let (mut shown, mut left_out, mut bytes) = (Vec::new(), found.left_out, 0);
    for tool in found.tools {
        let server = tool["server"].as_str().unwrap_or_default().to_owned();
        let tool = fitting(tool, limit / LARGEST_PART);
        let more = tool.to_string().len();
        if bytes + more > limit && !shown.is_empty() {
            *left_out.entry(server).or_default() += 1;
            continue;
        }
        bytes += more;
        shown.push(tool);
    }
    let mut result = json!({"tools": shown});
    if !left_out.is_empty() {
        let mut most: Vec<(String, usize)> = left_out.into_iter().collect();
        most.sort_by(|one, other| other.1.cmp(&one.1).then(one.0.cmp(&other.0)));
        result["left_out"] =
            most.into_iter().take(SERVERS_MAX).map(|(name, count)| (name, json!(count))).collect();
    }
    let mut unavailable = found.missing;
    unavailable.extend(gate.outdated_servers(scope.servers()));
    if !unavailable.is_empty() {
        result["unavailable"] = unavailable.into();
    }
    result
}

/// The tool, without its schemas if it would take more than its part.
fn fitting(mut tool: Value, most: usize) -> Value {
    let bytes = tool.to_string().len();
    if bytes <= most {
        return tool;
    }
    let folded = format!("{bytes} bytes: describe(server, tool) in run_code gives all of it");
    if let Some(members) = tool.as_object_mut() {
        members.shift_remove("inputSchema");
        members.shift_remove("outputSchema");
        members.shift_remove("observedOutput");
        if let Some(Value::String(description)) = members.get_mut("description") {
            *description = description.chars().take(FOLDED_CHARS).collect();
        }
        members.insert("folded".into(), folded.into());
    }
    tool
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_that_would_take_all_the_room_is_folded() {
        let tool = json!({"server": "s", "name": "t", "description": "d".repeat(5_000), "inputSchema": {"x": "y".repeat(50_000)}});
        let shown = fitting(tool.clone(), 3_000);
        assert!(shown.to_string().len() < 1_000, "{shown}");
        assert!(shown["folded"].as_str().is_some_and(|words| words.contains("describe(")), "{shown}");
        assert_eq!(fitting(tool.clone(), 100_000), tool);
    }
}
