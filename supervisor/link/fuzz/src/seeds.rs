//! Seeds for the fuzz targets: an example of each message, and frames at each limit.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use lockhouse_link::{FrameHeader, FrameKind, to_parts};
use lockhouse_messages::{
    AccessRefusal, Answer, AskError, Bodies, Caller, ConnectionId, Credential, DirectReply, Event,
    ExchangeId, FinishedRun, FrontCounters, FrontSettings, GrantId, Input, InputSupport, JsonRpcError,
    LifecycleState, ListChanges, ListKind, OpenQuestion, Question, Request, RequestHead, RequestId, Response,
    ResultFile, ResumedCall, RunAnswer, ShownValue, SpanId, SpanOutcome, StoredFile, ToEngine, ToFront,
    ToolCallSpan,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Returns the seeds of each target.
pub fn seeds() -> BTreeMap<&'static str, Vec<Vec<u8>>> {
    BTreeMap::from([
        ("frames", frames()),
        ("engine_side", with_others(from_front())),
        ("front_side", with_others(from_engine())),
        ("first_messages", first_messages()),
    ])
}

/// Returns messages, a stream with some of them, and messages that are none.
fn with_others(messages: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let stream = whole_stream(&messages);
    let unknown = unknown().map(|text| message(&[text.as_bytes().to_vec()]));
    messages.into_iter().chain([stream]).chain(unknown).collect()
}

