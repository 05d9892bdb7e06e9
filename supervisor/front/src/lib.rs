//! What the AI client meets: an MCP server with three tools, which are always the same.
#![cfg_attr(test, allow(clippy::expect_used))]
#![allow(missing_docs)] // Its only users are the crates beside it: names and types say what fields are.

pub mod access;
mod arguments;
mod ask;
mod asking;
mod content;
mod direct;
mod display;
pub mod http;
mod runs;
mod stdin;
mod stdio;
mod tools;

use lockhouse_base::principal::Principal;
use lockhouse_base::telemetry::traces::{self, TraceContext};
use lockhouse_messages::{EngineClient, List, Request, Response};
use lockhouse_policies::ClientName;
use rmcp::ServerHandler;
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams,
    CompleteRequestMethod, CompleteRequestParams, CompleteResult, ConstString, ErrorData, Extensions,
    GetPromptRequestMethod, GetPromptRequestParams, GetPromptResponse, GetTaskParams, GetTaskResult,
    Implementation, JsonObject, ListPromptsRequestMethod, ListPromptsResult,
    ListResourceTemplatesRequestMethod, ListResourceTemplatesResult, ListResourcesRequestMethod,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ProtocolVersion, ReadResourceRequestMethod,
    ReadResourceRequestParams, ReadResourceResponse, RequestMetaObject, ServerCapabilities, ServerConfig,
    SubscriptionFilter, UpdateTaskParams,
};
use rmcp::service::{NotificationContext, RequestContext, RoleServer, SubscriptionContext};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, Span};

use arguments::{beginning, read_result_request, search_request};
use direct::Direct;
use runs::{Suspended, Tool};
pub use stdio::{StdioError, serve_stdio};

/// The tool list never changes while we run.
const TOOLS_TTL_MS: u64 = 3_600_000;

/// Bytes of the tool definitions, as an AI client gets them.
pub fn definitions_bytes() -> usize {
    serde_json::to_string(&tools::all()).map_or(0, |text| text.len())
}

/// What an AI client talks to: one for each connection over standard input, one for each request or session over HTTP.
#[derive(Clone)]
struct Front {
    engine: EngineClient,
    door: Door,
    /// Requests whose client is to call again.
    suspended: Suspended,
    /// What it keeps of servers that it has directly.
    direct: Direct,
    /// Cancelled when nothing more is to be served.
    closing: CancellationToken,
}

/// How the client came in.
#[derive(Clone)]
enum Door {
    /// Over a pipe: whatever comes through it is this client's.
    Pipe(Principal),
    /// Over HTTP: each request carries the client that it was admitted as.
    Http,
}

impl Door {
    /// Whose a message with these extensions is; none where nobody was admitted.
    fn principal(&self, extensions: &Extensions) -> Option<Principal> {
        match self {
            Self::Pipe(principal) => Some(principal.clone()),
            Self::Http => http::principal(extensions),
        }
    }
}

impl Front {
    fn new(engine: EngineClient, door: Door, closing: CancellationToken) -> Self {
        Self { engine, door, suspended: Suspended::default(), direct: Direct::default(), closing }
    }

    /// Whose request this is. One that nobody admitted is nobody's.
    fn principal(&self, context: &RequestContext<RoleServer>) -> Result<Principal, ErrorData> {
        let admitted = self.door.principal(&context.extensions);
        admitted.ok_or_else(|| ErrorData::internal_error("the request was not admitted", None))
    }
}

impl ServerHandler for Front {
    fn get_info(&self) -> ServerConfig {
        let mut capabilities = ServerCapabilities::builder().enable_tools().enable_tasks().build();
        if self.has_direct() {
            direct::add_capabilities(&mut capabilities);
        }
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("lockhouse", env!("CARGO_PKG_VERSION")))
            .with_instructions(tools::INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        if self.has_direct() {
            let meta = Some(self.list(List::Tools, request, &context).await?);
            return Ok(ListToolsResult { meta, ..ListToolsResult::default() });
        }
        let tools = self.own_tools();
        Ok(ListToolsResult::with_all_items(tools)
            .with_ttl_ms(TOOLS_TTL_MS)
            .with_cache_scope(CacheScope::Public))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let span = traces::asked(&request.name, trace_context(&context.meta));
        let answer = self.called(request, context).instrument(span.clone()).await;
        record_answer(&span, &answer);
        answer
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        self.task_state(&self.principal(&context)?, &request.task_id).await
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.answer_task(&self.principal(&context)?, &request.task_id, request.input_responses).await
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.end_task(&self.principal(&context)?, &request.task_id).await
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        self.directly::<ListResourcesRequestMethod>()?;
        let meta = Some(self.list(List::Resources, request, &context).await?);
        Ok(ListResourcesResult { meta, ..Default::default() })
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        self.directly::<ListResourceTemplatesRequestMethod>()?;
        let meta = Some(self.list(List::ResourceTemplates, request, &context).await?);
        Ok(ListResourceTemplatesResult { meta, ..Default::default() })
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        self.directly::<ListPromptsRequestMethod>()?;
        let meta = Some(self.list(List::Prompts, request, &context).await?);
        Ok(ListPromptsResult { meta, ..Default::default() })
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        self.directly::<ReadResourceRequestMethod>()?;
        self.read_directly(request, &context).await
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        self.directly::<GetPromptRequestMethod>()?;
        self.prompt_directly(request, &context).await
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        self.directly::<CompleteRequestMethod>()?;
        self.complete_directly(request, &context).await
    }

