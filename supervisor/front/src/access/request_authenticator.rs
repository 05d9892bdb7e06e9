//! Authenticates HTTP requests: asks the engine about their credentials, and applies the rate limit of each client.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use lockhouse_base::keyed_limiter::KeyedLimiter;
use lockhouse_base::token_bucket::TokenBucket;
use lockhouse_link::{EngineClient, GrantedAccess};
use lockhouse_messages::{AccessRefusal, Credential, Owner};
use lockhouse_policies::Rate;

use super::client_turns::ClientTurns;
use super::credentials::credential;
use super::failure_log::FailureLog;
use super::{Peer, Rejection};

/// Authenticates HTTP requests and applies the rate limit of each client.
pub(crate) struct RequestAuthenticator {
    engine: EngineClient,
    rate: Rate,
    requests: KeyedLimiter<Owner>,
    failures: FailureLog,
    /// The turns of clients, which are known here by what they send as credentials.
    turns: ClientTurns,
}

impl RequestAuthenticator {
    /// `rate` limits the requests of one client. A request with a large body counts more than once.
    pub(crate) fn new(engine: EngineClient, rate: Rate) -> Arc<Self> {
        let (requests, failures, turns) = Default::default();
        Arc::new(Self { engine, rate, requests, failures, turns })
    }

    /// Authenticates a request by its head and the peer of its connection, and counts the request against the client's
    /// rate limit.
    ///
    /// # Errors
    /// The response to send, if the request is not authenticated or exceeds the rate limit.
    pub(crate) async fn authenticate(
        &self,
        head: &Parts,
        peer: Option<&Peer>,
    ) -> Result<GrantedAccess, Rejection> {
        let _turn = match head.headers.get(AUTHORIZATION) {
            Some(authorization) => self.turns.take(authorization).await,
            None => self.turns.take(peer.map(Peer::origin)).await,
        };
        self.verify(credential(head, peer), peer).await
    }

    /// Authenticates a user by the token that they have entered on a page, as a request with this token.
    ///
    /// # Errors
    /// As [`Self::authenticate`].
    pub(crate) async fn authenticate_token(
        &self,
        token: Option<&str>,
        peer: Option<&Peer>,
    ) -> Result<GrantedAccess, Rejection> {
        let _turn = self.turns.take(peer.map(Peer::origin)).await;
        let credential = token.map_or(Credential::None, |token| Credential::Bearer(token.to_owned()));
        self.verify(Ok(credential), peer).await
    }

    /// Lets the engine verify a credential, and counts the request.
    async fn verify(
        &self,
        credential: Result<Credential, AccessRefusal>,
        peer: Option<&Peer>,
    ) -> Result<GrantedAccess, Rejection> {
        let credential = match self.engine.requires_authentication() {
            true => credential,
            false => Ok(Credential::None),
        };
        let access = match credential {
            Ok(credential) => self.engine.authenticate(credential).await,
            Err(refusal) => Err(refusal),
        };
        let access = access.map_err(|refusal| self.reject(refusal, peer))?;
        let reserved = self.limited(access.owner(), |bucket, now| bucket.reserve(Duration::ZERO, now));
        match reserved {
            Some(Err(wait)) => Err(Rejection::RateLimited(wait)),
            Some(Ok(_)) | None => Ok(access),
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
