//! Answers `search_tools`: finds tools for an AI client and truncates the list to the size limit of an answer.

use lockhouse_base::principal::Principal;
use lockhouse_messages::SearchRequest;
use serde_json::{Value, json};

use crate::supervisor::Supervisor;

/// The size limit of an answer divided by this number is the size limit for the JSON of one tool. A larger tool is
/// listed without its schemas.
/// Bound: tools and searches.
const TOOL_SHARE_DIVISOR: usize = 3;
/// Maximum number of characters of the description of a tool that is listed without its schemas. The rest is cut off.
const FOLDED_DESCRIPTION_CHARS: usize = 600;
/// Maximum number of servers in the answer to a search that found nothing. For each of these servers, the answer says
/// how many tools the server has.
const AVAILABLE_SERVERS_MAX: usize = 50;
/// Maximum number of servers for which an answer says how many of the found tools are omitted.
const OMITTED_SERVERS_MAX: usize = 8;
/// Maximum number of saved skills in an answer.
const SKILLS_MAX: usize = 3;

pub(super) async fn serve(supervisor: &Supervisor, client: &Principal, request: &SearchRequest) -> Value {
    let gate = supervisor.gate();
    let scope = gate.scope_for(client);
    let language = Some(request.language);
    let search = lockhouse_gate::Search {
        query: &request.query,
        limit: request.limit,
        detail: request.detail,
        language,
    };
    let mut found = gate.search(&scope, client.client(), search).await;
    let direct = supervisor.direct().search(supervisor, client, search).await;
    found.tools.extend(direct.tools);
    found.left_out.extend(direct.left_out);
    found.available.extend(direct.available);
    found.missing.extend(direct.missing);
    let limit = supervisor.settings().display.part_bytes;
    let (mut shown, mut left_out, mut bytes) = (Vec::new(), found.left_out, 0);
    for tool in found.tools {
        let server = tool["server"].as_str().unwrap_or_default().to_owned();
        let tool = fold_if_large(tool, limit / TOOL_SHARE_DIVISOR);
        let tool_bytes = tool.to_string().len();
        if bytes + tool_bytes > limit && !shown.is_empty() {
            *left_out.entry(server).or_default() += 1;
            continue;
        }
        bytes += tool_bytes;
        shown.push(tool);
    }
    let mut result = json!({"tools": &shown});
    let skills = gate.relevant_skills(client, &request.query, SKILLS_MAX, request.language).await;
    if !skills.is_empty() {
        result["skills"] = skills.into();
    }
    if shown.is_empty() && !found.available.is_empty() {
        result["available"] = found.available.into_iter().take(AVAILABLE_SERVERS_MAX).collect();
    }
    if !left_out.is_empty() {
        let mut sorted: Vec<(String, usize)> = left_out.into_iter().collect();
        sorted.sort_by(|one, other| other.1.cmp(&one.1).then(one.0.cmp(&other.0)));
        result["left_out"] =
            sorted.into_iter().take(OMITTED_SERVERS_MAX).map(|(name, count)| (name, json!(count))).collect();
    }
    let mut unavailable = found.missing;
    unavailable.extend(gate.stale_servers(scope.servers()));
    if !unavailable.is_empty() {
        result["unavailable"] = unavailable.into();
    }
    result
}

/// Removes the schemas of a found tool, and shortens its description, if its JSON is larger than `bytes_max` bytes.
fn fold_if_large(mut tool: Value, bytes_max: usize) -> Value {
    let bytes = tool.to_string().len();
    if bytes <= bytes_max {
        return tool;
    }
    let folded = format!("{bytes} bytes: describe(server, tool) in run_code returns the whole definition");
    if let Some(members) = tool.as_object_mut() {
        members.shift_remove("inputSchema");
        members.shift_remove("outputSchema");
        members.shift_remove("observedOutput");
        if let Some(Value::String(description)) = members.get_mut("description") {
            *description = description.chars().take(FOLDED_DESCRIPTION_CHARS).collect();
        }
        members.insert("folded".into(), folded.into());
    }
    tool
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_tool_is_listed_without_its_schemas() {
        let tool = json!({"server": "s", "name": "t", "description": "d".repeat(5_000), "inputSchema": {"x": "y".repeat(50_000)}});
        let shown = fold_if_large(tool.clone(), 3_000);
        assert!(shown.to_string().len() < 1_000, "{shown}");
        assert!(shown["folded"].as_str().is_some_and(|words| words.contains("describe(")), "{shown}");
        assert_eq!(fold_if_large(tool.clone(), 100_000), tool);
    }
}
