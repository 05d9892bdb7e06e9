//! MCP sessions of the protocol versions that have them: each is the client's that made it, and nobody else's.
//!
//! An id that is somebody else's is answered as one that never was.

use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, StreamExt};
use lockhouse_base::principal::{Owner, Principal};
use lockhouse_base::telemetry;
use rmcp::model::{ClientJsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::SessionManager;
use rmcp::transport::streamable_http_server::session::local::{
    LocalSessionManager, LocalSessionManagerError, SessionConfig,
};
use rmcp::transport::streamable_http_server::session::{ServerSseMessage, SessionId};
use tokio::time::Instant;

use super::body;
use super::limits::HttpLimits;
use super::message::INVALID_REQUEST;
use super::request_ids::{FreeingTransport, RequestIds, cancelled};

const SESSION_ID: &str = "mcp-session-id";
const RETRY_AFTER_SECONDS: &str = "30";

tokio::task_local! {
    /// On whose behalf the library asks for sessions.
    static ASKING: Asking;
}

#[derive(Clone, Debug)]
struct Asking {
    owner: Owner,
    /// Set to what is answered instead of what the library makes of a [`SessionError`].
    refusal: Arc<Mutex<Option<Refusal>>>,
}

/// Why what was asked for is not done.
#[derive(Clone, Debug)]
enum Refusal {
    /// There is no room for another session.
    Full,
    /// A request with this id is under way in the session.
    IdInUse(RequestId),
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        match self {
            Self::Full => {
                telemetry::refused("quota");
                let retry = [(header::RETRY_AFTER, RETRY_AFTER_SECONDS)];
                let words = "too many MCP sessions are in use: end some with DELETE, or come later";
                (StatusCode::TOO_MANY_REQUESTS, retry, words).into_response()
            }
            Self::IdInUse(id) => {
                telemetry::refused("body");
                let words = "a request with this id is under way in this MCP session: wait for its answer, or \
                    take another id";
                body::error(StatusCode::BAD_REQUEST, INVALID_REQUEST, words, id.into_json_value())
            }
        }
    }
}

/// The sessions, and whose they are.
#[derive(Debug)]
pub(super) struct McpSessions {
    inner: LocalSessionManager,
    limits: HttpLimits,
    held: Held,
}

type Held = Arc<Mutex<HashMap<SessionId, Session>>>;

#[derive(Debug)]
struct Session {
    owner: Owner,
    /// Streams that are open.
    streams: usize,
    used: Instant,
    /// Of requests that are under way.
    ids: RequestIds,
}

/// Why there is no session.
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
        // The library's own clock would end a session whose program runs for longer.
        config.keep_alive = None;
        inner.session_config = config;
        Self { inner, limits, held: Held::default() }
    }

    /// Whether the session is of whoever asks.
    fn is_mine(&self, id: &SessionId) -> bool {
        let owner = ASKING.try_with(|asking| asking.owner).ok();
        let mut held = locked(&self.held);
        let session = held.get_mut(id).filter(|session| Some(session.owner) == owner);
        session.map(|session| session.used = Instant::now()).is_some()
    }

    /// The ids of requests that are under way in a session of whoever asks.
    fn ids(&self, id: &SessionId) -> Result<RequestIds, SessionError> {
        self.mine(id)?;
        locked(&self.held).get(id).map(|session| session.ids.clone()).ok_or(SessionError::Unknown)
    }

    fn mine(&self, id: &SessionId) -> Result<(), SessionError> {
        if self.is_mine(id) { Ok(()) } else { Err(SessionError::Unknown) }
    }

    /// Which session must go for another of this owner: none, or the one that was not used for longest. Where all places are
    /// taken, whoever has most sessions makes room for a client that has fewer, so that each comes to an equal share.
    fn to_be_ended(&self, owner: Owner) -> Result<Option<SessionId>, SessionError> {
        let held = locked(&self.held);
        let is_own = |session: &&Session| session.owner == owner;
        let own = held.values().filter(is_own).count();
        let own_only = own >= self.limits.sessions_per_client;
        if !own_only && held.len() < self.limits.sessions {
            return Ok(None);
        }
        let mut of_owner: HashMap<Owner, usize> = HashMap::new();
        held.values().for_each(|session| *of_owner.entry(session.owner).or_default() += 1);
        let most = of_owner.into_iter().max_by_key(|(_, count)| *count);
        // With one less it has as many as the newcomer, at least.
        if let Some((most, _)) = most.filter(|(_, count)| !own_only && *count > own + 1) {
            let of_most = held.iter().filter(|(_, session)| session.owner == most);
            let oldest = of_most.min_by_key(|(_, session)| (session.streams > 0, session.used));
            return oldest.map(|(id, _)| Some(id.clone())).ok_or(SessionError::Full);
        }
        let idle = held.iter().filter(|(_, session)| session.owner == owner && session.streams == 0);
        let oldest = idle.min_by_key(|(_, session)| session.used);
        oldest.map(|(id, _)| Some(id.clone())).ok_or(SessionError::Full)
    }

    /// Ends the sessions that nobody has used for long.
    pub(super) async fn end_idle(&self) {
        let is_idle =
            |session: &Session| session.streams == 0 && session.used.elapsed() >= self.limits.session_idle;
        let idle: Vec<SessionId> = locked(&self.held)
            .iter()
            .filter(|(_, session)| is_idle(session))
            .map(|(id, _)| id.clone())
            .collect();
        for id in idle {
            self.end(&id).await;
        }
    }

    async fn end(&self, id: &SessionId) {
        locked(&self.held).remove(id);
        if let Err(error) = self.inner.close_session(id).await {
            tracing::debug!("an MCP session did not end as it should: {error}");
        }
    }

    /// A stream that keeps its session from being idle.
    fn kept(
        &self,
        id: &SessionId,
        stream: impl Stream<Item = ServerSseMessage> + Send + Sync + 'static,
    ) -> impl Stream<Item = ServerSseMessage> + Send + Sync + 'static {
        let open = OpenStream::new(self.held.clone(), id.clone());
        stream.map(move |event| {
            let _ = &open;
            event
        })
    }
}

