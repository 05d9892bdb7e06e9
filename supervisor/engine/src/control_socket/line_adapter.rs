//! Serves connections with the JSON lines of version 1, which the commands of earlier versions and programs of users send:
//! translates each line to the request, and each response and event to its line. The lines are deprecated; docs/approvals.md
//! says until when they are accepted. A connection sends one request, or watches the questions about approvals.

use std::io::{Error, ErrorKind, Result};
use std::sync::Arc;
use std::time::Duration;

use interprocess::local_socket::tokio::Stream;
use lockhouse_link::{EngineClient, Exchange, ExchangeStep, GrantedAccess};
use lockhouse_messages::{
    ApprovalEvent, ApprovalInput, ApproverAnswer, Credential, EndedRuns, EndedSessions, Event, Input,
    InputSupport, OperatorRequest, OperatorResponse, Request, Response, WatcherRole,
};
use lockhouse_protocol::ResultHandle;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::HELLO_TIMEOUT;
use crate::front_connection::{NO_RESULT, OperatorPeer, connect_operator};
use crate::supervisor::Supervisor;

/// Version of the lines.
const VERSION: u32 = 1;
/// Maximum bytes of a line from a peer.
const LINE_BYTES_MAX: usize = 4 * 1024;
/// Maximum time in which a peer must read one line. After this time the connection is closed.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of lines that were read from a peer and wait to be processed.
const QUEUED_LINES_MAX: usize = 4;

/// A line that requests something. A `u32` in a variant is the version of the lines.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "requests of every version are accepted")]
enum RequestLine {
    ListSessions(u32),
    EndSession(String),
    EndSessionWithId(u64),
    EndSessions(u32),
    Health(u32),
    ListRuns(u32),
    EndRun(String),
    EndRuns(u32),
    Reload(u32),
    FindFile(String),
    ListResults(u32),
    ReadResult { handle: String, offset: u64 },
}

impl RequestLine {
    /// Returns the request that the line stands for.
    ///
    /// # Errors
    /// The handle in the line is not valid, for this reason.
    fn into_request(self) -> std::result::Result<OperatorRequest, &'static str> {
        let handle = |text: String, reason| ResultHandle::new(text).map_err(|_| reason);
        Ok(match self {
            Self::ListSessions(_) => OperatorRequest::ListSessions,
            Self::EndSession(name) => OperatorRequest::EndSessions(EndedSessions::Named(name)),
            Self::EndSessionWithId(id) => OperatorRequest::EndSessions(EndedSessions::Numbered(id)),
            Self::EndSessions(_) => OperatorRequest::EndSessions(EndedSessions::All),
            Self::Health(_) => OperatorRequest::Health,
            Self::ListRuns(_) => OperatorRequest::ListRuns,
            Self::EndRun(execution) => OperatorRequest::EndRuns(EndedRuns::One(execution)),
            Self::EndRuns(_) => OperatorRequest::EndRuns(EndedRuns::All),
            Self::Reload(_) => OperatorRequest::Reload,
            Self::FindFile(text) => OperatorRequest::FindFile(handle(text, "this is no handle")?),
            Self::ListResults(_) => OperatorRequest::ListResults,
            Self::ReadResult { handle: text, offset } => {
                OperatorRequest::ReadResult { handle: handle(text, NO_RESULT)?, offset }
            }
        })
    }
}

/// A line of a watcher.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum WatcherLine {
    Watch(u32),
    Observe(u32),
    Answer(ApproverAnswer),
}

impl WatcherLine {
    /// Returns the role that the line asks for. `None` for an answer, and for another version of the lines.
    fn role(&self) -> Option<WatcherRole> {
        match self {
            Self::Watch(VERSION) => Some(WatcherRole::Approver),
            Self::Observe(VERSION) => Some(WatcherRole::Observer),
            Self::Watch(_) | Self::Observe(_) | Self::Answer(_) => None,
        }
    }
}

/// A connection of an operator to the engine within this process.
struct LocalOperator {
    client: EngineClient,
    access: GrantedAccess,
}

/// Serves one connection until either end closes it.
pub(super) async fn serve(
    mut lines: BufReader<&Stream>,
    stream: &Stream,
    supervisor: &Arc<Supervisor>,
    operator: OperatorPeer,
) {
    let Ok(Ok(Some(first))) = timeout(HELLO_TIMEOUT, read_line(&mut lines)).await else { return };
    let closing = CancellationToken::new();
    let client = connect_operator(supervisor, operator, closing.clone());
    let _closing = closing.drop_guard();
    let Ok(access) = client.authenticate(Credential::Connection).await else { return };
    let operator = LocalOperator { client, access };
    if let Ok(request) = serde_json::from_str::<RequestLine>(&first) {
        let _ = operator.answer(stream, request).await;
        return;
    }
    let role = serde_json::from_str::<WatcherLine>(&first).ok().and_then(|line| line.role());
    match role {
        Some(role) => operator.watch((lines, stream), role).await,
        None => {
            let reason =
                format!("the first line must be {{\"watch\": {VERSION}}} in this version of lockhouse");
            let _ = send_event(stream, &ApprovalEvent::Refused { id: None, reason }).await;
        }
    }
}

