//! Requests as the realm asks for them, and replies as it gets them.

use lockhouse_protocol::{
    Detail, Failure, FailureCode, PromptName, Reply, Request, ResourceUri, ResultHandle, ServerName,
    SkillName, ToolName,
};
use rquickjs::{Ctx, Object, Result, Value};

/// A request as the realm has it.
pub(super) struct Asked {
    pub(super) kind: String,
    /// Server, name and arguments, as far as the kind has them.
    pub(super) texts: (String, String, String),
    /// 0 for the configured one.
    pub(super) timeout_ms: u32,
    /// Of the program.
    pub(super) line: Option<u32>,
}

/// What a request is about; which texts it carries depends on it.
fn request(asked: Asked) -> std::result::Result<Request, String> {
    let (first, second, third) = asked.texts;
    let server = |name: String| ServerName::new(name).map_err(|invalid| invalid.to_string());
    let tool = |name: String| ToolName::new(name).map_err(|invalid| invalid.to_string());
    Ok(match asked.kind.as_str() {
        "call" => Request::Call {
            server: server(first)?,
            tool: tool(second)?,
            arguments: third.into_bytes(),
            timeout_ms: (asked.timeout_ms > 0).then_some(asked.timeout_ms),
            line: asked.line,
        },
        "describe" => Request::Describe { server: server(first)?, tool: tool(second)? },
        "list_tools" => Request::ListTools { server: server(first)? },
        "list_servers" => Request::ListServers,
        "search" => {
            let limit = second.parse().map_err(|_| "the limit is not a number".to_owned())?;
            let detail = Detail::named(&third).ok_or_else(no_detail)?;
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

fn no_detail() -> String {
    r#"the detail is one of "names", "signatures" and "full""#.into()
}

/// The request of a native call. A name that can be no name is one of something that does not exist, and nobody needs to
/// ask: that is the failure.
pub(super) fn parse(asked: Asked) -> std::result::Result<Request, Failure> {
    if asked.kind == "load_result" {
        return request(asked).map_err(|message| Failure {
            code: FailureCode::NotFound,
            message,
            server: None,
            tool: None,
            retryable: false,
        });
    }
    let (server, name) = (bounded(&asked.texts.0), bounded(&asked.texts.1));
    request(asked).map_err(|message| Failure {
        code: FailureCode::UnknownTool,
        message,
        server: Some(server),
        tool: Some(name),
        retryable: false,
    })
}

fn bounded(text: &str) -> String {
    text.chars().take(256).collect()
}

/// A reply as the realm's `settle` takes it: whether it succeeded, and the JSON or the failure.
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
