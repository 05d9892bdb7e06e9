//! Seeds for the fuzz targets: an example of each message and of each phase of the conversation.

use std::collections::BTreeMap;

use lockhouse_protocol::frame::encode;
use lockhouse_protocol::{
    CallId, CodeError, ConversationLimits, DecodedArgument, ExecutionId, Exit, Failure, FailureCode,
    FileSource, FileTarget, Finding, FromWorker, FromZygote, Job, LoadedPackage, Outcome, PlannedCall,
    PromptName, Protection, PythonPackages, ResourceUri, ResultHandle, SandboxProfile, SearchDetail,
    ServerName, SkillName, Stream, ToWorker, ToZygote, ToolName, WorkerRequest,
};
use serde::Serialize;

const LIMIT: u32 = 64 * 1024;
/// Bytes that select a step in `src/conversation.rs`: `RUN` starts a run in a session, `ABANDON` abandons the requests
/// without a reply.
const RUN: u8 = 97;
const ABANDON: u8 = 193;

/// Returns the seeds of each target.
pub fn seeds() -> BTreeMap<&'static str, Vec<Vec<u8>>> {
    BTreeMap::from([
        ("frame_decoder", frame_decoder()),
        ("zygote_messages", zygote_messages()),
        ("conversation", [conversations(&frames(&from_worker())), boundaries()].concat()),
    ])
}

fn frame_decoder() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    let of_each_kind =
        [frames(&from_worker()), frames(&to_worker()), frames(&from_zygote()), frames(&to_zygote())];
    for (kind, frames) in (0_u8..).zip(of_each_kind) {
        // Each frame alone under the default limit, and all frames in pieces of three and seven bytes under each limit.
        seeds.extend(frames.iter().map(|frame| [&[3, kind, 0, 0], &frame[..]].concat()));
        let all = frames.concat();
        seeds.extend((0..6).map(|limit| [&[limit, kind, 2, 3, 7, 0], &all[..]].concat()));
        seeds.extend(
            frames.iter().map(|frame| [&[3, kind, 0, 1, frame.len() as u8 - 4], &frame[4..]].concat()),
        );
    }
    seeds.extend(false_lengths(&[3, 0, 0, 0]));
    // Messages at the limit and just beyond it.
    seeds.extend((4..7_u8).map(|size| [&[1, 0, 0, 0, size, 0, 0, 0][..], &vec![0; size.into()]].concat()));
    seeds
}

fn zygote_messages() -> Vec<Vec<u8>> {
    let frames = [frames(&from_zygote()), frames(&to_zygote())].concat();
    let datagrams = frames.iter().map(|frame| [&[0], &frame[..]].concat());
    let bodies = frames.iter().map(|frame| [&[1], &frame[4..]].concat());
    datagrams.chain(bodies).chain(false_lengths(&[0])).collect()
}

/// Returns frames after `start` whose length is not that of their bodies.
fn false_lengths(start: &[u8]) -> Vec<Vec<u8>> {
    [0, 1_u32, 1 << 31, u32::MAX].map(|length| [start, &length.to_le_bytes(), &[0; 4]].concat()).to_vec()
}

fn frames<T: Serialize>(messages: &[T]) -> Vec<Vec<u8>> {
    messages.iter().map(|message| encode(message, LIMIT).unwrap()).collect()
}

