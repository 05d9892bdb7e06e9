//! Tests of the daemon after SIGKILL: none of its processes survives, and the next start succeeds.

use lockhouse_tests::{Daemon, Lockhouse, Process, Table, descendants, ensure, equal, is_alive, wait_until};
use nix::sys::signal::Signal;
use serde_json::json;

use crate::service::{OPEN, sleeping, wait_for_running, wait_until_ready};

#[tokio::test]
async fn after_sigkill_no_process_survives_and_the_next_start_is_clean() {
    let lockhouse = Lockhouse::with_fixture().config(OPEN);
    let daemon = lockhouse.daemon().await;
    wait_until_ready(&daemon).await;
    let http_client = daemon.http_client(None);
    let call = "from mcp_tools.fixture import echo\necho(value='a')";
    assert_eq!(http_client.run_code("python", call).await["status"], "ok");
    let (session, message) = {
        let session = daemon.session(None, "2025-11-25").await;
        let message = session.calling("run_code", json!({"language": "python", "code": sleeping(60.0)}));
        (session, message)
    };
    let waiting = tokio::spawn({
        let session = session.clone();
        async move { session.try_post(&message).await }
    });
    wait_for_running(&daemon, 1).await;
    let family: Vec<Process> = descendants(daemon.pid());
    assert!(family.len() > 4, "zygotes, workers and a server: {family:?}");
    let control = lockhouse.path(&format!("run/lockhouse/control-{}.sock", daemon.pid()));
    assert!(control.exists());
    daemon.signal(Signal::SIGKILL);
    let ended = daemon.ended().await;
    let mut table = Table::new("after SIGKILL");
    table.row("no status", equal(ended.status, None));
    let told = waiting.await.unwrap();
    let broken = match &told {
        Err(_) => Ok(()),
        // The head of the event stream was already sent, so the stream ends without an answer.
        Ok(reply) => ensure(reply.answer().is_null(), reply),
    };
    table.row("the client is told of a broken connection", broken);
    let gone =
        wait_until("all are gone", async || family.iter().all(|it| !is_alive(it.pid)).then_some(())).await;
    table.row("no zygote, worker or server survives", equal(gone, ()));
    table.row("its control socket is still there", ensure(control.exists(), &control));

    let daemon = lockhouse.daemon().await;
    wait_until_ready(&daemon).await;
    table.row("and is cleared away", ensure(!control.exists(), &control));
    let answer = daemon.http_client(None).run_code("python", call).await;
    table.row("the next one runs code", equal(&answer["status"], &json!("ok")));
    let old = session.session_id().unwrap();
    let reply = daemon.http_client(None).in_session(old, "2025-11-25").request("tools/list", json!({})).await;
    table.row("a session of the process before is not found", equal(reply.status, 404));
    let told = daemon.http_client(None).call("get_result", json!({"handle": "0".repeat(32)})).await;
    let told = told["error"]["message"].as_str().unwrap_or_default().to_owned();
    table.row("nor is a result", ensure(told.contains("results of an earlier process are gone"), &told));
    table.row("it ends", equal(daemon.terminate().await.status, Some(0)));
    let verified = lockhouse.run(&["audit", "verify"]);
    table.row("the audit log is sound", ensure(verified.status == Some(0), verified.transcript()));
    table.finish();
}

#[tokio::test]
async fn a_stale_socket_is_replaced_at_the_start() {
    let lockhouse = Lockhouse::new().config(OPEN);
    let place = format!("unix:{}", lockhouse.path("daemon.sock").display());
    let arguments = ["serve", "--listen", &place];
    let daemon = Daemon::open(lockhouse.command(&arguments)).await;
    daemon.kill().await;
    assert!(lockhouse.path("daemon.sock").exists());
    let daemon = Daemon::open(lockhouse.command(&arguments)).await;
    assert_eq!(daemon.http_client(None).run_code("python", "6 * 7").await["value"], 42);
}
