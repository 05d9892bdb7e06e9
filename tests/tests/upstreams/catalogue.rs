//! Tests of the list of an upstream server's tools: how it is cached and refreshed, and its use while the server is
//! unavailable.

use lockhouse_tests::{Lockhouse, Session, Table, ensure, equal, wait_until};
use serde_json::{Value, json};

use crate::upstreams::scripted_server::{ALLOW_ALL, Scripted, tool};

async fn listed(session: &Session) -> Value {
    let code = "from mcp_tools import scripted\n[t['name'] for t in scripted.list_tools()]";
    Scripted::value(session, code).await
}

#[tokio::test]
async fn tools_are_listed_again_when_the_server_says_that_they_changed() {
    // In the newest protocol era a server sends change notifications only to subscribers.
    for (flags, subscriptions) in [(&[][..], 0), (&["--newest"], 1)] {
        let scripted = Scripted::new("", flags, &["echo", "storm"]);
        let session = scripted.lockhouse.serve().await;
        assert_eq!(listed(&session).await, json!(["echo", "storm"]));
        wait_until("it is asked for changes", async || {
            (scripted.count("subscriptions") == subscriptions).then_some(())
        })
        .await;
        scripted.set_tools(vec![tool("echo", ""), tool("storm", ""), tool("newcomer", "")]);
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
async fn cached_tools_are_shown_while_the_server_is_unavailable() {
    let scripted = Scripted::new("start_timeout_seconds = 2", &[], &["echo"]);
    let session = scripted.lockhouse.serve().await;
    assert_eq!(listed(&session).await, json!(["echo"]));
    session.close().await;
    let mut table = Table::new("cached tools of an unavailable server");
    // A server with the same name and command whose script is missing, so it does not answer.
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
async fn cached_tools_of_a_slowly_starting_server_are_available_at_once() {
    let scripted = Scripted::new("", &[], &["echo"]);
    let session = scripted.lockhouse.serve().await;
    assert_eq!(listed(&session).await, json!(["echo"]));
    session.close().await;
    scripted.set_tools(vec![tool("other", "")]);
    let session = scripted.lockhouse.serve().await;
    wait_until("what the server says now wins", async || {
        (listed(&session).await == json!(["other"])).then_some(())
    })
    .await;
}

#[tokio::test]
async fn an_unwritable_cache_causes_no_other_failure() {
    let scripted = Scripted::new("", &[], &["echo"]);
    // A file at the path of the directory makes every write fail, even for root, as a full disk would.
    let cache = scripted.lockhouse.path("cache");
    std::fs::write(&cache, "").expect("a file");
    let session = scripted.lockhouse.serve().await;
    assert_eq!(Scripted::outcome(&session, "'echo', {'text': 'x'}").await, "x");
    let ended = session.close().await;
    assert!(ended.stderr.contains("cannot be remembered in"), "{ended:?}");
    assert_eq!(ended.status, Some(0), "{ended:?}");
}

#[tokio::test]
async fn faulty_cursors_neither_repeat_nor_lose_entries() {
    let mut table = Table::new("lists of 120 entries in pages of 40");
    let counts = "from mcp_tools import scripted\nlisted = [*scripted.list_prompts(), *scripted.list_resources()]\n\
                  [len(scripted.list_tools()), sum('uri' not in e and 'uriTemplate' not in e for e in listed), \
                  sum('uri' in e for e in listed), sum('uriTemplate' in e for e in listed)]";
    let policy = format!("{ALLOW_ALL}prompts = [\"*\"]\nresources = [\"*\"]\n");
    for (fault, expected) in [("empty", 120), ("same", 120), ("circle", 120), ("stuck", 40)] {
        let scripted = Scripted::new("", &[&format!("--cursor={fault}")], &[]);
        scripted.lockhouse.file("config/lockhouse/policy.toml", &policy);
        let answer = scripted.lockhouse.answer("python", counts);
        let is_whole = answer["value"] == json!([expected, expected, expected, expected])
            && answer.get("stderr").is_none();
        table.row(fault, ensure(is_whole, answer));
    }
    table.finish();
}

/// MCP recommends fewer characters; servers use more. In code, each other character is `_`.
#[tokio::test]
async fn tools_with_spaces_and_letters_of_other_languages_can_be_used() {
    let scripted = Scripted::new("", &[], &["echo text", "эхо", "echo  twice", " echo", "echo\u{3164}"]);
    let policy = "version = 1\n[servers.scripted]\nallow = [\"echo text\", \"эхо\"]\n";
    scripted.lockhouse.file("config/lockhouse/policy.toml", policy);
    let session = scripted.lockhouse.serve().await;
    let mut table = Table::new("names of tools");
    for (language, code) in [
        ("python", "from mcp_tools.scripted import echo_text\necho_text(text='well')"),
        ("python", "from mcp_tools import call_tool\ncall_tool('scripted', 'эхо', {'text': 'well'})"),
        ("typescript", "return await scripted.echo_text({ text: 'well' })"),
        ("typescript", "return await callTool('scripted', 'эхо', { text: 'well' })"),
    ] {
        let answer = session.run_code(language, code).await;
        table.row(code, ensure(answer["value"] == "well", &answer));
    }
    let listed = "from mcp_tools import scripted\n[t['name'] for t in scripted.list_tools()]";
    let listed = Scripted::value(&session, listed).await;
    table.row("others are skipped", equal(&listed, &json!(["echo text", "эхо"])));
    let log = session.close().await.stderr;
    table.row(
        "the log names them",
        ensure(log.contains("skipped 3 tools") && log.contains("echo  twice"), &log),
    );
    table.finish();
}

#[test]
fn the_cache_is_private_and_contains_no_secret() {
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
