//! Authenticates HTTP requests: asks the engine about their credentials, and applies the rate limit of each client.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::request::Parts;
use lockhouse_base::client_rate_limiter::ClientRateLimiter;
use lockhouse_link::{EngineClient, GrantedAccess};
use lockhouse_messages::{AccessRefusal, Credential, Owner};
use lockhouse_policies::Rate;

use super::credentials::credential;
use super::failure_log::FailureLog;
use super::{Peer, Rejection};

/// Authenticates HTTP requests and applies the rate limit of each client.
pub(crate) struct RequestAuthenticator {
    engine: EngineClient,
    requests: ClientRateLimiter,
    failures: FailureLog,
}

impl RequestAuthenticator {
    /// `requests` limits the requests of one client. A request with a large body counts more than once.
    pub(crate) fn new(engine: EngineClient, requests: Rate) -> Arc<Self> {
        let (requests, failures) = (ClientRateLimiter::new(requests), FailureLog::default());
        Arc::new(Self { engine, requests, failures })
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
        let credential = match self.engine.requires_authentication() {
            true => credential(&head.headers, peer),
            false => Ok(Credential::None),
        };
        let access = match credential {
            Ok(credential) => self.engine.authenticate(credential).await,
            Err(refusal) => Err(refusal),
        };
        let access = access.map_err(|refusal| self.reject(refusal, peer))?;
        let charged = self.requests.take(access.owner(), Instant::now());
        charged.map_err(Rejection::RateLimited)?;
        Ok(access)
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
        let wait: Option<Duration> = self.requests.debt_wait(owner, Instant::now());
        wait.map_or(Ok(()), |wait| Err(Rejection::RateLimited(wait)))
    }

    /// Charges a client for the size of a request, in units of the client's rate limit, in addition to the unit that
    /// [`Self::authenticate`] charges for each request.
    pub(crate) fn charge(&self, owner: Owner, units: u32) {
        self.requests.charge(owner, units, Instant::now());
    }
}
