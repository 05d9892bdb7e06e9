//! The front: the MCP server for AI clients, over standard input and output and over HTTP.
//!
//! It serves the tools `run_code`, `search_tools` and `get_result`, and the tools of servers that AI clients call
//! without code.
//!
//! # Parts
//!
//! - [`serve_stdio`] serves one AI client over standard input and output. [`http`] is the HTTP server: each request
//!   passes the host check, authentication, the body with its cost, the drain, and its MCP session. It runs in a sealed
//!   process, which gets settings and sockets from the engine's (`http/front_setup.rs`, `http/sockets.rs`).
//! - `http/tls.rs` is TLS without the private key, which [`http::Signer`] has in a process of its own.
//! - `tool_definitions.rs` and `tool_arguments.rs`: Lockhouse's own tools and their arguments.
//! - `runs.rs` follows runs for requests: `run_follower.rs` one request, `suspended_requests.rs` those that were
//!   answered with a question, `tasks.rs` those that are MCP tasks. `elicitation.rs` and `elicitation_queue.rs` ask the
//!   user.
//! - `answer.rs` converts an answer to an MCP result, without I/O. [`AnswerForm`] is the form of a client.
//! - `direct.rs` has the direct tools, whose results stay text, and notifications of changed lists.
//! - `access.rs` takes the credential from a request, asks the engine about it, and formats the response to a refused
//!   one.
//!
//! # Invariants
//!
//! - Nothing here names the gate, an upstream server's connection, a worker or the audit log. The crate knows the
//!   messages, the link and MCP, and not the engine crate.
//! - Nothing here authenticates. The engine verifies a credential and answers with an access.
//! - No HTTP server opens a file, starts a thread or has a private key: its process is sealed before it accepts the first
//!   connection.
//! - Nothing here records a metric or changes the lifecycle of the process. A front counts, and reports to the engine.
//! - No run and no direct call belongs to a front. It finds one by handle or id, for its owner.
//! - No answer is cut in a way that a program could take for the whole.
//! - No unauthenticated peer can hold a connection, a body or a TLS handshake for ever.
//! - No listen address is opened to other hosts without authentication and TLS, unless the configuration says so.
//!
//! # Decisions
//!
//! - An answer is a value or a sentence. The first text block of a run is its whole value as JSON and nothing else;
//!   everything else begins with a sentence. So a program that parses the block fails instead of computing with a part.
//!   The form of an answer is configured, never derived from the name that a client reports.
//! - The description of `run_code` depends on who asks: it lists what the policy and the grant permit. Clients are told
//!   of changes by a digest of this text, at most once a second. The tools of an earlier connection are used, because a
//!   list must not wait for servers.
//! - `run_code` has no annotations. `readOnlyHint` would be a claim about every tool that a program may call.
//! - The fixed text of the tools stays below 450 tokens, because it is a part of every model's context.
//! - If the process on a client's pipe ends, most AI clients do not start it again in the same conversation. With a
//!   shared engine, that process has this crate only, and the engine may end: requests that only read are repeated,
//!   others get an error.
#![allow(missing_docs, reason = "only the crates of this workspace use it; obvious fields need no comment")]

mod access;
mod answer;
mod content_blocks;
mod direct;
mod elicitation;
mod elicitation_queue;
pub mod http;
mod progress_notifications;
mod request_claims;
mod runs;
mod stdio;
mod tool_arguments;
mod tool_definitions;

use std::sync::Arc;
use std::time::Duration;

use axum::http::request::Parts;
use lockhouse_link::{EngineClient, GrantedAccess};
use lockhouse_mcp::server::client_message::Parameters;
use lockhouse_mcp::server::{ClientConnection, RequestContext, RequestHandler, method_not_found};
use lockhouse_messages::{
    FrontSettings, ListKind, RESULT_URI_PREFIX, Request, Response, SpanOutcome, ToolCallSpan, TraceContext,
};
use lockhouse_protocol::ResultHandle;
use rmcp::model::{
    CacheScope, CallToolRequestParams, ClientCapabilities, ErrorData, Implementation, JsonObject,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResult, RequestMetaObject, ResourcesCapability,
    ServerCapabilities, ServerConfig, ServerResult,
};
use tokio_util::sync::CancellationToken;

