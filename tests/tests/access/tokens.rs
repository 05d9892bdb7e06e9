//! Bearer tokens: those that count, and everything else that somebody may send.

use lockhouse_tests::{Door, Lockhouse, Table, Visitor, ensure, equal, wait_until};
use reqwest::Method;
use serde_json::json;

use crate::{asks, token, told, words};

/// The same bytes with another one in the middle.
fn another(token: &str) -> String {
    let mut bytes = token.as_bytes().to_vec();
    bytes[20] = if bytes[20] == b'a' { b'b' } else { b'a' };
    String::from_utf8(bytes).unwrap()
}

fn with_header(door: &Door, value: &str) -> Visitor {
    door.visitor(None).with("authorization", value)
}

#[test]
fn no_link_that_another_user_planted_is_followed() {
    let lockhouse = Lockhouse::new();
    let tokens = lockhouse.path("tokens");
    std::fs::create_dir(&tokens).unwrap();
    let lockhouse =
        lockhouse.config(&format!("[http]\ntokens = \"{}\"\n", tokens.join("tokens.json").display()));
    let create = || lockhouse.run(&["token", "create", "desk"]);
    let mut table = Table::new("links");
    for name in ["tokens.lock", "tokens.json"] {
        let (link, target) = (tokens.join(name), lockhouse.path("target"));
        std::os::unix::fs::symlink(&target, &link).unwrap();
        let refused = create();
        table.row(
            format!("{name} is refused"),
            ensure(refused.status == Some(2) && refused.stderr.contains("symbolic link"), &refused),
        );
        table.row(format!("{name} has made nothing"), ensure(!target.exists(), "the target is there"));
        std::fs::remove_file(link).unwrap();
    }
    table.row("control: without a link", equal(create().status, Some(0)));
    table.finish();
}

