//! An AI client: the rmcp library, connected to `lockhouse serve` over standard input and output.

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

use crate::person::Person;

const HANGS_AFTER: Duration = Duration::from_secs(60);
/// A server that is asked to end has no reason to take longer, whatever its programs wait for.
const ENDS_WITHIN: Duration = Duration::from_secs(20);
const LINE_BYTES_MAX: usize = 64 * 1024 * 1024;

struct Client(Person);

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
        self.0.note(note);
    }
}

/// A connected AI client.
pub struct Session {
    service: RunningService<RoleClient, Client>,
    child: Child,
    stderr: JoinHandle<String>,
    said: Arc<Mutex<Vec<u8>>>,
}

/// A server that has ended.
#[derive(Debug)]
pub struct Ended {
    /// Exit status; `None` if a signal ended it.
    pub status: Option<i32>,
    /// Standard error, all of it.
    pub stderr: String,
}

impl Session {
    /// The lifecycle of today: `server/discover`.
    #[must_use]
    pub fn latest() -> ClientLifecycleMode {
        ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
    }

    /// Starts the command and connects to it.
    ///
    /// # Panics
    /// If that fails or hangs.
    pub async fn connect(command: Command, lifecycle: ClientLifecycleMode) -> Self {
        Self::connect_as(Person::default(), command, lifecycle).await
    }

    /// Starts the command and connects to it, with somebody to be asked.
    ///
    /// # Panics
    /// If that fails or hangs.
    pub async fn connect_as(person: Person, command: Command, lifecycle: ClientLifecycleMode) -> Self {
        let mut command = tokio::process::Command::from(command);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().expect("the program starts");
        let (stdout, stdin) = (child.stdout.take().expect("stdout"), child.stdin.take().expect("stdin"));
        let mut errors = child.stderr.take().expect("stderr");
        let said = Arc::new(Mutex::new(Vec::new()));
        let so_far = said.clone();
        let stderr = tokio::spawn(async move {
            let mut part = vec![0; 4096];
            while let Ok(count @ 1..) = errors.read(&mut part).await {
                so_far.lock().extend_from_slice(&part[..count]);
            }
            text_of(&so_far)
        });
        let transport = AsyncRwTransport::new_client(stdout, stdin).with_max_line_length(LINE_BYTES_MAX);
        let connecting =
            in_time("the handshake", Client(person).serve_with_lifecycle(transport, lifecycle)).await;
        match connecting {
            Ok(service) => Self { service, child, stderr, said },
            Err(error) => {
                drop(child);
                panic!("no connection: {error}; {}", stderr.await.unwrap_or_default());
            }
        }
    }

