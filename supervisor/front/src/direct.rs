//! Upstream servers that are exposed to AI clients directly. Their tools, resources and prompts appear unchanged in the
//! AI client's lists. Each call passes the gate (policy, approval, limits, audit) like a call from code.

mod call;
mod change_notifications;
mod errors;
mod lists;

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use lockhouse_link::{Exchange, GrantedAccess};
use lockhouse_mcp::server::RequestContext;
use lockhouse_messages::{
    DirectAction, DirectCall, DirectReply, DirectTarget, Request, RequestId, Response, ResumedCall,
};
use lockhouse_protocol::{ResultHandle, ServerName};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestParams, CompleteResult,
    ContentBlock, ErrorData, GetPromptRequestParams, InputRequiredResult, InputResponses, JsonObject,
    ReadResourceRequestParams, Reference, ServerCapabilities,
};
use serde_json::Value;

use call::{CallAnswer, SEVERITIES, follow_call, suspended_call};
pub(super) use change_notifications::ConnectionSubscriptions;
pub(crate) use errors::request_error;
use errors::{failure_text, invalid_params, mcp_error, protocol_error};
use lists::prepend_members;

use super::{McpHandler, client_name, elicitation};
use crate::answer::ToolResponse;

/// Cache lifetime, in milliseconds, that Lockhouse declares for a resource if its upstream server
/// declares none.
const READ_TTL_MS: u64 = 0;

/// The state of an AI client's connection for directly exposed upstream servers: subscriptions and log level.
#[derive(Clone, Default)]
pub(super) struct Direct {
    pub(super) subscriptions: ConnectionSubscriptions,
    /// Minimum severity of forwarded log messages, as an index into [`SEVERITIES`].
    log_level: Arc<AtomicU8>,
}

/// A request of an AI client to an upstream server that is exposed to the client directly.
struct Call {
    target: DirectTarget,
    action: DirectAction,
    arguments: JsonObject,
    responses: Option<InputResponses>,
    state: Option<String>,
}

/// Adds the MCP capabilities that Lockhouse declares if upstream servers are exposed directly, such as resources and
/// prompts.
#[expect(deprecated, reason = "MCP deprecates it, but it is still in use")]
pub(super) fn add_capabilities(capabilities: &mut ServerCapabilities) {
    let listed = ServerCapabilities::builder()
        .enable_tools()
        .enable_tool_list_changed()
        .enable_resources()
        .enable_resources_list_changed()
        .enable_resources_subscribe()
        .enable_prompts()
        .enable_prompts_list_changed()
        .enable_completions()
        .enable_logging()
        .build();
    let extensions = capabilities.extensions.take();
    *capabilities = listed;
    capabilities.extensions = extensions;
}

impl McpHandler {
    /// Returns whether the configuration exposes the tools of any upstream server directly to AI clients.
    pub(super) fn has_direct(&self) -> bool {
        self.engine.settings().has_direct
    }

    /// Serves `logging/setLevel`: sets the minimum severity of log messages that are forwarded to the AI client.
    #[expect(deprecated, reason = "MCP deprecates it, but it is still in use")]
    pub(super) fn set_log_level(
        &self,
        request: &rmcp::model::SetLevelRequestParams,
    ) -> Result<String, ErrorData> {
        self.require_direct_servers("logging/setLevel")?;
        let level = serde_json::to_value(request.level).unwrap_or_default();
        let number = SEVERITIES.iter().position(|severity| level == *severity).unwrap_or_default();
        self.direct.log_level.store(u8::try_from(number).unwrap_or_default(), Ordering::Relaxed);
        Ok("{}".to_owned())
    }

    /// Calls a tool of a directly exposed upstream server. The request names the tool as the AI client knows
    /// it. Returns `None` if no such tool has that name.
    pub(super) async fn call_direct_tool(
        &self,
        request: CallToolRequestParams,
        context: &RequestContext,
    ) -> Result<Option<ToolResponse>, ErrorData> {
        let call = Call {
            target: DirectTarget::Tool(request.name.into_owned()),
            action: DirectAction::Use,
            arguments: request.arguments.unwrap_or_default(),
            responses: request.input_responses,
            state: request.request_state,
        };
        let outcome = match self.begin_or_resume_call(call, context).await? {
            CallAnswer::InputRequired(required) => return Ok(Some(required.into())),
            CallAnswer::Error(error) => return Err(error),
            CallAnswer::Response(Response::Error(error)) => return Err(mcp_error(error)),
            CallAnswer::Response(Response::NotFound) => return Ok(None),
            CallAnswer::Response(Response::Call(_, outcome)) => outcome,
            CallAnswer::Response(other) => return Err(failed_call(other)),
        };
        Ok(Some(match outcome {
            DirectReply::Result(text) => ToolResponse::Text(add_result_fields(text, context, false)),
            DirectReply::Error(error) => return Err(mcp_error(error)),
            DirectReply::Failure(failure) => {
                let result = CallToolResult::error(vec![ContentBlock::text(failure_text(&failure))]);
                ToolResponse::Other(CallToolResponse::from(result))
            }
        }))
    }

