//! Tests that an absent or hidden requirements file lifts nothing where the host was managed before.

use std::process::Command;

use lockhouse_tests::{CommandOutput, Session, Table, ensure, equal, wait_until};
use serde_json::json;

use super::{ADD, can_mount, lockhouse, managed, require, run_managed};

const MARKER: &str = "var/lockhouse-managed";

#[tokio::test]
async fn a_file_that_disappears_lifts_nothing() {
    let lockhouse = lockhouse();
    if !can_mount() {
        return;
    }
    require(&lockhouse, "[[denied]]\nname = \"other\"\n");
    let requirements = lockhouse.path("etc/lockhouse/requirements.toml");
    let serve = || Session::connect(managed(&lockhouse, &lockhouse.command(&["serve"])), Session::latest());
    let run = || run_managed(&lockhouse, &lockhouse.command(&["run", "-c", ADD, "--language", "python"]));
    let mut table = Table::new("a managed host");
    let session = serve().await;
    table.row("control: it runs", equal(session.run_code("python", ADD).await["value"].clone(), json!(42)));
    table.row("the marker", ensure(lockhouse.path(MARKER).exists(), "no marker"));
    require(&lockhouse, "[[denied]]\nname = \"fixture\"\n");
    let is_denied = async || session.run_code("python", ADD).await["status"] == "error";
    wait_until("it is applied", async || is_denied().await.then_some(())).await;
    std::fs::remove_file(&requirements).unwrap();
    session.wait_for_log("has disappeared").await;
    table.row("a running process keeps them", ensure(is_denied().await, session.log()));
    session.reload().await;
    table.row("also after a reload", ensure(is_denied().await, session.log()));
    session.close().await;
    let output = run();
    let told = output.stderr.contains("is missing, but this host was managed")
        && output.stderr.contains("remove /var/lib/lockhouse-managed");
    table.row("a new process refuses", ensure(told && output.status == Some(2), &output));
    std::fs::write(&requirements, "").unwrap();
    table.row("a present file without keys lifts them", equal(run().status, Some(0)));
    std::fs::remove_file(&requirements).unwrap();
    table.row("control: without the file it refuses", equal(run().status, Some(2)));
    std::fs::remove_file(lockhouse.path(MARKER)).unwrap();
    table.row("a host that is not managed any more", equal(run().status, Some(0)));
    std::fs::write(&requirements, "").unwrap();
    let doctor = run_managed(&lockhouse, &lockhouse.command(&["doctor"]));
    table.row("lockhouse doctor marks the host", ensure(lockhouse.path(MARKER).exists(), &doctor));
    table.finish();
}

/// Without requirements, no marker is made.
#[test]
fn a_host_without_requirements_is_not_marked() {
    let lockhouse = lockhouse();
    if !can_mount() {
        return;
    }
    let output = run_managed(&lockhouse, &lockhouse.command(&["run", "-c", ADD, "--language", "python"]));
    let mut further = managed(&lockhouse, &lockhouse.command(&["run", "-c", ADD, "--language", "python"]));
    let path = lockhouse.file("own.toml", "");
    let further: &mut Command = further.env("LOCKHOUSE_REQUIREMENTS", path);
    let with_own = CommandOutput::run(further, b"");
    let mut table = Table::new("a host without requirements");
    table.row("it runs", equal((output.status, with_own.status), (Some(0), Some(0))));
    table.row("no marker", ensure(!lockhouse.path(MARKER).exists(), "a marker"));
    table.finish();
}