    /// The process of the server.
    ///
    /// # Panics
    /// If it has ended.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id().expect("a process that has not ended")
    }

    /// Standard error, as far as it was read.
    #[must_use]
    pub fn said(&self) -> String {
        text_of(&self.said)
    }

    /// What the server has said so far, once these words are among it: its log may be read a moment after its answer.
    ///
    /// # Panics
    /// If it does not say them in time.
    pub async fn says(&self, words: &str) -> String {
        crate::wait_until(&format!("the log says {words:?}"), async || {
            Some(self.said()).filter(|said| said.contains(words))
        })
        .await
    }

    /// Asks the server to load its configuration again, and waits until it says that it did, or that it did not: what it
    /// said since.
    ///
    /// # Panics
    /// If it says neither.
    pub async fn reload(&self) -> String {
        let before = self.said().len();
        nix::sys::signal::kill(Pid::from_raw(self.pid() as i32), Signal::SIGHUP).expect("a signal");
        crate::wait_until("the configuration is loaded", async || {
            let said = self.said()[before..].to_owned();
            (said.contains("the configuration ") && said.ends_with('\n')).then_some(said)
        })
        .await
    }

    /// For calls that the test itself shapes.
    #[must_use]
    pub fn peer(&self) -> &Peer<RoleClient> {
        self.service.peer()
    }

    /// What the server said of itself in the handshake.
    ///
    /// # Panics
    /// If it said nothing.
    #[must_use]
    pub fn server(&self) -> (String, Option<String>) {
        let server = self.service.peer_info().expect("what the server said");
        (server.protocol_version.to_string(), server.instructions.clone())
    }

    /// The tools, as the AI client gets them.
    ///
    /// # Panics
    /// If they cannot be listed.
    pub async fn tools(&self) -> Vec<Tool> {
        in_time("tools/list", self.service.peer().list_all_tools()).await.expect("the tools")
    }

    /// Calls a tool of Lockhouse.
    ///
    /// # Errors
    /// A protocol error, or the end of the connection.
    pub async fn call(&self, tool: &str, arguments: Value) -> Result<CallToolResult, ServiceError> {
        call(self.service.peer(), tool, arguments).await
    }

    /// The answer to a program.
    ///
    /// # Panics
    /// If there is none.
    pub async fn run_code(&self, language: &str, code: &str) -> Value {
        let arguments = json!({"language": language, "code": code});
        structured(self.call("run_code", arguments).await)
    }

    /// The answer to a program of a session.
    ///
    /// # Panics
    /// If there is none.
    pub async fn run_in(&self, session: &str, language: &str, code: &str) -> Value {
        self.run_with(json!({"language": language, "code": code, "session": session})).await
    }

    /// The answer to a program with these arguments.
    ///
    /// # Panics
    /// If there is none.
    pub async fn run_with(&self, arguments: Value) -> Value {
        structured(self.call("run_code", arguments).await)
    }

    /// The answer to a program with these arguments, while the test goes on.
    #[must_use]
    pub fn start_with(&self, arguments: Value) -> JoinHandle<Result<CallToolResult, ServiceError>> {
        let peer = self.service.peer().clone();
        tokio::spawn(async move { call(&peer, "run_code", arguments).await })
    }

    /// The answer to a program, while the test goes on.
    #[must_use]
    pub fn start_code(&self, language: &str, code: &str) -> JoinHandle<Result<CallToolResult, ServiceError>> {
        let (peer, arguments) = (self.service.peer().clone(), json!({"language": language, "code": code}));
        tokio::spawn(async move { call(&peer, "run_code", arguments).await })
    }

    /// The answer to a program whose servers may ask the person of this client, in the way of the era.
    ///
    /// # Panics
    /// If there is none.
    pub async fn run_asking(&self, code: &str) -> Value {
        structured(self.call_asking("run_code", json!({"language": "python", "code": code})).await)
    }

    /// Calls a tool of Lockhouse, which may ask the person of this client, in the way of the era.
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

    /// What `search_tools` finds.
    ///
    /// # Panics
    /// If there is no answer.
    pub async fn search_tools(&self, query: &str) -> Value {
        structured(self.call("search_tools", json!({"query": query})).await)
    }

    /// Closes the connection, as an AI client does that ends, and waits for the server's end.
    ///
    /// # Panics
    /// If it does not end.
    pub async fn close(mut self) -> Ended {
        self.service.close().await.expect("the connection closes");
        self.ended().await
    }

    /// Asks the server to end, with the connection open, and waits for its end.
    ///
    /// # Panics
    /// If it does not end.
    pub async fn terminate(self) -> Ended {
        nix::sys::signal::kill(Pid::from_raw(self.pid() as i32), Signal::SIGTERM).expect("a signal");
        self.ended().await
    }

    /// Kills the server, which can then end nothing itself, and waits for its end.
    ///
    /// # Panics
    /// If it does not end.
    pub async fn kill(self) -> Ended {
        crate::kill(self.pid());
        self.ended().await
    }

    async fn ended(mut self) -> Ended {
        let ending = async {
            let status = self.child.wait().await.expect("a status").code();
            Ended { status, stderr: self.stderr.await.expect("its text") }
        };
        tokio::time::timeout(ENDS_WITHIN, ending).await.expect("the server ends")
    }
}

fn text_of(said: &Mutex<Vec<u8>>) -> String {
    String::from_utf8_lossy(&said.lock()).into_owned()
}

async fn call(peer: &Peer<RoleClient>, tool: &str, arguments: Value) -> Result<CallToolResult, ServiceError> {
    let arguments: model::JsonObject = arguments.as_object().cloned().unwrap_or_default();
    let parameters = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
    match in_time("tools/call", peer.call_tool_once(parameters)).await? {
        CallToolResponse::Complete(result) => Ok(*Box::new(result)),
        other => panic!("not a result: {other:?}"),
    }
}

/// The structured content of a result.
///
/// # Panics
/// If there is none.
#[must_use]
pub fn structured(result: Result<CallToolResult, ServiceError>) -> Value {
    result.expect("a result").structured_content.expect("structured content")
}

async fn in_time<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(HANGS_AFTER, future).await.unwrap_or_else(|_| panic!("hung: {what}"))
}
