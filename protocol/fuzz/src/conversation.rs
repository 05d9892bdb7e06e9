//! Fuzzes the state machine of the conversation with a worker: its invariants must hold for any messages in any order.

use std::collections::BTreeSet;

use lockhouse_protocol::frame::decode;
use lockhouse_protocol::{
    Action, CallId, CodeError, Conversation, ConversationLimits, ExceededLimit, FromWorker, LOOKUPS_MAX,
    Outcome, PlannedCall, ResourceUri, ResultHandle, SearchDetail, ServerName, SkillName, Stream, ToolName,
    Violation, WorkerRequest,
};

use super::Coverage;
use super::input::Input;

/// Runs the fuzz target `conversation`: checks that a [`Conversation`] permits exactly the messages, replies and runs
/// that the protocol permits, and that it enforces its limits. Reads small limits from the input, then performs steps
/// (messages of a worker, replies and runs) until the input ends. Returns the kinds of results that the input produced.
///
/// # Panics
/// If the conversation permits a step that the protocol does not permit, or the other way round.
pub fn conversation(bytes: &[u8]) -> Coverage {
    let mut input = Input(bytes);
    let limits = ConversationLimits {
        calls: (input.byte() % 11).into(),
        parallel_calls: (input.byte() % 6).into(),
        output_bytes: input.byte().into(),
        frame_bytes: 1024,
    };
    let mut observed = ObservedConversation::new(limits);
    while !input.is_empty() {
        observed.step(&mut input);
    }
    observed.reached
}

/// The conversation under test, and the state and counts that the fuzzer expects. The fuzzer computes them
/// independently of the conversation.
struct ObservedConversation {
    conversation: Conversation,
    limits: ConversationLimits,
    begun: bool,
    sealed: bool,
    /// Whether the most recent run was started in a session; `None` if no run has been started yet.
    ran: Option<bool>,
    resting: bool,
    over: bool,
    last_id: u32,
    in_flight: BTreeSet<u32>,
    calls: u32,
    lookups: u32,
    printed: u64,
    reached: Coverage,
}

impl ObservedConversation {
    fn new(limits: ConversationLimits) -> Self {
        Self {
            conversation: Conversation::new(limits),
            limits,
            begun: false,
            sealed: false,
            ran: None,
            resting: false,
            over: false,
            last_id: 0,
            in_flight: BTreeSet::new(),
            calls: 0,
            lookups: 0,
            printed: 0,
            reached: Coverage::new(),
        }
    }

    fn reach(&mut self, kind: &str) {
        if !self.reached.contains(kind) {
            self.reached.insert(kind.to_owned());
        }
    }

    /// Whether the worker runs code or is between two runs of a session. In both phases it may send output and
    /// requests.
    fn is_running(&self) -> bool {
        self.ran.is_some() && !self.over
    }

    fn step(&mut self, input: &mut Input<'_>) {
        let step = input.byte();
        match step % 12 {
            0 => self.receive(FromWorker::Ready),
            1 if step >= 192 => self.abandon(),
            1 => self.run(step >= 96),
            2 => self.receive(FromWorker::Refused { reason: "no".into() }),
            3 => {
                let id = self.id(input);
                self.reply(id);
            }
            4 => {
                let stream = if input.byte().is_multiple_of(2) { Stream::Stdout } else { Stream::Stderr };
                let text = String::from_utf8_lossy(input.counted()).into_owned();
                self.receive(FromWorker::Output { stream, text });
            }
            5 => self.receive(FromWorker::Done(Outcome::Value(None))),
            6 => self.receive(FromWorker::Done(Outcome::Error(CodeError::default()))),
            7 => self.look_up(u32::from(input.byte()) * 4),
            8 => {
                let body = input.counted();
                let length = u32::try_from(body.len()).expect("a byte").to_le_bytes();
                if let Ok(message) = decode(&[&length, body].concat(), self.limits.frame_bytes) {
                    self.receive(message);
                }
            }
            _ => {
                let id = self.id(input);
                let request = request(input);
                self.receive(FromWorker::Request { call: CallId(id), request });
            }
        }
    }

