//! The tools of a server as they are kept, listed again and shown while it is away.

use lockhouse_tests::{Lockhouse, Session, Table, ensure, wait_until};
use serde_json::{Value, json};

use crate::scripted::{Scripted, tool};

async fn listed(session: &Session) -> Value {
    let code = "from mcp_tools import scripted\n[t['name'] for t in scripted.list_tools()]";
    Scripted::value(session, code).await
}

#[tokio::test]
async fn tools_are_listed_again_when_the_server_says_that_they_changed() {
    // In the newest era nobody is told who has not asked for it.
    for (flags, subscriptions) in [(&[][..], 0), (&["--newest"], 1)] {
        let scripted = Scripted::new("", flags, &["echo", "storm"]);
        let session = scripted.lockhouse.serve().await;
        assert_eq!(listed(&session).await, json!(["echo", "storm"]));
        wait_until("it is asked for changes", async || {
            (scripted.count("subscriptions") == subscriptions).then_some(())
        })
        .await;
        scripted.offer(vec![tool("echo", ""), tool("storm", ""), tool("newcomer", "")]);
        assert_eq!(listed(&session).await, json!(["echo", "storm"]), "control: nobody was told yet");
        Scripted::outcome(&session, "'storm', {'count': 500}").await;
        wait_until("the new tool is listed", async || {
            (listed(&session).await == json!(["echo", "storm", "newcomer"])).then_some(())
        })
        .await;
        let listings = scripted.count("listings");
        assert!(listings < 10, "500 announcements made {listings} listings");
    }
}

#[tokio::test]
async fn tools_are_shown_from_the_last_time_while_the_server_is_away() {
    let scripted = Scripted::new("start_timeout_seconds = 2", &[], &["echo"]);
    let session = scripted.lockhouse.serve().await;
    assert_eq!(listed(&session).await, json!(["echo"]));
    session.close().await;
    let mut table = Table::new("a server that was seen and is away");
    // The same server by its name and command, but without its script nothing answers.
    let place = scripted.lockhouse.path("scripted");
    std::fs::rename(&place, scripted.lockhouse.path("away")).expect("a move");
    let session = scripted.lockhouse.serve().await;
    table.row("its tools are listed", ensure(listed(&session).await == json!(["echo"]), "not listed"));
    let outcome = Scripted::outcome(&session, "'echo', {'text': 'x'}").await;
    table.row("a call fails with the reason", ensure(outcome[0] == "upstream_unavailable", &outcome));
    let found = session.search_tools("echo").await;
    let told = found["unavailable"].to_string();
    table.row("a search finds it", ensure(found["tools"][0]["tool"] == "echo", &found));
    table.row("and says that it is away", ensure(told.contains("as they were"), told));
    std::fs::rename(scripted.lockhouse.path("away"), &place).expect("a move");
    wait_until("it is back", async || {
        (Scripted::outcome(&session, "'echo', {'text': 'x'}").await == "x").then_some(())
    })
    .await;
    table.finish();
}

#[tokio::test]
async fn tools_of_a_server_that_starts_slowly_are_there_at_once() {
    let scripted = Scripted::new("", &[], &["echo"]);
    let session = scripted.lockhouse.serve().await;
    assert_eq!(listed(&session).await, json!(["echo"]));
    session.close().await;
    scripted.offer(vec![tool("other", "")]);
    let session = scripted.lockhouse.serve().await;
    wait_until("what the server says now wins", async || {
        (listed(&session).await == json!(["other"])).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_cache_that_cannot_be_written_costs_nothing_else() {
    let scripted = Scripted::new("", &[], &["echo"]);
    // As good as a full disk: no file can be made below it, whoever asks.
    let cache = scripted.lockhouse.path("cache");
    std::os::unix::fs::symlink("/dev/full", &cache).expect("a link");
    let session = scripted.lockhouse.serve().await;
    assert_eq!(Scripted::outcome(&session, "'echo', {'text': 'x'}").await, "x");
    let ended = session.close().await;
    assert!(ended.stderr.contains("cannot be remembered in"), "{ended:?}");
    assert_eq!(ended.status, Some(0), "{ended:?}");
}

#[test]
fn what_is_remembered_is_private_and_no_secret_is_in_it() {
    use std::os::unix::fs::PermissionsExt;
    let server = json!({"command": lockhouse_tests::fixture_server(), "env": {"TOKEN": "SEKRET-CANARY"}});
    let lockhouse = Lockhouse::new().servers_entry("fixture", server);
    assert_eq!(lockhouse.run(&["tools", "list"]).status, Some(0));
    let directory = lockhouse.path("cache/lockhouse/tools");
    let files: Vec<_> =
        std::fs::read_dir(directory).expect("a directory").map(|file| file.unwrap().path()).collect();
    assert_eq!(files.len(), 1);
    assert_eq!(std::fs::metadata(&files[0]).unwrap().permissions().mode() & 0o777, 0o600);
    let text = std::fs::read_to_string(&files[0]).unwrap();
    assert!(text.contains("\"add\"") && !text.contains("CANARY"), "{text}");
}
