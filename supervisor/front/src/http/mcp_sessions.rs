//! MCP sessions, for the protocol versions that have them. Only the client that created a session can use it.
//!
//! A request with the session id of another client gets the same answer as a request with an unknown session id.

use lockhouse_link::GrantedAccess;
use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, StreamExt};
use lockhouse_messages::{HttpRefusal, Owner};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ProtocolVersion, RequestId, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::SessionManager;
use rmcp::transport::streamable_http_server::session::local::{
    LocalSessionManager, LocalSessionManagerError, SessionConfig,
};
use rmcp::transport::streamable_http_server::session::{ServerSseMessage, SessionId};
use tokio::time::Instant;

use super::body;
use super::counters;
use super::jsonrpc_message::INVALID_REQUEST;
use super::limits::HttpLimits;
use super::request_ids::{IdTrackingTransport, RequestIds, cancelled_id};

const SESSION_ID: &str = "mcp-session-id";
const RETRY_AFTER_S: &str = "30";
/// The first protocol version with priming events: events without a message, from which a client can
/// resume a stream.
const PRIMING_SINCE: ProtocolVersion = ProtocolVersion::V_2025_11_25;
/// How long a client should wait before it opens a closed stream again.
const RECONNECT_AFTER: Duration = Duration::from_secs(3);

tokio::task_local! {
    /// The client that sent the current request. rmcp does not pass the client to the session manager, so the session
    /// manager reads this variable.
    static SESSION_CALLER: SessionCaller;
}

#[derive(Clone, Debug)]
struct SessionCaller {
    owner: Owner,
    /// The response to send in place of rmcp's own response to a [`SessionError`].
    refusal: Arc<Mutex<Option<Refusal>>>,
}

/// Why a request to an MCP session is refused.
#[derive(Clone, Debug)]
enum Refusal {
    /// The maximum number of MCP sessions is reached, and none can be ended to make room.
    Full,
    /// A request with this id is already in flight in the session. A second request with the same id would never be
    /// answered.
    IdInUse(RequestId),
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        match self {
            Self::Full => {
                counters::count_refusal(HttpRefusal::Quota);
                let retry = [(header::RETRY_AFTER, RETRY_AFTER_S)];
                let words = "too many MCP sessions are in use: end some with DELETE, or retry later";
                (StatusCode::TOO_MANY_REQUESTS, retry, words).into_response()
            }
            Self::IdInUse(id) => {
                counters::count_refusal(HttpRefusal::Body);
                let words = "a request with this id is under way in this MCP session: wait for its answer, or \
                    take another id";
                body::jsonrpc_error(StatusCode::BAD_REQUEST, INVALID_REQUEST, words, id.into_json_value())
            }
        }
    }
}

/// Manages MCP sessions and their owners, within the limits of `[http.limits]`.
#[derive(Debug)]
pub(super) struct McpSessions {
    inner: LocalSessionManager,
    limits: HttpLimits,
    table: SessionTable,
}

type SessionTable = Arc<Mutex<HashMap<SessionId, Session>>>;

#[derive(Debug)]
struct Session {
    owner: Owner,
    /// Number of open event streams of the session.
    streams: usize,
    last_used: Instant,
    /// Whether the client's protocol version has priming events: events without a message, from which a client can resume
    /// a stream. Older clients fail on them.
    knows_priming: bool,
    /// Ids of the session's requests that are in flight.
    ids: RequestIds,
}

/// Why an operation on an MCP session failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum SessionError {
    #[error("no such session")]
    Unknown,
    #[error("too many sessions")]
    Full,
    #[error("a request with this id is under way")]
    IdInUse,
    #[error(transparent)]
    Broken(#[from] LocalSessionManagerError),
}

impl McpSessions {
    pub(super) fn new(limits: HttpLimits) -> Self {
        let mut inner = LocalSessionManager::default();
        let mut config = SessionConfig::default();
        // rmcp's keep-alive timer would end a session while a long run is in progress.
        config.keep_alive = None;
        inner.session_config = config;
        Self { inner, limits, table: SessionTable::default() }
    }

    /// Returns whether the client of the current request owns the session. If it does, records that the session was
    /// used now.
    fn is_owned_by_caller(&self, id: &SessionId) -> bool {
        let owner = SESSION_CALLER.try_with(|caller| caller.owner).ok();
        let mut table = locked(&self.table);
        let session = table.get_mut(id).filter(|session| Some(session.owner) == owner);
        session.map(|session| session.last_used = Instant::now()).is_some()
    }

