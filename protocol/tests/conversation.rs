//! The conversation with a worker: every message in every phase, and any conversation against a model of it.
#![allow(missing_docs, clippy::unwrap_used)]

use std::fmt::Write;

use lockhouse_protocol::{
    Action, CallId, CodeError, Conversation, ConversationLimits, Detail, ExceededLimit, FromWorker, Outcome,
    Request, ServerName, Stream, ToolName, Violation,
};
use proptest::collection::vec;
use proptest::prelude::*;

const AMPLE: ConversationLimits =
    ConversationLimits { calls: 100, parallel_calls: 100, output_bytes: 100, frame_bytes: 1024 };

fn call() -> Request {
    let (server, tool) = (ServerName::new("s").unwrap(), ToolName::new("t").unwrap());
    Request::Call { server, tool, arguments: b"{}".to_vec(), timeout_ms: None, line: None }
}

fn request(id: u32, request: Request) -> FromWorker {
    FromWorker::Request { call: CallId(id), request }
}

fn output(text: &str) -> FromWorker {
    FromWorker::Output { stream: Stream::Stdout, text: text.into() }
}

fn done() -> FromWorker {
    FromWorker::Done(Outcome::Value(None))
}

/// A conversation that has come so far.
fn sealing() -> Conversation {
    Conversation::new(AMPLE)
}

fn idle() -> Conversation {
    let mut conversation = sealing();
    assert_eq!(conversation.receive(FromWorker::Ready), Ok(Action::Verify));
    conversation
}

fn running(limits: ConversationLimits) -> Conversation {
    let mut conversation = Conversation::new(limits);
    assert_eq!(conversation.receive(FromWorker::Ready), Ok(Action::Verify));
    assert!(conversation.run(false));
    conversation
}

fn refused() -> Conversation {
    let mut conversation = sealing();
    let refused = FromWorker::Refused { reason: "no Landlock".into() };
    assert_eq!(conversation.receive(refused), Ok(Action::GiveUp("no Landlock".into())));
    conversation
}

fn finished() -> Conversation {
    let mut conversation = running(AMPLE);
    assert_eq!(conversation.receive(done()), Ok(Action::Finish(Outcome::Value(None))));
    conversation
}

fn resting() -> Conversation {
    let mut conversation = idle();
    assert!(conversation.run(true));
    assert_eq!(conversation.receive(done()), Ok(Action::Finish(Outcome::Value(None))));
    conversation
}

fn stopped() -> Conversation {
    let mut conversation = running(AMPLE);
    let much = output(&"x".repeat(101));
    assert_eq!(conversation.receive(much), Ok(Action::Stop(ExceededLimit::Output)));
    conversation
}

/// How a conversation comes to a phase.
type Beginning = (&'static str, fn() -> Conversation);

/// Every phase, and every way into the last one.
const PHASES: [Beginning; 7] = [
    ("sealing", sealing),
    ("idle", idle),
    ("running", || running(AMPLE)),
    ("resting", resting),
    ("refused", refused),
    ("finished", finished),
    ("stopped", stopped),
];

fn messages() -> Vec<(&'static str, FromWorker)> {
    let (server, tool) = (ServerName::new("s").unwrap(), ToolName::new("t").unwrap());
    let error = || CodeError { kind: "ValueError".into(), ..CodeError::default() };
    vec![
        ("Ready", FromWorker::Ready),
        ("Refused", FromWorker::Refused { reason: "no Landlock".into() }),
        ("Output to stdout", output("text")),
        ("Output to stderr", FromWorker::Output { stream: Stream::Stderr, text: "text".into() }),
        ("Request Call", request(1, call())),
        ("Request ListServers", request(1, Request::ListServers)),
        ("Request ListTools", request(1, Request::ListTools { server: server.clone() })),
        ("Request Describe", request(1, Request::Describe { server, tool })),
        (
            "Request Search",
            request(1, Request::Search { query: "words".into(), limit: 5, detail: Detail::Names }),
        ),
        ("Done Value", FromWorker::Done(Outcome::Value(Some(b"1".to_vec())))),
        ("Done without value", done()),
        ("Done Error", FromWorker::Done(Outcome::Error(error()))),
        ("Done Interrupted", FromWorker::Done(Outcome::Interrupted(error()))),
        ("Done CpuLimit", FromWorker::Done(Outcome::CpuLimit(error()))),
        ("Done MemoryLimit", FromWorker::Done(Outcome::MemoryLimit(error()))),
    ]
}

fn name(meant: &Result<Action, Violation>) -> &'static str {
    match meant {
        Ok(Action::Verify) => "Verify",
        Ok(Action::GiveUp(_)) => "GiveUp",
        Ok(Action::Append(..)) => "Append",
        Ok(Action::Answer(..)) => "Answer",
        Ok(Action::Finish(_)) => "Finish",
        Ok(Action::Stop(_)) => "Stop",
        Err(Violation::OutOfPhase { .. }) => "-",
        Err(Violation::ReusedCallId(_)) => "ReusedCallId",
        Err(Violation::EmptyOutput) => "EmptyOutput",
        Err(Violation::TooManyUnderWay(_)) => "TooManyUnderWay",
    }
}

