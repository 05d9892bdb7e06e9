//! An AI client built with the rmcp library, connected to `lockhouse serve` over standard input and output.

use parking_lot::Mutex;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use nix::sys::signal::Signal;
use nix::unistd::Pid;
use rmcp::handler::client::ClientHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientConfig, ElicitRequestParams, ElicitResult,
    ErrorData, Implementation, ProgressNotificationParam, ProtocolVersion, Tool,
};
use rmcp::service::{
    ClientLifecycleMode, ClientServiceExt, NotificationContext, Peer, RequestContext, RunningService,
    ServiceError,
};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::{RoleClient, model};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::process::Child;
use tokio::task::JoinHandle;

use crate::client_user::ClientUser;

const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);
/// The time limit of the server's shutdown, which running programs must not delay.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(20);
const LINE_BYTES_MAX: usize = 64 * 1024 * 1024;

struct Client(ClientUser);

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        ClientConfig::new(self.0.abilities.clone(), Implementation::new("lockhouse-tests", "0"))
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        self.0.answer(request).await
    }

    async fn on_progress(&self, note: ProgressNotificationParam, _context: NotificationContext<RoleClient>) {
        self.0.record_progress(note);
    }
}

/// A connected AI client, with the `lockhouse serve` process that it started.
pub struct Session {
    service: RunningService<RoleClient, Client>,
    child: Child,
    stderr: JoinHandle<String>,
    stderr_bytes: Arc<Mutex<Vec<u8>>>,
}

/// The exit status and standard error of a server that has exited.
#[derive(Debug)]
pub struct Ended {
    /// The exit status; `None` if a signal ended the server.
    pub status: Option<i32>,
    /// The complete standard error of the server.
    pub stderr: String,
}

impl Session {
    /// Returns how an AI client of the newest protocol version connects: with `server/discover`, without
    /// `initialize`.
    #[must_use]
    pub fn latest() -> ClientLifecycleMode {
        ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
    }

    /// Starts the server with `command` and connects to it as an AI client that cannot ask its user anything.
    ///
    /// # Panics
    /// If the handshake fails or hangs.
    pub async fn connect(command: Command, lifecycle: ClientLifecycleMode) -> Self {
        Self::connect_as(ClientUser::default(), command, lifecycle).await
    }

    /// Starts the server with `command` and connects to it as the AI client of the scripted user `person`.
    ///
    /// # Panics
    /// If the handshake fails or hangs.
    pub async fn connect_as(person: ClientUser, command: Command, lifecycle: ClientLifecycleMode) -> Self {
        let mut command = tokio::process::Command::from(command);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().expect("the program starts");
        let (stdout, stdin) = (child.stdout.take().expect("stdout"), child.stdin.take().expect("stdin"));
        let mut errors = child.stderr.take().expect("stderr");
        let stderr_bytes = Arc::new(Mutex::new(Vec::new()));
        let received = stderr_bytes.clone();
        let stderr = tokio::spawn(async move {
            let mut part = vec![0; 4096];
            while let Ok(count @ 1..) = errors.read(&mut part).await {
                received.lock().extend_from_slice(&part[..count]);
            }
            text_of(&received)
        });
        let transport = AsyncRwTransport::new_client(stdout, stdin).with_max_line_length(LINE_BYTES_MAX);
        let connecting =
            in_time("the handshake", Client(person).serve_with_lifecycle(transport, lifecycle)).await;
        match connecting {
            Ok(service) => Self { service, child, stderr, stderr_bytes },
            Err(error) => {
                drop(child);
                panic!("no connection: {error}; {}", stderr.await.unwrap_or_default());
            }
        }
    }

