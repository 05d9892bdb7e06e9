//! The MCP sessions, for the protocol versions that have them, within the limits of `[http.limits]`. Only the client that
//! began a session can use it: for any other client, it does not exist. The engine keeps who began which session, so that
//! another front continues the sessions of one that has ended.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;

use lockhouse_link::{EngineClient, GrantedAccess};
use lockhouse_mcp::server::HttpSession;
use lockhouse_mcp::server::client_message::ClientMessage;
use lockhouse_messages::{HostTag, McpSessionRequest, Owner, Request, Response, SessionMessage};
use parking_lot::Mutex;
use rmcp::model::{InitializeRequestParams, RequestId};

use super::limits::HttpLimits;
use crate::McpHandler;
use crate::runs::new_handle;

const NO_ANSWER: &str =
    "it is not known now whether this session has ended, and nothing was done: send the request again";

/// The sessions of all clients.
pub(super) struct McpSessions {
    engine: EngineClient,
    limits: HttpLimits,
    table: Mutex<HashMap<String, Session>>,
}

struct Session {
    owner: Owner,
    session: Arc<HttpSession<McpHandler>>,
}

/// An answer of the client does not reach the host that has asked.
#[derive(Debug)]
pub(super) struct NotDelivered;

/// The host that began a session cannot say now whether it has ended, for this reason.
#[derive(Debug)]
pub(super) struct HostNotReached(pub(super) String);

/// The maximum number of sessions is reached, and none can be ended to make room.
#[derive(Debug)]
pub(super) struct Full;

impl McpSessions {
    pub(super) fn new(engine: EngineClient, limits: HttpLimits) -> Self {
        Self { engine, limits, table: Mutex::default() }
    }

    /// Returns a session, if the client owns it, and records that it was used now.
    fn find(&self, owner: Owner, id: &str) -> Option<Arc<HttpSession<McpHandler>>> {
        let table = self.table.lock();
        let session = table.get(id).filter(|session| session.owner == owner)?.session.clone();
        session.touch();
        Some(session)
    }

    /// Returns a session, if the client owns it: one of this front, or one that another front has begun, which `resume` makes of
    /// what its client said in the handshake.
    ///
    /// # Errors
    /// [`HostNotReached`]
    pub(super) async fn find_or_resume(
        &self,
        access: &GrantedAccess,
        id: &str,
        resume: impl FnOnce(InitializeRequestParams) -> HttpSession<McpHandler>,
    ) -> Result<Option<Arc<HttpSession<McpHandler>>>, HostNotReached> {
        let (owner, known) = (access.owner(), self.find(access.owner(), id));
        // In a cluster, a session may have ended at another host.
        if known.is_some() && self.engine.settings().host_tag.is_none() {
            return Ok(known);
        }
        if known.is_none() && self.table.lock().contains_key(id) {
            return Ok(None);
        }
        let find = Request::McpSession(McpSessionRequest::Find { id: id.to_owned() });
        let client = match self.engine.ask(access, None, find).await {
            Response::Text(Some(client)) => client,
            Response::Text(None) => {
                self.forget(id);
                return Ok(None);
            }
            Response::Unavailable(reason) => return Err(HostNotReached(reason)),
            _ => return Err(HostNotReached(NO_ANSWER.to_owned())),
        };
        if known.is_some() {
            return Ok(known);
        }
        let Ok(client) = serde_json::from_str(&client) else { return Ok(None) };
        let session = Arc::new(resume(client));
        // Another request of the client may have resumed it meanwhile.
        Ok(self.find(owner, id).or_else(|| {
            self.insert(owner, id.to_owned(), session.clone()).ok()?;
            Some(session)
        }))
    }

    /// Adds a session, and returns its id. May end another one to make room.
    pub(super) async fn add(
        &self,
        access: &GrantedAccess,
        session: Arc<HttpSession<McpHandler>>,
    ) -> Result<String, Full> {
        let host = self.engine.settings().host_tag;
        let (id, client) = (new_handle(host).ok_or(Full)?, session.client());
        self.insert(access.owner(), id.clone(), session)?;
        if let Some(client) = client.and_then(|client| serde_json::to_string(&*client).ok()) {
            let keep = Request::McpSession(McpSessionRequest::Keep { id: id.clone(), client });
            // Without it, the session ends with this front.
            drop(self.engine.ask(access, None, keep).await);
        }
        Ok(id)
    }

