//! Tests of a run's state machine: sequences of events with the effect of each event.

use lockhouse_protocol::{
    CallId, CodeError, ConversationLimits, ExecutionId, ServerName, Stream, ToolName, WorkerRequest,
};

use super::*;
use crate::execution::cancellation::Cancellation;

const LIMITS: ExecutionLimits = ExecutionLimits {
    wall: Duration::from_secs(30),
    wall_asked: None,
    wall_max: Duration::from_secs(30),
    question: Duration::from_secs(60),
    grace: Duration::from_millis(100),
    cpu: Duration::from_secs(10),
    cpu_credit: None,
    memory_bytes: 64 * 1024 * 1024,
    conversation: ConversationLimits { calls: 2, parallel_calls: 2, output_bytes: 1024, frame_bytes: 4096 },
};

const SESSION: bool = true;
const LEASED: bool = false;

fn idle() -> Conversation {
    let mut conversation = Conversation::new(LIMITS.conversation);
    conversation.receive(FromWorker::Ready).expect("sealed");
    conversation
}

fn begin(session: bool) -> ExecutionEvent {
    ExecutionEvent::Begin(Job {
        execution: ExecutionId(1),
        code: "1".into(),
        servers: Vec::new(),
        session,
        check_only: false,
        tools: Vec::new(),
        files: Vec::new(),
        left_out: Vec::new(),
    })
}

fn error(kind: &str) -> CodeError {
    CodeError { kind: kind.into(), ..CodeError::default() }
}

fn done(outcome: Outcome) -> ExecutionEvent {
    ExecutionEvent::Message(FromWorker::Done(outcome))
}

fn value() -> ExecutionEvent {
    done(Outcome::Value(Some(b"1".to_vec())))
}

/// Returns the event in which interrupted code sends its final message.
fn interrupted_message() -> ExecutionEvent {
    done(Outcome::Interrupted(error("here")))
}

fn prints(bytes: usize) -> ExecutionEvent {
    ExecutionEvent::Message(FromWorker::Output { stream: Stream::Stdout, text: "x".repeat(bytes) })
}

fn asks(call: u32) -> ExecutionEvent {
    let (server, tool) = (ServerName::new("s").expect("a server"), ToolName::new("t").expect("a tool"));
    let request = WorkerRequest::Call {
        server,
        tool,
        arguments: b"{}".to_vec(),
        decoded: Vec::new(),
        timeout_ms: None,
        line: None,
    };
    ExecutionEvent::Message(FromWorker::Request { call: CallId(call), request })
}

fn lists_servers(call: u32) -> ExecutionEvent {
    ExecutionEvent::Message(FromWorker::Request { call: CallId(call), request: WorkerRequest::ListServers })
}

fn replied(call: u32) -> ExecutionEvent {
    ExecutionEvent::ReplyReady(CallId(call), Ok(b"1".to_vec()))
}

/// The timer of the run has expired, and the worker process is alive.
fn timer_expired() -> ExecutionEvent {
    ExecutionEvent::TimerExpired { has_exited: false }
}

/// The timer of the run has expired, and the worker process has exited.
fn timer_expired_after_exit() -> ExecutionEvent {
    ExecutionEvent::TimerExpired { has_exited: true }
}

fn stop() -> ExecutionEvent {
    ExecutionEvent::StopRequested(Cancellation::Client)
}

fn describe_effect(effect: &ExecutionEffect) -> String {
    match effect {
        ExecutionEffect::Nothing => "nothing".into(),
        ExecutionEffect::Append(_, text) => format!("append {}", text.len()),
        ExecutionEffect::AskGate(call, _) => format!("ask {}", call.0),
        ExecutionEffect::Send(ToWorker::Run(_)) => "run".into(),
        ExecutionEffect::Send(ToWorker::Interrupt) => "interrupt".into(),
        ExecutionEffect::Send(ToWorker::Reply { call, .. }) => format!("reply {}", call.0),
        ExecutionEffect::Signal(signal) => signal.to_string(),
        ExecutionEffect::Wait(time) => format!("wait {time:?}"),
        ExecutionEffect::Interrupt(time) => format!("interrupt, wait {time:?}"),
        ExecutionEffect::Kill(time) => format!("kill, wait {time:?}"),
        ExecutionEffect::End(ending) => format!("end: {}", describe_reason(ending)),
    }
}

