//! `search_tools`: what a model is shown of the tools that fit, within what one answer may have.

use lockhouse_base::language::Language;
use lockhouse_base::principal::Principal;
use lockhouse_engine::supervisor::Supervisor;
use lockhouse_gate::Search;
use lockhouse_policies::ClientName;
use lockhouse_protocol::{Detail, SEARCH_LIMIT_DEFAULT, SEARCH_LIMIT_MAX};
use rmcp::model::JsonObject;
use serde_json::{Value, json};
use thiserror::Error;

/// One tool's part of an answer's bytes; the schemas of one that would have more are left out.
const LARGEST_PART: usize = 3;
/// Characters of a description that are left with the schemas out.
const FOLDED_CHARS: usize = 600;
/// Servers that are named with what was left out.
const SERVERS_MAX: usize = 8;

/// What is wrong with the arguments.
#[derive(Debug, Error)]
pub(super) enum InvalidArgument {
    #[error("query must be a string")]
    Query,
    #[error("limit must be a whole number from 1 to {SEARCH_LIMIT_MAX}")]
    Limit,
    #[error(r#"detail must be "names", "signatures" or "full""#)]
    Detail,
    #[error(r#"language must be "python" or "typescript""#)]
    Language,
}

/// The arguments.
pub(super) struct Asked<'a> {
    query: &'a str,
    limit: u32,
    detail: Detail,
    language: Language,
}

impl<'a> Asked<'a> {
    pub(super) fn of(arguments: &'a JsonObject) -> Result<Self, InvalidArgument> {
        let query = match arguments.get("query") {
            None => "",
            Some(Value::String(query)) => query,
            Some(_) => return Err(InvalidArgument::Query),
        };
        let limit = match arguments.get("limit") {
            None | Some(Value::Null) => Some(SEARCH_LIMIT_DEFAULT),
            Some(limit) => limit.as_u64().and_then(|limit| u32::try_from(limit).ok()),
        };
        let limit = limit.filter(|limit| (1..=SEARCH_LIMIT_MAX).contains(limit));
        let limit = limit.ok_or(InvalidArgument::Limit)?;
        let detail = match arguments.get("detail") {
            None | Some(Value::Null) => Some(Detail::default()),
            Some(detail) => detail.as_str().and_then(Detail::named),
        };
        let detail = detail.ok_or(InvalidArgument::Detail)?;
        let language = match arguments.get("language").map(Value::as_str) {
            None => Language::Python,
            Some(Some("python")) => Language::Python,
            Some(Some("typescript" | "javascript")) => Language::Typescript,
            Some(_) => return Err(InvalidArgument::Language),
        };
        Ok(Self { query, limit, detail, language })
    }
}

pub(super) async fn search(
    supervisor: &Supervisor,
    principal: &Principal,
    asked: &Asked<'_>,
    client: Option<&ClientName>,
) -> Value {
    let gate = supervisor.gate();
    let scope = gate.granted(principal);
    let language = Some(asked.language);
    let search = Search { query: asked.query, limit: asked.limit, detail: asked.detail, language };
    let found = gate.search(&scope, client, search).await;
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
