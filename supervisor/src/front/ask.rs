//! Runs of code that have something to say before their answer: questions to the person behind the AI client, and progress.
//!
//! An AI client of the older eras is asked while its `run_code` waits. In the era without requests of servers the call is
//! answered with the question, its execution is kept, and the client calls again with what the person said.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rmcp::model::{
    ClientCapabilities, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, InputRequest,
    InputRequiredResult, InputResponses, JsonObject, ProgressNotificationParam, ProgressToken,
};
use rmcp::service::{Peer, RequestContext, RoleServer, ServiceError};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::access::{Owner, Principal};
use crate::ai_client::{Abilities, Answer, Line, Message, Posed, Question, Unasked};
use crate::execution;
use crate::supervisor::{CodeRequest, Supervisor};

/// Executions that wait for an AI client to come back, at one time.
const SUSPENDED_MAX: usize = 16;
/// Bytes of what a person said.
const CONTENT_BYTES_MAX: usize = 256 * 1024;
/// Between two notes of progress.
const PROGRESS_EVERY: Duration = Duration::from_millis(100);
const PROGRESS_CHARS_MAX: usize = 300;

type Reply = oneshot::Sender<Result<Answer, Unasked>>;

/// One execution. It is cancelled when this is dropped.
pub(super) struct Run {
    answer: JoinHandle<execution::Answer>,
    messages: mpsc::Receiver<Message>,
    _cancelling: DropGuard,
}

/// What comes of a run next.
pub(super) enum Step {
    Question(Posed),
    Progress(String),
    /// None if it broke.
    Answer(Option<Box<execution::Answer>>),
}

impl Run {
    pub(super) fn start(
        supervisor: Arc<Supervisor>,
        request: CodeRequest,
        line: Line,
        messages: mpsc::Receiver<Message>,
        token: CancellationToken,
    ) -> Self {
        let cancelling = token.clone().drop_guard();
        let run = async move { supervisor.run_code_for(Some(line), request, &token).await };
        Self { answer: tokio::spawn(run), messages, _cancelling: cancelling }
    }

    pub(super) async fn next(&mut self) -> Step {
        tokio::select! {
            biased;
            Some(message) = self.messages.recv() => match message {
                Message::Question(posed) => Step::Question(posed),
                Message::Progress(words) => Step::Progress(words),
                // Only calls that an AI client makes itself are told of so.
                Message::Passed(_) => Step::Progress(String::new()),
            },
            answer = &mut self.answer => Step::Answer(answer.ok().map(Box::new)),
        }
    }

    /// The answer, whatever else comes.
    pub(super) async fn answer(&mut self) -> Step {
        Step::Answer((&mut self.answer).await.ok().map(Box::new))
    }

    /// Further questions that are there already.
    fn questions(&mut self) -> Vec<Posed> {
        let mut questions = Vec::new();
        while let Ok(message) = self.messages.try_recv() {
            if let Message::Question(posed) = message {
                questions.push(posed);
            }
        }
        questions
    }
}

/// What an AI client says that it can do.
pub(super) fn abilities(capabilities: Option<ClientCapabilities>) -> Abilities {
    let elicitation = capabilities.and_then(|capabilities| capabilities.elicitation);
    let Some(elicitation) = elicitation else { return Abilities::default() };
    // Before there were two modes it was said in no more than its name.
    let form = elicitation.form.is_some() || elicitation.url.is_none();
    Abilities { form, url: elicitation.url.is_some(), ..Abilities::default() }
}

/// Asks during the call, as the older eras do.
pub(super) async fn ask(
    peer: &Peer<RoleServer>,
    question: Question,
    patience: Duration,
) -> Result<Answer, Unasked> {
    let parameters = parameters(question)?;
    match peer.create_elicitation_with_timeout(parameters, Some(patience)).await {
        Ok(result) => Ok(answer(result)),
        Err(ServiceError::Timeout { .. }) => Ok(Answer::Silence),
        Err(_) => Err(Unasked::Unable),
    }
}

pub(super) fn parameters(question: Question) -> Result<ElicitRequestParams, Unasked> {
    let parameters = question.shown().ok_or(Unasked::Unable)?;
    serde_json::from_value(parameters).map_err(|_| Unasked::Unable)
}

pub(super) fn answer(result: ElicitResult) -> Answer {
    let fits = |content: &Value| content.is_object() && content.to_string().len() <= CONTENT_BYTES_MAX;
    match result.action {
        ElicitationAction::Accept => match result.content {
            Some(content) if !fits(&content) => Answer::Garbled,
            content => Answer::Accept(content),
        },
        ElicitationAction::Decline => Answer::Decline,
        _ => Answer::Cancel,
    }
}

