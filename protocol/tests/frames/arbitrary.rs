//! Proptest strategies that generate protocol messages of each kind with arbitrary contents.

use lockhouse_protocol::{
    CallId, CodeError, ConversationLimits, DecodedArgument, ExecutionId, Exit, Failure, FailureCode,
    FileSource, FileTarget, Finding, FromWorker, FromZygote, Job, LoadedPackage, Outcome, PlannedCall,
    PromptName, Protection, PythonPackages, Reply, ResourceUri, ResultHandle, SandboxProfile, SearchDetail,
    ServerName, SkillName, Stream, ToWorker, ToZygote, ToolName, Verdict, WorkerRequest,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..200)
}

fn text() -> impl Strategy<Value = String> {
    "(?s).{0,60}"
}

fn some_text() -> impl Strategy<Value = Option<String>> {
    proptest::option::of(text())
}

fn server() -> impl Strategy<Value = ServerName> {
    "[A-Za-z0-9_-]{1,128}".prop_map(|name| ServerName::new(name).unwrap())
}

fn tool() -> impl Strategy<Value = ToolName> {
    "[A-Za-z0-9_./-]{1,128}".prop_map(|name| ToolName::new(name).unwrap())
}

fn uri() -> impl Strategy<Value = ResourceUri> {
    "[a-z]{1,8}:[^\\p{Cc}]{0,200}".prop_map(|uri| ResourceUri::new(uri).unwrap())
}

fn prompt() -> impl Strategy<Value = PromptName> {
    "[^\\p{Cc}]{1,40}".prop_map(|name| PromptName::new(name).unwrap())
}

fn handle() -> impl Strategy<Value = ResultHandle> {
    "[A-Za-z0-9_-]{1,128}".prop_map(|handle| ResultHandle::new(handle).unwrap())
}

fn skill() -> impl Strategy<Value = SkillName> {
    "[A-Za-z0-9_-]{1,128}".prop_map(|name| SkillName::new(name).unwrap())
}

fn detail() -> impl Strategy<Value = SearchDetail> {
    select(vec![SearchDetail::Names, SearchDetail::Signatures, SearchDetail::Full])
}

fn call_id() -> impl Strategy<Value = CallId> {
    any::<u32>().prop_map(CallId)
}

fn failure() -> impl Strategy<Value = Failure> {
    let result = proptest::option::of(bytes());
    (select(FailureCode::ALL), text(), some_text(), some_text(), any::<bool>(), result).prop_map(
        |(code, message, server, tool, retryable, result)| Failure {
            code,
            message,
            server,
            tool,
            retryable,
            result,
        },
    )
}

fn reply() -> impl Strategy<Value = Reply> {
    prop_oneof![bytes().prop_map(Ok), failure().prop_map(Err)]
}

pub(crate) fn to_worker() -> impl Strategy<Value = ToWorker> {
    let flags = (any::<bool>(), any::<bool>());
    let job = (any::<u128>(), text(), vec(server(), 0..4), flags, bytes(), bytes(), bytes()).prop_map(
        |(execution, code, servers, (session, check_only), tools, files, left_out)| Job {
            execution: ExecutionId(execution),
            code,
            servers,
            session,
            check_only,
            tools,
            files,
            left_out,
        },
    );
    prop_oneof![
        job.prop_map(ToWorker::Run),
        (call_id(), reply()).prop_map(|(call, reply)| ToWorker::Reply { call, reply }),
        Just(ToWorker::Interrupt),
    ]
}

fn decoded() -> impl Strategy<Value = Vec<DecodedArgument>> {
    let argument = (text(), proptest::option::of(text()));
    let argument = argument.prop_map(|(pointer, text)| DecodedArgument { pointer, text });
    vec(argument, 0..3)
}

fn planned_call() -> impl Strategy<Value = PlannedCall> {
    let call = (server(), tool(), proptest::option::of(bytes()), any::<Option<u32>>());
    call.prop_map(|(server, tool, arguments, line)| PlannedCall { server, tool, arguments, line })
}

fn source() -> impl Strategy<Value = FileSource> {
    prop_oneof![
        text().prop_map(FileSource::Host),
        text().prop_map(FileSource::Given),
        handle().prop_map(FileSource::Stored),
    ]
}

fn target() -> impl Strategy<Value = FileTarget> {
    prop_oneof![text().prop_map(FileTarget::Host), text().prop_map(FileTarget::Answer)]
}

