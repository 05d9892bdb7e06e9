//! The end of the server: with its client, by a signal, by force. Nothing that it started is left.

use lockhouse_tests::{LANGUAGES, Lockhouse, Process, Session, descendants, is_alive, wait_until};

use crate::{calls, is_upstream};

const SLOW: [&str; 2] =
    ["from mcp_tools.fixture import slow\nslow(ms=60000)", "await fixture.slow({ms: 60000})"];
const LOOP: [&str; 2] = ["while True: pass", "for (;;);"];

/// In mid-run: programs wait for tools and others loop.
async fn busy(lockhouse: &Lockhouse) -> (Session, Vec<Process>) {
    let session = lockhouse.serve().await;
    for programs in [SLOW, LOOP] {
        for (language, code) in LANGUAGES.into_iter().zip(programs) {
            drop(session.start_code(language, code));
        }
    }
    calls(lockhouse, 2).await;
    let started = descendants(session.pid());
    assert!(started.iter().any(is_upstream), "control: an upstream server runs: {started:?}");
    assert!(started.len() >= 1 + 2 + 4, "control: zygotes and workers run: {started:?}");
    (session, started)
}

async fn all_gone(started: &[Process]) {
    wait_until("every process that was started is gone", async || {
        let left: Vec<&Process> = started.iter().filter(|process| is_alive(process.pid)).collect();
        left.is_empty().then_some(())
    })
    .await;
}

#[tokio::test]
async fn when_its_client_leaves_in_mid_run_the_server_ends_and_leaves_nothing_behind() {
    let lockhouse = Lockhouse::with_fixture();
    let (session, started) = busy(&lockhouse).await;
    let ended = session.close().await;
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert!(!ended.stderr.contains("panicked"), "{ended:?}");
    all_gone(&started).await;
}

#[tokio::test]
async fn when_it_is_asked_to_terminate_in_mid_run_the_server_ends_and_leaves_nothing_behind() {
    let lockhouse = Lockhouse::with_fixture();
    let (session, started) = busy(&lockhouse).await;
    let ended = session.terminate().await;
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert!(!ended.stderr.contains("panicked"), "{ended:?}");
    all_gone(&started).await;
}

#[tokio::test]
async fn when_it_is_killed_in_mid_run_nothing_that_it_started_is_left() {
    let lockhouse = Lockhouse::with_fixture();
    let (session, started) = busy(&lockhouse).await;
    let ended = session.kill().await;
    assert_eq!(ended.status, None, "{ended:?}");
    all_gone(&started).await;
}

#[tokio::test]
async fn an_idle_server_ends_with_its_client() {
    let lockhouse = Lockhouse::with_fixture().server("hanging", &["--hang-start"]);
    let session = lockhouse.serve().await;
    assert_eq!(session.run_code("python", "1").await["value"], 1);
    let started = descendants(session.pid());
    let ended = session.close().await;
    assert_eq!(ended.status, Some(0), "{ended:?}");
    all_gone(&started).await;
}

#[test]
fn a_client_that_leaves_before_it_says_anything_is_no_failure() {
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