    #[expect(deprecated)]
    async fn set_level(
        &self,
        request: rmcp::model::SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if calls_again(&context) {
            return Err(ErrorData::method_not_found::<rmcp::model::SetLevelRequestMethod>());
        }
        self.directly::<rmcp::model::SetLevelRequestMethod>()?;
        let level = serde_json::to_value(request.level).unwrap_or_default();
        self.set_least(level.as_str().unwrap_or_default());
        Ok(())
    }

    async fn subscribe(
        &self,
        request: rmcp::model::SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.directly::<rmcp::model::SubscribeRequestMethod>()?;
        self.subscribe_directly(&request.uri, &context, true).await
    }

    async fn unsubscribe(
        &self,
        request: rmcp::model::UnsubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.directly::<rmcp::model::UnsubscribeRequestMethod>()?;
        self.subscribe_directly(&request.uri, &context, false).await
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.follow_changes(&context);
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        self.accepted(requested)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        self.tell_changes(context).await
    }
}

impl Front {
    async fn called(
        &self,
        mut request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let principal = self.principal(&context)?;
        let in_message = request.arguments.take();
        let arguments = http::arguments(&context.extensions).or(in_message).unwrap_or_default();
        let tool = match request.name.as_ref() {
            "run_code" => Tool::RunCode,
            "get_result" => Tool::GetResult,
            "search_tools" => {
                let client = client(&principal, &context);
                return Ok(self.search_tools(&principal, &arguments, client).await.into());
            }
            "health" if self.engine.settings().health_tool => {
                return Ok(self.health(&principal).await.into());
            }
            other => {
                let other = beginning(other);
                let told = format!("unknown tool {other:?}: there are run_code, search_tools and get_result");
                let unknown = || ErrorData::invalid_params(told, None);
                request.arguments = Some(arguments);
                return self.call_directly(request, &context).await?.ok_or_else(unknown);
            }
        };
        if let Some(state) = request.request_state {
            let said = (state.as_str(), request.input_responses.unwrap_or_default());
            return Ok(self.resume(&principal, tool, &arguments, said, &context).await);
        }
        Ok(match tool {
            Tool::RunCode => self.run_code(&principal, &arguments, &context).await,
            Tool::GetResult => match self.outcome(&principal, &arguments, &context).await {
                Some(response) => response,
                None => self.get_result(&principal, &arguments).await.into(),
            },
        })
    }

    /// Our own tools, which are always the same.
    fn own_tools(&self) -> Vec<rmcp::model::Tool> {
        let mut tools = tools::all();
        if self.engine.settings().health_tool {
            tools.push(tools::health());
        }
        tools
    }

    async fn health(&self, principal: &Principal) -> CallToolResult {
        result_of_json(self.engine.ask(principal, None, Request::Health).await)
    }

    /// What exists only where AI clients have a server directly.
    fn directly<M: ConstString>(&self) -> Result<(), ErrorData> {
        if self.has_direct() { Ok(()) } else { Err(ErrorData::method_not_found::<M>()) }
    }

    /// The same for another connection.
    fn anew(&self) -> Self {
        Self { direct: self.direct.anew(), ..self.clone() }
    }

    async fn search_tools(
        &self,
        principal: &Principal,
        arguments: &JsonObject,
        client: Option<ClientName>,
    ) -> CallToolResult {
        match search_request(arguments) {
            Ok(search) => result_of_json(self.engine.ask(principal, client, Request::Search(search)).await),
            Err(wrong) => invalid(&wrong.to_string()),
        }
    }

    async fn get_result(&self, principal: &Principal, arguments: &JsonObject) -> CallToolResult {
        match read_result_request(arguments) {
            Ok(request) => result_of_json(self.engine.ask(principal, None, request).await),
            Err(wrong) => invalid(&wrong.to_string()),
        }
    }
}

/// The result of a tool that answers with a JSON value.
fn result_of_json(response: Response) -> CallToolResult {
    match response {
        Response::Json(value) => CallToolResult::structured(value),
        Response::Invalid(message) => invalid(&message),
        _ => invalid("the request broke"),
    }
}

/// Under which name the policy and the audit log know the client.
fn client(principal: &Principal, context: &RequestContext<RoleServer>) -> Option<ClientName> {
    principal.client(context.client_info().map(|info| info.name).as_deref())
}

/// Whether the client is of the era in which a server asks by its answer.
fn calls_again(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28)
}

fn invalid(message: &str) -> CallToolResult {
    CallToolResult::structured_error(json!({
        "status": "error", "error": {"type": "InvalidRequest", "message": message},
    }))
}

/// What a client says of its trace.
fn trace_context(meta: &RequestMetaObject) -> TraceContext {
    TraceContext {
        parent: meta.get_traceparent().map(str::to_owned),
        state: meta.get_tracestate().map(str::to_owned),
    }
}

fn record_answer(span: &Span, answer: &Result<CallToolResponse, ErrorData>) {
    match answer {
        Ok(CallToolResponse::Complete(result)) if result.is_error == Some(true) => {
            traces::fail(span, "tool_error");
        }
        Ok(_) => {}
        Err(error) => traces::answered_with_error(span, error.code.0),
    }
}