fn frames() -> Vec<Vec<u8>> {
    vec![
        // Messages of two exchanges, and one of exactly the maximum length and of one byte more.
        vec![2, 1, 0, 1, 0, 2, b'a', b'b', 1, 2, 0, 1, b'x', 2, 1, 0, 0, 2, 2, 0, 0],
        [&[1, 1, 2, 1, 0, 16][..], &[b'x'; 16], &[2, 1, 0, 17], &[b'x'; 17]].concat(),
        // Too many parts, too many incomplete messages, too many bytes of them, and a ping in a message.
        vec![3, 1, 1, 1, 30, 0],
        vec![3, 1, 0, 1, 31, 0],
        [&[1, 1, 0, 1, 31, 15][..], &[b'x'; 15]].concat(),
        vec![2, 1, 3, 1, 0, 0],
        stream(&[2, 0], &[(FrameKind::Ping, b""), (FrameKind::Piece, b"a"), (FrameKind::MessageEnd, b"b")]),
        stream(&[2, 0], &[(FrameKind::PartEnd, b"a"), (FrameKind::MessageEnd, b"b")]),
        vec![2, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        vec![2, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0],
    ]
}

fn first_messages() -> Vec<Vec<u8>> {
    let texts = [
        r#"{"Hello":{"version":4,"oldest":3,"setup":"s","surprise":1}}"#,
        r#"{"Hello":{"version":4}}"#,
        r#"{"Welcome":{"version":4}}"#,
        r#"{"Unsupported":{"version":4}}"#,
        r#""OtherSetup""#,
        r#""Busy""#,
        r#""Surprise""#,
        "",
    ];
    let framed = texts.map(|text| [&(text.len() as u32).to_be_bytes()[..], text.as_bytes()].concat());
    framed.into_iter().chain([vec![], vec![0, 1, 0, 0, b'{']]).collect()
}

fn stream(start: &[u8], frames: &[(FrameKind, &[u8])]) -> Vec<u8> {
    let mut stream = start.to_vec();
    for (kind, payload) in frames {
        let header = FrameHeader { length: payload.len(), kind: *kind, exchange: ExchangeId(1) };
        stream.extend(header.encode());
        stream.extend(*payload);
    }
    stream
}

/// Returns an input that is one message, in frames of at most 100 bytes.
fn message(parts: &[Vec<u8>]) -> Vec<u8> {
    [&[100][..], &parts.join(&0xff)].concat()
}

/// Returns an input that is a stream with the first messages, which have one part each.
fn whole_stream(messages: &[Vec<u8>]) -> Vec<u8> {
    let one_part = messages.iter().filter(|message| !message.contains(&0xff)).take(3);
    let frames: Vec<_> = one_part.map(|message| (FrameKind::MessageEnd, &message[1..])).collect();
    stream(&[0], &frames)
}

/// Messages of another version, in the wrong direction, or that are none.
fn unknown() -> [String; 12] {
    [
        r#"{"Request":[1,{},"Surprise"]}"#,
        r#"{"Request":[1,{}]}"#,
        r#"{"Input":[1,{"Surprise":1}]}"#,
        r#"{"Event":[1,{"Surprise":1}]}"#,
        r#"{"Response":[1,{"Surprise":1}]}"#,
        r#"{"Response":[1,"NotFound"]}"#,
        r#"{"Surprise":{"a":1}}"#,
        r#""Surprise""#,
        r#"{"Close":1,"Goodbye":2}"#,
        r#"{"Begun":1}"#,
        "[1",
        "",
    ]
    .map(str::to_owned)
}

fn parsed<T: DeserializeOwned>(json: &str) -> T {
    serde_json::from_str(json).unwrap()
}

fn parts<M: Bodies + Serialize>(messages: Vec<M>) -> Vec<Vec<u8>> {
    messages.into_iter().map(|one| message(&to_parts(one).unwrap())).collect()
}

#[allow(clippy::too_many_lines, reason = "one example of each message")]
fn from_front() -> Vec<Vec<u8>> {
    let head = RequestHead {
        id: RequestId::parse("0199aaaa-0000-7000-8000-000000000000").unwrap(),
        is_chosen: true,
        caller: Caller {
            grant: Some(GrantId::CONNECTION),
            client: Some("c".into()),
            abilities: InputSupport::default(),
        },
        deadline: Some(Duration::from_secs(1)),
        span: Some(SpanId(6)),
    };
    let requests = vec![
        Request::Authenticate(Credential::Bearer("t".into())),
        Request::RunCode(parsed(
            r#"{"language":"python","code":"1 + 1","timeout":null,"servers":["s"],"session":"w","for_program":true}"#,
        )),
        Request::FollowRun(parsed(r#"{"Handle":"r-1"}"#)),
        Request::McpSession(parsed(r#"{"Keep":{"id":"s","client":"{}"}}"#)),
        Request::McpSession(parsed(r#"{"Find":{"id":"s"}}"#)),
        Request::McpSession(parsed(r#"{"Deliver":{"id":"s","to":null,"message":"{}"}}"#)),
        Request::Search(parsed(r#"{"query":"q","limit":3,"detail":"Full","language":"typescript"}"#)),
        Request::DescribeCatalogue,
        Request::GetResult { handle: parsed("\"r-1\""), offset: 7 },
        Request::ReadFile { handle: parsed("\"r-1\"") },
        Request::List(ListKind::Prompts),
        Request::Call(parsed(
            r#"{"target":{"Tool":"t"},"action":{"Complete":{"a":[1.5,null]}},"arguments":"{}","supports_input_requests":true,"input_responses":{"q":{"b":-0.0}},"request_state":"s"}"#,
        )),
        Request::ResumeCall(ResumedCall { handle: parsed("\"r-1\""), digest: [7; 32] }),
        Request::FollowChanges,
        Request::Health,
        Request::ServiceHealth,
        Request::Readiness,
        Request::SharedState,
        Request::Metrics,
    ];
    let request = |request| ToEngine::Request(ExchangeId(1), Box::new(head.clone()), Box::new(request));
    let inputs = vec![
        Input::Answer("q".into(), Ok(Answer::Accept(Some(parsed(r#"{"a":1e-7}"#))))),
        Input::Answer("q".into(), Err(AskError::Busy)),
        Input::Questions,
        Input::View,
        Input::Detach,
        Input::Cancel,
        Input::Abandon,
        Input::ChangesDelivered,
    ];
    let mut messages = vec![
        ToEngine::Credit(ExchangeId(1), 16),
        ToEngine::Close(ExchangeId(1)),
        ToEngine::Listening,
        ToEngine::InFlight { requests: 5 },
        ToEngine::Counters(Box::new(FrontCounters {
            responses: [(200, 3)].into(),
            open_connections: u64::MAX,
            ..FrontCounters::default()
        })),
        ToEngine::BeginSpan(SpanId(1), Box::new(ToolCallSpan { tool: "t".into(), context: None })),
        ToEngine::EndSpan(SpanId(1), SpanOutcome::RpcError(-1)),
        ToEngine::Goodbye,
    ];
    messages.extend(requests.into_iter().map(request));
    messages.extend(inputs.into_iter().map(|input| ToEngine::Input(ExchangeId(1), input)));
    messages.push(ToEngine::McpSessionEnded("s".into()));
    messages.push(ToEngine::ConnectionClosed(ConnectionId(3)));
    parts(messages)
}

fn finished_run() -> FinishedRun {
    let mut answer = RunAnswer::without_run("E", "m");
    answer.value = Some(ShownValue { json: parsed("{\"a\":[1]}"), cut: None });
    answer.stdout.text = "é".into();
    let file = ResultFile {
        content: Some(vec![0, 1]),
        mime_type: "a/b".into(),
        name: None,
        bytes: 2,
        handle: Some(parsed("\"r-1\"")),
    };
    let times = ("then".to_owned(), "now".to_owned());
    FinishedRun {
        execution: parsed("42"),
        cancelled: false,
        begun: times.0,
        ended: times.1,
        answer,
        files: vec![file],
    }
}

fn from_engine() -> Vec<Vec<u8>> {
    let question = Question::Form { message: "Who?".into(), schema: parsed(r#"{"type":"object"}"#) };
    let question = || OpenQuestion {
        key: "q".into(),
        question: question.clone(),
        time_left: Duration::from_millis(1_500),
    };
    let execution = finished_run().execution;
    let error = JsonRpcError { code: -32_602, message: "no".into(), data: None };
    let call = |reply| Response::Call(parsed("\"s\""), reply);
    let events = vec![
        Event::Following(execution),
        Event::Question(question()),
        Event::Questions(vec![question()]),
        Event::View(parsed(&format!(
            r#"{{"execution":{},"age":{{"secs":1,"nanos":0}},"begun":"b","state":"Queued"}}"#,
            serde_json::to_string(&execution).unwrap()
        ))),
        Event::Detached(None),
        Event::ProgressMessage("half".into()),
        Event::Notification(parsed(r#"{"Log":{"level":"info"}}"#)),
        Event::Changed(ListChanges { tools: true, ..ListChanges::default() }),
    ];
    let responses = vec![
        Response::Run(Arc::new(finished_run())),
        Response::Json(parsed(r#"{"tools":[]}"#)),
        Response::File(StoredFile {
            handle: parsed("\"r-1\""),
            media_type: "a/b".into(),
            content: vec![0, 254],
        }),
        Response::Entries(vec!["{}".into()]),
        call(DirectReply::Result("{}".into())),
        call(DirectReply::Error(error.clone())),
        Response::Reasons(vec!["r".into()]),
        Response::Text(Some("t".into())),
        Response::Access(Err(AccessRefusal::InvalidJwt("i".into()))),
        Response::Refused(AccessRefusal::EndedGrant),
        Response::NotFound,
        Response::Invalid("no".into()),
        Response::Error(error),
        Response::DeadlineExceeded,
        Response::EngineFailed,
        Response::Unavailable("gone".into()),
    ];
    let mut messages = vec![
        ToFront::Lifecycle(LifecycleState::Draining { time_left: Duration::from_secs(1) }),
        ToFront::Lifecycle(LifecycleState::Serving),
        ToFront::Settings(FrontSettings::default()),
        ToFront::Begun(ExchangeId(1)),
        ToFront::AccessEnded { grant: GrantId::CONNECTION },
        ToFront::SessionMessage(parsed(r#"{"session":"s","owner":1,"message":"{}"}"#)),
    ];
    messages.extend(events.into_iter().map(|event| ToFront::Event(ExchangeId(1), event)));
    messages.extend(responses.into_iter().map(|response| ToFront::Response(ExchangeId(1), response)));
    parts(messages)
}
