//! Tests that every message between front and engine is the same after it was serialized and parsed.

use std::fmt::Debug;

use serde::de::DeserializeOwned;
use serde_json::json;

use super::*;
use crate::run_answer::tests::answer;
use crate::{
    Bodies, Caller, Claim, DirectAction, DirectTarget, ForwardedNotification, HttpRefusal, InputSupport,
    Owner, Progress, Question, RequestClaims, RequestId, ResourceMetadata, ResultFile, Roles, RunState,
    TraceContext, UserWait,
};

/// Takes the large values out of a message, serializes it to JSON, parses the JSON and puts the large values back. Asserts
/// that the message has the same debug format as the original.
fn assert_round_trip<M: Bodies + Serialize + DeserializeOwned + Debug>(mut message: M) {
    let original = format!("{message:?}");
    let bodies = message.take_bodies();
    let written = serde_json::to_string(&message).expect("it can be written");
    let mut read: M = serde_json::from_str(&written).expect("it can be read");
    read.put_bodies(bodies).expect("its large values");
    assert_eq!(original, format!("{read:?}"), "{written}");
    assert!(read.put_bodies(vec![vec![0xff]; 9]).is_err(), "too many bodies");
}

fn handle() -> ResultHandle {
    ResultHandle::new("r-1").expect("a handle")
}

fn access() -> Access {
    Access {
        grant: GrantId::CONNECTION,
        owner: Owner::of_digest([7; 16]),
        name: Some("token:desk".into()),
        client: Some("desk".into()),
        only: Some(vec!["git.log".into()]),
        roles: Roles::only(Role::Run),
        expires_in: Some(Duration::from_millis(1)),
    }
}

fn question() -> OpenQuestion {
    let question = Question::Form { message: "Who?".into(), schema: json!({"type": "object"}) };
    OpenQuestion { key: "question-1".into(), question, time_left: Duration::from_millis(1_500) }
}

#[test]
#[expect(clippy::too_many_lines, reason = "one value of each message")]
fn each_message_of_a_front_round_trips() {
    let abilities = InputSupport { form: true, ..InputSupport::default() };
    let caller = Caller { grant: Some(GrantId::new_random()), client: Some("desk".into()), abilities };
    let id = RequestId::parse("0199aaaa-0000-7000-8000-000000000000").expect("an id");
    let head = RequestHead {
        id,
        is_chosen: true,
        caller,
        deadline: Some(Duration::from_secs(1)),
        span: Some(SpanId(6)),
    };
    let program = RunCode {
        language: Language::Typescript,
        code: "1 + 1".into(),
        timeout: Some(Duration::from_secs_f64(0.25)),
        servers: Some(vec!["git".into()]),
        session: Some("work".into()),
        for_program: true,
        claims: RequestClaims { request_id: Claim::new("r1"), ..RequestClaims::default() },
    };
    let completion = json!({
        "ref": {"type": "ref/prompt", "name": "greet"},
        "argument": {"name": "who", "value": "A"},
    });
    let call = |action| DirectCall {
        target: DirectTarget::Prompt("greet".into()),
        action,
        arguments: "{}".into(),
        supports_input_requests: true,
        input_responses: Some([("question".to_owned(), json!({"action": "accept"}))].into()),
        request_state: Some("state".into()),
    };
    let search = SearchRequest {
        query: "mail".into(),
        limit: 3,
        detail: SearchDetail::Full,
        language: Language::Python,
    };
    for request in [
        Request::RunCode(program),
        Request::FollowRun(RunReference::Handle(handle())),
        Request::FollowRun(RunReference::Execution(ExecutionId(u128::MAX - 7))),
        Request::Search(search),
        Request::ReadResult { handle: handle(), offset: 7 },
        Request::List(ListKind::ResourceTemplates),
        Request::Call(call(DirectAction::Complete(completion))),
        Request::Call(call(DirectAction::Subscribe)),
        Request::FollowChanges,
        Request::Health,
        Request::ServiceHealth,
        Request::Authenticate(Credential::Peer { uid: u32::MAX }),
        Request::Readiness,
        Request::Metrics,
    ] {
        assert_round_trip(ToEngine::Request(ExchangeId(1), Box::new(head.clone()), Box::new(request)));
    }
    for input in [
        Input::Answer("question-1".into(), Ok(Answer::Accept(Some(json!({"a": 1.5}))))),
        Input::Answer("question-1".into(), Ok(Answer::Accept(None))),
        Input::Answer("question-1".into(), Err(AskError::Busy)),
        Input::Questions,
        Input::View,
        Input::Detach,
        Input::Cancel,
        Input::ChangesDelivered,
    ] {
        assert_round_trip(ToEngine::Input(ExchangeId(2), input));
    }
    assert_round_trip(ToEngine::Credit(ExchangeId(2), 16));
    assert_round_trip(ToEngine::Close(ExchangeId(3)));
    assert_round_trip(ToEngine::Listening);
    assert_round_trip(ToEngine::CertificateReloaded);
    assert_round_trip(ToEngine::InFlight { requests: 5 });
    assert_round_trip(ToEngine::Counters(Box::new(FrontCounters {
        responses: [(200, 3), (0, 1)].into(),
        refusals: HttpRefusal::ALL.into_iter().zip(1..).collect(),
        authentication_failures: 1,
        opened_connections: 2,
        open_connections: u64::MAX,
    })));
    let context = TraceContext { traceparent: "00-1".into(), tracestate: Some("a=1".into()) };
    let span = ToolCallSpan { tool: "run_code".into(), context: Some(context) };
    assert_round_trip(ToEngine::BeginSpan(SpanId(1), Box::new(span)));
    for outcome in [SpanOutcome::Ok, SpanOutcome::ToolError, SpanOutcome::RpcError(-32_602)] {
        assert_round_trip(ToEngine::EndSpan(SpanId(1), outcome));
    }
    assert_round_trip(ToEngine::Goodbye);
}

