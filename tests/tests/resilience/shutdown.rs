//! Tests of how Lockhouse ends: when its AI client disconnects, on SIGTERM, or on SIGKILL. No process that it has
//! started may be left.

use lockhouse_tests::{LANGUAGES, Lockhouse, Process, Session, descendants, is_alive, wait_until};

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
