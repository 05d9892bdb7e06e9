//! Tests of `lockhouse serve` with the front in a process of its own. `make test-two-processes` runs all black-box tests so.

use std::process::Command;

use lockhouse_tests::{
    CommandOutput, Daemon, Lockhouse, Session, Table, ensure, equal, front_of, is_alive, kill, wait_until,
};
use serde_json::json;

const OPEN: &str = "[http]\nauth = \"none\"\nlisten = [\"127.0.0.1:0\"]\n";

fn with_process(mut command: Command) -> Command {
    command.env("LOCKHOUSE_FRONT", "process");
    command
}

/// Returns the process ID of the front.
fn front_pid(server: u32) -> u32 {
    front_of(server).expect("the process of the front").pid
}

#[tokio::test(flavor = "multi_thread")]
async fn front_and_engine_in_two_processes_end_together() {
    let mut table = Table::new("the front in a process of its own");

    let lockhouse = Lockhouse::new().config(OPEN);
    let session = Session::connect(with_process(lockhouse.command(&["serve"])), Session::latest()).await;
    table.row("stdio: a run", equal(session.run_code("python", "6 * 7").await["value"].clone(), json!(42)));
    let (engine, front) = (session.pid(), front_pid(session.pid()));
    table.row("stdio: two processes", ensure(engine != front, (engine, front)));
    drop(session);
    wait_until("both end with the AI client", async || (!is_alive(engine) && !is_alive(front)).then_some(()))
        .await;

    let daemon = Daemon::open(with_process(lockhouse.command(&["serve", "--http"]))).await;
    let answer = daemon.http_client(None).run_code("python", "6 * 7").await;
    table.row("HTTP: a run", equal(answer["value"].clone(), json!(42)));
    let front = front_pid(daemon.pid());
    kill(front);
    let ended = daemon.ended().await;
    table.row("the engine ends when its front was killed", equal(ended.status, Some(7)));
    table.row("it says why", ensure(ended.stderr.contains("the process of the front ended"), ended.stderr));

    let daemon = Daemon::open(with_process(lockhouse.command(&["serve", "--http"]))).await;
    let front = front_pid(daemon.pid());
    kill(daemon.pid());
    daemon.ended().await;
    wait_until("the front ends when the engine was killed", async || (!is_alive(front)).then_some(())).await;

    let daemon = Daemon::open(with_process(lockhouse.command(&["serve", "--http"]))).await;
    let front = front_pid(daemon.pid());
    let ended = daemon.terminate().await;
    table.row("SIGTERM", equal((ended.status, is_alive(front)), (Some(0), false)));

    let mut invalid = with_process(lockhouse.command(&["serve", "--listen", "192.0.2.1:1"]));
    let invalid = CommandOutput::run(&mut invalid, b"");
    let mut control = lockhouse.command(&["serve", "--listen", "192.0.2.1:1"]);
    let control = CommandOutput::run(&mut control, b"");
    table.row(
        "an address that cannot be used",
        equal((invalid.status, invalid.stderr), (control.status, control.stderr)),
    );
    table.finish();
}
