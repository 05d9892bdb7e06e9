//! Servers that an AI client has directly: their tools, resources and prompts among its own, as their servers wrote them, on the
//! same way through the gate as the calls of code.

mod changes;
mod errors;
mod flight;
mod lists;
pub(super) mod raw;

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use lockhouse_base::principal::Principal;
use lockhouse_messages::{Action, CallOutcome, DirectCall, Exchange, Request, Response, Target};
use lockhouse_protocol::ServerName;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestParams, CompleteResult,
    ContentBlock, ErrorData, GetPromptRequestParams, GetPromptResponse, GetPromptResult, InputRequiredResult,
    InputResponses, JsonObject, MetaObject, ReadResourceRequestParams, ReadResourceResponse,
    ReadResourceResult, Reference, ServerCapabilities,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Value, json};

pub(super) use changes::Connected;
use errors::{invalid, protocol_error, told};
use flight::{Answered, Held, SEVERITIES, follow, is_ours};
use lists::with_members;

use super::{Front, ask, calls_again, client};

/// Of a resource that its server calls fresh for no time of its own.
const READ_TTL_MS: u64 = 0;

/// What the front keeps of servers that AI clients have directly.
#[derive(Clone, Default)]
pub(super) struct Direct {
    held: Held,
    pub(super) connected: Connected,
    /// The least severe lines of logs that the client wants, by number.
    least: Arc<AtomicU8>,
}

/// What a client asks of a server.
struct Call {
    target: Target,
    action: Action,
    arguments: JsonObject,
    responses: Option<InputResponses>,
    state: Option<String>,
}

impl Direct {
    /// The same for another connection.
    pub(super) fn anew(&self) -> Self {
        Self { held: self.held.clone(), ..Self::default() }
    }
}

/// What clients are told that there is besides, where they have a server directly.
#[expect(deprecated)]
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

impl Front {
    /// Whether AI clients have any server directly.
    pub(super) fn has_direct(&self) -> bool {
        self.engine.settings().has_direct
    }

    /// What a client that asks wants to hear of logs.
    pub(super) fn set_least(&self, level: &str) {
        let number = SEVERITIES.iter().position(|severity| *severity == level).unwrap_or_default();
        self.direct.least.store(u8::try_from(number).unwrap_or_default(), Ordering::Relaxed);
    }

    /// Calls a tool by the name that the client has for it; none if there is none of that name.
    pub(super) async fn call_directly(
        &self,
        request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<Option<CallToolResponse>, ErrorData> {
        let call = Call {
            target: Target::Tool(request.name.into_owned()),
            action: Action::Use,
            arguments: request.arguments.unwrap_or_default(),
            responses: request.input_responses,
            state: request.request_state,
        };
        let outcome = match self.answered(call, context).await? {
            Answered::Asked(asked) => return Ok(Some(asked.into())),
            Answered::Error(error) | Answered::Landed(Response::Error(error)) => return Err(error),
            Answered::Landed(Response::NotFound) => return Ok(None),
            Answered::Landed(Response::Call(_, outcome)) => outcome,
            Answered::Landed(_) => return Err(broken()),
        };
        Ok(Some(match outcome {
            CallOutcome::Result(text) => {
                let mut result = CallToolResult::success(Vec::new());
                result.meta = Some(complete(&text, context, false));
                result.into()
            }
            CallOutcome::Error(error) => return Err(error),
            CallOutcome::Failure(failure) => {
                CallToolResult::error(vec![ContentBlock::text(told(&failure))]).into()
            }
        }))
    }

    pub(super) async fn read_directly(
        &self,
        request: ReadResourceRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let call = Call {
            target: Target::Resource(request.uri),
            action: Action::Use,
            arguments: JsonObject::new(),
            responses: request.input_responses,
            state: request.request_state,
        };
        Ok(match self.passed(call, context, true).await? {
            Ok((_, meta)) => {
                let mut result = ReadResourceResult::new(Vec::new());
                result.meta = Some(meta);
                result.into()
            }
            Err(asked) => asked.into(),
        })
    }

    pub(super) async fn prompt_directly(
        &self,
        request: GetPromptRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let call = Call {
            target: Target::Prompt(request.name),
            action: Action::Use,
            arguments: request.arguments.unwrap_or_default(),
            responses: request.input_responses,
            state: request.request_state,
        };
        Ok(match self.passed(call, context, false).await? {
            Ok((_, meta)) => {
                let mut result = GetPromptResult::new(Vec::new());
                result.meta = Some(meta);
                result.into()
            }
            Err(asked) => asked.into(),
        })
    }

    pub(super) async fn complete_directly(
        &self,
        mut request: CompleteRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        request.meta = None;
        let target = match &request.r#ref {
            Reference::Prompt(reference) => Target::Prompt(reference.name.clone()),
            Reference::Resource(reference) => Target::Resource(reference.uri.clone()),
            _ => return Err(invalid("there is nothing of that kind to complete")),
        };
        let action = Action::Complete(Box::new(request));
        let call = Call { target, action, arguments: JsonObject::new(), responses: None, state: None };
        let mut result = CompleteResult::default();
        result.meta = self.passed(call, context, false).await?.ok().map(|(_, meta)| meta);
        Ok(result)
    }

