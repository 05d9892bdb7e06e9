//! Tools of upstream servers with parameters that are sent as HTTP headers (`x-mcp-header` in their schemas).
//!
//! The library rmcp sends these headers and rejects tools with invalid annotations, but only for tools whose
//! schemas it has parsed. If a list contains such tools, rmcp therefore gets these tools parsed, together
//! with the raw text of the whole list. Other lists are given to rmcp only as raw text.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use lockhouse_base::json;
use rmcp::model::{CustomResult, JsonObject, ListToolsResult, MetaObject, ServerResult, Tool};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::backlog_limits::BacklogLimiter;
use crate::bounded_list::BoundedList;
use lockhouse_mcp::inbound_message::TYPED_BYTES_MAX;

const ANNOTATION: &str = "\"x-mcp-header\"";
/// The key in `_meta` of a tool list for rmcp. Its value is the raw text of the whole list, as the server sent it.
const RAW: &str = "lockhouse/raw";

/// The fields that rmcp needs of a tool with header parameters.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Annotated {
    name: String,
    input_schema: JsonObject,
}

/// Converts the result of `tools/list` for rmcp. Tools with header parameters are parsed, and their size is counted in
/// `load`. The whole list is kept as raw text.
pub(super) fn tool_list(result: &RawValue, load: &BacklogLimiter) -> ServerResult {
    let mut room = TYPED_BYTES_MAX;
    let mut fits = |tool: &&RawValue| {
        let left = room.checked_sub(tool.get().len());
        room = left.unwrap_or(room);
        left.is_some()
    };
    let annotated = tools(result.get()).items.into_iter().filter(|tool| tool.get().contains(ANNOTATION));
    let mut annotated = annotated.peekable();
    let text = Value::String(result.get().to_owned());
    if annotated.peek().is_none() {
        return ServerResult::CustomResult(CustomResult(text));
    }
    let seen = annotated.filter(|tool| fits(tool)).filter_map(|tool| {
        if json::check_bounded(tool.get().as_bytes(), usize::MAX).is_some() {
            return None;
        }
        let Annotated { name, input_schema } = serde_json::from_str(tool.get()).ok()?;
        load.record_header_tool(tool.get().len());
        Some(Tool::new(name, Cow::Borrowed(""), Arc::new(input_schema)))
    });
    let mut list = ListToolsResult::with_all_items(seen.collect());
    list.meta = Some(MetaObject(JsonObject::from_iter([(RAW.to_owned(), text)])));
    ServerResult::ListToolsResult(list)
}

/// Returns the raw text of a list of tools. Tools with header parameters (`x-mcp-header`) are left out if
/// rmcp rejected them or if they were too large. Returns `None` if the list was not made by [`tool_list`].
pub(crate) fn raw(list: ListToolsResult) -> Option<String> {
    let Value::String(text) = list.meta?.0.remove(RAW)? else { return None };
    let accepted: BTreeSet<&str> = list.tools.iter().map(|tool| &*tool.name).collect();
    let is_usable = |tool: &&RawValue| {
        !tool.get().contains(ANNOTATION) || name(tool).is_some_and(|name| accepted.contains(name.as_str()))
    };
    let BoundedList { items: all, has_more } = tools(&text);
    let usable: Vec<_> = all.iter().copied().filter(is_usable).collect();
    // If the list was truncated, only the tools that were kept are returned.
    if usable.len() == all.len() && !has_more {
        return Some(text);
    }
    tracing::warn!("left out {} tools that ask for headers in an invalid way", all.len() - usable.len());
    let usable = to_raw_value(&usable).ok()?;
    let mut page: BTreeMap<String, &RawValue> = serde_json::from_str(&text).ok()?;
    page.insert("tools".into(), &usable);
    serde_json::to_string(&page).ok()
}

fn tools(page: &str) -> BoundedList<'_> {
    #[derive(Deserialize)]
    struct Page<'a> {
        #[serde(borrow, default)]
        tools: BoundedList<'a>,
    }
    serde_json::from_str::<Page<'_>>(page).map(|page| page.tools).unwrap_or_default()
}

fn name(tool: &RawValue) -> Option<String> {
    #[derive(Deserialize)]
    struct Named {
        name: String,
    }
    serde_json::from_str::<Named>(tool.get()).ok().map(|named| named.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockhouse_mcp::FailureSignal;

    fn list(page: &str) -> ServerResult {
        let page = RawValue::from_string(page.into()).expect("JSON");
        tool_list(&page, &BacklogLimiter::new(FailureSignal::default()))
    }

    #[test]
    fn a_list_passes_as_text_with_or_without_what_rmcp_sees_of_it() {
        let tool = |name: &str, more: &str| {
            format!(r#"{{"name": "{name}", "inputSchema": {{{more}}}, "ours": 1.0}}"#)
        };
        let annotated = r#""properties": {"a": {"type": "string", "x-mcp-header": "A"}}"#;
        let plain = format!(r#"{{"tools": [{}]}}"#, tool("plain", ""));
        assert!(
            matches!(list(&plain), ServerResult::CustomResult(CustomResult(Value::String(text))) if text == plain)
        );

        let mixed = [tool("plain", ""), tool("good", annotated), tool("bad", annotated)].join(", ");
        let page = format!(r#"{{"tools": [{mixed}], "nextCursor": "n"}}"#);
        let ServerResult::ListToolsResult(mut list) = list(&page) else { panic!("not for rmcp") };
        assert_eq!(raw(list.clone()).as_deref(), Some(&*page));
        list.tools.retain(|tool| tool.name != "bad");
        let left: Value = serde_json::from_str(&raw(list).expect("text")).expect("JSON");
        let names: Vec<_> =
            left["tools"].as_array().into_iter().flatten().map(|tool| &tool["name"]).collect();
        assert_eq!(names, ["plain", "good"]);
        assert_eq!((&left["nextCursor"], &left["tools"][0]["ours"]), (&"n".into(), &1.0.into()));
    }
}