    pub(super) async fn read_direct_resource(
        &self,
        request: ReadResourceRequestParams,
        context: &RequestContext,
    ) -> Result<String, ErrorData> {
        self.require_direct_servers("resources/read")?;
        let call = Call {
            target: DirectTarget::Resource(request.uri),
            action: DirectAction::Use,
            arguments: JsonObject::new(),
            responses: request.input_responses,
            state: request.request_state,
        };
        Ok(match self.call_direct(call, context, true).await? {
            Ok((_, result)) => result,
            Err(required) => context.to_text(required),
        })
    }

    pub(super) async fn get_direct_prompt(
        &self,
        request: GetPromptRequestParams,
        context: &RequestContext,
    ) -> Result<String, ErrorData> {
        self.require_direct_servers("prompts/get")?;
        let call = Call {
            target: DirectTarget::Prompt(request.name),
            action: DirectAction::Use,
            arguments: request.arguments.unwrap_or_default(),
            responses: request.input_responses,
            state: request.request_state,
        };
        Ok(match self.call_direct(call, context, false).await? {
            Ok((_, result)) => result,
            Err(required) => context.to_text(required),
        })
    }

    pub(super) async fn complete_direct(
        &self,
        mut request: CompleteRequestParams,
        context: &RequestContext,
    ) -> Result<String, ErrorData> {
        self.require_direct_servers("completion/complete")?;
        request.meta = None;
        let target = match &request.r#ref {
            Reference::Prompt(reference) => DirectTarget::Prompt(reference.name.clone()),
            Reference::Resource(reference) => DirectTarget::Resource(reference.uri.clone()),
            _ => return Err(invalid_params("only arguments of prompts and resources can be completed")),
        };
        let action = DirectAction::Complete(serde_json::to_value(request).unwrap_or_default());
        let call = Call { target, action, arguments: JsonObject::new(), responses: None, state: None };
        let completed = self.call_direct(call, context, false).await?.ok();
        Ok(completed.map_or_else(|| context.to_text(CompleteResult::default()), |(_, result)| result))
    }

    /// Sends a resource, prompt or completion request to an upstream server. Returns the server and its result as JSON text, or
    /// as the inner `Err` the question that the AI client must answer first. `is_cached` says whether AI clients may cache this
    /// kind of result.
    async fn call_direct(
        &self,
        call: Call,
        context: &RequestContext,
        is_cached: bool,
    ) -> Result<Result<(ServerName, String), InputRequiredResult>, ErrorData> {
        match self.begin_or_resume_call(call, context).await? {
            CallAnswer::InputRequired(required) => Ok(Err(required)),
            CallAnswer::Error(error) => Err(error),
            CallAnswer::Response(Response::Error(error)) => Err(mcp_error(error)),
            CallAnswer::Response(Response::Call(server, outcome)) => match outcome {
                DirectReply::Result(text) => Ok(Ok((server, add_result_fields(text, context, is_cached)))),
                DirectReply::Error(error) => Err(mcp_error(error)),
                DirectReply::Failure(failure) => Err(protocol_error(&failure)),
            },
            CallAnswer::Response(other) => Err(failed_call(other)),
        }
    }

    /// Starts a call of an upstream server, or resumes a suspended call with the AI client's answer. Then
    /// forwards the events of the call until it ends or is suspended.
    async fn begin_or_resume_call(
        &self,
        call: Call,
        context: &RequestContext,
    ) -> Result<CallAnswer, ErrorData> {
        let access = self.access(context)?;
        let Call { target, action, arguments, responses, state } = call;
        let arguments = Value::Object(arguments);
        let logs = self.log_threshold(context);
        if let Some(handle) = state.as_deref().and_then(suspended_call) {
            let handle = ResultHandle::new(handle).map_err(|error| invalid_params(&error.to_string()))?;
            let digest = call::digest(&target, &arguments);
            let request = Request::ResumeCall(ResumedCall { handle, digest });
            let mut exchange = self.open_direct(&access, context, None, request).await;
            let answered = call::answer_questions(&mut exchange, responses.unwrap_or_default()).await;
            return Ok(match answered {
                Ok(()) => follow_call(exchange, (&target, &arguments), context, logs).await,
                Err(response) => CallAnswer::Response(response),
            });
        }
        let call = DirectCall {
            target: target.clone(),
            action,
            arguments: arguments.to_string(),
            supports_input_requests: context.is_modern(),
            input_responses: responses,
            request_state: state,
        };
        // Only a call of a tool has effects.
        let chosen = match &call.target {
            DirectTarget::Tool(_) => crate::http::idempotency_key(context).map_err(invalid_params)?,
            DirectTarget::Prompt(_) | DirectTarget::Resource(_) => None,
        };
        let exchange = self.open_direct(&access, context, chosen, Request::Call(call)).await;
        Ok(follow_call(exchange, (&target, &arguments), context, logs).await)
    }

    /// Sends a request that comes from the AI client itself to the engine. Returns the exchange that delivers the events and the response. Unlike in calls from
    /// programs, an upstream server may ask this client for sampling and roots.
    async fn open_direct(
        &self,
        access: &GrantedAccess,
        context: &RequestContext,
        chosen: Option<RequestId>,
        request: Request,
    ) -> Exchange {
        let capabilities = context.client_capabilities();
        let has = |capability: fn(&rmcp::model::ClientCapabilities) -> bool| {
            capabilities.as_ref().is_some_and(capability)
        };
        let (sampling, roots) = (has(|can| can.sampling.is_some()), has(|can| can.roots.is_some()));
        let mut abilities = elicitation::client_abilities(capabilities);
        (abilities.sampling, abilities.roots) = (sampling, roots && context.is_modern());
        let client = client_name(access, context);
        self.engine.open_with_id(chosen, access, client, abilities, request).await
    }

    /// Returns the minimum severity of log messages that are forwarded to the AI client. Returns `None` for a client of
    /// protocol 2026-07-28 or newer: this protocol deprecates log messages, so none are forwarded.
    fn log_threshold(&self, context: &RequestContext) -> Option<u8> {
        (!context.is_modern()).then(|| self.direct.log_level.load(Ordering::Relaxed))
    }
}