fn request() -> impl Strategy<Value = WorkerRequest> {
    prop_oneof![
        (server(), tool(), bytes(), decoded(), any::<Option<u32>>(), any::<Option<u32>>()).prop_map(
            |(server, tool, arguments, decoded, timeout_ms, line)| {
                WorkerRequest::Call { server, tool, arguments, decoded, timeout_ms, line }
            }
        ),
        Just(WorkerRequest::ListServers),
        server().prop_map(|server| WorkerRequest::ListTools { server }),
        (server(), proptest::option::of(tool()))
            .prop_map(|(server, tool)| WorkerRequest::Describe { server, tool }),
        (text(), any::<u32>(), detail()).prop_map(|(query, limit, detail)| WorkerRequest::Search {
            query,
            limit,
            detail
        }),
        server().prop_map(|server| WorkerRequest::ListResources { server }),
        (server(), uri()).prop_map(|(server, uri)| WorkerRequest::ReadResource { server, uri }),
        server().prop_map(|server| WorkerRequest::ListPrompts { server }),
        (server(), prompt(), bytes()).prop_map(|(server, name, arguments)| WorkerRequest::GetPrompt {
            server,
            name,
            arguments
        }),
        handle().prop_map(|handle| WorkerRequest::LoadResult { handle }),
        skill().prop_map(|name| WorkerRequest::LoadSkill { name }),
        (text(), any::<u32>()).prop_map(|(query, limit)| WorkerRequest::SearchSkills { query, limit }),
        vec(planned_call(), 0..4).prop_map(|calls| WorkerRequest::CheckCalls { calls }),
        (source(), any::<Option<u32>>()).prop_map(|(source, line)| WorkerRequest::OpenFile { source, line }),
        any::<u32>().prop_map(|file| WorkerRequest::ReadPiece { file }),
        (target(), any::<u64>(), any::<Option<u32>>())
            .prop_map(|(target, bytes, line)| WorkerRequest::CreateFile { target, bytes, line }),
        (any::<u32>(), bytes()).prop_map(|(file, piece)| WorkerRequest::WritePiece { file, piece }),
        (any::<u32>(), any::<Option<u32>>())
            .prop_map(|(file, line)| WorkerRequest::FinishFile { file, line }),
    ]
}

fn code_error() -> impl Strategy<Value = CodeError> {
    let position = (any::<Option<u32>>(), any::<Option<u32>>());
    (text(), some_text(), text(), position, some_text(), some_text()).prop_map(
        |(kind, code, message, (line, column), traceback, hint)| CodeError {
            kind,
            code,
            message,
            line,
            column,
            traceback,
            hint,
        },
    )
}

fn outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        proptest::option::of(bytes()).prop_map(Outcome::Value),
        text().prop_map(Outcome::NoValue),
        code_error().prop_map(Outcome::Error),
        code_error().prop_map(Outcome::Interrupted),
        code_error().prop_map(Outcome::CpuLimit),
        code_error().prop_map(Outcome::MemoryLimit),
    ]
}

pub(crate) fn from_worker() -> impl Strategy<Value = FromWorker> {
    let stream = select(vec![Stream::Stdout, Stream::Stderr]);
    prop_oneof![
        Just(FromWorker::Ready),
        text().prop_map(|reason| FromWorker::Refused { reason }),
        (stream, text()).prop_map(|(stream, text)| FromWorker::Output { stream, text }),
        (call_id(), request()).prop_map(|(call, request)| FromWorker::Request { call, request }),
        outcome().prop_map(FromWorker::Done),
    ]
}

pub(crate) fn to_zygote() -> impl Strategy<Value = ToZygote> {
    let limits =
        any::<(u32, u32, u64, u32)>().prop_map(|(calls, parallel_calls, output_bytes, frame_bytes)| {
            ConversationLimits { calls, parallel_calls, output_bytes, frame_bytes }
        });
    let packages = prop_oneof![
        vec(text(), 0..4).prop_map(PythonPackages::Elsewhere),
        vec(text(), 0..4).prop_map(PythonPackages::Loaded),
    ];
    let profile =
        (any::<(u64, u64, Option<u32>)>(), [vec(text(), 0..4), vec(text(), 0..4)], packages, limits);
    let profile = profile.prop_map(|(numbers, [preload, denied_modules], packages, limits)| {
        let (cpu_seconds, memory_bytes, unprivileged_id) = numbers;
        SandboxProfile {
            cpu_seconds,
            memory_bytes,
            unprivileged_id,
            preload,
            packages,
            denied_modules,
            limits,
        }
    });
    let fork = any::<(bool, bool)>().prop_map(|(warm, session)| ToZygote::Fork { warm, session });
    prop_oneof![profile.prop_map(ToZygote::Prepare), fork]
}

fn loaded_package() -> impl Strategy<Value = LoadedPackage> {
    (text(), text(), any::<(u64, u64)>()).prop_map(|(name, version, (memory_kib, import_ms))| LoadedPackage {
        name,
        version,
        memory_kib,
        import_ms,
    })
}

pub(crate) fn from_zygote() -> impl Strategy<Value = FromZygote> {
    let exit = prop_oneof![any::<i32>().prop_map(Exit::Status), any::<i32>().prop_map(Exit::Signal)];
    prop_oneof![
        (text(), vec(finding(), 0..4), vec(loaded_package(), 0..4))
            .prop_map(|(runtime, findings, packages)| FromZygote::Prepared { runtime, findings, packages }),
        text().prop_map(|reason| FromZygote::Refused { reason }),
        text().prop_map(|reason| FromZygote::ForkFailed { reason }),
        any::<i32>().prop_map(|pid| FromZygote::Forked { pid }),
        (any::<i32>(), exit, any::<u64>(), any::<u64>()).prop_map(
            |(pid, exit, cpu_us, peak_memory_bytes)| FromZygote::Exited {
                pid,
                exit,
                cpu_us,
                peak_memory_bytes
            }
        ),
    ]
}

fn finding() -> impl Strategy<Value = Finding> {
    let verdict = prop_oneof![Just(Verdict::Holds), Just(Verdict::Absent), Just(Verdict::Broken)];
    (select(&Protection::CHECKED_BY_ZYGOTE), verdict, text())
        .prop_map(|(protection, verdict, found)| Finding { protection, verdict, found })
}
