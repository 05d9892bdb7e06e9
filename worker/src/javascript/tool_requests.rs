//! Converts requests from the realm into protocol messages, and replies into JavaScript values.

use lockhouse_protocol::{
    DecodedArgument, Failure, FailureCode, FileSource, FileTarget, PromptName, Reply, Request, ResourceUri,
    ResultHandle, SearchDetail, ServerName, SkillName, ToolName,
};
use rquickjs::{Ctx, Object, Result, Value};

/// A request to the supervisor, as the engine's JavaScript code passes it to Rust.
pub(super) struct NativeRequest {
    pub(super) kind: String,
    /// Up to three arguments, with empty texts for those that are missing. For most kinds of requests, they are the
    /// server, a name and the JSON arguments.
    pub(super) texts: (String, String, String),
    /// The values in the arguments of a call that are results of earlier calls, and that the worker decoded from JSON
    /// text.
    pub(super) decoded: Vec<DecodedArgument>,
    /// Timeout in milliseconds; 0 stands for the configured timeout.
    pub(super) timeout_ms: u32,
    /// Line in the program from which the request was sent; `None` if unknown.
    pub(super) line: Option<u32>,
}

/// Converts a request into a protocol message. The error is a message about an invalid name or argument.
#[expect(clippy::too_many_lines, reason = "a list of the kinds of requests")]
fn to_request(request: NativeRequest) -> std::result::Result<Request, String> {
    let (first, second, third) = request.texts;
    let server = |name: String| ServerName::new(name).map_err(|invalid| invalid.to_string());
    let tool = |name: String| ToolName::new(name).map_err(|invalid| invalid.to_string());
    Ok(match request.kind.as_str() {
        "call" => Request::Call {
            server: server(first)?,
            tool: tool(second)?,
            arguments: third.into_bytes(),
            decoded: request.decoded,
            timeout_ms: (request.timeout_ms > 0).then_some(request.timeout_ms),
            line: request.line,
        },
        "describe" => Request::Describe { server: server(first)?, tool: tool(second)? },
        "list_tools" => Request::ListTools { server: server(first)? },
        "list_servers" => Request::ListServers,
        "search" => {
            let limit = second.parse().map_err(|_| "the limit is not a number".to_owned())?;
            let detail = SearchDetail::parse(&third).ok_or_else(invalid_detail)?;
            Request::Search { query: first, limit, detail }
        }
        "list_resources" => Request::ListResources { server: server(first)? },
        "read_resource" => {
            let uri = ResourceUri::new(second).map_err(|invalid| invalid.to_string())?;
            Request::ReadResource { server: server(first)?, uri }
        }
        "list_prompts" => Request::ListPrompts { server: server(first)? },
        "get_prompt" => {
            let name = PromptName::new(second).map_err(|invalid| invalid.to_string())?;
            Request::GetPrompt { server: server(first)?, name, arguments: third.into_bytes() }
        }
        "load_result" => {
            let handle = ResultHandle::new(first).map_err(|invalid| invalid.to_string())?;
            Request::LoadResult { handle }
        }
        "open_file" => {
            let source = match first.as_str() {
                "host" => FileSource::Host(second),
                "given" => FileSource::Given(second),
                _ => FileSource::Stored(ResultHandle::new(second).map_err(|invalid| invalid.to_string())?),
            };
            Request::OpenFile { source, line: request.line }
        }
        "create_file" => {
            let target = if first == "host" { FileTarget::Host(second) } else { FileTarget::Answer(second) };
            let bytes = third.parse().map_err(|_| "the size is not a number".to_owned())?;
            Request::CreateFile { target, bytes, line: request.line }
        }
        "write_piece" => {
            let file = first.parse().map_err(|_| "the file is not a number".to_owned())?;
            // JavaScript passes bytes as a string of the characters U+0000 to U+00FF.
            let piece: std::result::Result<Vec<u8>, _> = second.chars().map(u8::try_from).collect();
            Request::WritePiece { file, piece: piece.map_err(|_| "the piece is no bytes".to_owned())? }
        }
        "finish_file" => {
            let file = first.parse().map_err(|_| "the file is not a number".to_owned())?;
            Request::FinishFile { file, line: request.line }
        }
        "load_skill" => {
            let name = SkillName::new(first).map_err(|invalid| invalid.to_string())?;
            Request::LoadSkill { name }
        }
        "search_skills" => {
            let limit = second.parse().map_err(|_| "the limit is not a number".to_owned())?;
            Request::SearchSkills { query: first, limit }
        }
        other => return Err(format!("there are no requests of the kind {other}")),
    })
}

fn invalid_detail() -> String {
    r#"the detail is one of "names", "signatures" and "full""#.into()
}

/// Converts a request into a protocol message. An invalid name gives the same failure as an unknown name,
/// without a message to the supervisor.
pub(super) fn parse(request: NativeRequest) -> std::result::Result<Request, Failure> {
    if request.kind == "load_result" {
        return to_request(request).map_err(|message| Failure {
            code: FailureCode::NotFound,
            message,
            server: None,
            tool: None,
            retryable: false,
        });
    }
    let (server, name) = (truncate(&request.texts.0), truncate(&request.texts.1));
    to_request(request).map_err(|message| Failure {
        code: FailureCode::UnknownTool,
        message,
        server: Some(server),
        tool: Some(name),
        retryable: false,
    })
}

fn truncate(text: &str) -> String {
    text.chars().take(256).collect()
}

/// Converts a reply into JavaScript: whether the request succeeded, and its JSON value or an object that
/// describes the failure.
pub(super) fn to_realm<'js>(ctx: &Ctx<'js>, reply: Reply) -> Result<(bool, Value<'js>)> {
    match reply {
        Ok(json) => Ok((true, ctx.json_parse(json)?)),
        Err(failure) => {
            let object = Object::new(ctx.clone())?;
            object.set("code", failure.code.as_str())?;
            object.set("message", failure.message)?;
            object.set("server", failure.server)?;
            object.set("tool", failure.tool)?;
            object.set("retryable", failure.retryable)?;
            Ok((false, object.into_value()))
        }
    }
}