fn describe_reason(ending: &EndReason) -> String {
    let at = |location: &Option<CodeError>| {
        location.as_ref().map_or(String::new(), |location| format!(" at {}", location.kind))
    };
    match ending {
        EndReason::Value(_) | EndReason::NoValue(_) => "value".into(),
        EndReason::Error(error) => format!("error {}", error.kind),
        EndReason::Timeout(location) => format!("timeout{}", at(location)),
        EndReason::Limit(limit, location) => format!("{}{}", limit.message, at(location)),
        EndReason::Killed { message, is_attack } => format!("killed, attack {is_attack}: {message}"),
        EndReason::ProtocolViolation(why) => format!("broken: {why}"),
        EndReason::Cancelled(why, location) => format!("cancelled {why:?}{}", at(location)),
    }
}

/// Starts a run, in a session if `session` is true, and checks the effect of each event in `steps`. Then checks that
/// the worker can be used for another run exactly if `is_reusable` is true. `name` is for failure messages.
fn check(name: &str, session: bool, steps: Vec<(ExecutionEvent, &str)>, is_reusable: bool) {
    let mut state = StateMachine::new(idle(), LIMITS, session);
    assert_eq!(describe_effect(&state.on(begin(session))), "run", "{name}");
    for (at, (event, effect)) in steps.into_iter().enumerate() {
        let event_text = format!("{event:?}");
        assert_eq!(describe_effect(&state.on(event)), effect, "{name}, step {at}: {event_text}");
    }
    assert_eq!(state.into_idle_conversation().is_some(), is_reusable, "{name}: whether its worker rests");
}

#[test]
fn code_that_ends_by_itself() {
    check("a value", LEASED, vec![(value(), "end: value")], false);
    check("a value in a session", SESSION, vec![(value(), "end: value")], true);
    check("an error", LEASED, vec![(done(Outcome::Error(error("E"))), "end: error E")], false);
    let own = vec![(done(Outcome::Interrupted(error("KeyboardInterrupt"))), "end: error KeyboardInterrupt")];
    check("an interrupt of its own", LEASED, own, false);
    let steps = vec![
        (prints(3), "append 3"),
        (asks(1), "ask 1"),
        (lists_servers(2), "ask 2"),
        (replied(2), "reply 2"),
        (replied(1), "reply 1"),
        (replied(1), "nothing"),
        (value(), "end: value"),
    ];
    check("output, requests and a value", LEASED, steps, false);
}

#[test]
fn code_that_reaches_its_deadline() {
    let interrupted = (ExecutionEvent::DeadlineReached, "interrupt, wait 100ms");
    let with = |name: &str, session, mut rest: Vec<(ExecutionEvent, &str)>, is_reusable| {
        rest.insert(0, (ExecutionEvent::DeadlineReached, interrupted.1));
        check(name, session, rest, is_reusable);
    };
    with("last words", LEASED, vec![(interrupted_message(), "end: timeout at here")], false);
    with("last words in a session", SESSION, vec![(interrupted_message(), "end: timeout at here")], true);
    with("no last words", LEASED, vec![(timer_expired(), "end: timeout")], false);
    with("none in a session", SESSION, vec![(timer_expired(), "end: timeout")], false);
    with("a value at the last moment", LEASED, vec![(value(), "end: value")], false);
    let goes_on =
        vec![(prints(1), "append 1"), (asks(1), "ask 1"), (replied(1), "reply 1"), (value(), "end: value")];
    with("it goes on as before", LEASED, goes_on, false);
    with("cancelled meanwhile", LEASED, vec![(stop(), "end: cancelled Client")], false);
    let limit = vec![
        (prints(2000), "interrupt, wait 100ms"),
        (interrupted_message(), "end: output limit of 1 KiB reached at here"),
    ];
    with("a limit meanwhile", LEASED, limit, false);
    with("the clock again", LEASED, vec![(ExecutionEvent::DeadlineReached, "nothing")], false);
}

