//! Definitions of Lockhouse's own tools. Their fixed text stays below 450 tokens, because it is part of
//! every model's context.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{JsonObject, MetaObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

use super::AnswerForm;
use lockhouse_messages::{BuiltinTool, BuiltinTools, FrontSettings};

// Some AI clients show models only the first 120 characters.
const RUN_CODE: &str = "Run code over MCP servers. python: from mcp_tools.SERVER import TOOL; TOOL(a=1). \
    typescript: await SERVER.TOOL({a: 1})\n\
    A sandbox: files in memory, no network, no processes. \
    JSON text in results arrives parsed. Large answers are cut: aggregate in code. A long run answers with a handle. \
    Failures raise ToolError(code, message). Parallel: asyncio.gather over mcp_tools.aio.SERVER, Promise.all. \
    Also from mcp_tools (typescript: camelCase): search_tools(query), describe(server, tool), \
    call_tool(server, tool, args), list_resources(server), read_resource(server, uri). \
    Keep functions: import skills; skills.save(f, \"purpose\"), skills.search(words), from skills.NAME import f.";

const CODE: &str = "The answer is the last expression (typescript: or return) as JSON, then printed output";

const SEARCH_TOOLS: &str = "Find tools by words or names; server:NAME for one server.";

const GET_RESULT: &str =
    "The answer of a running run, or more of a cut answer, by its handle (in code: load_result(handle)).";

const HEALTH: &str = "Whether code can run now: engines, servers, queue.";

/// Maximum total size in bytes of the server names in the instructions, with their separators. Some AI clients show
/// models only the first 250 characters of the instructions.
const SERVER_NAMES_BYTES: usize = 120;

/// Returns the instructions for models that use this server: they begin with the names of `servers`, and say so if
/// optional protections of the sandbox are missing on this host.
pub(super) fn instructions(servers: &[String], settings: &FrontSettings) -> String {
    let tools = &settings.tools;
    let is_shown = |tool| tools.shown().any(|shown| shown == tool);
    let mut sentences = Vec::new();
    if is_shown(BuiltinTool::RunCode) && !(settings.has_direct && settings.code_servers.is_empty()) {
        if !servers.is_empty() {
            sentences.push(format!("Code can use the MCP servers {}.", bounded_list(servers)));
        }
        if !settings.packages.is_empty() {
            sentences.push(format!("Python has {}.", bounded_list(&settings.packages)));
        }
        let search = match is_shown(BuiltinTool::SearchTools) {
            true => format!("Find tools with {}search_tools, then do", tools.prefix),
            false => "Do".to_owned(),
        };
        sentences.push(format!(
            "{search} the whole task in one {}run_code program and return only what matters.",
            tools.prefix
        ));
    }
    if settings.has_direct {
        sentences.push("Tools named SERVER__TOOL belong to servers that are called directly.".to_owned());
    }
    if !settings.missing_protections.is_empty() {
        let missing = settings.missing_protections.join("; ");
        sentences.push(format!("The sandbox is reduced on this host: {missing}."));
    }
    sentences.join(" ")
}

/// Joins names with commas, up to [`SERVER_NAMES_BYTES`]. If some names do not fit, the number of the left-out names
/// follows.
fn bounded_list(names: &[String]) -> String {
    let mut length = 0;
    let fits = |name: &&String| {
        length += name.len() + 2;
        length <= SERVER_NAMES_BYTES
    };
    let shown: Vec<&str> = names.iter().take_while(fits).map(String::as_str).collect();
    match names.len() - shown.len() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Returns the error message for a call of a tool that does not exist. The message lists those of Lockhouse's own tools
/// that AI clients get.
pub(super) fn unknown_tool_message(name: &str, tools: &BuiltinTools) -> String {
    let names: Vec<String> = tools.shown().map(|tool| format!("{}{}", tools.prefix, tool.as_str())).collect();
    match names.split_last() {
        Some((last, others)) if !others.is_empty() => {
            format!("unknown tool {name:?}: the tools are {} and {last}", others.join(", "))
        }
        Some((only, _)) => format!("unknown tool {name:?}: the tool is {only}"),
        None => format!("unknown tool {name:?}"),
    }
}

/// Returns the definitions of those of Lockhouse's own tools that AI clients get, under their configured names.
/// `catalogue` lists the servers and tools that the AI client may use, and is empty if there are none. `run_limit` is the
/// time limit of a run. With [`AnswerForm::Structured`], the tools have an output schema.
pub(super) fn all(form: AnswerForm, names: &BuiltinTools, catalogue: &str, run_limit: Duration) -> Vec<Tool> {
    let run_code = json!({
        "type": "object",
        "properties": {
            "language": {"type": "string", "enum": ["python", "typescript"]},
            "code": {"type": "string", "description": CODE},
            "session": {"type": "string", "description": "Any name; variables stay"},
            "timeout_s": {"type": "number", "maximum": seconds(run_limit)},
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
    tools.retain(|tool| names.original_name(&format!("{}{}", names.prefix, tool.name)).is_some());
    // Some AI clients fail each call of a tool that has a schema and answers without structured content.
    if form == AnswerForm::Structured {
        let schema = object(json!({"type": "object"}));
        tools = tools.into_iter().map(|tool| tool.with_raw_output_schema(schema.clone())).collect();
    }
    if names.health {
        tools.push(health());
    }
    for tool in &mut tools {
        tool.name = format!("{}{}", names.prefix, tool.name).into();
    }
    tools
}

/// Returns the definition of the tool `health`, which `health` in the table `[tools]` of the configuration enables.
fn health() -> Tool {
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

/// Returns a number of seconds for a schema, without a fraction if it has none.
fn seconds(duration: Duration) -> Value {
    match duration.subsec_nanos() {
        0 => duration.as_secs().into(),
        _ => duration.as_secs_f64().into(),
    }
}

fn object(schema: Value) -> Arc<JsonObject> {
    Arc::new(schema.as_object().cloned().unwrap_or_default())
}