    /// Returns the process id of the server.
    ///
    /// # Panics
    /// If the server has exited.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id().expect("a process that has not ended")
    }

    /// Returns the server's log: its standard error, as far as the test has read it.
    #[must_use]
    pub fn log(&self) -> String {
        text_of(&self.stderr_bytes)
    }

    /// Waits until the server's log contains `words`, and returns the log so far. A log line may be written shortly
    /// after the answer to the request that it is about.
    ///
    /// # Panics
    /// If the log does not contain `words` in time.
    pub async fn wait_for_log(&self, words: &str) -> String {
        crate::wait_until(&format!("the log contains {words:?}"), async || {
            Some(self.log()).filter(|log| log.contains(words))
        })
        .await
    }

    /// Makes the server reload its configuration (SIGHUP) and waits for the log line about its success or failure.
    /// Returns the part of the log that follows the signal.
    ///
    /// # Panics
    /// If no such log line appears in time.
    pub async fn reload(&self) -> String {
        let before = self.log().len();
        nix::sys::signal::kill(Pid::from_raw(self.pid() as i32), Signal::SIGHUP).expect("a signal");
        crate::wait_until("the configuration is loaded", async || {
            let log_text = self.log()[before..].to_owned();
            (log_text.contains("the configuration ") && log_text.ends_with('\n')).then_some(log_text)
        })
        .await
    }

    /// Returns the rmcp peer of this AI client, for requests that the test builds itself.
    #[must_use]
    pub fn peer(&self) -> &Peer<RoleClient> {
        self.service.peer()
    }

    /// Returns the protocol version and the instructions that the server sent in the handshake.
    ///
    /// # Panics
    /// If the handshake contained no server information.
    #[must_use]
    pub fn server(&self) -> (String, Option<String>) {
        let server = self.service.peer_info().expect("server information");
        (server.protocol_version.to_string(), server.instructions.clone())
    }

    /// Returns the tools that the server lists to the AI client.
    ///
    /// # Panics
    /// If `tools/list` fails.
    pub async fn tools(&self) -> Vec<Tool> {
        in_time("tools/list", self.service.peer().list_all_tools()).await.expect("the tools")
    }

    /// Calls a tool of Lockhouse, such as `run_code`, and returns its result.
    ///
    /// # Errors
    /// A protocol error, or the end of the connection.
    pub async fn call(&self, tool: &str, arguments: Value) -> Result<CallToolResult, ServiceError> {
        call(self.service.peer(), tool, arguments).await
    }

    /// Runs code with `run_code` and returns the structured content of the result.
    ///
    /// # Panics
    /// If the call fails.
    pub async fn run_code(&self, language: &str, code: &str) -> Value {
        let arguments = json!({"language": language, "code": code});
        structured(self.call("run_code", arguments).await)
    }

    /// Runs code in the session `session` and returns the structured content of the result. The variables of a
    /// session persist between its runs.
    pub async fn run_in(&self, session: &str, language: &str, code: &str) -> Value {
        self.run_with(json!({"language": language, "code": code, "session": session})).await
    }

    /// Calls `run_code` with these arguments and returns the structured content of the result.
    ///
    /// # Panics
    /// If the call fails.
    pub async fn run_with(&self, arguments: Value) -> Value {
        structured(self.call("run_code", arguments).await)
    }

    /// Calls `run_code` with these arguments in a Tokio task, so that the test can go on meanwhile.
    #[must_use]
    pub fn start_with(&self, arguments: Value) -> JoinHandle<Result<CallToolResult, ServiceError>> {
        let peer = self.service.peer().clone();
        tokio::spawn(async move { call(&peer, "run_code", arguments).await })
    }

    /// Runs code with `run_code` in a Tokio task, so that the test can go on meanwhile.
    #[must_use]
    pub fn start_code(&self, language: &str, code: &str) -> JoinHandle<Result<CallToolResult, ServiceError>> {
        let (peer, arguments) = (self.service.peer().clone(), json!({"language": language, "code": code}));
        tokio::spawn(async move { call(&peer, "run_code", arguments).await })
    }

    /// Runs Python code with `run_code`. Elicitation requests of upstream servers are answered by the scripted user,
    /// in the form of the negotiated protocol version.
    ///
    /// # Panics
    /// If the call fails.
    pub async fn run_asking(&self, code: &str) -> Value {
        structured(self.call_asking("run_code", json!({"language": "python", "code": code})).await)
    }

    /// Calls a tool of Lockhouse. Elicitation requests are answered by the scripted user, in the form of the
    /// negotiated protocol version.
    ///
    /// # Errors
    /// A protocol error, or the end of the connection.
    pub async fn call_asking(
        &self,
        tool: &'static str,
        arguments: Value,
    ) -> Result<CallToolResult, ServiceError> {
        let arguments: model::JsonObject = arguments.as_object().cloned().unwrap_or_default();
        let parameters = CallToolRequestParams::new(tool).with_arguments(arguments);
        in_time(tool, self.service.call_tool_with_mrtr_max_rounds(parameters, 50)).await
    }

    /// Calls `search_tools` and returns the structured content of the result.
    ///
    /// # Panics
    /// If the call fails.
    pub async fn search_tools(&self, query: &str) -> Value {
        structured(self.call("search_tools", json!({"query": query})).await)
    }

    /// Closes the connection as an AI client that exits does, waits for the exit of the server, and returns its exit
    /// status and log.
    ///
    /// # Panics
    /// If the server does not exit in time.
    pub async fn close(mut self) -> Ended {
        self.service.close().await.expect("the connection closes");
        self.ended().await
    }

    /// Sends SIGTERM to the server while the connection is open, waits for its exit, and returns its exit status and
    /// log.
    ///
    /// # Panics
    /// If the server does not exit in time.
    pub async fn terminate(self) -> Ended {
        nix::sys::signal::kill(Pid::from_raw(self.pid() as i32), Signal::SIGTERM).expect("a signal");
        self.ended().await
    }

    /// Sends SIGKILL to the server, which prevents any cleanup, waits for its exit, and returns its exit status and
    /// log.
    ///
    /// # Panics
    /// If the server does not exit in time.
    pub async fn kill(self) -> Ended {
        crate::kill(self.pid());
        self.ended().await
    }

    async fn ended(mut self) -> Ended {
        let ending = async {
            let status = self.child.wait().await.expect("a status").code();
            Ended { status, stderr: self.stderr.await.expect("its text") }
        };
        tokio::time::timeout(SHUTDOWN_TIMEOUT, ending).await.expect("the server ends")
    }
}

fn text_of(stderr_bytes: &Mutex<Vec<u8>>) -> String {
    String::from_utf8_lossy(&stderr_bytes.lock()).into_owned()
}

async fn call(peer: &Peer<RoleClient>, tool: &str, arguments: Value) -> Result<CallToolResult, ServiceError> {
    let arguments: model::JsonObject = arguments.as_object().cloned().unwrap_or_default();
    let parameters = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
    match in_time("tools/call", peer.call_tool_once(parameters)).await? {
        CallToolResponse::Complete(result) => Ok(*Box::new(result)),
        other => panic!("not a result: {other:?}"),
    }
}

/// Returns the structured content of a tool result.
///
/// # Panics
/// If the call failed or has no structured content.
#[must_use]
pub fn structured(result: Result<CallToolResult, ServiceError>) -> Value {
    result.expect("a result").structured_content.expect("structured content")
}

async fn in_time<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(RESPONSE_TIMEOUT, future).await.unwrap_or_else(|_| panic!("hung: {what}"))
}