use answer::{ToolAnswer, ToolResponse};
pub use lockhouse_messages::{BuiltinTool, BuiltinTools};

pub use answer::{AnswerForm, AnswerSettings, UnknownForm};
use direct::Direct;
use runs::{RunTool, SuspendedRequests};
pub use stdio::{StdioError, serve_stdio};
use tool_arguments::{search_request, truncate_name};

/// How long an AI client may cache the tool list, in milliseconds. The list contains the names of the
/// upstream servers and tools that the client may use.
const TOOLS_TTL_MS: u64 = 60_000;

/// The key in `_meta` of a request under which the AI client Codex sends the id of its own call (`PROGRAM_CALL_KEY`),
/// and the prefix of this id if a program of the client makes the call (`PROGRAM_CALL_PREFIX`).
const PROGRAM_CALL_KEY: &str = "callId";
const PROGRAM_CALL_PREFIX: &str = "exec-";

/// Returns the size in bytes of the definitions of Lockhouse's own tools, as JSON that a model reads, with default
/// settings and without the list of upstream servers and tools.
pub fn definitions_bytes() -> usize {
    let mut tools =
        tool_definitions::all(AnswerForm::default(), &BuiltinTools::default(), "", Duration::from_secs(300));
    // Metadata is for the AI client and not part of the model's context.
    tools.iter_mut().for_each(|tool| tool.meta = None);
    serde_json::to_string(&tools).map_or(0, |text| text.len())
}

/// Handles the MCP requests of one AI client: one instance for each stdio connection, and over HTTP one for each
/// request or MCP session.
#[derive(Clone)]
struct McpHandler {
    engine: EngineClient,
    transport: ClientTransport,
    /// Requests that were answered with a question; the AI client repeats each of them with the user's answer.
    suspended: SuspendedRequests,
    /// The form in which each AI client receives answers, and how long its requests wait.
    answers: Arc<AnswerSettings>,
    /// State for upstream servers that are exposed to AI clients directly.
    direct: Direct,
    /// Cancelled when the process stops serving AI clients.
    closing: CancellationToken,
}

/// The transport over which an AI client is connected.
#[derive(Clone)]
enum ClientTransport {
    /// Standard input and output. All messages come from the client with this access.
    Stdio(GrantedAccess),
    /// HTTP. The extensions of each request contain its access.
    Http,
}

impl ClientTransport {
    /// Returns the access of a message, which came with an HTTP request with this head. `None` if that was not authenticated.
    fn access(&self, http: Option<&Arc<Parts>>) -> Option<GrantedAccess> {
        match self {
            Self::Stdio(access) => Some(access.clone()),
            Self::Http => http?.extensions.get::<GrantedAccess>().cloned(),
        }
    }
}

impl McpHandler {
    fn new(
        engine: EngineClient,
        transport: ClientTransport,
        answers: AnswerSettings,
        closing: CancellationToken,
    ) -> Self {
        Self {
            engine,
            transport,
            answers: Arc::new(answers),
            suspended: SuspendedRequests::default(),
            direct: Direct::default(),
            closing,
        }
    }

    /// Returns how long a request of an AI client waits for its run, unless its argument `wait_s` says otherwise.
    fn default_wait(&self, access: &GrantedAccess) -> Duration {
        let wait = self.engine.settings().wait;
        self.answers.wait_limit(access).map_or(wait, |limit| wait.min(limit))
    }

    /// Returns the form of the answer to a request. A program that the AI client runs gets the form `value` instead of the
    /// one for models. Codex shows this in the id of its call. The client could forge the id, but has no advantage: the
    /// result only permits longer values in the answer.
    fn answer_form(&self, access: &GrantedAccess, context: &RequestContext) -> AnswerForm {
        match self.answers.form_for(access) {
            AnswerForm::Text if is_program_call(context) => AnswerForm::Value,
            form => form,
        }
    }