#[test]
#[expect(clippy::too_many_lines, reason = "one value of each message")]
fn each_message_of_the_engine_round_trips() {
    let server = ServerName::new("git").expect("a name");
    let person = UserWait { reason: "approval of git.push".into(), since: Duration::from_secs(3) };
    let progress = Progress {
        elapsed: Duration::from_micros(1),
        finished_calls: 2,
        in_flight: [("git.log".to_owned(), 1)].into(),
        waiting_for: Some(person),
        stdout: "\u{1f980}".into(),
    };
    let execution = ExecutionId(u128::MAX);
    let view = |state| RunView { execution, age: Duration::from_secs(1), begun: "then".into(), state };
    let ended = FinishedRun {
        execution,
        cancelled: false,
        begun: "then".into(),
        ended: "now".into(),
        answer: answer(execution),
        files: vec![ResultFile {
            content: Some(b"a".to_vec()),
            mime_type: "a/b".into(),
            name: None,
            bytes: 1,
            handle: None,
        }],
    };
    let notification = json!({"progressToken": 1, "progress": 0.5});
    let error = JsonRpcError { code: -32_602, message: "no".into(), data: Some(json!(1)) };
    let changed =
        ListChanges { tools: true, updated: vec![(server.clone(), "a:b".into())], ..ListChanges::default() };
    for event in [
        Event::Following(execution),
        Event::Question(question()),
        Event::Questions(vec![question()]),
        Event::View(view(RunState::Running(progress))),
        Event::View(view(RunState::Queued)),
        Event::Detached(Some(handle())),
        Event::Detached(None),
        Event::ProgressMessage("half".into()),
        Event::Notification(ForwardedNotification::Progress(notification)),
        Event::Notification(ForwardedNotification::Log(json!({"level": "info"}))),
        Event::Changed(changed),
    ] {
        assert_round_trip(ToFront::Event(ExchangeId(1), event));
    }
    let raw = r#"{"content":[{"n":1e400}],"\u0061":1.0}"#;
    for response in [
        Response::Run(Arc::new(ended)),
        Response::Json(json!({"tools": []})),
        Response::Entries(vec![raw.into()]),
        Response::Call(server.clone(), DirectReply::Result(raw.into())),
        Response::Call(server, DirectReply::Error(error.clone())),
        Response::Reasons(vec!["the audit log".into()]),
        Response::Text(None),
        Response::Access(Ok(Box::new(access()))),
        Response::Access(Err(AccessRefusal::InvalidJwt("the token has expired".into()))),
        Response::Refused(AccessRefusal::MissingRole(Role::Operate)),
        Response::NotFound,
        Response::Invalid("no".into()),
        Response::Error(error),
        Response::File(StoredFile { handle: handle(), media_type: "a/b".into(), content: vec![0, 255] }),
        Response::EngineFailed,
        Response::DeadlineExceeded,
        Response::Unavailable("it has ended".into()),
    ] {
        assert_round_trip(ToFront::Response(ExchangeId(1), response));
    }
    let time_left = Duration::from_millis(29_999);
    for state in [LifecycleState::Serving, LifecycleState::Draining { time_left }, LifecycleState::Closing] {
        assert_round_trip(ToFront::Lifecycle(state));
    }
    assert_round_trip(ToFront::ReloadCertificate);
    assert_round_trip(ToFront::Begun(ExchangeId(3)));
    assert_round_trip(ToFront::AccessEnded { grant: GrantId::new_random() });
    assert_round_trip(ToFront::Settings(FrontSettings {
        wait: Duration::from_secs(45),
        authentication: Authentication {
            metadata: Some(ResourceMetadata { url: "https://a/".into(), document: json!({"resource": "b"}) }),
            ..Authentication::default()
        },
        ..FrontSettings::default()
    }));
}
