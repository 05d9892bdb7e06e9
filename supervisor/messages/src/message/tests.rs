//! Tests that every message between front and engine is the same after it was serialized and parsed.

use std::fmt::Debug;

use serde::de::DeserializeOwned;
use serde_json::json;

use super::*;
use crate::run_answer::tests::answer;
use crate::{
    AccessToken, Approval, ApprovalQuestion, ApproverAnswer, ApproverDecision, Bodies, CallSummary, Caller,
    ChallengeRequest, ChangedDefinition, Claim, DefinitionChange, DefinitionReview, DirectAction,
    DirectTarget, EndedRuns, EndedSessions, EnrolmentCode, FileLocation, ForwardedNotification, HostActivity,
    HttpRefusal, InputSupport, KeyAssertion, KeyChallenge, KeyListing, KeyRegistration, LoginProgress,
    Logout, Owner, PasswordMethod, Presence, PresenceProof, Progress, Question, ReloadReport, RequestClaims,
    RequestId, RequiredApprovers, ResourceMetadata, ResultFile, ResultListing, Roles, RunListing, RunState,
    SessionListing, TraceContext, UserWait,
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
        is_offered: true,
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
        Request::McpSession(McpSessionRequest::Keep { id: "s".into(), client: "{}".into() }),
        Request::McpSession(McpSessionRequest::Find { id: "s".into() }),
        Request::McpSession(McpSessionRequest::End { id: "s".into() }),
        Request::ResumeCall(ResumedCall { handle: handle(), digest: [7; 32] }),
        Request::McpSession(McpSessionRequest::Deliver {
            id: "s".into(),
            to: HostTag::of_id("0123456789"),
            message: "{}".into(),
        }),
        Request::FollowRun(RunReference::Handle(handle())),
        Request::FollowRun(RunReference::Execution(ExecutionId(u128::MAX - 7))),
        Request::Search(search),
        Request::GetResult { handle: handle(), offset: 7 },
        Request::List(ListKind::ResourceTemplates),
        Request::Call(call(DirectAction::Complete(completion))),
        Request::Call(call(DirectAction::Subscribe)),
        Request::FollowChanges,
        Request::Health,
        Request::ServiceHealth,
        Request::Authenticate(Credential::UnixConnection(ConnectionId(u64::MAX))),
        Request::Readiness,
        Request::SharedState,
        Request::Metrics,
    ] {
        assert_round_trip(ToEngine::McpSessionEnded("s".into()));
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
    assert_round_trip(ToEngine::ConnectionClosed(ConnectionId(u64::MAX)));
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
    assert_round_trip(ToFront::Begun(ExchangeId(3)));
    assert_round_trip(ToFront::AccessEnded { grant: GrantId::new_random() });
    assert_round_trip(ToFront::SessionMessage(SessionMessage {
        session: "s".into(),
        owner: Owner::LOCAL,
        message: "{}".into(),
    }));
    assert_round_trip(ToFront::Settings(FrontSettings {
        wait: Duration::from_secs(45),
        authentication: Authentication {
            metadata: Some(ResourceMetadata { url: "https://a/".into(), document: json!({"resource": "b"}) }),
            ..Authentication::default()
        },
        ..FrontSettings::default()
    }));
}

fn head() -> RequestHead {
    let caller =
        Caller { grant: Some(GrantId::CONNECTION), client: None, abilities: InputSupport::default() };
    RequestHead { id: RequestId::generate(), is_chosen: false, caller, deadline: None, span: None }
}