    /// Whether a program that the AI client runs makes this request, rather than the model, and gets the form `value`.
    fn is_from_program(&self, access: &GrantedAccess, context: &RequestContext) -> bool {
        self.answer_form(access, context) == AnswerForm::Value && is_program_call(context)
    }

    /// Returns the access of a request, or an error if the request was not authenticated.
    fn access(&self, context: &RequestContext) -> Result<GrantedAccess, ErrorData> {
        let admitted = self.transport.access(context.http.as_ref());
        admitted.ok_or_else(|| ErrorData::internal_error("the request was not authenticated", None))
    }
}

impl RequestHandler for McpHandler {
    fn info(&self) -> ServerConfig {
        let mut capabilities =
            ServerCapabilities::builder().enable_tools().enable_tool_list_changed().enable_tasks().build();
        if self.has_direct() {
            direct::add_capabilities(&mut capabilities);
        } else if self.engine.settings().has_files {
            // Files that runs returned are resources, which links in answers name.
            capabilities.resources = Some(ResourcesCapability::default());
        }
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("lockhouse", env!("CARGO_PKG_VERSION")))
            .with_instructions(self.instructions())
    }

    async fn serve(&self, parameters: Parameters, context: &RequestContext) -> Result<String, ErrorData> {
        match parameters {
            Parameters::CallTool(call) => self.call_tool(call, context).await,
            Parameters::ListTools(page) => self.list_tools(page, context).await,
            Parameters::GetTask(task) => {
                let task = self.get_task_state(&self.task_access(context)?, &task.task_id).await?;
                Ok(context.to_text(ServerResult::GetTaskResult(task)))
            }
            Parameters::UpdateTask(task) => {
                let access = self.task_access(context)?;
                self.send_task_input(&access, &task.task_id, task.input_responses).await?;
                Ok(context.to_text(ServerResult::task_ack(())))
            }
            Parameters::CancelTask(task) => {
                self.cancel_run(&self.task_access(context)?, &task.task_id).await?;
                Ok(context.to_text(ServerResult::task_ack(())))
            }
            Parameters::ListResources(page) => match self.has_only_files() {
                true => Ok(context.to_text(ListResourcesResult::default())),
                false => self.list(ListKind::Resources, page, context).await,
            },
            Parameters::ListResourceTemplates(page) => match self.has_only_files() {
                true => Ok(context.to_text(ListResourceTemplatesResult::default())),
                false => self.list(ListKind::ResourceTemplates, page, context).await,
            },
            Parameters::ReadResource(resource) => self.read_resource(resource, context).await,
            Parameters::Subscribe(resource) => self.set_subscription(&resource.uri, context, true).await,
            Parameters::Unsubscribe(resource) => self.set_subscription(&resource.uri, context, false).await,
            Parameters::ListPrompts(page) => self.list(ListKind::Prompts, page, context).await,
            Parameters::GetPrompt(prompt) => self.get_direct_prompt(prompt, context).await,
            Parameters::Complete(completion) => self.complete_direct(completion, context).await,
            Parameters::SetLevel(level) => self.set_log_level(&level),
            Parameters::Listen(subscription) => self.send_changes(&subscription.notifications, context).await,
            // The server answers these itself.
            Parameters::Initialize(_) | Parameters::Discover | Parameters::Ping => Ok("{}".to_owned()),
        }
    }

    fn begin(&self, connection: &ClientConnection, http: Option<&Arc<Parts>>) {
        self.follow_changes(connection, http);
    }
}