/// Returns the error for a call that has neither a result nor an error of its own.
fn failed_call(response: Response) -> ErrorData {
    request_error(response.into_failure(), "the call")
}

/// Adds the fields that the AI client's protocol version requires to the JSON result of an upstream server, among them
/// the fields about caching if `is_cached` is true. Returns it on one line.
fn add_result_fields(text: String, context: &RequestContext, is_cached: bool) -> String {
    #[derive(Default, serde::Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Outline {
        result_type: Option<Value>,
        ttl_ms: Option<Value>,
        cache_scope: Option<Value>,
    }
    let text = on_one_line(text);
    if !context.is_modern() {
        return text;
    }
    let outline: Outline = serde_json::from_str(&text).unwrap_or_default();
    let mut members = JsonObject::new();
    let is_complete = outline.result_type.as_ref().is_none_or(|kind| kind == "complete");
    if outline.result_type.is_none() {
        members.insert("resultType".into(), "complete".into());
    }
    if is_cached && is_complete {
        if outline.ttl_ms.is_none() {
            members.insert("ttlMs".into(), READ_TTL_MS.into());
        }
        if outline.cache_scope.is_none() {
            members.insert("cacheScope".into(), "private".into());
        }
    }
    prepend_members(text, &members)
}

/// Replaces line breaks, because each message is one line. In valid JSON, they occur only between tokens, where a space means
/// the same.
fn on_one_line(json: String) -> String {
    let has_breaks = memchr::memchr2(b'\n', b'\r', json.as_bytes()).is_some();
    if has_breaks { json.replace(['\n', '\r'], " ") } else { json }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_written_on_one_line() {
        for (text, expected) in [
            ("{\n \"a\":\r\n1}", r#"{  "a":  1}"#),
            (r#"{"a":"\n\r"}"#, r#"{"a":"\n\r"}"#),
            (r#"{"é": 1e400, "a":[ ]}"#, r#"{"é": 1e400, "a":[ ]}"#),
        ] {
            assert_eq!(on_one_line(text.to_owned()), expected);
        }
    }
}