#[test]
fn each_message_of_an_operator_round_trips_and_requires_a_role() {
    for (request, role) in [
        (OperatorRequest::Health, Role::Operate),
        (OperatorRequest::ListSessions, Role::Operate),
        (OperatorRequest::EndSessions(EndedSessions::All), Role::Operate),
        (OperatorRequest::EndSessions(EndedSessions::Named("work".into())), Role::Operate),
        (OperatorRequest::EndSessions(EndedSessions::Numbered(u64::MAX)), Role::Operate),
        (OperatorRequest::ListRuns, Role::Operate),
        (OperatorRequest::EndRuns(EndedRuns::All), Role::Operate),
        (OperatorRequest::EndRuns(EndedRuns::One("0".into())), Role::Operate),
        (OperatorRequest::Reload, Role::Operate),
        (OperatorRequest::Stop { reason: None }, Role::Operate),
        (OperatorRequest::Stop { reason: Some("maintenance".into()) }, Role::Operate),
        (OperatorRequest::FindFile(handle()), Role::Audit),
        (OperatorRequest::ReadFile { handle: handle(), offset: 7 }, Role::Audit),
        (OperatorRequest::ListResults, Role::Audit),
        (OperatorRequest::ReadResult { handle: handle(), offset: 7 }, Role::Audit),
        (OperatorRequest::ProposePolicy { text: Some("version = 1".into()) }, Role::Operate),
        (OperatorRequest::ShowProposal, Role::Operate),
        (OperatorRequest::AcceptProposal { digest: "0".into(), proof: None }, Role::Policy),
        (OperatorRequest::AcceptProposal { digest: "0".into(), proof: Some(password()) }, Role::Policy),
        (OperatorRequest::ChallengeProposal { digest: "0".into(), port: 4_711 }, Role::Policy),
        (OperatorRequest::BeginEnrolment, Role::Approve),
        (OperatorRequest::EnrolKey(Box::new(registration())), Role::Operate),
        (OperatorRequest::ListKeys, Role::Operate),
        (OperatorRequest::RemoveKey("AA".into()), Role::Approve),
    ] {
        assert_operator_request(request, role);
    }
    let watching = Request::WatchApprovals(WatcherRole::Observer);
    assert_eq!(watching.role(), Some(Role::Approve));
    assert_round_trip(ToEngine::Request(ExchangeId(1), Box::new(head()), Box::new(watching)));
    let answer = ApproverAnswer {
        id: 1,
        digest: "sha256:0".into(),
        decision: ApproverDecision::Approve,
        scope: Approval::Always,
        proof: Some(password()),
        break_glass: Some("the site is down".into()),
        token: Some(AccessToken("lh_secret".into())),
    };
    assert!(!format!("{answer:?}").contains("lh_secret"));
    let challenge = ChallengeRequest { id: 1, digest: "sha256:0".into(), scope: Approval::Once, port: 4_711 };
    let assertion = KeyAssertion {
        credential: "AA".into(),
        client_data: "e30".into(),
        authenticator_data: "AQ".into(),
        signature: "Ag".into(),
    };
    let with_key = ApproverAnswer { proof: Some(PresenceProof::Key(assertion)), ..answer.clone() };
    for input in [
        ApprovalInput::SetRole(WatcherRole::Approver),
        ApprovalInput::Answer(answer),
        ApprovalInput::Answer(with_key),
        ApprovalInput::Challenge(challenge),
    ] {
        assert_round_trip(ToEngine::Input(ExchangeId(1), Input::Approval(input)));
    }
}

#[test]
fn each_message_about_hosts_round_trips_and_requires_a_role() {
    for request in [
        OperatorRequest::ListHosts,
        OperatorRequest::ListElsewhere,
        OperatorRequest::DrainHost { undo: true },
        OperatorRequest::LeaveCluster,
    ] {
        assert_operator_request(request, Role::Operate);
    }
}