#[test]
fn code_that_is_cancelled() {
    let stopped = "interrupt, wait 100ms";
    let last = vec![(stop(), stopped), (interrupted_message(), "end: cancelled Client at here")];
    check("last words", LEASED, last, false);
    let none = vec![(stop(), stopped), (timer_expired(), "end: cancelled Client")];
    check("no last words", LEASED, none, false);
    let value_after = vec![(stop(), stopped), (value(), "end: cancelled Client")];
    check("a value comes too late", LEASED, value_after, false);
    let closed = vec![(stop(), stopped), (ExecutionEvent::ChannelClosed, "end: cancelled Client")];
    check("it leaves", LEASED, closed, false);
    let garbage =
        vec![(stop(), stopped), (ExecutionEvent::InvalidFrame("?".into()), "end: cancelled Client")];
    check("it sends what is no message", LEASED, garbage, false);
    let unheard = vec![
        (stop(), stopped),
        (asks(1), "nothing"),
        (prints(1000), "append 1000"),
        (prints(25), "nothing"),
        (prints(24), "append 24"),
        (ExecutionEvent::Message(FromWorker::Ready), "nothing"),
        (ExecutionEvent::DeadlineReached, "nothing"),
        (ExecutionEvent::CpuLimitReached, "nothing"),
        (interrupted_message(), "end: cancelled Client at here"),
    ];
    check("only its last words count", LEASED, unheard, false);
}

#[test]
fn a_cancelled_run_in_a_session_gets_its_grace_time() {
    let stopped = "interrupt, wait 100ms";
    let last = vec![
        (stop(), stopped),
        (prints(1), "append 1"),
        (interrupted_message(), "end: cancelled Client at here"),
    ];
    check("last words", SESSION, last, true);
    check("it finishes", SESSION, vec![(stop(), stopped), (value(), "end: cancelled Client")], true);
    let none = vec![(stop(), stopped), (timer_expired(), "end: cancelled Client")];
    check("it does not stop", SESSION, none, false);
    let limit = vec![(stop(), stopped), (prints(2000), "end: cancelled Client")];
    check("a limit meanwhile", SESSION, limit, false);
    let broken = vec![(stop(), stopped), (ExecutionEvent::InvalidFrame("?".into()), "end: cancelled Client")];
    check("it sends what is no message", SESSION, broken, false);
}

#[test]
fn code_that_reaches_a_limit_of_the_conversation() {
    let calls = vec![
        (asks(1), "ask 1"),
        (replied(1), "reply 1"),
        (asks(2), "ask 2"),
        (replied(2), "reply 2"),
        (asks(3), "interrupt, wait 100ms"),
        (interrupted_message(), "end: tool call limit of 2 reached at here"),
    ];
    check("calls", LEASED, calls, false);
    let output = "end: output limit of 1 KiB reached";
    let none = vec![(prints(1025), "interrupt, wait 100ms"), (timer_expired(), output)];
    check("output, without last words", LEASED, none, false);
    let session = vec![(prints(1025), "interrupt, wait 100ms"), (value(), output)];
    check("output in a session, which ends with it", SESSION, session, false);
    let mut lookups = Vec::new();
    for call in 1..=1000 {
        lookups.extend([(lists_servers(call), "ask"), (replied(call), "reply")]);
    }
    let mut state = StateMachine::new(idle(), LIMITS, LEASED);
    state.on(begin(LEASED));
    for (event, effect) in lookups {
        assert!(describe_effect(&state.on(event)).starts_with(effect));
    }
    assert_eq!(describe_effect(&state.on(lists_servers(1001))), "interrupt, wait 100ms");
    assert_eq!(
        describe_effect(&state.on(timer_expired())),
        "end: limit of 1000 questions about tools reached"
    );
}

