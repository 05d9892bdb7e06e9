//! Sends calls that the policy has permitted to an upstream server, and returns their results.

mod errors;
mod input_rounds;

use std::time::{Duration, Instant};

use lockhouse_base::telemetry;
use lockhouse_mcp::ResponseError;
use lockhouse_policies::{CallTarget, Listing, PermittedCall};
use lockhouse_protocol::{Failure, FailureCode};

use self::input_rounds::InputRounds;
use super::call_concurrency::CallSlot;
use super::call_types::CallError;
use super::connection::Connection;
use super::connection_state::ConnectedServer;
use super::direct_request::{DirectRequest, DirectRequestKind};
use super::request::CallTimeout;
use super::resource_and_prompt_lists;
use super::resource_subscriptions::SubscribeError;
use lockhouse_run_channel::RunChannel;

/// The result that the caller gets, as JSON, for a successful subscription to a resource.
const EMPTY: &[u8] = b"{}";

impl Connection {
    /// Checks that the server announced the capability that a call of `item` needs: resources or prompts. Tools
    /// are not checked.
    ///
    /// # Errors
    /// Returns an error if `item` is a resource or the list of resources and the server does not announce the
    /// capability `resources`, or if `item` is a prompt or the list of prompts and the server does not announce the
    /// capability `prompts`.
    pub fn check_offered(&self, offer: &ConnectedServer, item: &CallTarget) -> Result<(), Failure> {
        let capabilities = offer.client.info().map(|info| info.capabilities.clone()).unwrap_or_default();
        let lacking = match item {
            CallTarget::Tool(_) => None,
            CallTarget::Resource(_) | CallTarget::List(Listing::Resources) => {
                capabilities.resources.is_none().then_some(Listing::Resources)
            }
            CallTarget::Prompt(_) | CallTarget::List(Listing::Prompts) => {
                capabilities.prompts.is_none().then_some(Listing::Prompts)
            }
        };
        let Some(lacking) = lacking else { return Ok(()) };
        let message = format!("server {} offers no {} at all", self.name, lacking.as_str());
        Err(self.failure(FailureCode::UnknownTool, message))
    }

    /// Sends a call that the policy has permitted, and returns its result as JSON. `slot` is the call's slot among the
    /// server's concurrent calls; `timeout` is the timeout that submitted code has set, if any; `direct` is the request of an
    /// AI client that uses the server directly. If the future is
    /// dropped, the call is cancelled at the server.
    pub async fn call(
        &self,
        offer: &ConnectedServer,
        slot: CallSlot,
        permitted: PermittedCall,
        timeout: Option<Duration>,
        channel: &RunChannel,
        direct: Option<&DirectRequest>,
    ) -> Result<Vec<u8>, Failure> {
        let item = &permitted.item().clone();
        let timeout = self.timeout(timeout);
        let is_subscribing = matches!(direct, Some(DirectRequest { verb: DirectRequestKind::Subscribe, .. }));
        let outcome = match item {
            CallTarget::List(listing) => self.list(offer, *listing, timeout.limit).await,
            item if is_subscribing && offer.client.is_modern() => {
                self.subscribe(offer, item, timeout.limit).await
            }
            item => {
                let arguments = permitted.into_arguments();
                InputRounds { connection: self, offer, item, arguments, timeout, channel, direct }
                    .run(slot)
                    .await
            }
        };
        let named = (!matches!(item, CallTarget::List(_))).then(|| item.to_string());
        outcome.map_err(|error| Failure {
            tool: named,
            result: error.result,
            ..self.failure(error.code, self.with_sandbox_advice(error.message))
        })
    }

    /// Names the setting of the sandbox in an error text of a sandboxed server that reports a refused access.
    fn with_sandbox_advice(&self, message: String) -> String {
        match &self.refusals {
            Some(refusals) if refusals.is_refusal(&message) => message + &refusals.model_advice(),
            _ => message,
        }
    }

    /// Returns the timeout of a call. `timeout` is the timeout that submitted code has set; it is reduced to the
    /// configured maximum, and progress notifications do not restart it. If submitted code has set none, the configured
    /// timeout applies, which each progress notification restarts.
    fn timeout(&self, timeout: Option<Duration>) -> CallTimeout {
        match timeout {
            Some(timeout) => {
                let longest = self.limits.call_timeout_max.max(self.limits.call_timeout);
                CallTimeout { limit: timeout.min(longest), restarts_on_progress: false }
            }
            None => CallTimeout { limit: self.limits.call_timeout, restarts_on_progress: true },
        }
    }

    async fn list(
        &self,
        offer: &ConnectedServer,
        listing: Listing,
        limit: Duration,
    ) -> Result<Vec<u8>, CallError> {
        let sent = Instant::now();
        let list = resource_and_prompt_lists::list(&offer.client, listing, limit).await;
        self.record_outcome(list.as_ref().err(), sent.elapsed());
        list.map_err(|error| self.call_error(&error, limit))
    }

    async fn subscribe(
        &self,
        offer: &ConnectedServer,
        item: &CallTarget,
        limit: Duration,
    ) -> Result<Vec<u8>, CallError> {
        match self.subscriptions.subscribe(&offer.client, item.as_str(), limit).await {
            Ok(()) => Ok(EMPTY.to_vec()),
            Err(SubscribeError::Request(error)) => Err(self.call_error(&error, limit)),
            Err(error @ SubscribeError::TooMany { .. }) => Err(CallError::tool_failed(error.to_string())),
        }
    }

    /// Records for metrics and for the connection task how a request to the server ended, and that it took the time
    /// `took`. `error` is `None` if the server answered with a result.
    fn record_outcome(&self, error: Option<&ResponseError>, took: Duration) {
        telemetry::record_upstream_request(self.name.as_str(), took, error.is_some());
        match error {
            None => self.signals.record_answer(took),
            Some(ResponseError::Timeout(_)) => self.signals.call_timed_out.notify_one(),
            Some(_) => {}
        }
    }

    fn call_error(&self, error: &ResponseError, limit: Duration) -> CallError {
        errors::call_error(&self.name, &self.secrets, error, limit)
    }
}