struct OpenStream {
    held: Held,
    id: SessionId,
}

impl OpenStream {
    fn new(held: Held, id: SessionId) -> Self {
        if let Some(session) = locked(&held).get_mut(&id) {
            session.streams += 1;
        }
        Self { held, id }
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        if let Some(session) = locked(&self.held).get_mut(&self.id) {
            session.streams = session.streams.saturating_sub(1);
            session.used = Instant::now();
        }
    }
}

/// Says what is answered to whoever asks.
fn refuse(refusal: Refusal) {
    let _ = ASKING.try_with(|asking| {
        *asking.refusal.lock() = Some(refusal);
    });
}

fn locked(held: &Held) -> MutexGuard<'_, HashMap<SessionId, Session>> {
    held.lock()
}

impl SessionManager for McpSessions {
    type Error = SessionError;
    type Transport = FreeingTransport<<LocalSessionManager as SessionManager>::Transport>;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), SessionError> {
        let asking = ASKING.try_with(Clone::clone).map_err(|_| SessionError::Unknown)?;
        match self.to_be_ended(asking.owner) {
            Ok(None) => {}
            Ok(Some(oldest)) => self.end(&oldest).await,
            Err(full) => {
                refuse(Refusal::Full);
                return Err(full);
            }
        }
        let (id, transport) = self.inner.create_session().await?;
        let ids = RequestIds::default();
        let session = Session { owner: asking.owner, streams: 0, used: Instant::now(), ids: ids.clone() };
        locked(&self.held).insert(id.clone(), session);
        Ok((id, FreeingTransport::new(transport, ids)))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, SessionError> {
        self.mine(id)?;
        Ok(self.inner.initialize_session(id, message).await?)
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, SessionError> {
        Ok(self.is_mine(id) && self.inner.has_session(id).await?)
    }

    /// The library also calls this, for nobody, when a session has ended by itself.
    async fn close_session(&self, id: &SessionId) -> Result<(), SessionError> {
        if ASKING.try_with(|_| ()).is_ok() {
            self.mine(id)?;
        }
        locked(&self.held).remove(id);
        Ok(self.inner.close_session(id).await?)
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionError> {
        let ids = self.ids(id)?;
        let taken = match &message {
            ClientJsonRpcMessage::Request(request) => {
                let taken = ids.take(&request.id).ok_or_else(|| {
                    refuse(Refusal::IdInUse(request.id.clone()));
                    SessionError::IdInUse
                })?;
                Some(taken)
            }
            _ => None,
        };
        let stream = SessionManager::create_stream(&self.inner, id, message).await?;
        if let Some(taken) = taken {
            taken.pass_on();
        }
        Ok(self.kept(id, stream))
    }

    async fn accept_message(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<(), SessionError> {
        let (ids, cancelled) = (self.ids(id)?, cancelled(&message));
        self.inner.accept_message(id, message).await?;
        // The library sends no answer to a request that was cancelled, and ends its stream.
        if let Some(cancelled) = cancelled {
            ids.free(&cancelled);
        }
        Ok(())
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionError> {
        self.mine(id)?;
        Ok(self.kept(id, SessionManager::create_standalone_stream(&self.inner, id).await?))
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionError> {
        self.mine(id)?;
        Ok(self.kept(id, SessionManager::resume(&self.inner, id, last_event_id).await?))
    }
}

/// Passes a request on in the name of the client that it was admitted as.
pub(super) async fn bind(State(sessions): State<Arc<McpSessions>>, request: Request, next: Next) -> Response {
    let Some(owner) = request.extensions().get::<Principal>().map(Principal::owner) else {
        return StatusCode::UNAUTHORIZED.into_response();
    };
    let refusal = Arc::new(Mutex::new(None));
    let asking = Asking { owner, refusal: refusal.clone() };
    ASKING
        .scope(asking, async move {
            // The library does not look whether there is a session that is to be deleted.
            let id = request.headers().get(SESSION_ID).and_then(|id| id.to_str().ok());
            let id = id.filter(|_| request.method() == Method::DELETE);
            if id.is_some_and(|id| !sessions.is_mine(&id.into())) {
                return (StatusCode::NOT_FOUND, "Not Found: Session not found").into_response();
            }
            let response = next.run(request).await;
            let refusal = refusal.lock().take();
            refusal.map_or(response, Refusal::into_response)
        })
        .await
}