#[test]
fn code_that_reports_a_cpu_or_memory_limit() {
    let cpu = "end: CPU time limit of 10 s reached";
    let said = vec![(done(Outcome::CpuLimit(error("here"))), "end: CPU time limit of 10 s reached at here")];
    check("it says so", LEASED, said, false);
    let memory = "end: memory limit of 64 MiB reached at here";
    check("memory", LEASED, vec![(done(Outcome::MemoryLimit(error("here"))), memory)], false);
    let stops = vec![
        (ExecutionEvent::CpuLimitReached, "SIGXCPU"),
        (done(Outcome::CpuLimit(error("here"))), said_at()),
    ];
    check("a session's run stops", SESSION, stops, true);
    let goes_on = vec![(ExecutionEvent::CpuLimitReached, "SIGXCPU"), (ExecutionEvent::CpuGraceExpired, cpu)];
    check("a session's run does not stop", SESSION, goes_on, false);
}

fn said_at() -> &'static str {
    "end: CPU time limit of 10 s reached at here"
}

#[test]
fn a_worker_that_violates_the_protocol() {
    let table = [
        (ExecutionEvent::InvalidFrame("too long".into()), "end: broken: too long"),
        (ExecutionEvent::Message(FromWorker::Ready), "end: broken: it sent Ready while running"),
        (prints(0), "end: broken: it sent an empty piece of output"),
        (ExecutionEvent::Begin(job()), "end: broken: it was not idle"),
    ];
    for (event, effect) in table {
        check(effect, SESSION, vec![(event, effect)], false);
    }
}

fn job() -> Job {
    Job {
        execution: ExecutionId(2),
        code: "2".into(),
        servers: Vec::new(),
        session: LEASED,
        check_only: false,
        tools: Vec::new(),
        files: Vec::new(),
        left_out: Vec::new(),
    }
}

#[test]
fn a_worker_whose_channel_closes() {
    let exit = |exit, cpu_s, grown_mib: u64, was_out_of_memory| {
        let (cpu, peak_growth_bytes) = (Duration::from_secs(cpu_s), grown_mib * 1024 * 1024);
        Some(WorkerExit { exit, cpu, was_out_of_memory, peak_growth_bytes })
    };
    let signal = |signal: Signal| Exit::Signal(signal as i32);
    let (leaves, killed) = ("wait 500ms", "kill, wait 5s");
    let cpu = "CPU time limit of 10 s reached";
    let memory = "memory limit of 64 MiB reached";
    let table = [
        (vec![], exit(Exit::Status(3), 0, 0, false), "killed, attack false: the worker exited with status 3"),
        (
            vec![],
            exit(signal(Signal::SIGSYS), 0, 0, false),
            "killed, attack true: the worker made a system call that only an attack makes, and was killed (SIGSYS)",
        ),
        (vec![], exit(signal(Signal::SIGKILL), 10, 0, false), cpu),
        (vec![], exit(signal(Signal::SIGKILL), 0, 0, true), memory),
        (vec![], exit(signal(Signal::SIGABRT), 0, 48, false), memory),
        (
            vec![],
            exit(signal(Signal::SIGABRT), 0, 47, false),
            "killed, attack false: the worker aborted (SIGABRT): compiled code detected an unrecoverable error",
        ),
        (vec![], None, "killed, attack false: its zygote exited, and the worker with it"),
        (
            vec![(timer_expired(), killed)],
            exit(signal(Signal::SIGKILL), 0, 0, false),
            "broken: it closed its channel and did not exit",
        ),
        (vec![(timer_expired(), killed)], None, "broken: it closed its channel and did not exit"),
        (
            vec![(timer_expired(), killed)],
            exit(Exit::Status(3), 0, 0, false),
            "killed, attack false: the worker exited with status 3",
        ),
        (
            vec![(timer_expired_after_exit(), "wait 5s")],
            exit(signal(Signal::SIGKILL), 0, 0, false),
            "killed, attack false: the worker was killed from outside (SIGKILL), by a person or by the kernel because the whole \
             machine ran out of memory",
        ),
        (
            vec![(stop(), "nothing"), (ExecutionEvent::DeadlineReached, "nothing")],
            exit(signal(Signal::SIGKILL), 10, 0, false),
            cpu,
        ),
    ];
    for (steps, exited, ending) in table {
        let mut state = StateMachine::new(idle(), LIMITS, LEASED);
        state.on(begin(LEASED));
        assert_eq!(describe_effect(&state.on(ExecutionEvent::ChannelClosed)), leaves);
        for (event, effect) in steps {
            assert_eq!(describe_effect(&state.on(event)), effect, "{ending}");
        }
        assert!(state.is_exiting());
        assert_eq!(describe_reason(&state.exited(exited)), ending);
    }
}

