//! Serves requests of the front to run code, and to follow a background run.

use std::sync::Arc;

use lockhouse_base::principal::Principal;
use lockhouse_base::telemetry;
use lockhouse_messages::{BuiltinTool, Event, Input, Response, RunAnswer, RunCode, RunReference};
use lockhouse_protocol::ResultHandle;

use super::exchange::{Credit, EngineExchange};
use super::{ChosenId, FrontLife, digest_of};
use crate::execution::{self, DisplayOptions, ExecutionAnswer, FileStorage, RenderedAnswer};
use crate::runs::{Admission, RunHandle, RunLookup, RunUpdate};
use crate::sessions::{SessionKey, SessionName};
use crate::supervisor::{CodeRequest, Supervisor};

pub(super) async fn run(
    supervisor: &Arc<Supervisor>,
    client: Principal,
    id: ChosenId,
    mut program: RunCode,
    exchange: &mut EngineExchange,
    life: FrontLife,
) -> Option<Response> {
    let owner = client.owner();
    let session = match program.session.as_deref().map(SessionName::new).transpose() {
        Ok(name) => name.map(|name| SessionKey { owner, name }),
        Err(invalid) => return Some(Response::Invalid(invalid.to_string())),
    };
    if program.is_offered && (supervisor.is_withdrawn() || !supervisor.has_free_worker(program.language)) {
        return Some(Response::NotFound);
    }
    let runs = supervisor.runs();
    // The ids in the claims differ when a request is sent again.
    let claims = std::mem::take(&mut program.claims);
    let digest = id.is_chosen.then(|| digest_of(&program));
    match runs.admit(owner, id.id, digest) {
        Admission::New => {}
        Admission::Refused(reason) => return Some(Response::Invalid(reason.to_owned())),
        Admission::Run(RunLookup::Ended(ended)) => return Some(Response::Run(ended)),
        Admission::Run(RunLookup::Live(run)) => return follow(supervisor, run, exchange, &life).await,
    }
    let RunCode { language, code, timeout, servers, for_program, .. } = program;
    let request = CodeRequest { timeout, servers, session, claims, ..CodeRequest::new(language, code) };
    let (channel, follower, progress_requests) = supervisor.open_channel(&client, false);
    let (engine, stop) = (supervisor.clone(), life.runs.clone());
    // On the heap: a task copies its future several times, and this one has kilobytes.
    let answering = Box::pin(async move {
        let answer = engine.run_code_for(channel, progress_requests, request, &stop).await;
        if !answer.has_files() {
            return render(&engine, &client, answer, for_program);
        }
        // Files are written to disk and read from it.
        let rendering = tokio::task::spawn_blocking(move || render(&engine, &client, answer, for_program));
        rendering.await.unwrap_or_else(|error| {
            tracing::error!("an answer was lost: {error}");
            let answer = RunAnswer::without_run("InternalError", "the answer was lost");
            RenderedAnswer { answer, files: Vec::new() }
        })
    });
    let run = runs.start(owner, follower, life.runs.clone(), answering);
    runs.set_run_of(owner, id.id, &run, id.is_chosen);
    if supervisor.cluster().is_some() {
        // Any host may get the user's answers to the questions of the run.
        exchange.send(Event::Following(run.execution())).await;
    }
    follow(supervisor, run, exchange, &life).await
}

pub(super) async fn resume_following(
    supervisor: &Arc<Supervisor>,
    client: &Principal,
    name: &RunReference,
    exchange: &mut EngineExchange,
    life: &FrontLife,
) -> Option<Response> {
    match supervisor.runs().find(client.owner(), name) {
        None => Some(Response::NotFound),
        Some(RunLookup::Ended(ended)) => Some(Response::Run(ended)),
        Some(RunLookup::Live(run)) => {
            exchange.send(Event::Following(run.execution())).await;
            follow(supervisor, run, exchange, life).await
        }
    }
}

/// Follows the background run with this handle, or reads a page of the stored result.
pub(super) async fn get_result(
    supervisor: &Arc<Supervisor>,
    client: &Principal,
    handle: ResultHandle,
    offset: usize,
    exchange: &mut EngineExchange,
    life: &FrontLife,
) -> Option<Response> {
    let name = RunReference::Handle(handle.clone());
    match resume_following(supervisor, client, &name, exchange, life).await {
        Some(Response::NotFound) => Some(supervisor.read_result(client, &handle, offset)),
        other => other,
    }
}

/// Reports the events of a run to the front and carries out the front's inputs. Returns the response when the run
/// ends, or `None` when the front closes the exchange or abandons the run. If the front is lost and the run continues, the
/// run goes to the background: its owner finds it there.
async fn follow(
    supervisor: &Arc<Supervisor>,
    run: RunHandle,
    exchange: &mut EngineExchange,
    life: &FrontLife,
) -> Option<Response> {
    let (following, credit) = (run.count_follower(), exchange.credit());
    loop {
        tokio::select! {
            biased;
            input = exchange.input() => match input {
                None => {
                    if life.is_lost() {
                        supervisor.runs().keep(&run);
                    }
                    return None;
                }
                Some(Input::Answer(key, answer)) => run.answer(&key, answer),
                Some(Input::Questions) => exchange.send(Event::Questions(run.questions())).await,
                Some(Input::View) => exchange.send(Event::View(run.view().await)).await,
                Some(Input::Detach) => {
                    exchange.send(Event::Detached(supervisor.runs().keep(&run))).await;
                }
                Some(Input::Cancel) => run.cancel(),
                Some(Input::Abandon) => {
                    drop(following);
                    run.end_if_abandoned(supervisor.settings().runs.abandoned);
                    return None;
                }
                Some(Input::Suspend(_) | Input::ChangesDelivered | Input::Approval(_)) => {}
            },
            step = next_update(&credit, &run) => match step {
                RunUpdate::Question(question) => exchange.send(Event::Question(question)).await,
                RunUpdate::Progress(words) => exchange.send(Event::ProgressMessage(words)).await,
                RunUpdate::Finished(Some(ended)) => return Some(Response::Run(ended)),
                RunUpdate::Finished(None) => return Some(Response::EngineFailed),
            },
        }
    }
}

/// Returns the next update of a run: at any time the end of the run, and the others when the front can get one more event.
async fn next_update(credit: &Credit, run: &RunHandle) -> RunUpdate {
    tokio::select! {
        biased;
        () = credit.available() => run.next().await,
        finished = run.finished() => RunUpdate::Finished(finished),
    }
}

/// Builds the answer to a run within the size limits for the AI client, and stores the values that exceed
/// these limits. `for_program` permits a longer value, because a program of the AI client reads the answer.
fn render(
    supervisor: &Supervisor,
    client: &Principal,
    answer: ExecutionAnswer,
    for_program: bool,
) -> RenderedAnswer {
    let owner = client.owner();
    let keep = |json: &str| supervisor.results().store(owner, json);
    let storage = FileStorage { files: supervisor.result_files(), owner };
    let mut limits = supervisor.settings().display;
    if for_program {
        limits.part_bytes = limits.part_bytes.max(limits.program_bytes);
    }
    let reader = supervisor.settings().builtin_tools.exposed_name(BuiltinTool::GetResult);
    let next_part_hint = &*format!("{reader}(handle)");
    let rendered = execution::render_answer(
        &answer,
        &DisplayOptions { limits, next_part_hint, extract_files: true, storage, keep: &keep },
    );
    if let Some(usage) = &rendered.answer.usage {
        telemetry::count_withheld_bytes(usage.stats.bytes_kept_out as u64);
    }
    rendered
}