/// What a message means where it is in its place. It carries on what the message said, unchanged.
fn in_place(phase: &str, message: &FromWorker) -> Option<Action> {
    Some(match (phase, message.clone()) {
        ("sealing", FromWorker::Ready) => Action::Verify,
        ("sealing", FromWorker::Refused { reason }) => Action::GiveUp(reason),
        ("running" | "resting", FromWorker::Output { stream, text }) => Action::Append(stream, text),
        ("running" | "resting", FromWorker::Request { call, request }) => Action::Answer(call, request),
        ("running", FromWorker::Done(outcome)) => Action::Finish(outcome),
        _ => return None,
    })
}

#[test]
fn every_message_in_every_phase() {
    let mut table = format!("{:20}", "(- is a violation)");
    PHASES.iter().for_each(|(phase, _)| write!(table, " {phase:8}").unwrap());
    for (message_name, message) in messages() {
        write!(table, "\n{message_name:20}").unwrap();
        for (phase, begin) in PHASES {
            let meant = begin().receive(message.clone());
            write!(table, " {:8}", name(&meant)).unwrap();
            if let Ok(action) = meant {
                assert_eq!(Some(action), in_place(phase, &message));
            }
        }
    }
    let table: Vec<&str> = table.lines().map(str::trim_end).collect();
    insta::assert_snapshot!(table.join("\n"), @r"
    (- is a violation)   sealing  idle     running  resting  refused  finished stopped
    Ready                Verify   -        -        -        -        -        -
    Refused              GiveUp   -        -        -        -        -        -
    Output to stdout     -        -        Append   Append   -        -        -
    Output to stderr     -        -        Append   Append   -        -        -
    Request Call         -        -        Answer   Answer   -        -        -
    Request ListServers  -        -        Answer   Answer   -        -        -
    Request ListTools    -        -        Answer   Answer   -        -        -
    Request Describe     -        -        Answer   Answer   -        -        -
    Request Search       -        -        Answer   Answer   -        -        -
    Done Value           -        -        Finish   -        -        -        -
    Done without value   -        -        Finish   -        -        -        -
    Done Error           -        -        Finish   -        -        -        -
    Done Interrupted     -        -        Finish   -        -        -        -
    Done CpuLimit        -        -        Finish   -        -        -        -
    Done MemoryLimit     -        -        Finish   -        -        -        -
    ");
}

#[test]
fn a_violation_says_what_was_sent_and_when() {
    let mut told = String::new();
    let of_each_kind = [0, 1, 2, 4, 9].map(|index| messages()[index].1.clone());
    for (phase, begin) in PHASES {
        let out_of_place = of_each_kind.iter().filter(|message| in_place(phase, message).is_none());
        for message in out_of_place {
            writeln!(told, "{phase:9} {}", begin().receive(message.clone()).unwrap_err()).unwrap();
        }
    }
    insta::assert_snapshot!(told);
}

#[test]
fn code_may_be_sent_to_an_idle_worker_alone_and_once() {
    for (phase, begin) in PHASES {
        let mut conversation = begin();
        assert_eq!(conversation.run(false), phase == "idle", "{phase}");
        assert!(!conversation.run(false), "{phase}, again");
    }
}

#[test]
fn a_session_runs_again_and_what_rests_serves_nothing_else() {
    for (phase, begin) in PHASES {
        let mut conversation = begin();
        assert_eq!(conversation.run(true), ["idle", "resting"].contains(&phase), "{phase}");
        assert!(!conversation.run(true), "{phase}, again");
    }
}

#[test]
fn each_run_of_a_session_is_counted_by_itself_and_ids_go_on() {
    let mut conversation = Conversation::new(ConversationLimits { calls: 1, output_bytes: 4, ..AMPLE });
    assert_eq!(conversation.receive(FromWorker::Ready), Ok(Action::Verify));
    for id in [1, 2, 3] {
        assert!(conversation.run(true));
        assert_eq!(conversation.receive(output("1234")), Ok(Action::Append(Stream::Stdout, "1234".into())));
        assert_eq!(conversation.receive(request(id, call())), Ok(Action::Answer(CallId(id), call())));
        assert!(conversation.receive(done()).is_ok());
        // Nobody will answer it, and its id is used up.
        assert_eq!(conversation.abandon(), [CallId(id)]);
        assert!(!conversation.reply(CallId(id)));
    }
    // Of threads that are left: the next run's.
    assert!(conversation.receive(output("123")).is_ok());
    assert!(conversation.run(true));
    assert!(conversation.abandon().is_empty());
    assert_eq!(conversation.receive(output("45")), Ok(Action::Stop(ExceededLimit::Output)));
    assert!(!conversation.run(true));
    let mut conversation = resting();
    assert_eq!(conversation.receive(request(1, call())), Ok(Action::Answer(CallId(1), call())));
    assert!(conversation.run(true));
    assert_eq!(conversation.receive(request(1, call())), Err(Violation::ReusedCallId(CallId(1))));
}

#[test]
fn nothing_is_answered_that_was_not_asked() {
    for (phase, begin) in PHASES {
        for id in [0, 1, u32::MAX] {
            assert!(!begin().reply(CallId(id)), "{phase}, {id}");
        }
    }
}

#[test]
fn output_of_nothing_is_a_violation() {
    assert_eq!(running(AMPLE).receive(output("")), Err(Violation::EmptyOutput));
}

#[test]
fn the_violations_of_a_request() {
    let limits = ConversationLimits { parallel_calls: 1, ..AMPLE };
    let mut conversation = running(limits);
    let zero = conversation.receive(request(0, call())).unwrap_err();
    assert_eq!(zero, Violation::ReusedCallId(CallId(0)));
    conversation.receive(request(7, call())).unwrap();
    let many = conversation.receive(request(8, call())).unwrap_err();
    assert_eq!(many, Violation::TooManyUnderWay(1));
    insta::assert_snapshot!(format!("{zero}\n{many}"), @r"
    it used call id 0 again, or counted down
    it has more than 1 requests under way
    ");
}

#[test]
fn the_last_id_of_all_can_be_used() {
    let mut conversation = running(AMPLE);
    assert!(conversation.receive(request(u32::MAX, call())).is_ok());
    assert_eq!(
        conversation.receive(request(u32::MAX, call())),
        Err(Violation::ReusedCallId(CallId(u32::MAX)))
    );
    assert!(conversation.reply(CallId(u32::MAX)));
}

#[test]
fn the_largest_limits_do_not_overflow() {
    let limits = ConversationLimits {
        calls: u32::MAX,
        parallel_calls: u32::MAX,
        output_bytes: u64::MAX,
        frame_bytes: u32::MAX,
    };
    let mut conversation = running(limits);
    for id in 1..1_000 {
        assert!(conversation.receive(request(id, call())).is_ok());
        assert!(conversation.receive(output("text")).is_ok());
    }
}

/// What can happen, on either side.
#[derive(Clone, Debug)]
enum Step {
    /// In a session or not.
    Run(bool),
    Abandon,
    Reply(u32),
    Receive(Message),
}

#[derive(Clone, Debug)]
enum Message {
    Ready,
    Refused,
    Output(usize),
    /// So much above the last id.
    Next {
        above: u32,
        counted: bool,
    },
    /// With any id.
    Any {
        id: u32,
        counted: bool,
    },
    Done,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let message = prop_oneof![
        1 => Just(Message::Ready),
        1 => Just(Message::Refused),
        6 => (0_usize..6).prop_map(Message::Output),
        12 => (1_u32..4, any::<bool>()).prop_map(|(above, counted)| Message::Next { above, counted }),
        1 => (0_u32..20, any::<bool>()).prop_map(|(id, counted)| Message::Any { id, counted }),
        1 => Just(Message::Done),
    ];
    let step = prop_oneof![
        2 => any::<bool>().prop_map(Step::Run),
        1 => Just(Step::Abandon),
        8 => (0_u32..25).prop_map(Step::Reply),
        12 => message.prop_map(Step::Receive),
    ];
    let start = prop_oneof![
        1 => Just(vec![]),
        1 => Just(vec![Step::Receive(Message::Ready)]),
        8 => any::<bool>().prop_map(|session| vec![Step::Receive(Message::Ready), Step::Run(session)]),
    ];
    (start, vec(step, 0..60)).prop_map(|(start, steps)| [start, steps].concat())
}

fn limits() -> impl Strategy<Value = ConversationLimits> {
    (0_u32..8, 0_u32..6, 0_u64..30).prop_map(|(calls, parallel_calls, output_bytes)| ConversationLimits {
        calls,
        parallel_calls,
        output_bytes,
        ..AMPLE
    })
}

/// What has happened so far. The model keeps nothing else: each question is answered from the whole history.
#[derive(Debug, Default)]
struct History(Vec<Event>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Ready,
    Ran { in_session: bool },
    Rested,
    Printed(usize),
    Asked { id: u32, counted: bool },
    Replied(u32),
    Over,
}

impl History {
    fn has(&self, event: Event) -> bool {
        self.0.contains(&event)
    }

    fn phase(&self) -> &'static str {
        let of = |event: &Event| match event {
            Event::Ready => Some("idle"),
            Event::Ran { .. } => Some("running"),
            Event::Rested => Some("resting"),
            Event::Over => Some("over"),
            _ => None,
        };
        self.0.iter().rev().find_map(of).unwrap_or("sealing")
    }

    fn talks(&self) -> bool {
        ["running", "resting"].contains(&self.phase())
    }

    /// Of the run that is under way, or of the next one while a session rests.
    fn of_this_run(&self) -> &[Event] {
        let begin = self.0.iter().rposition(|event| *event == Event::Rested);
        &self.0[begin.unwrap_or(0)..]
    }

    fn ids(&self) -> impl Iterator<Item = u32> {
        self.0.iter().filter_map(|event| if let Event::Asked { id, .. } = event { Some(*id) } else { None })
    }

    fn awaits_reply(&self, id: u32) -> bool {
        self.ids().any(|asked| asked == id) && !self.has(Event::Replied(id))
    }

    fn last_id(&self) -> u32 {
        self.ids().max().unwrap_or(0)
    }

    fn calls(&self) -> usize {
        self.of_this_run().iter().filter(|event| matches!(event, Event::Asked { counted: true, .. })).count()
    }

    fn printed(&self) -> usize {
        let bytes = |event: &Event| if let Event::Printed(bytes) = event { *bytes } else { 0 };
        self.of_this_run().iter().map(bytes).sum()
    }

    /// What a message must come to, and what is then history.
    fn judge(&self, message: &FromWorker, limits: ConversationLimits) -> Verdict {
        let begun = self.has(Event::Ready) || self.has(Event::Over);
        match message {
            FromWorker::Ready if !begun => Verdict::Then(Event::Ready),
            FromWorker::Refused { .. } if !begun => Verdict::Then(Event::Over),
            FromWorker::Output { text, .. } if self.talks() && text.is_empty() => {
                Verdict::Violation(Violation::EmptyOutput)
            }
            FromWorker::Output { text, .. } if self.talks() => {
                if (self.printed() + text.len()) as u64 > limits.output_bytes {
                    return Verdict::Stop(ExceededLimit::Output);
                }
                Verdict::Then(Event::Printed(text.len()))
            }
            FromWorker::Request { call: CallId(id), request } if self.talks() => {
                let counted = request.goes_upstream();
                if *id == 0 || self.ids().any(|before| before >= *id) {
                    return Verdict::Violation(Violation::ReusedCallId(CallId(*id)));
                }
                if self.ids().filter(|id| self.awaits_reply(*id)).count() == limits.parallel_calls as usize {
                    return Verdict::Violation(Violation::TooManyUnderWay(limits.parallel_calls));
                }
                if counted && self.calls() == limits.calls as usize {
                    return Verdict::Stop(ExceededLimit::Calls);
                }
                Verdict::Then(Event::Asked { id: *id, counted })
            }
            FromWorker::Done(_) if self.phase() == "running" => {
                let in_session = self.has(Event::Ran { in_session: true });
                Verdict::Then(if in_session { Event::Rested } else { Event::Over })
            }
            _ => Verdict::OutOfPhase,
        }
    }
}

#[derive(Debug)]
enum Verdict {
    Then(Event),
    Stop(ExceededLimit),
    Violation(Violation),
    OutOfPhase,
}

fn spoken(message: &Message, history: &History) -> FromWorker {
    let asked = |id: u32, counted: bool| request(id, if counted { call() } else { Request::ListServers });
    match *message {
        Message::Ready => FromWorker::Ready,
        Message::Refused => FromWorker::Refused { reason: "no".into() },
        Message::Output(bytes) => output(&"x".repeat(bytes)),
        Message::Next { above, counted } => asked(history.last_id() + above, counted),
        Message::Any { id, counted } => asked(id, counted),
        Message::Done => done(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_conversation_goes_as_its_model(limits in limits(), steps in steps()) {
        let mut conversation = Conversation::new(limits);
        let mut history = History::default();
        for step in steps {
            match step {
                Step::Run(in_session) => {
                    let phase = history.phase();
                    let may = phase == "idle" || phase == "resting" && in_session;
                    prop_assert_eq!(conversation.run(in_session), may, "{:?}", history);
                    history.0.extend(may.then_some(Event::Ran { in_session }));
                }
                Step::Abandon => {
                    let awaited = |id: &u32| history.phase() == "resting" && history.awaits_reply(*id);
                    let mut awaited: Vec<u32> = history.ids().filter(awaited).collect();
                    awaited.sort_unstable();
                    let given_up: Vec<u32> = conversation.abandon().iter().map(|call| call.0).collect();
                    prop_assert_eq!(&given_up, &awaited, "{:?}", history);
                    history.0.extend(awaited.into_iter().map(Event::Replied));
                }
                Step::Reply(id) => {
                    let awaited = history.awaits_reply(id);
                    prop_assert_eq!(conversation.reply(CallId(id)), awaited, "{} in {:?}", id, history);
                    history.0.extend(awaited.then_some(Event::Replied(id)));
                }
                Step::Receive(message) => {
                    let message = spoken(&message, &history);
                    let meant = conversation.receive(message.clone());
                    match history.judge(&message, limits) {
                        Verdict::Then(event) => {
                            let phase = history.phase();
                            prop_assert_eq!(Some(meant.unwrap()), in_place(phase, &message));
                            history.0.push(event);
                        }
                        Verdict::Stop(limit) => {
                            prop_assert_eq!(meant, Ok(Action::Stop(limit)), "{:?}", history);
                            history.0.push(Event::Over);
                        }
                        Verdict::Violation(violation) => {
                            prop_assert_eq!(meant, Err(violation), "{:?}", history);
                            // The worker is not heard again.
                            return Ok(());
                        }
                        Verdict::OutOfPhase => {
                            let out_of_phase = matches!(meant, Err(Violation::OutOfPhase { .. }));
                            prop_assert!(out_of_phase, "{:?} in {:?}", meant, history);
                            return Ok(());
                        }
                    }
                }
            }
        }
    }
}