    /// Sends up to `times` lookups and answers each at once. An input has too few steps to reach the limit on lookups
    /// if each step sends only one.
    fn look_up(&mut self, times: u32) {
        for _ in 0..times {
            let (before, id) = (self.lookups, self.last_id.saturating_add(1));
            self.receive(FromWorker::Request { call: CallId(id), request: WorkerRequest::ListServers });
            self.reply(id);
            if self.lookups == before {
                return;
            }
        }
    }

    /// Returns a request id from the input: usually one near the last id, sometimes any number.
    fn id(&self, input: &mut Input<'_>) -> u32 {
        match input.byte() {
            255 => input.word(),
            near => (self.last_id.wrapping_add(near.into())).wrapping_sub(4),
        }
    }

    /// Starts a run. Checks that the conversation permits the run exactly if the worker is idle and has not run a
    /// program, or if the worker is between two runs of a session and `in_session` is true.
    fn run(&mut self, in_session: bool) {
        let idle = self.sealed && self.ran.is_none() && !self.over;
        let may = idle || self.resting && !self.over && in_session;
        assert_eq!(self.conversation.start_run(in_session), may);
        if may {
            self.ran = Some(in_session);
            self.resting = false;
        }
    }

    /// Abandons the requests in flight. Checks that the conversation returns all of them between two runs, and none in
    /// other phases.
    fn abandon(&mut self) {
        let given_up: BTreeSet<u32> =
            self.conversation.abandon_in_flight().iter().map(|call| call.0).collect();
        if self.resting && !self.over {
            assert_eq!(given_up, std::mem::take(&mut self.in_flight));
        } else {
            assert!(given_up.is_empty());
        }
    }

    /// Replies to a request. Checks that the conversation permits one reply to each request in flight, and no other.
    fn reply(&mut self, id: u32) {
        assert_eq!(self.conversation.reply(CallId(id)), self.in_flight.remove(&id));
    }

    fn receive(&mut self, message: FromWorker) {
        let was_over = self.over;
        match self.conversation.receive(message.clone()) {
            Ok(action) => {
                assert!(!was_over, "{action:?} after the end");
                self.reach(name(&action));
                self.check_action(action, message);
            }
            Err(violation) => self.check_violation(&violation, &message),
        }
        assert!(self.in_flight.len() <= self.limits.parallel_calls as usize);
        assert!(self.calls <= self.limits.calls && self.lookups <= LOOKUPS_MAX);
        assert!(self.printed <= self.limits.output_bytes);
    }

    /// Checks that the action that the conversation returned for `message` has the content of the message, and
    /// that the current phase permits the message.
    fn check_action(&mut self, action: Action, message: FromWorker) {
        match (action, message) {
            (Action::Verify, FromWorker::Ready) => {
                assert!(!self.begun);
                (self.begun, self.sealed) = (true, true);
            }
            (Action::SealFailed(reported), FromWorker::Refused { reason }) => {
                assert!(!self.begun && reported == reason);
                (self.begun, self.over) = (true, true);
            }
            (Action::Append(to, appended), FromWorker::Output { stream, text }) => {
                assert!(self.is_running() && to == stream && appended == text);
                self.printed += text.len() as u64;
            }
            (Action::Answer(id, answered), FromWorker::Request { call, request }) => {
                assert!(self.is_running() && id == call && answered == request);
                assert!(call.0 > self.last_id, "ids grow");
                self.last_id = call.0;
                self.in_flight.insert(call.0);
                if request.goes_upstream() {
                    self.calls += 1;
                } else {
                    self.lookups += 1;
                }
            }
            (Action::Finish(reported), FromWorker::Done(outcome)) => {
                assert!(self.is_running() && !self.resting && reported == outcome);
                match self.ran {
                    Some(true) => {
                        self.resting = true;
                        self.reach("Rest");
                    }
                    _ => self.over = true,
                }
                (self.calls, self.lookups, self.printed) = (0, 0, 0);
            }
            (Action::Stop(limit), message) => {
                assert!(self.is_running() && self.exceeds(limit, &message), "{limit:?} is not reached");
                self.reach(name_of(limit));
                self.over = true;
            }
            (action, message) => panic!("{action:?} for {message:?}"),
        }
    }