/// Executions whose AI client was asked something and is to call again.
#[derive(Clone, Default)]
pub(super) struct Suspended {
    runs: Arc<Mutex<HashMap<String, Waiting>>>,
}

struct Waiting {
    /// Whoever else comes with its handle finds nothing.
    owner: Owner,
    run: Run,
    replies: BTreeMap<String, Reply>,
    /// A call that comes back is the same call.
    arguments: JsonObject,
}

impl Suspended {
    /// Keeps a run until its client comes back, or its time is up and it is cancelled. The run itself, if there is no room.
    pub(super) fn keep(
        &self,
        principal: &Principal,
        mut run: Run,
        arguments: JsonObject,
        first: Posed,
    ) -> Result<InputRequiredResult, Run> {
        let mut runs = self.runs();
        if runs.len() >= SUSPENDED_MAX {
            let _ = first.answer.send(Err(Unasked::Busy));
            return Err(run);
        }
        let (mut requests, mut replies) = (BTreeMap::new(), BTreeMap::new());
        let mut longest = Duration::ZERO;
        for (number, posed) in std::iter::once(first).chain(run.questions()).enumerate() {
            let Posed { question, patience, answer: reply } = posed;
            match parameters(question) {
                Ok(parameters) => {
                    longest = longest.max(patience);
                    let key = format!("question-{}", number + 1);
                    requests.insert(key.clone(), InputRequest::Elicitation(ElicitRequest::new(parameters)));
                    replies.insert(key, reply);
                }
                Err(unasked) => drop(reply.send(Err(unasked))),
            }
        }
        if requests.is_empty() {
            return Err(run);
        }
        let handle = handle();
        runs.insert(handle.clone(), Waiting { owner: principal.owner(), run, replies, arguments });
        let (waiting, name) = (self.clone(), handle.clone());
        tokio::spawn(async move {
            tokio::time::sleep(longest).await;
            waiting.runs().remove(&name);
        });
        Ok(InputRequiredResult::new(Some(requests), Some(handle)))
    }

    /// The run that a client comes back to, with what the person said handed over.
    pub(super) fn resume(
        &self,
        principal: &Principal,
        handle: &str,
        arguments: &JsonObject,
        mut responses: InputResponses,
    ) -> Result<Run, &'static str> {
        let mut runs = self.runs();
        let own = |waiting: &&Waiting| waiting.owner == principal.owner();
        let waiting = runs.get(handle).filter(own).ok_or(
            "nothing waits for this answer: it came too late, or twice. The execution is over; run the code again",
        )?;
        if waiting.arguments != *arguments {
            return Err("an answer comes with the same arguments as the call that it is for");
        }
        let Some(Waiting { run, replies, .. }) = runs.remove(handle) else { return Err("it is gone") };
        for (key, reply) in replies {
            let said = responses.remove(&key).map(serde_json::from_value);
            let said = said.map_or(Answer::Cancel, |said| said.map_or(Answer::Garbled, answer));
            let _ = reply.send(Ok(said));
        }
        Ok(run)
    }

    fn runs(&self) -> MutexGuard<'_, HashMap<String, Waiting>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// More than anybody guesses: 148 bits of the kernel's randomness.
pub(super) fn handle() -> String {
    format!("{}{}", uuid::Uuid::now_v7().simple(), uuid::Uuid::now_v7().simple())
}

/// Where an AI client shows how far its call is, if it asked for that.
pub(super) struct Display {
    token: Option<ProgressToken>,
    peer: Peer<RoleServer>,
    shown: f64,
    last: Option<Instant>,
}

impl Display {
    pub(super) fn new(context: &RequestContext<RoleServer>) -> Self {
        let token = context.meta.get_progress_token();
        Self { token, peer: context.peer.clone(), shown: 0.0, last: None }
    }

    /// Shows it, unless something was shown just before. How far servers say that they are cannot be added up, so the
    /// number only counts.
    pub(super) async fn show(&mut self, words: &str) {
        let Some(token) = &self.token else { return };
        if self.last.is_some_and(|last| last.elapsed() < PROGRESS_EVERY) {
            return;
        }
        self.last = Some(Instant::now());
        self.shown += 1.0;
        let words: String = words.chars().take(PROGRESS_CHARS_MAX).collect();
        let progress = ProgressNotificationParam::new(token.clone(), self.shown).with_message(words);
        let _ = self.peer.notify_progress(progress).await;
    }
}
