//! The messages.

use std::time::Duration;

use lockhouse_base::language::Language;
use lockhouse_protocol::{Detail, ExecutionId, ResultHandle, ServerName};
use rmcp::model::ErrorData;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    Answer, CallOutcome, Caller, Changed, DirectCall, EndedRun, List, OpenQuestion, Passed, RunCode, RunView,
    Unasked,
};

/// The version of these messages. An engine refuses a front that speaks another one.
pub const VERSION: u32 = 1;

/// Names one exchange of a front; a front counts upwards from 1, and a number is never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ExchangeId(pub u64);

/// From a front to the engine.
#[derive(Debug, Serialize, Deserialize)]
pub enum ToEngine {
    /// The first message.
    Hello { version: u32 },
    /// Opens an exchange.
    Request(ExchangeId, Box<Caller>, Box<Request>),
    /// Something for an exchange that is open.
    Input(ExchangeId, Input),
    /// Nobody follows the exchange any more. A run that nobody else follows or keeps is cancelled.
    Close(ExchangeId),
    /// What was granted to a client counts no more: what it began ends.
    Revoke { grant: u64 },
    /// The front ends, and with it all that it began.
    Goodbye,
}

/// From the engine to a front.
#[derive(Debug, Serialize, Deserialize)]
pub enum ToFront {
    /// The answer to [`ToEngine::Hello`].
    Welcome {
        version: u32,
    },
    /// Nothing else is answered.
    Unsupported {
        version: u32,
    },
    /// What a front has to know: after the welcome, and again when it changes.
    Settings(FrontSettings),
    Event(ExchangeId, Event),
    /// The last message of an exchange.
    Response(ExchangeId, Response),
}

/// What a front has to know of the engine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrontSettings {
    /// Whether AI clients have any server directly.
    pub has_direct: bool,
    /// Whether models have the tool `health`.
    pub health_tool: bool,
    /// How long a request waits for the answer of its run.
    pub wait: Duration,
    /// How long a run and what is kept of its answer last at most.
    pub task_lifetime: Duration,
}

/// What a front asks for.
#[derive(Debug, Serialize, Deserialize)]
pub enum Request {
    /// Answered with [`Response::Run`], after events of the run.
    RunCode(RunCode),
    /// The same for a run that goes on without a request, or has ended: [`Event::Following`] comes first if it goes on.
    FollowRun(RunName),
    /// Answered with [`Response::Json`].
    Search(Search),
    /// A part of a result that is kept, from this byte on. Answered with [`Response::Json`].
    ReadResult { handle: ResultHandle, offset: usize },
    /// Of all servers that clients have directly: [`Response::Entries`].
    List(List),
    /// Answered with [`Response::Call`].
    Call(DirectCall),
    /// Follows what changes of what the client is shown, until the exchange is closed: an [`Event::Changed`] at a time, the
    /// next one after [`Input::Told`].
    FollowChanges,
    /// How the service is, as JSON; for a client that is granted a part of the servers, of the service alone.
    Health,
    /// Why the service takes no requests: [`Response::Reasons`]; none if it does.
    Readiness,
    /// The figures, as Prometheus reads them.
    Metrics,
}

/// How a run is found again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunName {
    /// Under which it was told to go on without a request.
    Handle(ResultHandle),
    /// While it goes on.
    Execution(ExecutionId),
}

/// A search for tools.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Search {
    pub query: String,
    pub detail: Detail,
    pub language: Language,
}

/// What a front says during an exchange.
#[derive(Debug, Serialize, Deserialize)]
pub enum Input {
    /// To the question with this key.
    Answer(String, Result<Answer, Unasked>),
    /// Asks for all questions of a run that have no answer yet: [`Event::Questions`].
    Questions,
    /// Asks what the run is doing: [`Event::View`].
    View,
    /// Lets the run go on without a request: [`Event::Kept`].
    Keep,
    /// Ends the run, whoever follows it.
    Cancel,
    /// The client was told of what has changed; the next changes may come.
    Told,
}

/// What the engine says during an exchange.
#[derive(Debug, Serialize, Deserialize)]
pub enum Event {
    Following(ExecutionId),
    /// To the person, whose answer is an input.
    Question(OpenQuestion),
    Questions(Vec<OpenQuestion>),
    View(RunView),
    /// The handle of the run; none if it cannot be kept now.
    Kept(Option<ResultHandle>),
    /// Progress, in words.
    Note(String),
    /// What a server says that the client has directly.
    Passed(Passed),
    Changed(Changed),
}

/// How an exchange ends.
#[derive(Debug, Serialize, Deserialize)]
pub enum Response {
    Run(Box<EndedRun>),
    Json(Value),
    Entries(Vec<String>),
    /// With the server that was called.
    Call(ServerName, CallOutcome),
    Reasons(Vec<String>),
    Text(Option<String>),
    /// There is no such run, tool or result.
    NotFound,
    /// The request cannot be meant so, in words for the client.
    Invalid(String),
    /// The same as an error of MCP.
    Error(ErrorData),
    /// The engine failed, and says nothing more.
    Broken,
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use lockhouse_base::principal::{Grant, Principal, Standing};
    use rmcp::model::{
        ArgumentInfo, CompleteRequestParams, ProgressNotificationParam, PromptReference, Reference,
    };
    use serde::de::DeserializeOwned;
    use serde_json::json;

    use super::*;
    use crate::{Abilities, Action, Course, File, Passed, PersonWait, Question, RunState, Target};

    /// Writes a message, reads it, and compares what both say of themselves.
    fn survives<M: Serialize + DeserializeOwned + Debug>(message: M) {
        let written = serde_json::to_string(&message).expect("it can be written");
        let read: M = serde_json::from_str(&written).expect("it can be read");
        assert_eq!(format!("{message:?}"), format!("{read:?}"), "{written}");
    }