    /// Passes a message of the client on to the front that waits for it: of the host that has asked what it answers, or of any.
    ///
    /// # Errors
    /// An answer does not reach its host.
    pub(super) async fn pass_on(
        &self,
        access: &GrantedAccess,
        id: &str,
        message: &ClientMessage,
    ) -> Result<(), NotDelivered> {
        let (to, is_answer) = match message {
            ClientMessage::Answer(RequestId::String(question), _) => (HostTag::of_id(question), true),
            ClientMessage::Answer(RequestId::Number(_), _) => (None, true),
            ClientMessage::Notification(_) | ClientMessage::Request(_) => (None, false),
        };
        // The id of a question of a cluster names its host: this answers none.
        if is_answer && to.is_none() && self.engine.settings().host_tag.is_some() {
            return Ok(());
        }
        let Some(message) = message.to_text() else { return Ok(()) };
        let deliver = McpSessionRequest::Deliver { id: id.to_owned(), to, message };
        match self.engine.ask(access, None, Request::McpSession(deliver)).await {
            Response::Text(_) => Ok(()),
            _ if is_answer => Err(NotDelivered),
            _ => Ok(()),
        }
    }

    /// Handles the messages for the sessions of this front that other hosts have received.
    pub(super) async fn receive_from_others(&self) -> Infallible {
        let mut messages = self.engine.session_messages();
        while let Some(SessionMessage { session, owner, message }) = messages.recv().await {
            if let (Some(session), Ok(message)) =
                (self.find(owner, &session), ClientMessage::parse(message.as_bytes()))
            {
                session.receive(message, None);
            }
        }
        // Another receiver has them.
        std::future::pending().await
    }

    fn insert(&self, owner: Owner, id: String, session: Arc<HttpSession<McpHandler>>) -> Result<(), Full> {
        let mut table = self.table.lock();
        if let Some(oldest) = self.session_to_evict(&table, owner)?
            && let Some(evicted) = table.remove(&oldest)
        {
            self.end_session(oldest, &evicted);
        }
        table.insert(id, Session { owner, session });
        Ok(())
    }

    /// Ends a session of the client, which [`Self::find_or_resume`] has returned.
    pub(super) async fn end(&self, access: &GrantedAccess, id: &str) {
        let end = Request::McpSession(McpSessionRequest::End { id: id.to_owned() });
        drop(self.engine.ask(access, None, end).await);
        self.forget(id);
    }

    fn forget(&self, id: &str) {
        let ended = self.table.lock().remove_entry(id);
        if let Some((id, ended)) = ended {
            self.end_session(id, &ended);
        }
    }

    /// Ends a session. In a cluster, other hosts may use it: only this front's part of it ends, and the engine keeps it for them.
    fn end_session(&self, id: String, session: &Session) {
        session.session.end();
        if self.engine.settings().host_tag.is_none() {
            self.engine.report_session_end(id);
        }
    }

    /// Ends the sessions that exceeded their idle time.
    pub(super) fn end_idle(&self) {
        self.table.lock().retain(|id, session| {
            session.session.forget_answers();
            let is_idle = session.session.last_used().elapsed() >= self.limits.session_idle;
            if is_idle {
                self.end_session(id.clone(), session);
            }
            !is_idle
        });
    }

    /// Chooses the session to end so that this owner can open a new one. Returns `None` if no limit is reached.
    /// Normally chooses the least recently used of the owner's sessions without open streams, and fails if there is
    /// none. If only the limit for all clients is reached, and another client has at least two sessions more than the
    /// owner, chooses a session of the client with the most sessions, if possible one without open streams.
    fn session_to_evict(
        &self,
        table: &HashMap<String, Session>,
        owner: Owner,
    ) -> Result<Option<String>, Full> {
        let own = table.values().filter(|session| session.owner == owner).count();
        let own_only = own >= self.limits.sessions_per_client;
        if !own_only && table.len() < self.limits.sessions {
            return Ok(None);
        }
        let mut count_by_owner: HashMap<Owner, usize> = HashMap::new();
        table.values().for_each(|session| *count_by_owner.entry(session.owner).or_default() += 1);
        let most = count_by_owner.into_iter().max_by_key(|(_, count)| *count);
        // After losing one, that client still has at least as many sessions as this owner.
        let of_most = most.filter(|(_, count)| !own_only && *count > own + 1).map(|(most, _)| most);
        let can_end = |session: &Session| match of_most {
            Some(most) => session.owner == most,
            None => session.owner == owner && !session.session.is_open(),
        };
        let candidates = table.iter().filter(|(_, session)| can_end(session));
        let order = |session: &Session| (session.session.is_open(), session.session.last_used());
        let oldest = candidates.min_by_key(|(_, session)| order(session));
        oldest.map(|(id, _)| Some(id.clone())).ok_or(Full)
    }
}
