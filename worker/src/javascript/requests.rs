//! Requests as the realm asks for them, and replies as it gets them.

use lockhouse_protocol::{Failure, Reply, Request, ServerName, ToolName};
use rquickjs::{Ctx, Object, Result, Value};

/// What a request is about; which texts it carries depends on it.
fn request(kind: &str, first: String, second: String, third: String) -> Option<Request> {
    Some(match kind {
        "call" => Request::Call {
            server: ServerName::new(first).ok()?,
            tool: ToolName::new(second).ok()?,
            arguments: third.into_bytes(),
        },
        "describe" => {
            Request::Describe { server: ServerName::new(first).ok()?, tool: ToolName::new(second).ok()? }
        }
        "list_tools" => Request::ListTools { server: ServerName::new(first).ok()? },
        "list_servers" => Request::ListServers,
        "search" => Request::Search { query: first, limit: second.parse().ok()? },
        _ => return None,
    })
}

/// The request of a native call. A name that can be no name is a tool that does not exist, and nobody needs to ask:
/// that is the failure.
pub(super) fn parse(kind: &str, texts: (String, String, String)) -> std::result::Result<Request, Failure> {
    let (first, second, third) = texts;
    let (server, tool) = (first.clone(), second.clone());
    request(kind, first, second, third).ok_or_else(|| Failure {
        code: lockhouse_protocol::FailureCode::UnknownTool,
        message: format!("no tool is named {:?}", bounded(&format!("{server}.{tool}"))),
        server: Some(bounded(&server)),
        tool: Some(bounded(&tool)),
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
