//! Tests of how Lockhouse ends: when its AI client disconnects, on SIGTERM, or on SIGKILL. No process that it has
//! started may be left.

use lockhouse_tests::{LANGUAGES, Lockhouse, Process, Session, descendants, is_alive, processes, wait_until};

use crate::resilience::{is_upstream, wait_for_calls};

const SLOW: [&str; 2] =
    ["from mcp_tools.fixture import slow\nslow(ms=60000)", "await fixture.slow({ms: 60000})"];
const LOOP: [&str; 2] = ["while True: pass", "for (;;);"];

/// Starts two programs that wait for a tool and two that loop forever. Returns the MCP connection and all processes
/// that Lockhouse has started.
async fn start_busy_session(lockhouse: &Lockhouse) -> (Session, Vec<Process>) {
    let session = lockhouse.serve().await;
    for programs in [SLOW, LOOP] {
        for (language, code) in LANGUAGES.into_iter().zip(programs) {
            drop(session.start_code(language, code));
        }
    }
    wait_for_calls(lockhouse, 2).await;
    let started = descendants(session.pid());
    assert!(started.iter().any(is_upstream), "control: an upstream server runs: {started:?}");
    assert!(started.len() >= 1 + 2 + 4, "control: zygotes and workers run: {started:?}");
    (session, started)
}

async fn wait_until_gone(started: &[Process]) {
    wait_until("every process that was started is gone", async || {
        let left: Vec<&Process> = started.iter().filter(|process| is_alive(process.pid)).collect();
        left.is_empty().then_some(())
    })
    .await;
}

#[tokio::test]
async fn when_the_client_disconnects_during_runs_the_server_exits_and_leaves_no_process() {
    let lockhouse = Lockhouse::with_fixture();
    let (session, started) = start_busy_session(&lockhouse).await;
    let ended = session.close().await;
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert!(!ended.stderr.contains("panicked"), "{ended:?}");
    wait_until_gone(&started).await;
}

#[tokio::test]
async fn on_sigterm_during_runs_the_server_exits_and_leaves_no_process() {
    let lockhouse = Lockhouse::with_fixture();
    let (session, started) = start_busy_session(&lockhouse).await;
    let ended = session.terminate().await;
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert!(!ended.stderr.contains("panicked"), "{ended:?}");
    wait_until_gone(&started).await;
}

#[tokio::test]
async fn on_sigkill_during_runs_no_started_process_is_left() {
    let lockhouse = Lockhouse::with_fixture();
    let (session, started) = start_busy_session(&lockhouse).await;
    let ended = session.kill().await;
    assert_eq!(ended.status, None, "{ended:?}");
    wait_until_gone(&started).await;
}

/// Commands of the processes that the unwilling server starts: in its process group, in a session of its own, and after the
/// end of its input. No other test has processes with these command lines.
fn sleeps() -> [String; 3] {
    [1, 2, 3].map(|number| format!("sleep {number}000{}", std::process::id()))
}

/// A server with a child in its process group and one in a session of its own, which ignores SIGTERM and the end of its
/// input: as `npx` and `sh -c` start servers, but as unwilling to end as can be.
fn with_unwilling_server(lockhouse: Lockhouse, sandbox: &str) -> Lockhouse {
    let [in_group, in_session, late] = sleeps();
    let script = format!("trap '' TERM HUP; {in_group} & setsid {in_session} & \"$FIXTURE\"; exec {late}");
    let fixture = env!("CARGO_BIN_EXE_fixture-server");
    lockhouse
        .config(&format!(
            "[servers.unwilling]\ncommand = \"/bin/sh\"\nargs = [\"-c\", {script:?}]\nenv = {{ FIXTURE = {fixture:?} }}\n{sandbox}"
        ))
        .policy("version = 1\n[servers.unwilling]\nallow = [\"*\"]\n")
}

/// Waits until the unwilling server and both of its children run.
async fn wait_for_unwilling_server(lockhouse_pid: u32) -> Vec<Process> {
    let [in_group, in_session, _] = sleeps();
    wait_until("the server and its children run", async || {
        let started = descendants(lockhouse_pid);
        let has = |part: &str| started.iter().any(|process| process.command.contains(part));
        (has(&in_group) && has(&in_session) && started.iter().any(is_upstream)).then_some(started)
    })
    .await
}