/// Returns inputs for the fuzz target `conversation`. The first three bytes of an input set the limits of calls, parallel
/// calls and output; each later byte or group of bytes is one step of the conversation.
fn conversations(messages: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let started = [4, 3, 9, 0, 1];
    let with = |steps: &[u8]| [&started, steps].concat();
    let call = |near: u8| [9, near, 6, 2, b'{', b'}'];
    let mut seeds = vec![
        vec![4, 3, 9, 2, 0, 1],
        vec![4, 3, 9, 4, 0, 1, b'x'],
        with(&[4, 0, 4, b't', b'e', b'x', b't', 5, 0]),
        with(&[4, 1, 10, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
        with(&[7, 255, 6]),
        with(&[call(5), call(5), call(5), call(5)].concat()),
        with(
            &[&call(5)[..], &[3, 4], &call(5), &[3, 4], &call(5), &[3, 4], &call(5), &[3, 4], &call(5)]
                .concat(),
        ),
        with(&[call(5), call(4)].concat()),
        with(&[9, 255, 255, 255, 255, 255, 0, 9, 5, 0]),
        with(&[9, 5, 4, 9, 5, 5, 9, 5, 4, 9, 5, 5]),
        with(&[9, 5, 0, 9, 5, 1, 9, 5, 2]),
        with(&[9, 5, 3, 7, 0, 0, 0, 3, 4, 3, 4]),
        // Sessions: three runs with output and requests of threads between them; a second outcome; a run outside of the
        // session.
        vec![4, 3, 9, 0, RUN, 9, 5, 3, 5, ABANDON, 4, 0, 1, b'x', RUN, 9, 5, 3, 3, 4, 6, ABANDON, RUN, 5],
        vec![4, 3, 9, 0, RUN, 5, 5],
        vec![4, 3, 9, 0, RUN, 5, 1, RUN, 2],
    ];
    let raw_messages =
        messages.iter().map(|frame| with(&[&[8, frame.len() as u8 - 4], &frame[4..]].concat()));
    seeds.extend(raw_messages);
    seeds
}

fn boundaries() -> Vec<Vec<u8>> {
    let limits = |calls: u8, parallel: u8, bytes: u8| vec![calls, parallel, bytes, 0, 1];
    let print = |count: u8| [vec![4, 0, count], vec![b'x'; count.into()]].concat();
    let call = |near: u8| vec![9, near, 6, 0];
    vec![
        [limits(1, 1, 9), print(9), print(0), print(1)].concat(),
        [limits(1, 1, 9), print(10), print(1)].concat(),
        // Requests with the next id, with the same id again, and with smaller ids.
        [limits(7, 5, 0), call(5), call(5), call(4), call(3)].concat(),
        [limits(7, 2, 0), call(5), call(5), call(5)].concat(),
        [limits(2, 5, 0), call(5), call(5), call(5)].concat(),
        // 1,000 lookups and one more.
        [limits(0, 1, 0), vec![7, 250, 7, 1]].concat(),
    ]
}

fn server() -> ServerName {
    ServerName::new("s").unwrap()
}

fn tool() -> ToolName {
    ToolName::new("t/x.y").unwrap()
}

fn decoded_argument() -> DecodedArgument {
    DecodedArgument { pointer: "/a".into(), text: Some("{}".into()) }
}

fn from_worker() -> Vec<FromWorker> {
    let error = CodeError { kind: "E".into(), line: Some(1), hint: Some("h".into()), ..CodeError::default() };
    let coded = CodeError { code: Some("denied".into()), ..error.clone() };
    let requests = [
        WorkerRequest::Call {
            server: server(),
            tool: tool(),
            arguments: b"{}".to_vec(),
            decoded: vec![decoded_argument()],
            timeout_ms: Some(9),
            line: Some(1),
        },
        WorkerRequest::ListServers,
        WorkerRequest::ListTools { server: server() },
        WorkerRequest::Describe { server: server(), tool: Some(tool()) },
        WorkerRequest::Describe { server: server(), tool: None },
        WorkerRequest::Search { query: "words".into(), limit: 5, detail: SearchDetail::Full },
        WorkerRequest::ListResources { server: server() },
        WorkerRequest::ReadResource { server: server(), uri: ResourceUri::new("u:/x").unwrap() },
        WorkerRequest::ListPrompts { server: server() },
        WorkerRequest::GetPrompt {
            server: server(),
            name: PromptName::new("p q").unwrap(),
            arguments: b"{}".to_vec(),
        },
        WorkerRequest::LoadResult { handle: ResultHandle::new("r").unwrap() },
        WorkerRequest::LoadSkill { name: SkillName::new("s").unwrap() },
        WorkerRequest::SearchSkills { query: "words".into(), limit: 5 },
        WorkerRequest::CheckCalls {
            calls: vec![PlannedCall {
                server: server(),
                tool: tool(),
                arguments: Some(b"{}".to_vec()),
                line: Some(1),
            }],
        },
        WorkerRequest::OpenFile { source: FileSource::Host("/srv/a".into()), line: None },
        WorkerRequest::ReadPiece { file: 1 },
        WorkerRequest::CreateFile { target: FileTarget::Answer("a".into()), bytes: 1, line: None },
        WorkerRequest::WritePiece { file: 2, piece: b"a".to_vec() },
        WorkerRequest::FinishFile { file: 2, line: None },
    ];
    let outcomes = [
        Outcome::Value(None),
        Outcome::NoValue("end with an expression".into()),
        Outcome::Value(Some(b"1".to_vec())),
        Outcome::Error(error),
        Outcome::Interrupted(coded.clone()),
        Outcome::CpuLimit(coded),
        Outcome::MemoryLimit(CodeError::default()),
    ];
    let mut messages = vec![
        FromWorker::Ready,
        FromWorker::Refused { reason: "no".into() },
        FromWorker::Output { stream: Stream::Stdout, text: "é".into() },
        FromWorker::Output { stream: Stream::Stderr, text: String::new() },
    ];
    messages.extend(requests.map(|request| FromWorker::Request { call: CallId(1), request }));
    messages.extend(outcomes.map(FromWorker::Done));
    messages
}

fn to_worker() -> Vec<ToWorker> {
    let failure = Failure {
        code: FailureCode::Denied,
        message: "no".into(),
        server: Some("s".into()),
        tool: None,
        retryable: true,
        result: Some(b"{}".to_vec()),
    };
    vec![
        ToWorker::Run(Job {
            execution: ExecutionId(1),
            code: "1".into(),
            servers: vec![server(), server()],
            session: true,
            check_only: false,
            tools: b"[]".to_vec(),
            files: Vec::new(),
            left_out: Vec::new(),
        }),
        ToWorker::Reply { call: CallId(1), reply: Ok(b"1".to_vec()) },
        ToWorker::Reply { call: CallId(2), reply: Err(failure) },
        ToWorker::Interrupt,
    ]
}

fn from_zygote() -> Vec<FromZygote> {
    vec![
        FromZygote::Prepared {
            runtime: "r".into(),
            findings: vec![
                Finding::absent(Protection::Pidfd, "x"),
                Finding::holds(Protection::EmptyRoot, "y"),
            ],
            packages: vec![LoadedPackage {
                name: "pandas".into(),
                version: "3".into(),
                memory_kib: 9,
                import_ms: 8,
            }],
        },
        FromZygote::Refused { reason: "no".into() },
        FromZygote::Forked { pid: 1 },
        FromZygote::Exited { pid: 1, exit: Exit::Status(-1), cpu_us: 1, peak_memory_bytes: 1 },
        FromZygote::Exited { pid: 1, exit: Exit::Signal(9), cpu_us: 1, peak_memory_bytes: 1 },
        FromZygote::ForkFailed { reason: "no".into() },
    ]
}

fn to_zygote() -> Vec<ToZygote> {
    let limits = ConversationLimits { calls: 1, parallel_calls: 2, output_bytes: 3, frame_bytes: 4 };
    let profile = SandboxProfile {
        cpu_seconds: 1,
        memory_bytes: 2,
        unprivileged_id: Some(3),
        preload: vec!["json".into(), "re".into()],
        packages: PythonPackages::Elsewhere(vec!["pandas".into()]),
        denied_modules: vec!["ctypes".into()],
        limits,
    };
    vec![
        ToZygote::Prepare(SandboxProfile {
            unprivileged_id: None,
            preload: vec![],
            packages: PythonPackages::none(),
            ..profile.clone()
        }),
        ToZygote::Prepare(profile),
        ToZygote::Fork { warm: false, session: true },
        ToZygote::Fork { warm: true, session: false },
    ]
}