    /// Returns the ids of the requests in flight in a session. Fails if the client of the current request does not own
    /// the session.
    fn request_ids(&self, id: &SessionId) -> Result<RequestIds, SessionError> {
        self.check_owner(id)?;
        locked(&self.table).get(id).map(|session| session.ids.clone()).ok_or(SessionError::Unknown)
    }

    fn check_owner(&self, id: &SessionId) -> Result<(), SessionError> {
        if self.is_owned_by_caller(id) { Ok(()) } else { Err(SessionError::Unknown) }
    }

    /// Chooses the session to end so that this owner can open a new one. Returns `None` if no limit is reached.
    /// Normally chooses the least recently used of the owner's sessions without open streams, and fails if there is
    /// none. If only the limit for all clients is reached, and another client has at least two sessions more than the
    /// owner, chooses a session of the client with the most sessions, if possible one without open streams.
    fn session_to_evict(&self, owner: Owner) -> Result<Option<SessionId>, SessionError> {
        let table = locked(&self.table);
        let is_own = |session: &&Session| session.owner == owner;
        let own = table.values().filter(is_own).count();
        let own_only = own >= self.limits.sessions_per_client;
        if !own_only && table.len() < self.limits.sessions {
            return Ok(None);
        }
        let mut count_by_owner: HashMap<Owner, usize> = HashMap::new();
        table.values().for_each(|session| *count_by_owner.entry(session.owner).or_default() += 1);
        let most = count_by_owner.into_iter().max_by_key(|(_, count)| *count);
        // After losing one, that client still has at least as many sessions as this owner.
        if let Some((most, _)) = most.filter(|(_, count)| !own_only && *count > own + 1) {
            let of_most = table.iter().filter(|(_, session)| session.owner == most);
            let oldest = of_most.min_by_key(|(_, session)| (session.streams > 0, session.last_used));
            return oldest.map(|(id, _)| Some(id.clone())).ok_or(SessionError::Full);
        }
        let idle = table.iter().filter(|(_, session)| session.owner == owner && session.streams == 0);
        let oldest = idle.min_by_key(|(_, session)| session.last_used);
        oldest.map(|(id, _)| Some(id.clone())).ok_or(SessionError::Full)
    }

    /// Ends MCP sessions that exceeded their idle time.
    pub(super) async fn end_idle(&self) {
        let is_idle = |session: &Session| {
            session.streams == 0 && session.last_used.elapsed() >= self.limits.session_idle
        };
        let idle: Vec<SessionId> = locked(&self.table)
            .iter()
            .filter(|(_, session)| is_idle(session))
            .map(|(id, _)| id.clone())
            .collect();
        for id in idle {
            self.end(&id).await;
        }
    }

    async fn end(&self, id: &SessionId) {
        locked(&self.table).remove(id);
        if let Err(error) = self.inner.close_session(id).await {
            tracing::debug!("an MCP session could not be closed: {error}");
        }
    }

    /// Returns whether the client of a session knows priming events: events without a message, from which a
    /// client can resume a stream.
    fn knows_priming(&self, id: &SessionId) -> bool {
        locked(&self.table).get(id).is_some_and(|session| session.knows_priming)
    }

    /// Wraps an event stream so that its MCP session does not count as idle while the stream is open. Omits priming
    /// events for clients that do not know them.
    fn track_stream(
        &self,
        id: &SessionId,
        stream: impl Stream<Item = ServerSseMessage> + Send + Sync + 'static,
    ) -> impl Stream<Item = ServerSseMessage> + Send + Sync + 'static {
        let open = OpenStream::new(self.table.clone(), id.clone());
        let knows_priming = self.knows_priming(id);
        stream.filter_map(move |event| {
            let _ = &open;
            std::future::ready((knows_priming || event.message.is_some()).then_some(event))
        })
    }
}

struct OpenStream {
    table: SessionTable,
    id: SessionId,
}

impl OpenStream {
    fn new(table: SessionTable, id: SessionId) -> Self {
        if let Some(session) = locked(&table).get_mut(&id) {
            session.streams += 1;
        }
        Self { table, id }
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        if let Some(session) = locked(&self.table).get_mut(&self.id) {
            session.streams = session.streams.saturating_sub(1);
            session.last_used = Instant::now();
        }
    }
}

/// Sets the response that the client of the current request gets in place of rmcp's own response.
fn set_refusal(refusal: Refusal) {
    let _ = SESSION_CALLER.try_with(|caller| {
        *caller.refusal.lock() = Some(refusal);
    });
}

/// Returns the protocol version that a client requests in `initialize`. `None` for any other message.
fn requested_version(message: &ClientJsonRpcMessage) -> Option<ProtocolVersion> {
    match message {
        ClientJsonRpcMessage::Request(request) => match &request.request {
            ClientRequest::InitializeRequest(initialize) => Some(initialize.params.protocol_version.clone()),
            _ => None,
        },
        _ => None,
    }
}

