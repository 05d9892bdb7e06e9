//! Definitions of Lockhouse's own tools. These are part of every model's context, so their fixed text stays below 450
//! tokens.

use std::sync::Arc;

use rmcp::model::{JsonObject, MetaObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

use super::AnswerForm;

const INSTRUCTIONS: &str = "Find tools with search_tools, then do the whole task in one run_code program \
    and return only what matters.";

const RUN_CODE: &str = "Run a program in a sandbox (no files, network or processes) where MCP servers are libraries.\n\
    python: from mcp_tools.SERVER import TOOL; TOOL(arg=value)\n\
    typescript: await SERVER.TOOL({arg: value})\n\
    The answer is the last expression (typescript: or return) as JSON, then printed output. JSON text in results arrives parsed. \
    Large answers are cut: aggregate in code. A long run answers with a handle. \
    Failures raise ToolError(code, message). Parallel: asyncio.gather over mcp_tools.aio.SERVER, Promise.all. \
    Also from mcp_tools (typescript: camelCase): search_tools(query), describe(server, tool), \
    call_tool(server, tool, args), list_resources(server), read_resource(server, uri). \
    Keep functions: import skills; skills.save(f, \"purpose\"), skills.search(words), from skills.NAME import f.";

const SEARCH_TOOLS: &str = "Find tools by words or names; server:NAME for one server.";

const GET_RESULT: &str =
    "The answer of a running run, or more of a cut answer, by its handle (in code: load_result(handle)).";

const HEALTH: &str = "Whether code can run now: engines, servers, queue.";

/// Returns the instructions for models that use this server. They say so if optional protections of the sandbox are
/// missing on this host.
pub(super) fn instructions(missing_protections: &[String]) -> String {
    match missing_protections.is_empty() {
        true => INSTRUCTIONS.to_owned(),
        false => {
            format!("{INSTRUCTIONS} The sandbox is reduced on this host: {}.", missing_protections.join("; "))
        }
    }
}

/// Returns the definitions of the tools that every AI client gets: `run_code`, `search_tools` and `get_result`.
/// `catalogue` lists the servers and tools that the AI client may use, and is empty if there are none. With
/// [`AnswerForm::Structured`], the tools have an output schema.
pub(super) fn all(form: AnswerForm, catalogue: &str) -> Vec<Tool> {
    let run_code = json!({
        "type": "object",
        "properties": {
            "language": {"type": "string", "enum": ["python", "typescript"]},
            "code": {"type": "string"},
            "session": {"type": "string", "description": "Any name; variables stay"},
            "timeout_s": {"type": "number"},
            "servers": {"type": "array", "items": {"type": "string"}, "description": "Only NAME, NAME.TOOL, NAME.PREFIX*"},
        },
        "required": ["language", "code"],
    });
    let search_tools = json!({
        "type": "object",
        "properties": {
            "query": {"type": "string"},
            "limit": {"type": "integer"},
            "detail": {"type": "string", "enum": ["names", "signatures", "full"]},
            "language": {"type": "string", "enum": ["python", "typescript"]},
        },
        "required": ["query"],
    });
    let get_result = json!({
        "type": "object",
        "properties": {"handle": {"type": "string"}, "offset": {"type": "integer"}, "wait_s": {"type": "number"}},
        "required": ["handle"],
    });
    let separator = if catalogue.is_empty() { "" } else { "\n" };
    let read_only = || ToolAnnotations::new().read_only(true);
    let mut tools = vec![
        Tool::new("run_code", format!("{RUN_CODE}{separator}{catalogue}"), object(run_code)),
        Tool::new("search_tools", SEARCH_TOOLS, object(search_tools)).with_annotations(read_only()),
        Tool::new("get_result", GET_RESULT, object(get_result)).with_annotations(read_only()),
    ];
    tools = tools.into_iter().map(|tool| tool.with_meta(always_load())).collect();
    // Some AI clients fail each call of a tool that has a schema and answers without structured content.
    if form == AnswerForm::Structured {
        let schema = object(json!({"type": "object"}));
        tools = tools.into_iter().map(|tool| tool.with_raw_output_schema(schema.clone())).collect();
    }
    tools
}

/// Returns the definition of the tool `health`, which `health_tool` in the configuration enables.
pub(super) fn health() -> Tool {
    let nothing = json!({"type": "object", "properties": {}});
    Tool::new("health", HEALTH, object(nothing)).with_annotations(ToolAnnotations::new().read_only(true))
}

/// Returns the metadata that keeps a tool in the model's context from the start. Some AI clients otherwise hide tools
/// behind a search of their own, which costs a turn.
fn always_load() -> MetaObject {
    let mut meta = MetaObject::new();
    meta.insert("anthropic/alwaysLoad".to_owned(), true.into());
    meta
}

fn object(schema: Value) -> Arc<JsonObject> {
    Arc::new(schema.as_object().cloned().unwrap_or_default())
}
