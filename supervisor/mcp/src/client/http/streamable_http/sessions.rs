//! Requests in MCP sessions: a session that the server does not know any more is replaced by a new one, in which a request
//! that did not run is repeated.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rmcp::model::RequestId;
use tokio::time::timeout;

use super::super::mcp_session::{LOST, LOST_IN_CALL, SessionLoss, session_loss};
use super::super::request_head::RequestHead;
use super::super::session_state::Session;
use super::Connection;
use super::responses::{Answered, Rest, named_session};
use crate::answer_error::ResponseError;
use crate::client::conversation::ServerInput;
use crate::client::http_error::{HttpError, HttpErrorKind};
use crate::client::inbound_message::{CUT_OFF, JsonRpcResult, NOT_JSON, failed, offload_if_large};
use crate::client::initialized_line;

/// How long to wait for the server's response when a session is ended.
const DELETE_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a new session in place of a lost one may take.
const RENEWAL_TIMEOUT: Duration = Duration::from_secs(30);
const RENEWED_RECENTLY: &str = "it does not know the MCP session any more, and a new one was begun less than 10 s ago; the call was not made";

/// What came of one HTTP request.
enum Attempt {
    Answered(JsonRpcResult, Option<Rest>),
    /// The answer comes in the stream of the server's own messages.
    Accepted,
    /// The request did not run, because the server does not know the session.
    SessionLost,
}

impl Connection {
    /// Sends a request and returns its answer; `None` if the answer comes in the stream of the server's own messages.
    pub(super) async fn answered(
        self: &Arc<Self>,
        id: i64,
        head: &RequestHead<'_>,
        line: &[u8],
    ) -> Result<Option<Answered>, ResponseError> {
        let mut session = self.session.current();
        if head.method() == "initialize" {
            self.session.set_initialize(id, line);
        } else if self.session.is_lost() {
            session = self.renewed(&session).await?;
        }
        let mut attempt = self.attempt(id, head, &session, line).await?;
        if matches!(attempt, Attempt::SessionLost) {
            session = self.renewed(&session).await?;
            attempt = self.attempt(id, head, &session, line).await?;
        }
        match attempt {
            Attempt::Answered(answer, rest) => {
                let answer = match (answer, head.method()) {
                    (Ok(list), "tools/list") if head.is_modern() => self.accepted(list).await,
                    (answer, _) => answer,
                };
                Ok(Some((answer.map_err(ResponseError::Refused), rest)))
            }
            Attempt::Accepted => Ok(None),
            Attempt::SessionLost => Err(ResponseError::SessionLost),
        }
    }

    /// Takes note of the tools with header parameters in a list of tools. Returns the list without invalid ones.
    async fn accepted(self: &Arc<Self>, list: String) -> JsonRpcResult {
        let connection = self.clone();
        let accepted = offload_if_large(list.len(), move || connection.tools.accept(list)).await;
        accepted.map_or_else(|| failed(NOT_JSON), Ok)
    }

    async fn attempt(
        &self,
        id: i64,
        head: &RequestHead<'_>,
        session: &Session,
        line: &[u8],
    ) -> Result<Attempt, ResponseError> {
        let permit = self.posts.acquire().await.map_err(|_| ResponseError::Closed)?;
        let response = self.post(head, session, line).await?;
        // An event stream may stay open as long as the connection.
        drop(permit);
        let status = response.status();
        if !status.is_success() {
            let (body, fault) = self.exchange.read_refusal(response, status).await;
            let has_session = session.is_named() && !head.is_modern();
            let loss = session_loss(status, &body, Some(id), has_session);
            return match loss.filter(|_| !head.is_handshake()) {
                Some(loss) => self.lose_session(loss, head, session),
                None => Err(self.refusal(head, status, &body, fault).await),
            };
        }
        let named = named_session(&response);
        let answered = self.read_answer(response, id, session).await?;
        let Some((answer, rest)) = answered else { return Ok(Attempt::Accepted) };
        match (&answer, head.method()) {
            (Ok(result), "initialize") => _ = self.session.begin(named, result),
            (Ok(_), "server/discover") => self.session.set_version(head.protocol_version()),
            _ => {}
        }
        Ok(Attempt::Answered(answer, rest))
    }

