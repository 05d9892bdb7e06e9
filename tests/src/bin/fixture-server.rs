//! The fixture server: an upstream MCP server over standard input and output, whose tools misbehave on request.
//!
//! Flags select misbehaviour before any tool is called: `--fail-start` exits at once, `--hang-start` never answers,
//! and `--legacy-only`, `--crash-on-discover` and `--one-era` change the answer to `server/discover`. `--notes=FILE`
//! records each call before it is executed, `--only-tools` announces neither resources nor prompts, and `--asking`
//! adds tools that ask the user.
#![allow(clippy::expect_used, reason = "a program for tests, which ends with a panic")]

#[path = "../fixture/elicitation_tools.rs"]
mod elicitation_tools;
#[path = "../fixture/resources_and_prompts.rs"]
mod resources_and_prompts;
#[path = "../fixture/tools.rs"]
mod tools;

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, DiscoverRequestMethod, DiscoverResult, ErrorCode,
    GetPromptRequestParams, GetPromptResponse, Implementation, InitializeRequestParams, InitializeResult,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities,
    ServerConfig,
};
use rmcp::service::{RequestContext, ServerInitializeError};
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use tokio::io::AsyncReadExt as _;

/// How the server answers `server/discover`, by which an AI client negotiates the protocol version.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Discover {
    Answer,
    /// The server answers `server/discover` with the error "method not found", as servers do that are older than this
    /// request.
    MethodNotFound,
    /// The server crashes when it receives `server/discover`, as some servers do that expect `initialize` as the first
    /// message.
    Crash,
    /// The server answers `server/discover` with the error "method not found", and then refuses `initialize` too. Some
    /// servers do that because they choose the protocol version by the first message.
    ThenRefuseInitialize,
}

struct Fixture {
    discover: Discover,
    discovered: AtomicBool,
    only_tools: bool,
    asking: bool,
    calls: tools::Calls,
    /// The file in which each call is recorded; `None` if calls are not recorded.
    notes: Option<std::fs::File>,
}

impl ServerHandler for Fixture {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools();
        let capabilities = match self.only_tools {
            true => capabilities.build(),
            false => capabilities.enable_resources().enable_prompts().build(),
        };
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("fixture", env!("CARGO_PKG_VERSION")))
    }

    async fn discover(&self, _context: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        self.discovered.store(true, Ordering::Relaxed);
        match self.discover {
            Discover::Answer => Ok(DiscoverResult::from_server_info(
                self.supported_protocol_versions().into_owned(),
                self.get_info(),
            )),
            Discover::Crash => std::process::exit(70),
            Discover::MethodNotFound | Discover::ThenRefuseInitialize => {
                Err(ErrorData::method_not_found::<DiscoverRequestMethod>())
            }
        }
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        if self.discover == Discover::ThenRefuseInitialize && self.discovered.load(Ordering::Relaxed) {
            let message = "this connection has left the era of initialize";
            return Err(ErrorData::new(ErrorCode::UNSUPPORTED_PROTOCOL_VERSION, message, None));
        }
        context.peer.set_peer_info(request.clone());
        self.negotiate_initialize(&request)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let asking = self.asking.then(elicitation_tools::list).into_iter().flatten();
        Ok(ListToolsResult::with_all_items(tools::list().into_iter().chain(asking).collect()))
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        self.calls.record("resources/list");
        Ok(resources_and_prompts::resources(request))
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(resources_and_prompts::templates())
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        self.calls.record("resources/read");
        resources_and_prompts::read(&request.uri).map(Into::into)
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        self.calls.record("prompts/list");
        Ok(resources_and_prompts::prompts())
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        self.calls.record("prompts/get");
        resources_and_prompts::prompt(&request).map(Into::into)
    }

    /// Answers a tool call. Each call runs in a task of its own, so that a slow call does not delay others.
    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.calls.record(&request.name);
        self.record_call(&request);
        if self.asking
            && let Some(answer) = elicitation_tools::call(&request, &self.calls, &context).await
        {
            return answer;
        }
        let arguments = request.arguments.unwrap_or_default();
        match tools::call(&request.name, &arguments, &self.calls, &context).await {
            Some(result) => Ok(result.into()),
            None => Err(ErrorData::invalid_params(format!("unknown tool {}", request.name), None)),
        }
    }
}

impl Fixture {
    /// Records a tool call with one write before it is executed, so that the record survives if this process is
    /// killed.
    fn record_call(&self, request: &CallToolRequestParams) {
        use std::io::Write as _;
        let Some(mut notes) = self.notes.as_ref() else { return };
        let note = serde_json::json!({"tool": request.name, "arguments": request.arguments});
        if let Err(error) = notes.write_all(format!("{note}\n").as_bytes()) {
            eprintln!("fixture-server: {error}");
            std::process::exit(74);
        }
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let mut discover = Discover::Answer;
    let (mut only_tools, mut asking) = (false, false);
    let mut notes = None;
    for flag in std::env::args().skip(1) {
        if let Some(path) = flag.strip_prefix("--notes=") {
            match std::fs::OpenOptions::new().create(true).append(true).open(path) {
                Ok(file) => notes = Some(file),
                Err(error) => return fail(&error),
            }
            continue;
        }
        match flag.as_str() {
            "--fail-start" => {
                eprintln!("fixture-server: told to fail at start");
                return ExitCode::from(3);
            }
            "--hang-start" => return hang().await,
            "--legacy-only" => discover = Discover::MethodNotFound,
            "--crash-on-discover" => discover = Discover::Crash,
            "--only-tools" => only_tools = true,
            "--asking" => asking = true,
            "--one-era" => discover = Discover::ThenRefuseInitialize,
            _ => {
                eprintln!("fixture-server: unknown flag {flag}");
                return ExitCode::from(2);
            }
        }
    }
    let (discovered, calls) = (AtomicBool::new(false), tools::Calls::default());
    let fixture = Fixture { discover, discovered, only_tools, asking, calls, notes };
    match fixture.serve(rmcp::transport::stdio_pipes()).await {
        Ok(running) => match running.waiting().await {
            Ok(_) => ExitCode::SUCCESS,
            Err(error) => fail(&error),
        },
        // A client that disconnects before the handshake is not an error.
        Err(ServerInitializeError::ConnectionClosed(_)) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

/// Reads all input without answering, until the client closes the connection. Simulates a server that hangs at its
/// start.
async fn hang() -> ExitCode {
    let mut stdin = tokio::io::stdin();
    let mut discarded = [0; 4096];
    while matches!(stdin.read(&mut discarded).await, Ok(1..)) {}
    ExitCode::SUCCESS
}

fn fail(error: &dyn std::error::Error) -> ExitCode {
    eprintln!("fixture-server: {error}");
    ExitCode::FAILURE
}
