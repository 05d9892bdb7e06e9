//! The connections to the other hosts: one to each life of a host, opened when it is needed.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared, join_all};
use lockhouse_cluster::{ConnectError, Host, Membership, Place, Use, connect};
use lockhouse_link::{EngineClient, Exchange, GrantedAccess};
use lockhouse_messages::{
    AccessRefusal, Credential, GrantId, HostActivity, HostTag, InputSupport, OperatorRequest,
    OperatorResponse, Request, RequestId, Response, RunListing, SessionListing,
};
use parking_lot::Mutex;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// Maximum time for the first messages of a connection, and for an answer about the shared state.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum number of accesses on another host that this host remembers. When there are more, all are forgotten, and verified
/// again with their next request.
/// Bound: hosts of a cluster.
const ACCESSES_MAX: usize = 4_096;

/// The connections to the other hosts.
#[derive(Debug)]
pub(crate) struct Peers {
    membership: Membership,
    connections: Mutex<HashMap<HostTag, Connecting>>,
}

/// A connection that is open or being opened. All requests that need it wait for the same attempt.
type Connecting = Shared<BoxFuture<'static, Result<Arc<HostPeer>, Arc<ConnectError>>>>;

/// The question whether another host accepts a credential, and its answer.
type Verification = Shared<BoxFuture<'static, Result<GrantedAccess, AccessRefusal>>>;

/// Who asks, as another host learns it: it verifies the credential itself.
#[derive(Clone)]
pub(crate) struct ForwardedCaller {
    /// The grant of the credential on this host.
    pub(crate) grant: GrantId,
    pub(crate) credential: Arc<Credential>,
    pub(crate) client: Option<String>,
    pub(crate) abilities: InputSupport,
}

/// A connection to another host.
pub(crate) struct HostPeer {
    client: EngineClient,
    /// Cancelled when the connection has ended. Cancelling it ends the connection.
    closing: CancellationToken,
    /// The accesses that the other host has granted for credentials, or is asked for. Requests with the same credential wait for the same
    /// answer: a proof of a client for its key is valid once.
    accesses: Mutex<HashMap<GrantId, (Arc<Credential>, Verification)>>,
}

impl std::fmt::Debug for HostPeer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HostPeer")
    }
}

impl Peers {
    pub(super) fn new(membership: Membership) -> Self {
        Self { membership, connections: Mutex::default() }
    }

    /// Returns the connection to a host, which is opened if there is none.
    ///
    /// # Errors
    /// [`ConnectError`]
    pub(crate) async fn get(&self, host: &Host) -> Result<Arc<HostPeer>, Arc<ConnectError>> {
        let connecting = {
            let mut connections = self.connections.lock();
            connections.retain(|_, connecting| match connecting.clone().now_or_never() {
                Some(Ok(peer)) => !peer.has_ended(),
                // The next request tries again.
                Some(Err(_)) => false,
                None => true,
            });
            let connect = || {
                let (membership, host) = (self.membership.clone(), host.clone());
                // The attempt continues if its callers stop waiting.
                let attempt = tokio::spawn(async move { HostPeer::connect(&membership, &host).await });
                let attempt = async move { attempt.await.map_err(io::Error::other)? };
                attempt.map(|connected| connected.map_err(Arc::new)).boxed().shared()
            };
            connections.entry(host.record.tag).or_insert_with(connect).clone()
        };
        connecting.await
    }

    /// Ends the connections to hosts that have ended, so that nobody waits for their answers.
    pub(crate) fn close_ended(&self) {
        self.connections.lock().retain(|tag, connecting| {
            let has_ended = matches!(self.membership.locate(*tag), Place::Nowhere);
            if let (true, Some(Ok(peer))) = (has_ended, connecting.peek()) {
                peer.closing.cancel();
            }
            !has_ended
        });
    }

    /// Returns what is active on the other hosts.
    pub(crate) async fn list_active(&self) -> Vec<HostActivity> {
        let others = self.membership.others();
        let listed = others.iter().map(|host| async {
            let listing = async { self.get(host).await.ok()?.list_active().await };
            let listed = timeout(ANSWER_TIMEOUT, listing).await.ok().flatten();
            let (host, has_answered) = (host.name.to_string(), listed.is_some());
            let (runs, sessions) = listed.unwrap_or_default();
            HostActivity { host, has_answered, runs, sessions }
        });
        join_all(listed).await
    }