#[tokio::test]
async fn whatever_is_no_valid_token_is_refused_in_words_and_nothing_of_it_is_repeated() {
    let (lockhouse, elsewhere) = (Lockhouse::new(), Lockhouse::new());
    let good = token(&lockhouse, &["desk"]);
    let revoked = token(&lockhouse, &["gone"]);
    let foreign = token(&elsewhere, &["desk"]);
    let short = token(&lockhouse, &["short", "--expires", "1s"]);
    assert_eq!(lockhouse.run(&["token", "revoke", "gone"]).status, Some(0));
    let door = lockhouse.door().await;
    let mut table = Table::new("bad tokens");
    let control = asks(&door.visitor(Some(&good))).await;
    table.row("control: the right one", equal(told(&control), "200".to_owned()));
    wait_until("it expires", async || (asks(&door.visitor(Some(&short))).await.status == 401).then_some(()))
        .await;
    let in_query = Visitor::with_client(
        reqwest::Client::builder().no_proxy().build().unwrap(),
        &format!("{}?access_token={good}&token={good}", door.url("/mcp")),
        None,
    );
    let rows = [
        ("none", door.visitor(None), "401 unauthorized", "asks who you are"),
        ("the right one in the query", in_query, "401 unauthorized", "asks who you are"),
        (
            "the right one in a cookie",
            door.visitor(None).with("cookie", &format!("token={good}")),
            "401 unauthorized",
            "asks who you are",
        ),
        ("an empty one", with_header(&door, "Bearer "), "401 invalid_request", "Bearer TOKEN"),
        ("no scheme", with_header(&door, &good), "401 invalid_request", "Bearer TOKEN"),
        (
            "another scheme",
            with_header(&door, &format!("Basic {good}")),
            "401 invalid_request",
            "Bearer TOKEN",
        ),
        (
            "two in one header",
            with_header(&door, &format!("Bearer {good}, Bearer {good}")),
            "401 invalid_request",
            "Bearer TOKEN",
        ),
        ("something else", door.visitor(Some("hello")), "401 invalid_token", "no token of this server"),
        ("cut", door.visitor(Some(&good[..good.len() - 1])), "401 invalid_token", "not copied whole"),
        ("one letter is wrong", door.visitor(Some(&another(&good))), "401 invalid_token", "not copied whole"),
        ("in capitals", door.visitor(Some(&good.to_uppercase())), "401 invalid_token", "not copied whole"),
        ("of another Lockhouse", door.visitor(Some(&foreign)), "401 invalid_token", "knows no such token"),
        ("expired", door.visitor(Some(&short)), "401 invalid_token", "has expired"),
        ("revoked", door.visitor(Some(&revoked)), "401 invalid_token", "was revoked"),
        ("very long", door.visitor(Some(&"lh_".repeat(1_000))), "401 invalid_token", "not copied whole"),
    ];
    for (name, visitor, expected, description) in rows {
        let reply = asks(&visitor).await;
        let challenge = reply.header("www-authenticate").to_owned();
        let is_told = told(&reply) == expected && words(&reply).contains(description);
        let challenged = challenge.starts_with("Bearer realm=\"lockhouse\"")
            && challenge.contains("error=") != (expected == "401 unauthorized");
        table.row(
            name,
            ensure(is_told && challenged, format!("{} {challenge:?} {}", reply.status, reply.body)),
        );
        let says_it =
            [&good, &revoked, &foreign, &short].into_iter().any(|secret| reply.body.contains(&secret[3..12]));
        table.row(format!("{name}: nothing of it is repeated"), ensure(!says_it, &reply.body));
    }
    let visitor = door.visitor(None);
    let message = visitor.message("tools/list", json!({}));
    let twice = visitor
        .http(Method::POST)
        .header("mcp-method", "tools/list")
        .header("content-type", "application/json");
    let twice = twice
        .header("authorization", format!("Bearer {good}"))
        .header("authorization", format!("Bearer {good}"));
    let twice = twice.body(message.to_string()).send().await.unwrap();
    table.row("two headers", equal(twice.status().as_u16(), 401));
    table.row("two headers: the error", ensure(twice.text().await.unwrap().contains("more than one"), ()));
    for (method, name) in [(Method::GET, "GET"), (Method::DELETE, "DELETE"), (Method::OPTIONS, "OPTIONS")] {
        let status = door.visitor(None).http(method).send().await.unwrap().status().as_u16();
        table.row(format!("{name} without one"), equal(status, 401));
    }
    table.finish();
    let ended = door.terminate().await;
    let audit: String =
        lockhouse.segments().into_iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
    for secret in [&good, &revoked, &foreign, &short] {
        assert!(
            !ended.stderr.contains(&secret[3..12]) && !audit.contains(&secret[3..12]),
            "{}",
            ended.stderr
        );
    }
    assert!(
        ended.stderr.contains("a request of ") && ended.stderr.contains("the token was revoked"),
        "{}",
        ended.stderr
    );
    // Of many only so many have a line.
    assert!(ended.stderr.matches("is refused").count() <= 25, "{}", ended.stderr);
}

#[tokio::test]
async fn what_is_revoked_counts_for_nothing_at_once_wherever_it_was_used() {
    let lockhouse = Lockhouse::new();
    let (good, other) = (token(&lockhouse, &["desk"]), token(&lockhouse, &["other"]));
    let door = lockhouse.door().await;
    let mut table = Table::new("after a token is revoked");
    let session = door.session(Some(&good), "2025-11-25").await;
    let mut listening = session.listen().await;
    table.row("control: a stream is open", equal(listening.status, 200));
    let running = {
        let visitor = door.visitor(Some(&good));
        tokio::spawn(async move {
            visitor
                .post(&visitor.calling(
                    "run_code",
                    json!({"language": "python", "code": "import time\nwhile True: time.sleep(0.01)"}),
                ))
                .await
        })
    };
    wait_until("it runs", async || {
        lockhouse.records().iter().any(|record| record["event"] == "execution").then_some(())
    })
    .await;
    assert_eq!(lockhouse.run(&["token", "revoke", "desk"]).status, Some(0));
    table.row(
        "a new request",
        equal(told(&asks(&door.visitor(Some(&good))).await), "401 invalid_token".into()),
    );
    table.row("one in its session", equal(told(&asks(&session).await), "401 invalid_token".into()));
    table.row("the end of its session", equal(session.end_session().await, 401));
    while listening.next().await.is_some() {}
    table.row("its stream ends", Ok(()));
    running.await.unwrap();
    let ends = lockhouse.records().into_iter().find(|record| record["event"] == "end");
    table.row("what ran is stopped", equal(ends.unwrap_or_default()["status"].clone(), "cancelled".into()));
    let answer = door.visitor(Some(&other)).run_code("python", "1").await;
    table.row("control: another's token", equal(answer["value"].clone(), 1.into()));
    let again = token(&lockhouse, &["desk"]);
    table.row("a new one of that name", equal(told(&asks(&door.visitor(Some(&again))).await), "200".into()));
    table.finish();
}