#[tokio::test]
async fn on_sigkill_no_server_that_ignores_its_end_and_no_child_of_one_is_left() {
    for sandbox in ["", "sandbox = { read = [\"/\"] }\n"] {
        let lockhouse = with_unwilling_server(Lockhouse::new(), sandbox);
        let session = lockhouse.serve().await;
        let started = wait_for_unwilling_server(session.pid()).await;
        let ended = session.kill().await;
        assert_eq!(ended.status, None, "{ended:?}");
        wait_until_gone(&started).await;
        let [.., late] = sleeps();
        let is_gone = || processes().iter().all(|process| !process.command.contains(&late));
        wait_until("what started later is gone too", async || is_gone().then_some(())).await;
    }
}

#[tokio::test]
async fn a_signalled_run_ends_its_server_and_writes_its_last_record() {
    use nix::sys::signal::Signal;
    for signal in [Signal::SIGHUP, Signal::SIGTERM, Signal::SIGINT] {
        let lockhouse = with_unwilling_server(Lockhouse::new(), "");
        let code = "from mcp_tools.unwilling import slow\nslow(ms=60000)";
        let mut command = lockhouse.command(&["run", "--language", "python", "-c", code]);
        let mut run = command.stdout(std::process::Stdio::null()).spawn().expect("lockhouse run");
        let pid = run.id();
        let started = wait_for_unwilling_server(pid).await;
        wait_for_calls(&lockhouse, 1).await;
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid as i32), signal).expect("the process is there");
        let status = run.wait().expect("its end");
        assert_eq!(status.code(), Some(6), "{signal}: cancelled");
        wait_until_gone(&started).await;
        let records = lockhouse.records();
        let ends = records.iter().filter(|record| record["event"] == "end").count();
        assert_eq!(ends, 1, "{signal}: {records:?}");
    }
}

#[tokio::test]
async fn an_idle_server_exits_when_its_client_disconnects() {
    let lockhouse = Lockhouse::with_fixture().server("hanging", &["--hang-start"]);
    let session = lockhouse.serve().await;
    assert_eq!(session.run_code("python", "1").await["value"], 1);
    let started = descendants(session.pid());
    let ended = session.close().await;
    assert_eq!(ended.status, Some(0), "{ended:?}");
    wait_until_gone(&started).await;
}

#[test]
fn a_client_that_disconnects_before_its_first_message_is_not_an_error() {
    let finished = Lockhouse::with_fixture().run(&["serve"]);
    assert_eq!((finished.status, finished.stdout.as_str()), (Some(0), ""), "{finished:?}");
}

#[tokio::test]
async fn a_cancelled_request_cancels_the_call_that_its_program_waits_for() {
    use rmcp::model::{CallToolRequest, CallToolRequestParams, ClientRequest};
    use rmcp::service::PeerRequestOptions;
    let lockhouse = Lockhouse::with_fixture();
    let session = lockhouse.serve().await;
    for (round, (language, code)) in LANGUAGES.into_iter().zip(SLOW).enumerate() {
        let arguments = serde_json::json!({"language": language, "code": code});
        let parameters =
            CallToolRequestParams::new("run_code").with_arguments(arguments.as_object().cloned().unwrap());
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(parameters));
        let options = PeerRequestOptions::no_options();
        let handle = session.peer().send_request_with_option(request, options).await.unwrap();
        wait_until("the call reaches the server", async || {
            let count =
                session.run_code("python", "from mcp_tools.fixture import count\ncount().get('slow')").await;
            (count["value"] == round + 1).then_some(())
        })
        .await;
        handle.cancel(Some("the person pressed escape".into())).await.unwrap();
        wait_until("the call is cancelled", async || {
            let code = "(await fixture.count({}))['slow (cancelled)']";
            (session.run_code("typescript", code).await["value"] == round + 1).then_some(())
        })
        .await;
    }
}
