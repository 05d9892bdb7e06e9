//! Converts requests from the realm into protocol messages, and replies into JavaScript values.

use lockhouse_protocol::json_text::has_large_integer;
use lockhouse_protocol::{
    DecodedArgument, Failure, FailureCode, FileSource, FileTarget, InvalidName, InvalidText, PromptName,
    Reply, ResourceUri, ResultHandle, SearchDetail, ServerName, SkillName, ToolName, WorkerRequest,
};
use rquickjs::{Ctx, IntoJs, Object, Result, Value};

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

/// Why a request has an invalid name or argument.
#[derive(Debug, thiserror::Error)]
enum InvalidRequest {
    #[error(transparent)]
    Name(#[from] InvalidName),
    #[error(transparent)]
    Text(#[from] InvalidText),
    #[error("the {0} is not a number")]
    Number(&'static str),
    #[error("the piece is no bytes")]
    Piece,
    #[error(r#"the detail is one of "names", "signatures" and "full""#)]
    Detail,
    #[error("there are no requests of the kind {0}")]
    Kind(String),
}

/// Converts a request into a protocol message.
#[expect(clippy::too_many_lines, reason = "a list of the kinds of requests")]
fn to_request(request: NativeRequest) -> std::result::Result<WorkerRequest, InvalidRequest> {
    let (first, second, third) = request.texts;
    Ok(match request.kind.as_str() {
        "call" => WorkerRequest::Call {
            server: ServerName::new(first)?,
            tool: ToolName::new(second)?,
            arguments: third.into_bytes(),
            decoded: request.decoded,
            timeout_ms: (request.timeout_ms > 0).then_some(request.timeout_ms),
            line: request.line,
        },
        "describe" => {
            let tool = if second.is_empty() { None } else { Some(ToolName::new(second)?) };
            WorkerRequest::Describe { server: ServerName::new(first)?, tool }
        }
        "list_tools" => WorkerRequest::ListTools { server: ServerName::new(first)? },
        "list_servers" => WorkerRequest::ListServers,
        "search" => {
            let limit = second.parse().map_err(|_| InvalidRequest::Number("limit"))?;
            let detail = SearchDetail::parse(&third).ok_or(InvalidRequest::Detail)?;
            WorkerRequest::Search { query: first, limit, detail }
        }
        "list_resources" => WorkerRequest::ListResources { server: ServerName::new(first)? },
        "read_resource" => {
            let uri = ResourceUri::new(second)?;
            WorkerRequest::ReadResource { server: ServerName::new(first)?, uri }
        }
        "list_prompts" => WorkerRequest::ListPrompts { server: ServerName::new(first)? },
        "get_prompt" => {
            let name = PromptName::new(second)?;
            WorkerRequest::GetPrompt { server: ServerName::new(first)?, name, arguments: third.into_bytes() }
        }
        "load_result" => {
            let handle = ResultHandle::new(first)?;
            WorkerRequest::LoadResult { handle }
        }
        "open_file" => {
            let source = match first.as_str() {
                "host" => FileSource::Host(second),
                "given" => FileSource::Given(second),
                _ => FileSource::Stored(ResultHandle::new(second)?),
            };
            WorkerRequest::OpenFile { source, line: request.line }
        }
        "create_file" => {
            let target = if first == "host" { FileTarget::Host(second) } else { FileTarget::Answer(second) };
            let bytes = third.parse().map_err(|_| InvalidRequest::Number("size"))?;
            WorkerRequest::CreateFile { target, bytes, line: request.line }
        }
        "write_piece" => {
            let file = first.parse().map_err(|_| InvalidRequest::Number("file"))?;
            // JavaScript passes bytes as a string of the characters U+0000 to U+00FF.
            let piece: std::result::Result<Vec<u8>, _> = second.chars().map(u8::try_from).collect();
            WorkerRequest::WritePiece { file, piece: piece.map_err(|_| InvalidRequest::Piece)? }
        }
        "finish_file" => {
            let file = first.parse().map_err(|_| InvalidRequest::Number("file"))?;
            WorkerRequest::FinishFile { file, line: request.line }
        }
        "load_skill" => {
            let name = SkillName::new(first)?;
            WorkerRequest::LoadSkill { name }
        }
        "search_skills" => {
            let limit = second.parse().map_err(|_| InvalidRequest::Number("limit"))?;
            WorkerRequest::SearchSkills { query: first, limit }
        }
        _ => return Err(InvalidRequest::Kind(request.kind)),
    })
}

/// Converts a request into a protocol message. An invalid name gives the same failure as an unknown name,
/// without a message to the supervisor.
pub(super) fn parse(request: NativeRequest) -> std::result::Result<WorkerRequest, Failure> {
    if request.kind == "load_result" {
        return to_request(request)
            .map_err(|invalid| Failure::new(FailureCode::NotFound, invalid.to_string()));
    }
    let (server, name) = (truncate(&request.texts.0), truncate(&request.texts.1));
    to_request(request).map_err(|invalid| Failure {
        server: Some(server),
        tool: Some(name),
        ..Failure::new(FailureCode::UnknownTool, invalid.to_string())
    })
}

fn truncate(text: &str) -> String {
    text.chars().take(256).collect()
}

/// A reply in JavaScript.
pub(super) struct RealmReply<'js> {
    pub(super) succeeded: bool,
    /// The JSON value or an object that describes the failure. With `is_text`, the JSON text.
    pub(super) value: Value<'js>,
    /// Whether the value is JSON text, which the realm parses so that large integers keep their digits.
    pub(super) is_text: bool,
    /// Length of the reply; 0 for a failure.
    pub(super) bytes: usize,
}

/// Converts a reply into JavaScript.
pub(super) fn to_realm<'js>(ctx: &Ctx<'js>, reply: Reply) -> Result<RealmReply<'js>> {
    let json = match reply {
        Ok(json) => json,
        Err(failure) => {
            let value = failure_object(ctx, failure)?;
            return Ok(RealmReply { succeeded: false, value, is_text: false, bytes: 0 });
        }
    };
    let bytes = json.len();
    let large = std::str::from_utf8(&json).ok().filter(|text| has_large_integer(text));
    let (is_text, value) = match large {
        Some(text) => (true, text.into_js(ctx)?),
        None => (false, ctx.json_parse(json)?),
    };
    Ok(RealmReply { succeeded: true, value, is_text, bytes })
}

/// Describes a failure for the realm.
pub(super) fn failure_object<'js>(ctx: &Ctx<'js>, failure: Failure) -> Result<Value<'js>> {
    let object = Object::new(ctx.clone())?;
    object.set("code", failure.code.as_str())?;
    object.set("message", failure.message)?;
    object.set("server", failure.server)?;
    object.set("tool", failure.tool)?;
    object.set("retryable", failure.retryable)?;
    object.set("result", failure.result.and_then(|json| String::from_utf8(json).ok()))?;
    Ok(object.into_value())
}