#[test]
fn each_message_about_servers_round_trips_and_requires_a_role() {
    for (request, role) in [
        (
            OperatorRequest::BeginLogin {
                server: server(),
                scopes: vec!["read".into()],
                proof: Some(password()),
            },
            Role::Policy,
        ),
        (
            OperatorRequest::ContinueLogin { server: server(), redirect: Some("http://a".into()) },
            Role::Operate,
        ),
        (OperatorRequest::LogOut { server: server() }, Role::Operate),
        (OperatorRequest::ForgetUser { name: "token:desk".into() }, Role::Operate),
        (
            OperatorRequest::SetSecret {
                name: "a".to_owned().try_into().expect("a name"),
                value: "b".to_owned().try_into().expect("a value"),
            },
            Role::Policy,
        ),
    ] {
        assert_operator_request(request, role);
    }
    for progress in [
        LoginProgress::Unproven(Presence::Password),
        LoginProgress::Starting,
        LoginProgress::Waiting { address: "https://login.example.com/".into() },
        LoginProgress::Granted { expires: Some(1), is_renewable: true },
        LoginProgress::Failed("denied".into()),
    ] {
        let response = Response::Operator(OperatorResponse::Login(progress));
        assert_round_trip(ToFront::Response(ExchangeId(1), response));
    }
    let response =
        Response::Operator(OperatorResponse::LoggedOut(Logout::NotRevoked("no endpoint".to_owned())));
    assert_round_trip(ToFront::Response(ExchangeId(1), response));
}

fn assert_operator_request(request: OperatorRequest, role: Role) {
    let request = Request::Operator(request);
    assert_eq!(request.role(), Some(role), "{request:?}");
    assert_round_trip(ToEngine::Request(ExchangeId(1), Box::new(head()), Box::new(request)));
}

#[test]
fn each_message_to_an_operator_round_trips() {
    let session = SessionListing {
        id: 1,
        name: "work".into(),
        owner: "token:desk".into(),
        language: "python".into(),
        state: "idle".into(),
        runs: 2,
        unused_s: 3,
        age_s: 4,
    };
    let run = RunListing {
        execution: "0".into(),
        client: Some("desk".into()),
        language: "python".into(),
        session: None,
        state: "running".into(),
        waiting_for: None,
        waiting_s: Some(0.5),
        age_s: 1.5,
        worker: Some(7),
        cpu_ms: None,
        memory_bytes: Some(u64::MAX),
    };
    let result =
        ResultListing { handle: "r-1".into(), kind: "value".into(), bytes: 1, age_s: 0.1, expires_s: 9.9 };
    for response in [
        OperatorResponse::Health(json!({"ready": true})),
        OperatorResponse::Elsewhere(vec![HostActivity {
            host: "h1".into(),
            has_answered: true,
            runs: vec![run.clone()],
            sessions: vec![session.clone()],
        }]),
        OperatorResponse::Sessions(vec![session]),
        OperatorResponse::EndedSessions(vec!["work".into()]),
        OperatorResponse::Runs(vec![run]),
        OperatorResponse::EndedRuns(vec!["0".into()]),
        OperatorResponse::Reloaded(ReloadReport { generation: 2, ..ReloadReport::default() }),
        OperatorResponse::Stopping,
        OperatorResponse::File(FileLocation { name: "a".into(), path: "/a".into() }),
        OperatorResponse::FilePart { name: "a".into(), content: vec![0, 255], is_last: true },
        OperatorResponse::Results(vec![result]),
        OperatorResponse::ResultPart { text: "\"a\"".into(), is_last: true },
        OperatorResponse::Refused { reason: "no".into() },
    ] {
        assert_round_trip(ToFront::Response(ExchangeId(1), Response::Operator(response)));
    }
    for (event, answers_input) in [
        (ApprovalEvent::Watching, true),
        (ApprovalEvent::Ask(Box::new(approval_question())), false),
        (ApprovalEvent::Gone(1), false),
        (ApprovalEvent::Taken(1), true),
        (ApprovalEvent::Refused { id: None, reason: "no".into() }, true),
    ] {
        let event = Event::Approval(event);
        assert_eq!(event.answers_input(), answers_input, "{event:?}");
        assert_round_trip(ToFront::Event(ExchangeId(1), event));
    }
}

