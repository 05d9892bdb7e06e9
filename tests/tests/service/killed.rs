//! SIGKILL, and the start after it.

use lockhouse_tests::{Door, Lockhouse, Process, Table, descendants, ensure, equal, is_alive, wait_until};
use nix::sys::signal::Signal;
use serde_json::json;

use crate::{OPEN, is_ready, running, sleeping};

#[tokio::test]
async fn nothing_survives_and_the_next_start_is_clean() {
    let lockhouse = Lockhouse::with_fixture().config(OPEN);
    let door = lockhouse.door().await;
    is_ready(&door).await;
    let visitor = door.visitor(None);
    let call = "from mcp_tools.fixture import echo\necho(value='a')";
    assert_eq!(visitor.run_code("python", call).await["status"], "ok");
    let (session, message) = {
        let session = door.session(None, "2025-11-25").await;
        let message = session.calling("run_code", json!({"language": "python", "code": sleeping(60.0)}));
        (session, message)
    };
    let waiting = tokio::spawn({
        let session = session.clone();
        async move { session.try_post(&message).await }
    });
    running(&door, 1).await;
    let family: Vec<Process> = descendants(door.pid());
    assert!(family.len() > 4, "zygotes, workers and a server: {family:?}");
    let control = lockhouse.path(&format!("run/lockhouse/control-{}.sock", door.pid()));
    assert!(control.exists());
    door.signal(Signal::SIGKILL);
    let ended = door.ended().await;
    let mut table = Table::new("after SIGKILL");
    table.row("no status", equal(ended.status, None));
    let told = waiting.await.unwrap();
    let broken = match &told {
        Err(_) => Ok(()),
        // The head of an event stream had left already: it ends without an answer.
        Ok(reply) => ensure(reply.answer().is_null(), reply),
    };
    table.row("the client is told of a broken connection", broken);
    let gone =
        wait_until("all are gone", async || family.iter().all(|it| !is_alive(it.pid)).then_some(())).await;
    table.row("no zygote, worker or server survives", equal(gone, ()));
    table.row("its control socket is still there", ensure(control.exists(), &control));

    let door = lockhouse.door().await;
    is_ready(&door).await;
    table.row("and is cleared away", ensure(!control.exists(), &control));
    let answer = door.visitor(None).run_code("python", call).await;
    table.row("the next one runs code", equal(&answer["status"], &json!("ok")));
    let old = session.session_id().unwrap();
    let reply = door.visitor(None).in_session(old, "2025-11-25").request("tools/list", json!({})).await;
    table.row("a session of the process before is not found", equal(reply.status, 404));
    let told = door.visitor(None).call("get_result", json!({"handle": "0".repeat(32)})).await;
    let told = told["error"]["message"].as_str().unwrap_or_default().to_owned();
    table.row("nor is a result", ensure(told.contains("ended with it"), &told));
    table.row("it ends", equal(door.terminate().await.status, Some(0)));
    let verified = lockhouse.run(&["audit", "verify"]);
    table.row("the audit log is sound", ensure(verified.status == Some(0), verified.told()));
    table.finish();
}

#[tokio::test]
async fn a_socket_that_was_left_behind_is_no_hindrance() {
    let lockhouse = Lockhouse::new().config(OPEN);
    let place = format!("unix:{}", lockhouse.path("door.sock").display());
    let arguments = ["serve", "--listen", &place];
    let door = Door::open(lockhouse.command(&arguments)).await;
    door.signal(Signal::SIGKILL);
    door.ended().await;
    assert!(lockhouse.path("door.sock").exists());
    let door = Door::open(lockhouse.command(&arguments)).await;
    assert_eq!(door.visitor(None).run_code("python", "6 * 7").await["value"], 42);
}