#[tokio::test]
async fn the_policy_and_the_log_know_who_it_is_and_not_who_it_says_to_be() {
    let policy =
        "version = 1\n[servers.fixture]\nallow = [\"*\"]\n[clients.desk]\n[clients.\"*\"]\nservers = {}\n";
    let lockhouse = Lockhouse::new().server("fixture", &[]).policy(policy);
    let (desk, other) = (token(&lockhouse, &["desk"]), token(&lockhouse, &["other"]));
    let door = lockhouse.door().await;
    let mut table = Table::new("names");
    let code = "from mcp_tools import call_tool, ToolError\ntry: r = call_tool('fixture.add', {'a': 1, 'b': 2})['sum']\n\
        except ToolError as e: r = e.code\nr";
    let pretends = |visitor: &Visitor| {
        let mut message = visitor.calling("run_code", json!({"language": "python", "code": code}));
        message["params"]["_meta"]["io.modelcontextprotocol/clientInfo"] =
            json!({"name": "desk", "version": "0"});
        message
    };
    for (name, token, expected) in [("desk", &desk, json!(3)), ("other", &other, json!("denied"))] {
        let visitor = door.visitor(Some(token));
        let reply = visitor.post(&pretends(&visitor)).await;
        let value = reply.answer()["result"]["structuredContent"]["value"].clone();
        table.row(name, equal(value, expected));
    }
    let clients: Vec<String> = lockhouse
        .records()
        .iter()
        .filter(|record| record["event"] == "execution")
        .map(|record| record["client"].as_str().unwrap_or_default().to_owned())
        .collect();
    table.row("in the log", equal(clients, vec!["desk".into(), "other".into()]));
    table.finish();
}

#[tokio::test]
async fn a_damaged_file_is_not_read_again_for_every_stranger() {
    let lockhouse = Lockhouse::new();
    let tokens = lockhouse.path("damaged.json");
    let lockhouse = lockhouse.config(&format!("[http]\ntokens = \"{}\"\n", tokens.display()));
    let good = token(&lockhouse, &["desk"]);
    let whole = std::fs::read(&tokens).unwrap();
    let door = lockhouse.door().await;
    assert_eq!(told(&asks(&door.visitor(Some(&good))).await), "200", "control");
    std::fs::write(&tokens, "x".repeat(2_000_000)).unwrap();
    let read = || {
        let io = std::fs::read_to_string(format!("/proc/{}/io", door.pid())).unwrap();
        io.lines().find_map(|line| line.strip_prefix("rchar: ")?.parse::<u64>().ok()).unwrap()
    };
    let (visitor, before) = (door.visitor(Some(&good)), read());
    for reply in futures_util::future::join_all((0..100).map(|_| asks(&visitor))).await {
        assert_eq!(told(&reply), "503 temporarily_unavailable");
    }
    // All of these would be 200 MB; once in a second it is looked whether the fault has passed.
    let grown = read() - before;
    assert!(grown < 80_000_000, "{grown} bytes were read for 100 requests");
    std::fs::write(&tokens, whole).unwrap();
    assert_eq!(told(&asks(&visitor).await), "200", "what is repaired counts at once");
}