    fn exceeds(&self, limit: ExceededLimit, message: &FromWorker) -> bool {
        match (limit, message) {
            (ExceededLimit::Output, FromWorker::Output { text, .. }) => {
                self.printed + text.len() as u64 > self.limits.output_bytes
            }
            (ExceededLimit::Calls, FromWorker::Request { request, .. }) => {
                request.goes_upstream() && self.calls == self.limits.calls
            }
            (ExceededLimit::Lookups, FromWorker::Request { request, .. }) => {
                !request.goes_upstream() && self.lookups == LOOKUPS_MAX
            }
            _ => false,
        }
    }

    /// Checks that the message really violates the protocol in the way that the violation reports.
    fn check_violation(&mut self, violation: &Violation, message: &FromWorker) {
        assert!(violation.to_string().len() < 200);
        let kind = match (violation, message) {
            (Violation::OutOfPhase { .. }, message) => {
                let begins = matches!(message, FromWorker::Ready | FromWorker::Refused { .. });
                let ends_again = self.resting && matches!(message, FromWorker::Done(_));
                assert!(if begins { self.begun } else { ends_again || !self.is_running() });
                "OutOfPhase"
            }
            (Violation::ReusedCallId(id), FromWorker::Request { call, .. }) => {
                assert!(self.is_running() && id == call && call.0 <= self.last_id);
                "ReusedCallId"
            }
            (Violation::TooManyInFlight(most), FromWorker::Request { .. }) => {
                assert!(self.is_running() && *most == self.limits.parallel_calls);
                assert_eq!(self.in_flight.len(), *most as usize);
                "TooManyInFlight"
            }
            (Violation::EmptyOutput, FromWorker::Output { text, .. }) => {
                assert!(self.is_running() && text.is_empty());
                "EmptyOutput"
            }
            (violation, message) => panic!("{violation:?} for {message:?}"),
        };
        self.reach(kind);
    }
}

fn name(action: &Action) -> &'static str {
    match action {
        Action::Verify => "Verify",
        Action::SealFailed(_) => "SealFailed",
        Action::Append(..) => "Append",
        Action::Answer(..) => "Answer",
        Action::Finish(_) => "Finish",
        Action::Stop(_) => "Stop",
    }
}

fn name_of(limit: ExceededLimit) -> &'static str {
    match limit {
        ExceededLimit::Calls => "Calls",
        ExceededLimit::Lookups => "Lookups",
        ExceededLimit::Output => "Output",
    }
}

fn request(input: &mut Input<'_>) -> WorkerRequest {
    let server = ServerName::new("s").expect("a name");
    let tool = ToolName::new("t").expect("a name");
    match input.byte() % 12 {
        0 => WorkerRequest::ListServers,
        1 => WorkerRequest::ListTools { server },
        2 => WorkerRequest::Describe { server, tool: Some(tool) },
        3 => {
            WorkerRequest::Search { query: "words".into(), limit: input.word(), detail: SearchDetail::Names }
        }
        4 => WorkerRequest::ReadResource { server, uri: ResourceUri::new("u:").expect("a URI") },
        5 => WorkerRequest::ListPrompts { server },
        8 => WorkerRequest::LoadResult { handle: ResultHandle::new("r").expect("a handle") },
        9 => WorkerRequest::LoadSkill { name: SkillName::new("s").expect("a name") },
        10 => WorkerRequest::SearchSkills { query: "words".into(), limit: input.word() },
        11 => {
            let call = PlannedCall { server, tool, arguments: Some(input.counted().to_vec()), line: None };
            WorkerRequest::CheckCalls { calls: vec![call] }
        }
        _ => {
            let arguments = input.counted().to_vec();
            WorkerRequest::Call { server, tool, arguments, decoded: Vec::new(), timeout_ms: None, line: None }
        }
    }
}
