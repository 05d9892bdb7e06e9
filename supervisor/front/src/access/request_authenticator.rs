//! Authenticates HTTP requests: asks the engine about their credentials, and applies the rate limit of each client.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use futures_util::FutureExt;
use futures_util::future::{self, BoxFuture};
use lockhouse_base::keyed_limiter::KeyedLimiter;
use lockhouse_base::token_bucket::TokenBucket;
use lockhouse_link::{EngineClient, GrantedAccess};
use lockhouse_messages::{AccessRefusal, Credential, Owner};
use lockhouse_policies::Rate;

use super::client_turns::{ClientTurn, ClientTurns};
use super::credentials::credential;
use super::failure_log::FailureLog;
use super::known_access::{KnownAccess, KnownCredential};
use super::{Peer, Rejection};

/// Authenticates HTTP requests and applies the rate limit of each client.
pub(crate) struct RequestAuthenticator {
    engine: EngineClient,
    rate: Rate,
    requests: KeyedLimiter<Owner>,
    failures: FailureLog,
    /// The turns of clients, which are known here by what they send as credentials.
    turns: ClientTurns,
    known: KnownAccess,
}

/// A request whose credential the engine verifies.
pub(crate) struct Verification {
    /// The access under which the request is served.
    pub(crate) access: GrantedAccess,
    /// Waits for the engine's response about the credential. The engine may have replaced the grant, and then refuses requests under
    /// the earlier one. After a refusal, it refuses them until it accepts the credential again.
    pub(crate) verified: BoxFuture<'static, Result<GrantedAccess, AccessRefusal>>,
}

impl Verification {
    pub(crate) fn completed(access: GrantedAccess) -> Self {
        Self { access: access.clone(), verified: Box::pin(future::ready(Ok(access))) }
    }
}

impl RequestAuthenticator {
    /// `rate` limits the requests of one client. A request with a large body counts more than once.
    pub(crate) fn new(engine: EngineClient, rate: Rate) -> Arc<Self> {
        let (requests, failures, turns, known) = Default::default();
        Arc::new(Self { engine, rate, requests, failures, turns, known })
    }

    /// Authenticates a request by its head and the peer of its connection, and counts the request against the client's
    /// rate limit.
    ///
    /// # Errors
    /// The response to send, if the request is not authenticated or exceeds the rate limit.
    pub(crate) async fn authenticate(
        &self,
        head: &Parts,
        peer: Option<Peer>,
    ) -> Result<GrantedAccess, Rejection> {
        let _turn = self.turn(head, peer).await;
        self.verify(credential(head, peer.as_ref()), peer).await
    }

    /// As [`Self::authenticate`], but does not wait for the engine's response if the access of the credential is known. A request
    /// under this access must have no effect but what the engine does, until the response is there.
    ///
    /// # Errors
    /// As [`Self::authenticate`].
    pub(crate) async fn begin(
        self: &Arc<Self>,
        head: &Parts,
        peer: Option<Peer>,
    ) -> Result<Verification, Rejection> {
        let turn = self.turn(head, peer).await;
        let credential = credential(head, peer.as_ref());
        let key = credential.as_ref().ok().and_then(KnownCredential::of);
        let known = key.and_then(|key| Some((key, self.known.find(key)?)));
        let Some((key, access)) = known else {
            let access = self.verify(credential, peer).await?;
            key.inspect(|key| self.known.add(*key, &access));
            return Ok(Verification::completed(access));
        };
        self.count(access.owner())?;
        let response = self.ask_engine(credential).await;
        let (this, grant) = (self.clone(), access.grant());
        let verified = Box::pin(async move {
            let response = response.await;
            drop(turn);
            if !response.as_ref().is_ok_and(|access| access.grant() == grant) {
                this.known.remove(key);
            }
            response
        });
        Ok(Verification { access, verified })
    }

    /// Authenticates a user by the token that they have entered on a page, as a request with this token.
    ///
    /// # Errors
    /// As [`Self::authenticate`].
    pub(crate) async fn authenticate_token(
        &self,
        token: Option<&str>,
        peer: Option<Peer>,
    ) -> Result<GrantedAccess, Rejection> {
        let _turn = self.turns.take(peer.as_ref().map(Peer::origin)).await;
        let credential = token.map_or(Credential::None, |token| Credential::Bearer(token.to_owned()));
        self.verify(Ok(credential), peer).await
    }

    async fn turn(&self, head: &Parts, peer: Option<Peer>) -> ClientTurn {
        match head.headers.get(AUTHORIZATION) {
            Some(authorization) => self.turns.take(authorization).await,
            None => self.turns.take(peer.as_ref().map(Peer::origin)).await,
        }
    }

    /// Lets the engine verify a credential, and counts the request.
    async fn verify(
        &self,
        credential: Result<Credential, AccessRefusal>,
        peer: Option<Peer>,
    ) -> Result<GrantedAccess, Rejection> {
        let access = self.ask_engine(credential).await.await;
        let access = access.map_err(|refusal| self.reject(refusal, peer.as_ref()))?;
        self.count(access.owner())?;
        Ok(access)
    }

    /// Asks the engine to verify a credential. The future that this one returns waits for the response.
    async fn ask_engine(
        &self,
        credential: Result<Credential, AccessRefusal>,
    ) -> impl Future<Output = Result<GrantedAccess, AccessRefusal>> + use<> {
        let credential = match self.engine.requires_authentication() {
            true => credential,
            false => Ok(Credential::None),
        };
        match credential {
            Ok(credential) => self.engine.begin_authentication(credential).await.left_future(),
            Err(refusal) => future::ready(Err(refusal)).right_future(),
        }
    }

    /// Counts a request against the client's rate limit.
    fn count(&self, owner: Owner) -> Result<(), Rejection> {
        match self.limited(owner, |bucket, now| bucket.reserve(Duration::ZERO, now)) {
            Some(Err(wait)) => Err(Rejection::RateLimited(wait)),
            Some(Ok(_)) | None => Ok(()),
        }
    }

    /// Logs that a request is refused, and returns its response.
    pub(crate) fn reject(&self, refusal: AccessRefusal, peer: Option<&Peer>) -> Rejection {
        self.failures.record(&refusal, peer);
        Rejection::Access(refusal, Box::new(self.engine.settings().authentication))
    }

    /// Checks whether a client is over its rate limit because of the size of its earlier requests (see
    /// [`Self::charge`]).
    ///
    /// # Errors
    /// The response to send, if the client is over its limit.
    pub(crate) fn check_debt(&self, owner: Owner) -> Result<(), Rejection> {
        let wait = self.limited(owner, |bucket, now| bucket.debt_wait(now)).flatten();
        wait.map_or(Ok(()), |wait| Err(Rejection::RateLimited(wait)))
    }

    /// Charges a client for the size of a request, in units of the client's rate limit, in addition to the unit that
    /// [`Self::authenticate`] reserves for each request. Charges at most as many units as the client may use at once.
    pub(crate) fn charge(&self, owner: Owner, units: u32) {
        self.limited(owner, |bucket, now| bucket.charge(units.min(self.rate.burst.get()), now));
    }

    /// Calls `with` with the units that this client has left. Returns `None` for a client that has no limit.
    fn limited<T>(&self, owner: Owner, with: impl FnOnce(&mut TokenBucket, Instant) -> T) -> Option<T> {
        let now = Instant::now();
        owner.is_limited().then(|| with(&mut self.requests.bucket(owner, self.rate, now), now))
    }
}