fn locked(table: &SessionTable) -> MutexGuard<'_, HashMap<SessionId, Session>> {
    table.lock()
}

impl SessionManager for McpSessions {
    type Error = SessionError;
    type Transport = IdTrackingTransport<<LocalSessionManager as SessionManager>::Transport>;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), SessionError> {
        let caller = SESSION_CALLER.try_with(Clone::clone).map_err(|_| SessionError::Unknown)?;
        match self.session_to_evict(caller.owner) {
            Ok(None) => {}
            Ok(Some(oldest)) => self.end(&oldest).await,
            Err(full) => {
                set_refusal(Refusal::Full);
                return Err(full);
            }
        }
        let (id, transport) = self.inner.create_session().await?;
        let ids = RequestIds::default();
        let session = Session {
            owner: caller.owner,
            streams: 0,
            last_used: Instant::now(),
            knows_priming: false,
            ids: ids.clone(),
        };
        locked(&self.table).insert(id.clone(), session);
        Ok((id, IdTrackingTransport::new(transport, ids)))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, SessionError> {
        self.check_owner(id)?;
        let knows_priming = requested_version(&message).is_some_and(|version| version >= PRIMING_SINCE);
        if let Some(session) = locked(&self.table).get_mut(id) {
            session.knows_priming = knows_priming;
        }
        Ok(self.inner.initialize_session(id, message).await?)
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, SessionError> {
        Ok(self.is_owned_by_caller(id) && self.inner.has_session(id).await?)
    }

    /// Ends a session. During a request, fails if the client of the request does not own the session. rmcp also calls
    /// this function outside of requests, for a session that has ended by itself.
    async fn close_session(&self, id: &SessionId) -> Result<(), SessionError> {
        if SESSION_CALLER.try_with(|_| ()).is_ok() {
            self.check_owner(id)?;
        }
        locked(&self.table).remove(id);
        Ok(self.inner.close_session(id).await?)
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionError> {
        let ids = self.request_ids(id)?;
        let reserved = match &message {
            ClientJsonRpcMessage::Request(request) => {
                let reserved = ids.reserve(&request.id).ok_or_else(|| {
                    set_refusal(Refusal::IdInUse(request.id.clone()));
                    SessionError::IdInUse
                })?;
                Some(reserved)
            }
            _ => None,
        };
        let stream = SessionManager::create_stream(&self.inner, id, message).await?;
        if let Some(reserved) = reserved {
            reserved.confirm();
        }
        Ok(self.track_stream(id, stream))
    }

    async fn accept_message(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<(), SessionError> {
        let (ids, cancelled) = (self.request_ids(id)?, cancelled_id(&message));
        self.inner.accept_message(id, message).await?;
        // rmcp sends no answer to a cancelled request, but ends its stream.
        if let Some(cancelled) = cancelled {
            ids.release(&cancelled);
        }
        Ok(())
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionError> {
        self.check_owner(id)?;
        let stream = SessionManager::create_standalone_stream(&self.inner, id).await?;
        let priming = futures_util::stream::iter([ServerSseMessage::priming("0", RECONNECT_AFTER)]);
        Ok(self.track_stream(id, priming.chain(stream)))
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionError> {
        self.check_owner(id)?;
        Ok(self.track_stream(id, SessionManager::resume(&self.inner, id, last_event_id).await?))
    }
}

/// Middleware that makes the authenticated client of a request known to the session manager while rmcp handles the
/// request. If the session manager refuses the request, sends its response in place of rmcp's.
pub(super) async fn bind_session(
    State(sessions): State<Arc<McpSessions>>,
    request: Request,
    next: Next,
) -> Response {
    let Some(owner) = request.extensions().get::<GrantedAccess>().map(GrantedAccess::owner) else {
        return StatusCode::UNAUTHORIZED.into_response();
    };
    let refusal = Arc::new(Mutex::new(None));
    let caller = SessionCaller { owner, refusal: refusal.clone() };
    SESSION_CALLER
        .scope(caller, async move {
            // rmcp does not check that the session of a DELETE request exists.
            let id = request.headers().get(SESSION_ID).and_then(|id| id.to_str().ok());
            let id = id.filter(|_| request.method() == Method::DELETE);
            if id.is_some_and(|id| !sessions.is_owned_by_caller(&id.into())) {
                return (StatusCode::NOT_FOUND, "Not Found: Session not found").into_response();
            }
            let response = next.run(request).await;
            let refusal = refusal.lock().take();
            refusal.map_or(response, Refusal::into_response)
        })
        .await
}