#[test]
fn a_worker_that_exits_after_it_was_interrupted() {
    let exited = Some(WorkerExit {
        exit: Exit::Signal(Signal::SIGKILL as i32),
        cpu: Duration::ZERO,
        was_out_of_memory: false,
        peak_growth_bytes: 0,
    });
    for (event, ending, after_kill) in [
        (ExecutionEvent::DeadlineReached, "timeout", "broken: it closed its channel and did not exit"),
        (stop(), "cancelled Client", "cancelled Client"),
    ] {
        for kill in [false, true] {
            let mut state = StateMachine::new(idle(), LIMITS, SESSION);
            state.on(begin(SESSION));
            state.on(match event {
                ExecutionEvent::DeadlineReached => ExecutionEvent::DeadlineReached,
                _ => stop(),
            });
            state.on(ExecutionEvent::ChannelClosed);
            if kill {
                state.on(timer_expired());
            }
            let expected = if kill { after_kill } else { ending };
            assert_eq!(describe_reason(&state.exited(exited)), expected);
        }
    }
}

#[test]
fn a_worker_that_was_killed_and_is_not_reaped() {
    let steps = vec![
        (ExecutionEvent::ChannelClosed, "wait 500ms"),
        (timer_expired(), "kill, wait 5s"),
        (timer_expired(), "end: broken: it closed its channel and did not exit"),
    ];
    check("never reaped", LEASED, steps, false);
}

#[test]
fn a_worker_that_exited_and_is_not_reaped() {
    let steps = vec![
        (ExecutionEvent::ChannelClosed, "wait 500ms"),
        (timer_expired_after_exit(), "wait 5s"),
        (timer_expired_after_exit(), "end: killed, attack false: its zygote exited, and the worker with it"),
    ];
    check("never reported", LEASED, steps, false);
}

#[test]
fn output_and_requests_between_two_runs_count_for_the_next_run() {
    let mut state = StateMachine::new(idle(), LIMITS, SESSION);
    state.on(begin(SESSION));
    state.on(value());
    let conversation = state.into_idle_conversation().expect("a worker that can rest");
    let resting = || {
        let mut resting = idle();
        assert!(resting.start_run(SESSION));
        resting.receive(FromWorker::Done(Outcome::Value(None))).expect("an end");
        resting
    };
    let mut next = StateMachine::new(conversation, LIMITS, SESSION);
    for (event, effect) in [(prints(1000), "append 1000"), (asks(1), "ask 1"), (begin(SESSION), "run")] {
        assert_eq!(describe_effect(&next.on(event)), effect);
    }
    assert_eq!(describe_effect(&next.on(prints(25))), "interrupt, wait 100ms", "both count");
    // Before the code is sent, no location can be reported.
    for (event, effect) in [
        (prints(2000), "end: output limit of 1 KiB reached"),
        (value(), "end: broken: it sent Done while between two runs"),
    ] {
        assert_eq!(describe_effect(&StateMachine::new(resting(), LIMITS, SESSION).on(event)), effect);
    }
}