impl LocalOperator {
    /// Answers the one request of a connection.
    async fn answer(&self, stream: &Stream, request: RequestLine) -> Result<()> {
        let response = match request.into_request() {
            Ok(request) => self.client.ask(&self.access, None, Request::Operator(request)).await,
            Err(reason) => Response::Operator(OperatorResponse::Refused { reason: reason.to_owned() }),
        };
        match response {
            Response::Operator(OperatorResponse::EndedSessions(names)) => {
                send(stream, &json!({"ended": names})).await
            }
            Response::Operator(response) => send(stream, &response).await,
            _ => Ok(()),
        }
    }

    async fn watch(&self, (mut lines, stream): (BufReader<&Stream>, &Stream), first_role: WatcherRole) {
        let (line_sender, mut received_lines) = mpsc::channel(QUEUED_LINES_MAX);
        // Reads in a separate future, so that a message to the peer never cancels a half-read line.
        let reading = async move {
            while let Ok(Some(line)) = read_line(&mut lines).await {
                if line_sender.send(line).await.is_err() {
                    return;
                }
            }
        };
        let conversing = async {
            let (request, abilities) = (Request::WatchApprovals(first_role), InputSupport::default());
            let mut exchange = self.client.open(&self.access, None, abilities, request).await;
            let (mut role, mut is_watching) = (first_role, false);
            loop {
                let event = tokio::select! {
                    step = exchange.next() => match step {
                        ExchangeStep::Event(Event::Approval(event)) => {
                            is_watching = true;
                            Some(event)
                        }
                        ExchangeStep::Event(_) => None,
                        ExchangeStep::Finished(_) => return,
                    },
                    // Later lines are answered after the first one.
                    Some(line) = received_lines.recv(), if is_watching => handle_line(&exchange, &mut role, &line),
                };
                let Some(event) = event else { continue };
                if send_event(stream, &event).await.is_err() {
                    return;
                }
            }
        };
        tokio::select! {
            () = reading => {}
            () = conversing => {}
        }
    }
}

/// Passes a later line of a watcher on: an answer, or another role. Returns the refusal of any other line.
fn handle_line(exchange: &Exchange, role: &mut WatcherRole, line: &str) -> Option<ApprovalEvent> {
    let refused = |reason: String| Some(ApprovalEvent::Refused { id: None, reason });
    let line = match serde_json::from_str(line) {
        Ok(line) => line,
        Err(error) => return refused(format!("this is no answer: {error}")),
    };
    match (WatcherLine::role(&line), line) {
        (_, WatcherLine::Answer(answer)) => exchange.send(Input::Approval(ApprovalInput::Answer(answer))),
        (Some(other), _) if other != *role => {
            *role = other;
            exchange.send(Input::Approval(ApprovalInput::SetRole(other)));
        }
        _ => return refused("this connection is watching already".to_owned()),
    }
    None
}

async fn send_event(stream: &Stream, event: &ApprovalEvent) -> Result<()> {
    match event {
        ApprovalEvent::Watching => send(stream, &json!({"watching": VERSION})).await,
        event => send(stream, event).await,
    }
}

/// Writes one message as a line of JSON.
async fn send(mut stream: &Stream, message: &impl Serialize) -> Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    let writing = stream.write_all(&line);
    timeout(WRITE_TIMEOUT, writing).await.unwrap_or_else(|_| Err(ErrorKind::TimedOut.into()))
}

/// Reads the next line, without its line feed. Returns `None` at the end of the stream. A line that is too long or has no
/// line feed is an error.
async fn read_line(from: &mut (impl AsyncBufRead + Unpin)) -> Result<Option<String>> {
    let mut line = Vec::new();
    let read = from.take(LINE_BYTES_MAX as u64 + 1).read_until(b'\n', &mut line).await?;
    if read == 0 {
        return Ok(None);
    }
    if line.pop() != Some(b'\n') {
        return Err(Error::new(ErrorKind::InvalidData, "a line is too long, or incomplete"));
    }
    String::from_utf8(line).map(Some).map_err(|error| Error::new(ErrorKind::InvalidData, error))
}
