//! Which requests a connection may carry, and what a request of a front in another process holds until it has its response.

use lockhouse_base::lifecycle::InFlightGuard;
use lockhouse_link::Counted;
use lockhouse_messages::{
    ExchangeId, McpSessionRequest, OperatorRequest, Repetition, Request, Response, RunCode,
};

use super::FrontConnection;

/// The response to a run at a host that drains, and to one that another host does not send it any more.
pub(super) const HOST_ENDS: &str =
    "the host that has what this request names ends. Nothing was run; send it again when it has ended";

/// The place in a drain and the memory that a request of a front in another process holds until it has its response.
#[derive(Default)]
pub(super) struct RemoteAdmission {
    /// Makes a drain wait for the request. `None` if it follows changes, which never ends by itself.
    _in_flight: Option<InFlightGuard>,
    _memory: Option<Counted>,
}

impl FrontConnection {
    /// Whether the connection may carry a request. The front for HTTP operates this process only as far as readiness and metrics
    /// go. Another host of the cluster lists what is active here, and operates nothing.
    pub(super) fn may_send(&self, request: &Request) -> bool {
        match request {
            Request::Operator(OperatorRequest::ListRuns | OperatorRequest::ListSessions) => {
                self.grants.is_operator() || self.grants.is_host()
            }
            Request::Operator(_) | Request::WatchApprovals(_) => self.grants.is_operator(),
            Request::SharedState => self.grants.is_host(),
            // Each host keeps the sessions that its own fronts begin.
            Request::McpSession(McpSessionRequest::Keep { .. }) => !self.grants.is_host(),
            _ => true,
        }
    }

    /// Returns the response to a request of another host that would begin something while this one drains: its own fronts refuse
    /// such requests by themselves.
    pub(super) fn refuse_while_draining(&self, request: &Request) -> Option<Response> {
        let is_draining = self.supervisor.lifecycle().draining().is_cancelled();
        match request {
            _ if !self.grants.is_host() || !is_draining => None,
            Request::RunCode(RunCode { is_offered: true, .. }) => Some(Response::NotFound),
            Request::RunCode(_) | Request::Call(_) => Some(Response::Unavailable(HOST_ENDS.to_owned())),
            _ => None,
        }
    }

    /// Checks whether a front in another process may open one more exchange, whose request needs `bytes` of memory.
    pub(super) fn admit(
        &self,
        id: ExchangeId,
        request: &Request,
        bytes: usize,
    ) -> Result<RemoteAdmission, &'static str> {
        let lifecycle = self.supervisor.lifecycle();
        let exchanges_max = self.grants.exchanges_max();
        if self.open_exchanges.len() >= exchanges_max {
            return Err("this client has too many open requests; wait for their answers first");
        }
        if self.open_exchanges.contains(id) {
            return Err("a request with this number is open");
        }
        let memory = self.open_exchanges.reserve(bytes);
        let memory =
            memory.ok_or("the open requests of this client are too large; wait for their answers first")?;
        let in_flight = match request.repetition() {
            Repetition::Always => None,
            // A drain does not wait for operators.
            Repetition::Never | Repetition::Once if self.grants.is_operator() => None,
            Repetition::Never | Repetition::Once => Some(lifecycle.begin_request()),
        };
        Ok(RemoteAdmission { _in_flight: in_flight, _memory: Some(memory) })
    }
}