#[test]
fn each_message_about_keys_round_trips() {
    let key = KeyListing {
        credential: "AA".into(),
        aaguid: "00".into(),
        counter: 1,
        enrolled: "2026-01-01T00:00:00Z".into(),
    };
    for response in [
        OperatorResponse::Enrolment { code: EnrolmentCode("A7".into()), seconds: 300 },
        OperatorResponse::KeyEnrolled(key.clone()),
        OperatorResponse::Keys(vec![key]),
        OperatorResponse::KeyRemoved("AA".into()),
    ] {
        assert_round_trip(ToFront::Response(ExchangeId(1), Response::Operator(response)));
    }
    let challenge = KeyChallenge { challenge: "AA".into(), credentials: vec!["AQ".into()], seconds: 60 };
    let response = OperatorResponse::Challenge(challenge.clone());
    assert_round_trip(ToFront::Response(ExchangeId(1), Response::Operator(response)));
    let event = Event::Approval(ApprovalEvent::Challenge { id: 1, challenge });
    assert!(event.answers_input());
    assert_round_trip(ToFront::Event(ExchangeId(1), event));
}

fn accept_definitions(proof: Option<PresenceProof>) -> OperatorRequest {
    OperatorRequest::AcceptDefinitions { server: "git".into(), digest: "0".into(), proof }
}

#[test]
fn a_review_of_definitions_round_trips() {
    for (request, role) in [
        (OperatorRequest::ReviewDefinitions { server: "git".into() }, Role::Operate),
        (accept_definitions(None), Role::Policy),
        (accept_definitions(Some(password())), Role::Policy),
        (
            OperatorRequest::ChallengeDefinitions { server: "git".into(), digest: "0".into(), port: 4_711 },
            Role::Policy,
        ),
    ] {
        let request = Request::Operator(request);
        assert_eq!(request.role(), Some(role), "{request:?}");
        assert_round_trip(ToEngine::Request(ExchangeId(1), Box::new(head()), Box::new(request)));
    }
    let before = Some(("2026-01-01T00:00:00Z".into(), "{}".into()));
    let change = |kind, before| ChangedDefinition { tool: "push".into(), kind, before, after: "{}".into() };
    let review = DefinitionReview {
        server: "git".into(),
        digest: "sha256:0".into(),
        changes: vec![change(DefinitionChange::Changed, before), change(DefinitionChange::New, None)],
        removed: vec!["pull".into()],
        unreadable: Some("no".into()),
        presence: Presence::Key,
    };
    for response in
        [OperatorResponse::Definitions(Box::new(review)), OperatorResponse::DefinitionsAccepted(2)]
    {
        assert_round_trip(ToFront::Response(ExchangeId(1), Response::Operator(response)));
    }
}

fn server() -> ServerName {
    ServerName::new("git").expect("a name")
}

fn password() -> PresenceProof {
    PresenceProof::Password { method: PasswordMethod::Sudo, uid: 1_000 }
}

fn registration() -> KeyRegistration {
    KeyRegistration {
        code: EnrolmentCode("A7".into()),
        credential: "AA".into(),
        client_data: "e30".into(),
        authenticator_data: "AQ".into(),
        public_key: "MA".into(),
        algorithm: -7,
    }
}

fn approval_question() -> ApprovalQuestion {
    let call = CallSummary {
        server: "git".into(),
        kind: "tool".into(),
        name: "push".into(),
        name_left_out: 0,
        argument_names: vec!["\"to\"".into()],
        argument_names_left_out: 0,
        overview: "to: x".into(),
        arguments: "{}".into(),
        arguments_left_out: 1,
        content_left_out: 0,
        claims: "it changes things".into(),
        line: Some(1),
        source: None,
        rule: "policy.toml:1".into(),
        directly: true,
    };
    ApprovalQuestion {
        id: 1,
        digest: "sha256:0".into(),
        execution: "0".into(),
        client: None,
        seconds: 1.5,
        text: "?".into(),
        scopes_text: String::new(),
        scopes: vec![Approval::Once],
        calls: vec![call],
        diff: Some("-a".into()),
        presence: Presence::Key,
        required: Some(RequiredApprovers { people: 2, not_requester: true, approved_by: vec!["ada".into()] }),
        roles: vec![vec!["leads".into()]],
    }
}
