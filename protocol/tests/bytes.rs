//! Golden tests of the protocol's encoding: the snapshots contain the encoded bytes of an example of each message.
//! Supervisor, zygote and worker are built together, but a replacement of the encoding library must produce the same
//! bytes. If a snapshot changes, the protocol has changed.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::collections::BTreeSet;
use std::fmt::{Debug, Write};

use lockhouse_protocol::frame::{decode, encode};
use lockhouse_protocol::{
    CallId, CodeError, ConversationLimits, DecodedArgument, ExecutionId, Exit, Failure, FailureCode,
    FileSource, FileTarget, Finding, FromWorker, FromZygote, Job, LoadedPackage, Outcome, PlannedCall,
    PromptName, Protection, PythonPackages, ResourceUri, ResultHandle, SandboxProfile, SearchDetail,
    ServerName, SkillName, Stream, ToWorker, ToZygote, ToolName, WorkerRequest,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

const LIMIT: u32 = 64 * 1024;
const LENGTH_BYTES: usize = 4;
const VARIANT_BYTES: usize = 4;

fn snapshot<T: Serialize + DeserializeOwned + PartialEq + Debug>(name: &str, examples: &[T]) {
    insta::assert_snapshot!(name, dump(examples));
}

/// Returns each example message with a hex dump of its frame, 16 bytes to a line. Panics if a variant of the enum `T`
/// has no example.
fn dump<T: Serialize + DeserializeOwned + PartialEq + Debug>(examples: &[T]) -> String {
    let mut text = String::new();
    let mut variants_seen = BTreeSet::new();
    for example in examples {
        let frame = encode(example, LIMIT).unwrap();
        assert_eq!(&decode::<T>(&frame, LIMIT).unwrap(), example);
        variants_seen.insert(frame[LENGTH_BYTES..][..VARIANT_BYTES].to_vec());
        writeln!(text, "{example:?}").unwrap();
        for line in frame.chunks(16) {
            let hex: Vec<String> = line.iter().map(|byte| format!("{byte:02x}")).collect();
            let printable = |byte: &u8| if matches!(byte, 0x20..0x7f) { char::from(*byte) } else { '.' };
            let ascii: String = line.iter().map(printable).collect();
            writeln!(text, "    {:47}  {ascii}", hex.join(" ")).unwrap();
        }
    }
    assert_eq!(
        variants_seen.len(),
        variants::<T>(),
        "a variant of {} has no example",
        std::any::type_name::<T>()
    );
    text
}

/// Returns the number of variants of the enum `T`. The number is taken from the error that the decoder returns for a
/// variant number that is too high.
fn variants<T: DeserializeOwned + Debug>() -> usize {
    let frame = encode(&u32::MAX, LIMIT).unwrap();
    let refusal = decode::<T>(&frame, LIMIT).unwrap_err().to_string();
    let (_, count) = refusal.split_once("0 <= i < ").unwrap_or_else(|| panic!("{refusal}"));
    count.chars().map_while(|c| c.to_digit(10)).fold(0, |count, digit| count * 10 + digit as usize)
}

fn server() -> ServerName {
    ServerName::new("github").unwrap()
}

fn tool() -> ToolName {
    ToolName::new("list_issues").unwrap()
}

fn code_error() -> CodeError {
    CodeError {
        kind: "ToolError".into(),
        code: Some("denied".into()),
        message: "no".into(),
        line: Some(4),
        column: None,
        traceback: Some("line 4".into()),
        hint: None,
    }
}

fn failure(code: FailureCode) -> Failure {
    let server = Some("github".into());
    Failure { server, retryable: true, result: Some(b"{}".to_vec()), ..Failure::new(code, "no".into()) }
}

#[test]
fn to_worker() {
    let job = Job {
        execution: ExecutionId(0x0199_0000_0000_7000_8000_0000_0000_0001),
        code: "1 + 1 # é".into(),
        servers: vec![server(), ServerName::new("files").unwrap()],
        session: true,
        check_only: false,
        tools: b"[]".to_vec(),
        files: b"{}".to_vec(),
        left_out: Vec::new(),
    };
    snapshot(
        "to_worker",
        &[
            ToWorker::Run(job),
            ToWorker::Reply { call: CallId(1), reply: Ok(b"[1,2]".to_vec()) },
            ToWorker::Reply { call: CallId(2), reply: Err(failure(FailureCode::Denied)) },
            ToWorker::Interrupt,
        ],
    );
}

#[test]
fn from_worker() {
    snapshot(
        "from_worker",
        &[
            FromWorker::Ready,
            FromWorker::Refused { reason: "Landlock".into() },
            FromWorker::Output { stream: Stream::Stdout, text: "hello\n".into() },
            FromWorker::Output { stream: Stream::Stderr, text: String::new() },
            FromWorker::Request { call: CallId(0x0102_0304), request: WorkerRequest::ListServers },
            FromWorker::Done(Outcome::Value(Some(b"42".to_vec()))),
        ],
    );
}

#[test]
fn requests() {
    snapshot(
        "requests",
        &[
            WorkerRequest::Call {
                server: server(),
                tool: tool(),
                arguments: br#"{"a":1}"#.to_vec(),
                decoded: vec![
                    DecodedArgument { pointer: "/a".into(), text: Some("{}".into()) },
                    DecodedArgument { pointer: "/b/0".into(), text: None },
                ],
                timeout_ms: None,
                line: Some(7),
            },
            WorkerRequest::Call {
                server: server(),
                tool: tool(),
                arguments: vec![],
                decoded: vec![],
                timeout_ms: Some(1_500),
                line: None,
            },
            WorkerRequest::ListServers,
            WorkerRequest::ListTools { server: server() },
            WorkerRequest::Describe { server: server(), tool: Some(tool()) },
            WorkerRequest::Describe { server: server(), tool: None },
            WorkerRequest::Search { query: "open issues".into(), limit: 5, detail: SearchDetail::Full },
            WorkerRequest::ListResources { server: server() },
            WorkerRequest::ReadResource { server: server(), uri: ResourceUri::new("file:///a b").unwrap() },
            WorkerRequest::ListPrompts { server: server() },
            WorkerRequest::GetPrompt {
                server: server(),
                name: PromptName::new("review code").unwrap(),
                arguments: b"{}".to_vec(),
            },
            WorkerRequest::LoadResult { handle: ResultHandle::new("r1").unwrap() },
            WorkerRequest::LoadSkill { name: SkillName::new("weekly-report").unwrap() },
            WorkerRequest::SearchSkills { query: "report".into(), limit: 5 },
            WorkerRequest::CheckCalls {
                calls: vec![PlannedCall {
                    server: server(),
                    tool: tool(),
                    arguments: Some(b"[1,null]".to_vec()),
                    line: Some(3),
                }],
            },
            WorkerRequest::OpenFile { source: FileSource::Host("/srv/a.csv".into()), line: Some(2) },
            WorkerRequest::OpenFile { source: FileSource::Given("a.csv".into()), line: None },
            WorkerRequest::OpenFile {
                source: FileSource::Stored(ResultHandle::new("r1").unwrap()),
                line: None,
            },
            WorkerRequest::ReadPiece { file: 1 },
            WorkerRequest::CreateFile { target: FileTarget::Host("/srv/b".into()), bytes: 3, line: None },
            WorkerRequest::CreateFile { target: FileTarget::Answer("b.png".into()), bytes: 3, line: None },
            WorkerRequest::WritePiece { file: 2, piece: b"abc".to_vec() },
            WorkerRequest::FinishFile { file: 2, line: Some(3) },
        ],
    );
}

#[test]
fn outcomes() {
    snapshot(
        "outcomes",
        &[
            Outcome::Value(None),
            Outcome::NoValue("end with an expression".into()),
            Outcome::Value(Some(b"null".to_vec())),
            Outcome::Error(code_error()),
            Outcome::Interrupted(code_error()),
            Outcome::CpuLimit(code_error()),
            Outcome::MemoryLimit(CodeError::default()),
        ],
    );
}

#[test]
fn failures_and_streams() {
    snapshot("failure_codes", FailureCode::ALL);
    snapshot("streams", &[Stream::Stdout, Stream::Stderr]);
}

#[test]
fn to_zygote() {
    let limits = ConversationLimits {
        calls: 1_000,
        parallel_calls: 64,
        output_bytes: 1024 * 1024,
        frame_bytes: 8 * 1024 * 1024,
    };
    let profile = SandboxProfile {
        cpu_seconds: 30,
        memory_bytes: 256 * 1024 * 1024,
        unprivileged_id: Some(65_000),
        preload: vec!["json".into()],
        packages: PythonPackages::Loaded(vec!["pandas>=2".into()]),
        denied_modules: vec!["ctypes".into()],
        limits,
    };
    snapshot(
        "to_zygote",
        &[
            ToZygote::Prepare(profile.clone()),
            ToZygote::Prepare(SandboxProfile {
                unprivileged_id: None,
                preload: vec![],
                packages: PythonPackages::none(),
                ..profile
            }),
            ToZygote::Fork { warm: false, session: true },
            ToZygote::Fork { warm: true, session: false },
        ],
    );
}

#[test]
fn from_zygote() {
    snapshot(
        "from_zygote",
        &[
            FromZygote::Prepared {
                runtime: "Python 3.12".into(),
                findings: vec![
                    Finding::holds(Protection::SystemCalls, "refused"),
                    Finding::absent(Protection::ControlGroup, "none"),
                ],
                packages: vec![LoadedPackage {
                    name: "pandas".into(),
                    version: "3".into(),
                    memory_kib: 9,
                    import_ms: 8,
                }],
            },
            FromZygote::Refused { reason: "threads".into() },
            FromZygote::Forked { pid: 4_242 },
            FromZygote::Exited {
                pid: 4_242,
                exit: Exit::Status(-1),
                cpu_us: 1_500,
                peak_memory_bytes: 4_096,
            },
            FromZygote::Exited { pid: 4_242, exit: Exit::Signal(9), cpu_us: 0, peak_memory_bytes: 0 },
            FromZygote::ForkFailed { reason: "no memory".into() },
        ],
    );
    snapshot("exits", &[Exit::Status(0), Exit::Signal(31)]);
}