    /// Handles the refusal of a request because the server does not know its session. Only a request that did not run is
    /// repeated. From protocol version 2026-07-28 on, which has no sessions, the server must have been replaced by an older
    /// one, so the connection is opened again.
    fn lose_session(
        &self,
        loss: SessionLoss,
        head: &RequestHead<'_>,
        session: &Session,
    ) -> Result<Attempt, ResponseError> {
        if head.is_modern() {
            if self.renewals.admit(Instant::now()) {
                self.exchange.failure_signal.fail(LOST);
            }
            return Err(session_error(LOST));
        }
        match loss {
            SessionLoss::NotRun => Ok(Attempt::SessionLost),
            SessionLoss::Unclear => {
                self.session.lose(session);
                Err(session_error(LOST_IN_CALL))
            }
        }
    }

    /// Returns a session in place of `lost`, which is begun completely even if the request is cancelled meanwhile.
    async fn renewed(self: &Arc<Self>, lost: &Session) -> Result<Session, ResponseError> {
        let (connection, lost) = (self.clone(), lost.clone());
        let renewing = self.requests.runtime().spawn(async move { connection.renew(&lost).await });
        renewing.await.unwrap_or(Err(ResponseError::Closed))
    }

    /// Returns the session that another request has begun in place of `lost`, or begins a new one.
    async fn renew(self: &Arc<Self>, lost: &Session) -> Result<Session, ResponseError> {
        let _renewing = self.renewing.lock().await;
        if !self.session.is_current(lost) {
            return Ok(self.session.current());
        }
        let (id, line) = self.session.initialize().ok_or(ResponseError::SessionLost)?;
        if !self.renewals.admit(Instant::now()) {
            return Err(session_error(RENEWED_RECENTLY));
        }
        self.changed.notify_one();
        let _ = self.messages.send(ServerInput::SessionReplaced).await;
        let begun = timeout(RENEWAL_TIMEOUT, self.begin_session(id, &line)).await;
        begun.unwrap_or(Err(ResponseError::SessionLost))
    }

    /// Begins a new session with the handshake of the first one.
    async fn begin_session(self: &Arc<Self>, id: i64, line: &[u8]) -> Result<Session, ResponseError> {
        self.traffic.record_pending(id, None);
        let attempt = self.attempt(id, &RequestHead::parse(line), &Session::default(), line).await;
        self.traffic.take_pending(&RequestId::Number(id));
        let (answer, rest) = match attempt? {
            Attempt::Answered(answer, rest) => (answer, rest),
            Attempt::Accepted | Attempt::SessionLost => (failed(CUT_OFF), None),
        };
        answer.map_err(ResponseError::Refused)?;
        if let Some(rest) = rest {
            rest.drain().await;
        }
        self.send(&initialized_line()?).await?;
        Ok(self.session.current())
    }

    /// Reads the stream of the server's own messages in a session, instead of that of the session before; none if `session`
    /// is `None`, or if the server has not named it.
    pub(super) fn follow_stream(self: &Arc<Self>, session: Option<Session>) {
        let mut stream = self.stream.lock();
        // A session may be begun while the connection is closed.
        let session = session.filter(|session| session.is_named() && !self.pending.is_closed());
        let connection = self.clone();
        let follow =
            |session| self.requests.runtime().spawn(async move { connection.read_stream(session).await });
        let task = session.map(follow).map(|task| task.abort_handle());
        if let Some(previous) = std::mem::replace(&mut *stream, task) {
            previous.abort();
        }
    }

    /// Ends the session at the server. If the request fails or is not answered, the server ends the session by itself when
    /// it expires.
    pub(super) async fn end_session(&self) {
        let session = self.session.current();
        if !session.is_named() {
            return;
        }
        let mut headers = self.exchange.headers.clone();
        session.add_headers(&mut headers);
        let request = self.exchange.http.delete(self.exchange.url.clone()).headers(headers);
        let _ = timeout(DELETE_TIMEOUT, self.exchange.send(request)).await;
    }
}

fn session_error(reason: &str) -> ResponseError {
    HttpError::new(HttpErrorKind::Answered, reason, "").into()
}
