//! Passes each request of a front to what serves it.

use std::ops::ControlFlow;
use std::sync::Arc;

use lockhouse_base::principal::Principal;
use lockhouse_messages::{McpSessionRequest, Request, Response, SessionMessage};

use super::exchange::EngineExchange;
use super::forwarding::Elsewhere;
use super::{
    ChosenId, FrontLife, OperatorPeer, call_requests, change_notifications, code_requests, operator_requests,
    search_requests,
};
use crate::supervisor::Supervisor;

/// Serves one request of a front.
pub(super) struct RequestServer {
    pub(super) supervisor: Arc<Supervisor>,
    pub(super) client: Principal,
    pub(super) operator: Option<OperatorPeer>,
    pub(super) id: ChosenId,
    pub(super) life: FrontLife,
}

impl RequestServer {
    /// Serves a request here, or at another host of the cluster. Returns the response, if there is one.
    pub(super) async fn serve(
        self,
        elsewhere: Option<Elsewhere>,
        request: Request,
        exchange: &mut EngineExchange,
    ) -> Option<Response> {
        let request = match elsewhere {
            Some(elsewhere) => {
                let served = elsewhere.serve(&self.client, self.id, request, exchange, &self.life);
                match served.await {
                    ControlFlow::Continue(request) => request,
                    ControlFlow::Break(response) => return response,
                }
            }
            None => request,
        };
        self.serve_here(request, exchange).await
    }

    /// Serves a request here. The large futures are on the heap, because a task copies its future several times, and each request
    /// would pay for the largest one.
    async fn serve_here(self, request: Request, exchange: &mut EngineExchange) -> Option<Response> {
        let Self { supervisor, client, operator, id, life } = self;
        let supervisor = &supervisor;
        match request {
            Request::RunCode(program) => {
                code_requests::run(supervisor, client, id, program, exchange, life).await
            }
            Request::FollowRun(name) => {
                code_requests::resume_following(supervisor, &client, &name, exchange, &life).await
            }
            Request::GetResult { handle, offset } => {
                code_requests::get_result(supervisor, &client, handle, offset, exchange, &life).await
            }
            Request::Call(call) => {
                Box::pin(call_requests::serve(supervisor, &client, id, call, exchange, life.runs)).await
            }
            Request::ResumeCall(resumed) => {
                Box::pin(call_requests::resume(supervisor, &client, resumed, exchange)).await
            }
            Request::FollowChanges => {
                Box::pin(change_notifications::follow(supervisor, &client, exchange, &life.closed)).await
            }
            Request::WatchApprovals(role) => {
                // No other front makes the request.
                let operator = operator?;
                Box::pin(operator_requests::watch_approvals(
                    supervisor,
                    &operator,
                    role,
                    exchange,
                    &life.closed,
                ))
                .await
            }
            request => tokio::select! {
                biased;
                response = Box::pin(answer(supervisor, &client, operator, request)) => Some(response),
                () = exchange.closed() => None,
            },
        }
    }
}

/// Answers a request that has no events and inputs.
async fn answer(
    supervisor: &Arc<Supervisor>,
    client: &Principal,
    operator: Option<OperatorPeer>,
    request: Request,
) -> Response {
    match request {
        Request::McpSession(McpSessionRequest::Deliver { id: session, message, .. }) => {
            supervisor.deliver(&SessionMessage { session, owner: client.owner(), message });
            Response::Text(None)
        }
        Request::McpSession(request) => {
            Response::Text(supervisor.mcp_sessions().carry_out(client.owner(), request))
        }
        Request::Search(search) => Response::Json(search_requests::serve(supervisor, client, &search).await),
        Request::List(list) => Response::Entries(supervisor.direct().list(supervisor, client, list).await),
        Request::DescribeCatalogue => Response::Text(Some(supervisor.catalogue_description(client).await)),
        Request::ReadFile { handle } => supervisor.read_file(client, handle).await,
        Request::Health => Response::Json(supervisor.health_for(client)),
        Request::ServiceHealth => Response::Json(supervisor.complete_health()),
        Request::Readiness => Response::Reasons(supervisor.unready_reasons()),
        Request::Metrics => Response::Text(supervisor.render_metrics()),
        Request::Operator(request) => {
            let by = operator.as_ref().and_then(OperatorPeer::user);
            Response::Operator(operator_requests::carry_out(supervisor, request, by).await)
        }
        Request::UserLogin(request) => supervisor.user_login(client, request).await,
        // `start_exchange` answers the first two, and `serve_here` the others.
        Request::Authenticate(_)
        | Request::SharedState
        | Request::RunCode(_)
        | Request::FollowRun(_)
        | Request::GetResult { .. }
        | Request::Call(_)
        | Request::ResumeCall(_)
        | Request::FollowChanges
        | Request::WatchApprovals(_) => Response::EngineFailed,
    }
}
