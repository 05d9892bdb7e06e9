//! MCP requests that start or follow runs. A request waits for its run
//! for a limited time. A run that takes longer continues without the request, and later requests of the
//! same client find it by its handle.

mod request_state;
mod run_follower;
mod suspended_requests;
mod tasks;

use lockhouse_link::{Exchange, ExchangeStep};
use lockhouse_messages::{Event, Input, Response, RunView};

pub(super) use request_state::new_handle;
pub(super) use run_follower::RunTool;
pub(super) use suspended_requests::SuspendedRequests;

use super::answer::ToolAnswer;

/// Asks the engine, which executes programs, for the state of a run. If the run has ended meanwhile,
/// returns its final response as `Err`.
async fn run_view(exchange: &mut Exchange) -> Result<RunView, Response> {
    exchange.send(Input::View);
    loop {
        match exchange.next().await {
            ExchangeStep::Event(Event::View(view)) => return Ok(view),
            ExchangeStep::Event(_) => {}
            ExchangeStep::Finished(response) => return Err(response),
        }
    }
}

/// Converts the final response for a run to an answer for the AI client.
fn response_to_answer(response: Response) -> ToolAnswer {
    match response {
        Response::Run(ended) => ToolAnswer::Run(ended),
        other => ToolAnswer::failed_request(&other.into_failure(), "the execution"),
    }
}
