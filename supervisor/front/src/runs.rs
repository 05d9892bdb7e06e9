//! Requests about runs of code: each follows its run to the answer, for as long as a client can be expected to wait. Then the run
//! goes on in the engine without a request, and any later request of the same client follows it again by its handle.

mod follow;
mod running;
mod suspended;
mod tasks;

use lockhouse_messages::{EndedRun, Event, Exchange, Input, Response, RunView, Step};
use rmcp::model::CallToolResult;

pub(super) use follow::Tool;
pub(super) use suspended::{Suspended, new_handle};

use super::{content, invalid};

/// What a run is doing; its response if it ended meanwhile.
async fn view(exchange: &mut Exchange) -> Result<RunView, Response> {
    exchange.send(Input::View);
    loop {
        match exchange.next().await {
            Step::Event(Event::View(view)) => return Ok(view),
            Step::Event(_) => {}
            Step::Over(response) => return Err(response),
        }
    }
}

/// The answer of a run, as MCP has it.
fn result(response: Response) -> CallToolResult {
    match response {
        Response::Run(ended) => ended_result(*ended),
        Response::Invalid(message) => invalid(&message),
        _ => invalid("the execution broke"),
    }
}

fn ended_result(ended: EndedRun) -> CallToolResult {
    let EndedRun { execution, is_error, json, files, .. } = ended;
    let mut result = match is_error {
        false => CallToolResult::structured(json),
        true => CallToolResult::structured_error(json),
    };
    let blocks = files.into_iter().enumerate();
    result.content.extend(blocks.map(|(index, file)| content::block(execution, index + 1, file)));
    result
}
