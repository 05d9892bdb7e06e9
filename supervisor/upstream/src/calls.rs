//! Calls: a permitted one goes out, and its answer or the reason why there is none comes back.

mod errors;
mod requests;
mod rounds;

use std::time::{Duration, Instant};

use lockhouse_base::telemetry;
use lockhouse_policies::{Item, Listing, PermittedCall};
use lockhouse_protocol::{Failure, FailureCode};
use rmcp::service::ServiceError;

use self::rounds::Rounds;
use super::call::CallError;
use super::callers::Caller;
use super::connection::Connection;
use super::lists;
use super::request::Patience;
use super::slots::Slot;
use super::state::Offer;
use super::subscriptions::{SubscribeError, by_subscription};
use super::wire::{Verb, Wire};

/// The result of a request that has no content.
const EMPTY: &[u8] = b"{}";

impl Connection {
    /// Whether the server says that it has such things at all.
    pub fn offers(&self, offer: &Offer, item: &Item) -> Result<(), Failure> {
        let capabilities = offer.peer.peer_info().map(|info| info.capabilities.clone()).unwrap_or_default();
        let lacking = match item {
            Item::Tool(_) => None,
            Item::Resource(_) | Item::List(Listing::Resources) => {
                capabilities.resources.is_none().then_some(Listing::Resources)
            }
            Item::Prompt(_) | Item::List(Listing::Prompts) => {
                capabilities.prompts.is_none().then_some(Listing::Prompts)
            }
        };
        let Some(lacking) = lacking else { return Ok(()) };
        let message = format!("server {} offers no {} at all", self.name, lacking.as_str());
        Err(self.failure(FailureCode::UnknownTool, message))
    }

    /// Sends a permitted call, whose turn it is. When the caller stops waiting, the upstream is told that it is cancelled.
    pub async fn call(
        &self,
        offer: &Offer,
        turn: Slot,
        permitted: PermittedCall,
        timeout: Option<Duration>,
        caller: &Caller,
    ) -> Result<Vec<u8>, Failure> {
        let item = &permitted.item().clone();
        let patience = self.patience(timeout);
        let is_subscribing = matches!(caller.wire.as_deref(), Some(Wire { verb: Verb::Subscribe, .. }));
        let outcome = match item {
            Item::List(listing) => self.list(offer, *listing, patience.limit).await,
            item if is_subscribing && by_subscription(&offer.peer) => {
                self.subscribe(offer, item, patience.limit).await
            }
            item => {
                let arguments = permitted.into_arguments();
                Rounds { connection: self, offer, item, arguments, patience, caller }.run(turn).await
            }
        };
        let named = (!matches!(item, Item::List(_))).then(|| item.to_string());
        outcome.map_err(|error| Failure { tool: named, ..self.failure(error.code, error.message) })
    }

    /// How long a call is waited for. A time that code has set is what it says; the configured one is for a server that has
    /// fallen silent.
    fn patience(&self, timeout: Option<Duration>) -> Patience {
        match timeout {
            Some(timeout) => {
                let longest = self.limits.call_timeout_max.max(self.limits.call_timeout);
                Patience { limit: timeout.min(longest), restarts: false }
            }
            None => Patience { limit: self.limits.call_timeout, restarts: true },
        }
    }

    async fn list(&self, offer: &Offer, listing: Listing, limit: Duration) -> Result<Vec<u8>, CallError> {
        let sent = Instant::now();
        let list = lists::list(&offer.peer, listing, limit).await;
        self.note(list.as_ref().err(), sent.elapsed());
        list.map_err(|error| self.call_error(&error, limit))
    }

    async fn subscribe(&self, offer: &Offer, item: &Item, limit: Duration) -> Result<Vec<u8>, CallError> {
        match self.subscriptions.follow(&offer.peer, item.as_str(), limit).await {
            Ok(()) => Ok(EMPTY.to_vec()),
            Err(SubscribeError::Request(error)) => Err(self.call_error(&error, limit)),
            Err(error @ SubscribeError::TooMany { .. }) => Err(CallError::failed(error.to_string())),
        }
    }

    /// Health is known by real traffic.
    fn note(&self, error: Option<&ServiceError>, took: Duration) {
        telemetry::exchanged(self.name.as_str(), took, error.is_some());
        match error {
            None => self.signals.note_answer(took),
            Some(ServiceError::Timeout { .. }) => self.signals.suspect.notify_one(),
            Some(_) => {}
        }
    }

    fn call_error(&self, error: &ServiceError, limit: Duration) -> CallError {
        errors::call_error(&self.name, &self.secrets, error, limit)
    }
}