impl McpHandler {
    async fn list_tools(
        &self,
        page: Option<PaginatedRequestParams>,
        context: &RequestContext,
    ) -> Result<String, ErrorData> {
        if self.has_direct() {
            return self.list(ListKind::Tools, page, context).await;
        }
        let access = self.access(context)?;
        let tools = self.builtin_tools(&access, client_name(&access, context)).await;
        // The description of `run_code` lists the tools that this AI client may use.
        let list = ListToolsResult::with_all_items(tools).with_ttl_ms(TOOLS_TTL_MS);
        Ok(context.to_text(list.with_cache_scope(CacheScope::Private)))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: &RequestContext,
    ) -> Result<String, ErrorData> {
        let call = || ToolCallSpan {
            tool: request.name.clone().into_owned(),
            context: trace_context(&context.meta),
        };
        let span = self.engine.begin_span(call);
        let form = self.answer_form(&self.access(context)?, context);
        let answer = match &span {
            None => self.dispatch_tool(request, context).await,
            Some(span) => {
                let handler = Self { engine: span.engine(), ..self.clone() };
                handler.dispatch_tool(request, context).await
            }
        };
        let answer = answer.map(|response| response.into_mcp(form, &self.reader_name(), context));
        if let Some(span) = span {
            span.end(match &answer {
                Ok((_, outcome)) => *outcome,
                Err(error) => SpanOutcome::RpcError(error.code.0),
            });
        }
        answer.map(|(text, _)| text)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: &RequestContext,
    ) -> Result<String, ErrorData> {
        match request.uri.strip_prefix(RESULT_URI_PREFIX) {
            Some(handle) => {
                let file = self.read_result_file(&self.access(context)?, handle).await?;
                Ok(context.to_text(file))
            }
            None => self.read_direct_resource(request, context).await,
        }
    }

    /// Returns the access of a request about a task.
    ///
    /// # Errors
    /// The request was not authenticated, or its client does not know tasks.
    fn task_access(&self, context: &RequestContext) -> Result<GrantedAccess, ErrorData> {
        if !context.client_capabilities().is_some_and(|capabilities| capabilities.supports_tasks()) {
            let tasks = ClientCapabilities::builder().enable_tasks().build();
            return Err(ErrorData::missing_required_client_capability(tasks));
        }
        self.access(context)
    }

    /// Returns whether files that runs returned are the only resources.
    fn has_only_files(&self) -> bool {
        !self.has_direct() && self.engine.settings().has_files
    }
}

impl McpHandler {
    async fn dispatch_tool(
        &self,
        mut request: CallToolRequestParams,
        context: &RequestContext,
    ) -> Result<ToolResponse, ErrorData> {
        let access = self.access(context)?;
        let arguments = request.arguments.take().unwrap_or_default();
        let builtin_tools = self.engine.settings().tools;
        let tool = match builtin_tools.original_name(&request.name).unwrap_or_default() {
            "run_code" => RunTool::RunCode,
            "get_result" => RunTool::GetResult,
            "search_tools" => {
                let client = client_name(&access, context);
                return Ok(self.search_tools(&access, &arguments, client).await.into());
            }
            "health" => return Ok(self.health(&access).await.into()),
            _ => {
                let other = truncate_name(&request.name);
                let message = tool_definitions::unknown_tool_message(&other, &builtin_tools);
                let unknown = || ErrorData::invalid_params(message, None);
                request.arguments = Some(arguments);
                return self.call_direct_tool(request, context).await?.ok_or_else(unknown);
            }
        };
        if let Some(state) = request.request_state {
            let responses = request.input_responses.unwrap_or_default();
            return Ok(self.resume_request(&access, tool, &arguments, &state, responses, context).await);
        }
        Ok(match tool {
            RunTool::RunCode => self.run_code(&access, &arguments, context).await,
            RunTool::GetResult => self.get_result(&access, &arguments, context).await,
        })
    }

    /// Returns Lockhouse's own tools, including `health` if the configuration enables it. The description of `run_code`
    /// lists the servers and tools that the AI client may use.
    async fn builtin_tools(&self, access: &GrantedAccess, client: Option<String>) -> Vec<rmcp::model::Tool> {
        let catalogue = match self.engine.ask(access, client, Request::DescribeCatalogue).await {
            Response::Text(text) => text.unwrap_or_default(),
            other => {
                tracing::warn!("no list of servers: {}", other.into_failure().describe("the request"));
                String::new()
            }
        };
        let FrontSettings { tools, run_limit, .. } = self.engine.settings();
        tool_definitions::all(self.answers.form_for(access), &tools, &catalogue, run_limit)
    }