    /// What is no tool: the server with the metadata of a result that passes as it is, or the question of a call that waits.
    async fn passed(
        &self,
        call: Call,
        context: &RequestContext<RoleServer>,
        is_cached: bool,
    ) -> Result<Result<(ServerName, MetaObject), InputRequiredResult>, ErrorData> {
        match self.answered(call, context).await? {
            Answered::Asked(asked) => Ok(Err(asked)),
            Answered::Error(error) | Answered::Landed(Response::Error(error)) => Err(error),
            Answered::Landed(Response::Call(server, outcome)) => match outcome {
                CallOutcome::Result(text) => Ok(Ok((server, complete(&text, context, is_cached)))),
                CallOutcome::Error(error) => Err(error),
                CallOutcome::Failure(failure) => Err(protocol_error(&failure)),
            },
            Answered::Landed(_) => Err(broken()),
        }
    }

    /// Makes a call, or goes on with one that waits for its client.
    async fn answered(
        &self,
        call: Call,
        context: &RequestContext<RoleServer>,
    ) -> Result<Answered, ErrorData> {
        let principal = self.principal(context)?;
        let Call { target, action, arguments, responses, state } = call;
        let request = json!([target, arguments]);
        let exchange = match state {
            Some(state) if is_ours(&state) => {
                let responses = responses.unwrap_or_default();
                self.direct.held.resume(&principal, &state, &request, responses).map_err(invalid)?
            }
            state => {
                let (arguments, calls_again) = (Value::Object(arguments).to_string(), calls_again(context));
                let call = DirectCall { target, action, arguments, calls_again, responses, state };
                self.open_direct(&principal, context, Request::Call(call))
            }
        };
        let logs = self.wants_logs(context);
        Ok(follow(exchange, &principal, &self.direct.held, &request, context, logs).await)
    }

    /// Begins an exchange for a client, which may be asked by its servers what they may not ask by code.
    fn open_direct(
        &self,
        principal: &Principal,
        context: &RequestContext<RoleServer>,
        request: Request,
    ) -> Exchange {
        let capabilities = context.client_capabilities();
        let has = |of: fn(&rmcp::model::ClientCapabilities) -> bool| capabilities.as_ref().is_some_and(of);
        let (sampling, roots) = (has(|can| can.sampling.is_some()), has(|can| can.roots.is_some()));
        let mut abilities = ask::abilities(capabilities);
        (abilities.sampling, abilities.roots) = (sampling, roots && calls_again(context));
        self.engine.open(principal, client(principal, context), abilities, request)
    }

    /// In the newest era each request would ask for them; that is deprecated, and none gets any.
    fn wants_logs(&self, context: &RequestContext<RoleServer>) -> Option<u8> {
        (!calls_again(context)).then(|| self.direct.least.load(Ordering::Relaxed))
    }
}

fn broken() -> ErrorData {
    ErrorData::internal_error("the call broke", None)
}

/// A result for this client: as it is, but for what its era wants besides.
fn complete(text: &str, context: &RequestContext<RoleServer>, is_cached: bool) -> MetaObject {
    #[derive(Default, serde::Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Outline {
        result_type: Option<Value>,
        ttl_ms: Option<Value>,
        cache_scope: Option<Value>,
    }
    if !calls_again(context) {
        return raw::packed(text);
    }
    let outline: Outline = serde_json::from_str(text).unwrap_or_default();
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
    raw::packed(&with_members(text, &members))
}
