//! Requests to run a program, and to follow one that goes on.

use std::sync::Arc;

use lockhouse_base::telemetry;
use lockhouse_messages::{EndedRun, Event, Input, Response, RunCode, RunName};
use tokio_util::sync::CancellationToken;

use super::exchange::Exchange;
use crate::direct::Client;
use crate::execution::{self, Answer, Showing, Shown, Status};
use crate::runs::{Found, Run, Step};
use crate::sessions::{SessionKey, SessionName};
use crate::supervisor::{CodeRequest, Supervisor};

pub(super) async fn run(
    supervisor: &Arc<Supervisor>,
    client: Client,
    program: RunCode,
    exchange: &mut Exchange,
    over: CancellationToken,
) -> Option<Response> {
    let owner = client.principal.owner();
    let RunCode { language, code, timeout, servers, session } = program;
    let session = match session.map(|name| SessionName::new(&name)).transpose() {
        Ok(name) => name.map(|name| SessionKey { owner, name }),
        Err(invalid) => return Some(Response::Invalid(invalid.to_string())),
    };
    let request = CodeRequest { language, code, timeout, servers, session };
    let (line, followed) = client.line();
    let (engine, stop) = (supervisor.clone(), over.clone());
    let answering = async move {
        let answer = engine.run_code_for(Some(line), request, &stop).await;
        shown(&engine, &client, answer)
    };
    follow(supervisor, supervisor.runs().start(owner, followed, over, answering), exchange).await
}

pub(super) async fn follow_again(
    supervisor: &Arc<Supervisor>,
    client: &Client,
    name: &RunName,
    exchange: &mut Exchange,
) -> Option<Response> {
    match supervisor.runs().find(client.principal.owner(), name) {
        None => Some(Response::NotFound),
        Some(Found::Ended(ended)) => Some(Response::Run(ended)),
        Some(Found::Run(run)) => {
            exchange.send(Event::Following(run.execution()));
            follow(supervisor, run, exchange).await
        }
    }
}

/// To the end of the run, or until nobody follows it here.
async fn follow(supervisor: &Arc<Supervisor>, run: Run, exchange: &mut Exchange) -> Option<Response> {
    loop {
        tokio::select! {
            biased;
            input = exchange.input() => match input? {
                Input::Answer(key, answer) => run.answer(&key, answer),
                Input::Questions => exchange.send(Event::Questions(run.questions())),
                Input::View => exchange.send(Event::View(run.view().await)),
                Input::Keep => exchange.send(Event::Kept(supervisor.runs().keep(&run))),
                Input::Cancel => run.cancel(),
                Input::Told => {}
            },
            step = run.next() => match step {
                Step::Question(question) => exchange.send(Event::Question(question)),
                Step::Progress(words) => exchange.send(Event::Note(words)),
                Step::Over(Some(ended)) => return Some(Response::Run(Box::new((*ended).clone()))),
                Step::Over(None) => return Some(Response::Broken),
            },
        }
    }
}

/// What a model is shown of an answer; what is cut is kept for it.
fn shown(supervisor: &Supervisor, client: &Client, answer: Answer) -> EndedRun {
    let keep = |json: &str| supervisor.results().keep(client.principal.owner(), json);
    let limits = supervisor.settings().display;
    let more = "get_result(handle)";
    let Shown { json, files } =
        execution::shown(&answer, &Showing { limits, more, takes_files: true, keep: &keep });
    telemetry::kept_out(json["stats"]["bytes_kept_out"].as_u64().unwrap_or(0));
    let (cancelled, is_error) = (answer.status == Status::Cancelled, answer.status != Status::Ok);
    // The run sets its times.
    let (execution, begun, ended) = (answer.execution, String::new(), String::new());
    EndedRun { execution, cancelled, is_error, begun, ended, json, files }
}