    /// Returns the name under which AI clients know the tool `get_result`.
    fn reader_name(&self) -> String {
        self.engine.settings().tools.exposed_name(BuiltinTool::GetResult)
    }

    /// Returns the instructions for models. Over stdio, they name the servers that code can use. Over HTTP, they name
    /// no servers, because a client may be permitted to use only some of them.
    fn instructions(&self) -> String {
        let settings = self.engine.settings();
        let servers = match &self.transport {
            ClientTransport::Stdio(_) => settings.code_servers.as_slice(),
            ClientTransport::Http => &[],
        };
        tool_definitions::instructions(servers, &settings)
    }

    async fn health(&self, access: &GrantedAccess) -> ToolAnswer {
        json_answer(ToolAnswer::Report, self.engine.ask(access, None, Request::Health).await)
    }

    /// Returns the error "method not found" unless the configuration exposes an upstream server to AI clients
    /// directly.
    fn require_direct_servers(&self, method: &str) -> Result<(), ErrorData> {
        if self.has_direct() { Ok(()) } else { Err(method_not_found(method)) }
    }

    /// Returns a handler for another connection. It shares the requests that wait for a user's answer, and
    /// has its own subscriptions.
    fn for_new_connection(&self) -> Self {
        Self { direct: Direct::default(), ..self.clone() }
    }

    async fn search_tools(
        &self,
        access: &GrantedAccess,
        arguments: &JsonObject,
        client: Option<String>,
    ) -> ToolAnswer {
        match search_request(arguments) {
            Ok(search) => {
                let found = self.engine.ask(access, client, Request::Search(search)).await;
                json_answer(ToolAnswer::Search, found)
            }
            Err(wrong) => ToolAnswer::invalid_request(&wrong.to_string()),
        }
    }

    /// Reads a file that a run of this AI client returned.
    async fn read_result_file(
        &self,
        access: &GrantedAccess,
        handle: &str,
    ) -> Result<ReadResourceResult, ErrorData> {
        let not_found = |message: String| ErrorData::resource_not_found(message, None);
        let handle = ResultHandle::new(handle).map_err(|error| not_found(error.to_string()))?;
        match self.engine.ask(access, None, Request::ReadFile { handle }).await {
            Response::File(file) => {
                let result = ReadResourceResult::new(vec![content_blocks::stored_file(file)]).with_ttl_ms(0);
                Ok(result.with_cache_scope(CacheScope::Private))
            }
            Response::Invalid(message) => Err(not_found(message)),
            other => Err(direct::request_error(other.into_failure(), "the request")),
        }
    }
}

/// Converts a response of the engine, which executes requests, to an answer for the AI client. A response
/// without JSON becomes an error.
fn json_answer(with_json: impl FnOnce(serde_json::Value) -> ToolAnswer, response: Response) -> ToolAnswer {
    match response {
        Response::Json(value) => with_json(value),
        other => ToolAnswer::failed_request(&other.into_failure(), "the request"),
    }
}

/// Returns the name under which the policy and the audit log know the AI client. `None` if the client has no name.
fn client_name(access: &GrantedAccess, context: &RequestContext) -> Option<String> {
    access.client(context.client_info().map(|info| info.name).as_deref())
}

/// Returns whether the AI client says that one of its programs makes this request, and not its model.
fn is_program_call(context: &RequestContext) -> bool {
    let id = context.meta.get(PROGRAM_CALL_KEY).and_then(serde_json::Value::as_str);
    id.is_some_and(|id| id.starts_with(PROGRAM_CALL_PREFIX))
}

/// Reads the W3C trace context (`traceparent`, `tracestate`) from a request's `_meta`.
fn trace_context(meta: &RequestMetaObject) -> Option<TraceContext> {
    Some(TraceContext {
        traceparent: meta.get_traceparent()?.to_owned(),
        tracestate: meta.get_tracestate().map(str::to_owned),
    })
}
