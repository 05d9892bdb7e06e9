//! Tests of the conversation between supervisor and worker: the result of each message in each phase.

use std::fmt::Write;

use lockhouse_protocol::{
    Action, CodeError, FromWorker, Outcome, SearchDetail, ServerName, Stream, ToolName, Violation,
    WorkerRequest,
};

use crate::{PHASES, call, done, expected_action, output, request};

fn messages() -> Vec<(&'static str, FromWorker)> {
    let (server, tool) = (ServerName::new("s").unwrap(), ToolName::new("t").unwrap());
    let error = || CodeError { kind: "ValueError".into(), ..CodeError::default() };
    vec![
        ("Ready", FromWorker::Ready),
        ("Refused", FromWorker::Refused { reason: "no Landlock".into() }),
        ("Output to stdout", output("text")),
        ("Output to stderr", FromWorker::Output { stream: Stream::Stderr, text: "text".into() }),
        ("Request Call", request(1, call())),
        ("Request ListServers", request(1, WorkerRequest::ListServers)),
        ("Request ListTools", request(1, WorkerRequest::ListTools { server: server.clone() })),
        ("Request Describe", request(1, WorkerRequest::Describe { server, tool: Some(tool) })),
        (
            "Request Search",
            request(
                1,
                WorkerRequest::Search { query: "words".into(), limit: 5, detail: SearchDetail::Names },
            ),
        ),
        ("Done Value", FromWorker::Done(Outcome::Value(Some(b"1".to_vec())))),
        ("Done without value", done()),
        ("Done Error", FromWorker::Done(Outcome::Error(error()))),
        ("Done Interrupted", FromWorker::Done(Outcome::Interrupted(error()))),
        ("Done CpuLimit", FromWorker::Done(Outcome::CpuLimit(error()))),
        ("Done MemoryLimit", FromWorker::Done(Outcome::MemoryLimit(error()))),
    ]
}

fn name(result: &Result<Action, Violation>) -> &'static str {
    match result {
        Ok(Action::Verify) => "Verify",
        Ok(Action::SealFailed(_)) => "SealFailed",
        Ok(Action::Append(..)) => "Append",
        Ok(Action::Answer(..)) => "Answer",
        Ok(Action::Finish(_)) => "Finish",
        Ok(Action::Stop(_)) => "Stop",
        Err(Violation::OutOfPhase { .. }) => "-",
        Err(Violation::ReusedCallId(_)) => "ReusedCallId",
        Err(Violation::EmptyOutput) => "EmptyOutput",
        Err(Violation::TooManyInFlight(_)) => "TooManyInFlight",
    }
}

#[test]
fn every_message_in_every_phase() {
    let mut table = format!("{:20}", "(- is a violation)");
    PHASES.iter().for_each(|(phase, _)| write!(table, " {phase:8}").unwrap());
    for (message_name, message) in messages() {
        write!(table, "\n{message_name:20}").unwrap();
        for (phase, begin) in PHASES {
            let result = begin().receive(message.clone());
            write!(table, " {:8}", name(&result)).unwrap();
            if let Ok(action) = result {
                assert_eq!(Some(action), expected_action(phase, &message));
            }
        }
    }
    let table: Vec<&str> = table.lines().map(str::trim_end).collect();
    insta::assert_snapshot!(table.join("\n"), @r"
    (- is a violation)   sealing  idle     running  resting  refused  finished stopped
    Ready                Verify   -        -        -        -        -        -
    Refused              SealFailed -        -        -        -        -        -
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
    let mut report = String::new();
    let one_of_each_kind = [0, 1, 2, 4, 9].map(|index| messages()[index].1.clone());
    for (phase, begin) in PHASES {
        let not_permitted =
            one_of_each_kind.iter().filter(|message| expected_action(phase, message).is_none());
        for message in not_permitted {
            writeln!(report, "{phase:9} {}", begin().receive(message.clone()).unwrap_err()).unwrap();
        }
    }
    insta::assert_snapshot!(report);
}
