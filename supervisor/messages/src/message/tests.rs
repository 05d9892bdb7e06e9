//! Every message can be written and read.

use std::fmt::Debug;

use lockhouse_base::principal::{Grant, Principal, Standing};
use rmcp::model::{CompleteRequestParams, ProgressNotificationParam};
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
    let search = Search { query: "mail".into(), limit: 3, detail: Detail::Full, language: Language::Python };
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
    let progress = serde_json::from_value(json!({"progressToken": 1, "progress": 0.5})).expect("progress");
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
    survives(ToFront::Settings(FrontSettings { wait: Duration::from_secs(45), ..FrontSettings::default() }));
}