    fn handle() -> ResultHandle {
        ResultHandle::new("r-1").expect("a handle")
    }

    fn question() -> OpenQuestion {
        let question = Question::Form { message: "Who?".into(), schema: json!({"type": "object"}) };
        OpenQuestion { key: "question-1".into(), question, patience: Duration::from_millis(1_500) }
    }

    #[test]
    fn what_a_front_says_survives_being_written() {
        let standing = Standing::Revocable(Grant::default());
        let principal = Principal::proven("token:desk", "desk", Some(vec!["git.log".into()]), standing);
        let abilities = Abilities { form: true, ..Abilities::default() };
        let caller = Caller::new(&principal, principal.client(None), abilities);
        assert!(caller.grant.is_some());
        let program = RunCode {
            language: Language::Typescript,
            code: "1 + 1".into(),
            timeout: Some(Duration::from_secs_f64(0.25)),
            servers: Some(vec!["git".into()]),
            session: Some("work".into()),
        };
        let completion: CompleteRequestParams = serde_json::from_value(json!({
            "ref": {"type": "ref/prompt", "name": "greet"},
            "argument": {"name": "who", "value": "A"},
        }))
        .expect("parameters");
        let call = |action| DirectCall {
            target: Target::Prompt("greet".into()),
            action,
            arguments: "{}".into(),
            calls_again: true,
            responses: Some([("question".to_owned(), json!({"action": "accept"}))].into()),
            state: Some("state".into()),
        };
        let search = Search { query: "mail".into(), detail: Detail::Full, language: Language::Python };
        for request in [
            Request::RunCode(program),
            Request::FollowRun(RunName::Handle(handle())),
            Request::FollowRun(RunName::Execution(ExecutionId(u128::MAX - 7))),
            Request::Search(search),
            Request::ReadResult { handle: handle(), offset: 7 },
            Request::List(List::ResourceTemplates),
            Request::Call(call(Action::Complete(Box::new(completion)))),
            Request::Call(call(Action::Subscribe)),
            Request::FollowChanges,
            Request::Health,
            Request::Readiness,
            Request::Metrics,
        ] {
            survives(ToEngine::Request(ExchangeId(1), Box::new(caller.clone()), Box::new(request)));
        }
        for input in [
            Input::Answer("question-1".into(), Ok(Answer::Accept(Some(json!({"a": 1.5}))))),
            Input::Answer("question-1".into(), Ok(Answer::Accept(None))),
            Input::Answer("question-1".into(), Err(Unasked::Busy)),
            Input::Questions,
            Input::View,
            Input::Keep,
            Input::Cancel,
            Input::Told,
        ] {
            survives(ToEngine::Input(ExchangeId(2), input));
        }
        survives(ToEngine::Hello { version: VERSION });
        survives(ToEngine::Close(ExchangeId(3)));
        survives(ToEngine::Revoke { grant: 4 });
        survives(ToEngine::Goodbye);
    }

    #[test]
    fn what_the_engine_says_survives_being_written() {
        let server = ServerName::new("git").expect("a name");
        let person = PersonWait { about: "approval of git.push".into(), since: Duration::from_secs(3) };
        let course = Course {
            elapsed: Duration::from_micros(1),
            calls: 2,
            under_way: [("git.log".to_owned(), 1)].into(),
            person: Some(person),
            stdout: "\u{1f980}".into(),
        };
        let execution = ExecutionId(u128::MAX);
        let view = |state| RunView { execution, age: Duration::from_secs(1), begun: "then".into(), state };
        let ended = EndedRun {
            execution,
            cancelled: false,
            is_error: false,
            begun: "then".into(),
            ended: "now".into(),
            json: json!({"value": [1, 1.5, null, "x"], "stats": {}}),
            files: vec![File { base64: "YQ==".into(), mime_type: "a/b".into(), name: None }],
        };
        let progress =
            serde_json::from_value(json!({"progressToken": 1, "progress": 0.5})).expect("progress");
        let progress: ProgressNotificationParam = progress;
        let changed =
            Changed { tools: true, updated: vec![(server.clone(), "a:b".into())], ..Changed::default() };
        for event in [
            Event::Following(execution),
            Event::Question(question()),
            Event::Questions(vec![question()]),
            Event::View(view(RunState::Running(course))),
            Event::View(view(RunState::Queued)),
            Event::Kept(Some(handle())),
            Event::Kept(None),
            Event::Note("half".into()),
            Event::Passed(Passed::Progress(progress)),
            Event::Passed(Passed::Log(json!({"level": "info"}))),
            Event::Changed(changed),
        ] {
            survives(ToFront::Event(ExchangeId(1), event));
        }
        let raw = r#"{"content":[{"n":1e400}],"\u0061":1.0}"#;
        for response in [
            Response::Run(Box::new(ended)),
            Response::Json(json!({"tools": []})),
            Response::Entries(vec![raw.into()]),
            Response::Call(server.clone(), CallOutcome::Result(raw.into())),
            Response::Call(server, CallOutcome::Error(ErrorData::invalid_params("no", Some(json!(1))))),
            Response::Reasons(vec!["the audit log".into()]),
            Response::Text(None),
            Response::NotFound,
            Response::Invalid("no".into()),
            Response::Error(ErrorData::internal_error("no", None)),
            Response::Broken,
        ] {
            survives(ToFront::Response(ExchangeId(1), response));
        }
        survives(ToFront::Welcome { version: VERSION });
        survives(ToFront::Unsupported { version: VERSION });
        survives(ToFront::Settings(FrontSettings {
            wait: Duration::from_secs(45),
            ..FrontSettings::default()
        }));
    }
}