    /// Whether all other hosts say that they cannot reach the shared state either: then none of them can count this host as
    /// ended. A host that does not answer could.
    pub(crate) async fn all_lack_shared_state(&self) -> bool {
        let others = self.membership.others();
        let answers = others.iter().map(|host| async {
            let peer = self.get(host).await.ok()?;
            timeout(ANSWER_TIMEOUT, peer.lacks_shared_state()).await.ok()
        });
        join_all(answers).await.into_iter().all(|lacks| lacks == Some(true))
    }
}

impl HostPeer {
    async fn connect(membership: &Membership, host: &Host) -> Result<Arc<Self>, ConnectError> {
        let (reader, writer) = tokio::io::split(connect(membership, host, Use::Requests).await?);
        let closing = CancellationToken::new();
        let setup = host.record.tag.to_string();
        let greeting = EngineClient::connect_to_host(reader, writer, setup, closing.clone());
        let client = timeout(ANSWER_TIMEOUT, greeting).await.map_err(|_| ConnectError::TimedOut)??;
        Ok(Arc::new(Self { client, closing, accesses: Mutex::default() }))
    }

    /// Whether the connection has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.closing.is_cancelled()
    }

    /// Whether the other host has said that it drains: it begins no run any more, and would not read a request that arrives as it ends.
    pub(crate) fn is_draining(&self) -> bool {
        self.client.lifecycle().is_draining()
    }

    /// Opens an exchange with the other host on behalf of an AI client, whose credential that host verifies.
    ///
    /// # Errors
    /// Why the other host refuses the credential.
    pub(crate) async fn open(
        &self,
        caller: ForwardedCaller,
        chosen: Option<RequestId>,
        request: Request,
    ) -> Result<Exchange, AccessRefusal> {
        let access = self.access(&caller).await?;
        let ForwardedCaller { client, abilities, .. } = caller;
        Ok(self.client.open_with_id(chosen, &access, client, abilities, request).await)
    }

    async fn access(&self, caller: &ForwardedCaller) -> Result<GrantedAccess, AccessRefusal> {
        let verification = self.verification(caller);
        let access = verification.await?;
        Ok(access.for_another_request())
    }

    fn verification(&self, caller: &ForwardedCaller) -> Verification {
        let mut accesses = self.accesses.lock();
        if let Some((credential, known)) = accesses.get(&caller.grant)
            && *credential == caller.credential
            && !matches!(known.peek(), Some(Ok(access)) if access.has_ended())
            && !matches!(known.peek(), Some(Err(_)))
        {
            return known.clone();
        }
        if accesses.len() >= ACCESSES_MAX {
            accesses.clear();
        }
        let (client, credential) = (self.client.clone(), Credential::clone(&caller.credential));
        let verification = async move { client.authenticate(credential).await }.boxed().shared();
        accesses.insert(caller.grant, (caller.credential.clone(), verification.clone()));
        verification
    }

    /// Returns the runs and the sessions of the other host. `None` if it does not say them.
    async fn list_active(&self) -> Option<(Vec<RunListing>, Vec<SessionListing>)> {
        let own = self.client.authenticate(Credential::Connection).await.ok()?;
        let ask = |request| self.client.ask(&own, None, Request::Operator(request));
        match (ask(OperatorRequest::ListRuns).await, ask(OperatorRequest::ListSessions).await) {
            (
                Response::Operator(OperatorResponse::Runs(runs)),
                Response::Operator(OperatorResponse::Sessions(sessions)),
            ) => Some((runs, sessions)),
            _ => None,
        }
    }

    async fn lacks_shared_state(&self) -> bool {
        let Ok(own) = self.client.authenticate(Credential::Connection).await else { return false };
        let response = self.client.ask(&own, None, Request::SharedState).await;
        matches!(response, Response::Reasons(reasons) if !reasons.is_empty())
    }
}

impl Drop for HostPeer {
    fn drop(&mut self) {
        self.closing.cancel();
    }
}
