//! Tests of authentication by bearer token over HTTP, with valid tokens and with all kinds of invalid ones.

use std::os::unix::fs::PermissionsExt;

use lockhouse_tests::{Daemon, HttpClient, Lockhouse, Table, ensure, equal, wait_until};
use reqwest::Method;
use serde_json::json;

use crate::access::{error_description, list_tools, status_and_error, token};

/// Returns a bearer token that differs from `token` in its 21st character, and is therefore invalid.
fn with_changed_character(token: &str) -> String {
    let mut bytes = token.as_bytes().to_vec();
    bytes[20] = if bytes[20] == b'a' { b'b' } else { b'a' };
    String::from_utf8(bytes).unwrap()
}

fn with_header(daemon: &Daemon, value: &str) -> HttpClient {
    daemon.http_client(None).with("authorization", value)
}

#[test]
fn links_of_another_user_in_place_of_own_files_are_not_followed() {
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
        table.row(
            format!("{name} has created no file"),
            ensure(!target.exists(), "control: the link's target exists"),
        );
        std::fs::remove_file(link).unwrap();
    }
    table.row("control: without a link", equal(create().status, Some(0)));
    table.finish();
}

#[tokio::test]
async fn an_invalid_token_is_rejected_with_a_message_that_repeats_none_of_it() {
    let (lockhouse, elsewhere) = (Lockhouse::new(), Lockhouse::new());
    let good = token(&lockhouse, &["desk"]);
    let revoked = token(&lockhouse, &["gone"]);
    let foreign = token(&elsewhere, &["desk"]);
    let short = token(&lockhouse, &["short", "--expires", "1s"]);
    assert_eq!(lockhouse.run(&["token", "revoke", "gone"]).status, Some(0));
    let daemon = lockhouse.daemon().await;
    let mut table = Table::new("bad tokens");
    let control = list_tools(&daemon.http_client(Some(&good))).await;
    table.row("control: the valid token", equal(status_and_error(&control), "200".to_owned()));
    wait_until("it expires", async || {
        (list_tools(&daemon.http_client(Some(&short))).await.status == 401).then_some(())
    })
    .await;
    let in_query = HttpClient::with_client(
        reqwest::Client::builder().no_proxy().build().unwrap(),
        &format!("{}?access_token={good}&token={good}", daemon.url("/mcp")),
        None,
    );
    let rows = [
        ("none", daemon.http_client(None), "401 unauthorized", "requires authentication"),
        ("the valid token in the query", in_query, "401 unauthorized", "requires authentication"),
        (
            "the valid token in a cookie",
            daemon.http_client(None).with("cookie", &format!("token={good}")),
            "401 unauthorized",
            "requires authentication",
        ),
        ("an empty token", with_header(&daemon, "Bearer "), "401 invalid_request", "Bearer TOKEN"),
        ("no scheme", with_header(&daemon, &good), "401 invalid_request", "Bearer TOKEN"),
        (
            "another authentication scheme",
            with_header(&daemon, &format!("Basic {good}")),
            "401 invalid_request",
            "Bearer TOKEN",
        ),
        (
            "two tokens in one header",
            with_header(&daemon, &format!("Bearer {good}, Bearer {good}")),
            "401 invalid_request",
            "Bearer TOKEN",
        ),
        (
            "something else",
            daemon.http_client(Some("hello")),
            "401 invalid_token",
            "not a token of this server",
        ),
        (
            "cut",
            daemon.http_client(Some(&good[..good.len() - 1])),
            "401 invalid_token",
            "not copied completely",
        ),
        (
            "one character is wrong",
            daemon.http_client(Some(&with_changed_character(&good))),
            "401 invalid_token",
            "not copied completely",
        ),
        (
            "in capitals",
            daemon.http_client(Some(&good.to_uppercase())),
            "401 invalid_token",
            "not copied completely",
        ),
        (
            "a token of another Lockhouse",
            daemon.http_client(Some(&foreign)),
            "401 invalid_token",
            "does not know this token",
        ),
        ("expired", daemon.http_client(Some(&short)), "401 invalid_token", "has expired"),
        ("revoked", daemon.http_client(Some(&revoked)), "401 invalid_token", "was revoked"),
        (
            "very long",
            daemon.http_client(Some(&"lh_".repeat(1_000))),
            "401 invalid_token",
            "not copied completely",
        ),
    ];
    for (name, http_client, expected, description) in rows {
        let reply = list_tools(&http_client).await;
        let challenge = reply.header("www-authenticate").to_owned();
        let is_told = status_and_error(&reply) == expected && error_description(&reply).contains(description);
        let challenged = challenge.starts_with("Bearer realm=\"lockhouse\"")
            && challenge.contains("error=") != (expected == "401 unauthorized");
        table.row(
            name,
            ensure(is_told && challenged, format!("{} {challenge:?} {}", reply.status, reply.body)),
        );
        let says_it =
            [&good, &revoked, &foreign, &short].into_iter().any(|secret| reply.body.contains(&secret[3..12]));
        table.row(format!("{name}: no part of the token is repeated"), ensure(!says_it, &reply.body));
    }
    let http_client = daemon.http_client(None);
    let message = http_client.message("tools/list", json!({}));
    let twice = http_client
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
        let status = daemon.http_client(None).http(method).send().await.unwrap().status().as_u16();
        table.row(format!("{name} without one"), equal(status, 401));
    }
    table.finish();
    let ended = daemon.terminate().await;
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
        ended.stderr.contains("a request from ") && ended.stderr.contains("the token was revoked"),
        "{}",
        ended.stderr
    );
    // The number of log lines about rejected requests is limited.
    assert!(ended.stderr.matches("was rejected").count() <= 25, "{}", ended.stderr);
}

#[tokio::test]
async fn a_revoked_token_is_rejected_at_once_by_every_process_and_connection() {
    let lockhouse = Lockhouse::new();
    let (good, other) = (token(&lockhouse, &["desk"]), token(&lockhouse, &["other"]));
    let daemon = lockhouse.daemon().await;
    let mut table = Table::new("after a token is revoked");
    let session = daemon.session(Some(&good), "2025-11-25").await;
    let mut listening = session.listen().await;
    table.row("control: a stream is open", equal(listening.status, 200));
    let http_client = daemon.http_client(Some(&good));
    let call = http_client.calling("run_code", json!({"language": "python", "code": "1"}));
    let running = {
        let http_client = http_client.clone();
        tokio::spawn(async move {
            http_client
                .post(&http_client.calling(
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
        equal(
            status_and_error(&list_tools(&daemon.http_client(Some(&good))).await),
            "401 invalid_token".into(),
        ),
    );
    let reply = http_client.post(&call).await;
    table.row(
        "a call, of a client that called before",
        equal(status_and_error(&reply), "401 invalid_token".into()),
    );
    table.row("its reason", equal(error_description(&reply), "the token was revoked".into()));
    let runs = lockhouse.records().iter().filter(|record| record["event"] == "execution").count();
    table.row("it runs nothing", equal(runs, 1));
    table.row(
        "a request in its session",
        equal(status_and_error(&list_tools(&session).await), "401 invalid_token".into()),
    );
    table.row("the end of its session", equal(session.end_session().await, 401));
    while listening.next().await.is_some() {}
    table.row("its stream ends", Ok(()));
    running.await.unwrap();
    let ends = lockhouse.records().into_iter().find(|record| record["event"] == "end");
    table.row("what ran is stopped", equal(ends.unwrap_or_default()["status"].clone(), "cancelled".into()));
    let answer = daemon.http_client(Some(&other)).run_code("python", "1").await;
    table.row("control: the token of another client", equal(answer["value"].clone(), 1.into()));
    let again = token(&lockhouse, &["desk"]);
    table.row(
        "a new token of that name",
        equal(status_and_error(&list_tools(&daemon.http_client(Some(&again))).await), "200".into()),
    );
    table.finish();
}

#[tokio::test]
async fn while_the_token_file_is_not_trusted_no_call_is_made_also_for_clients_that_called_before() {
    let lockhouse = Lockhouse::new();
    let good = token(&lockhouse, &["desk"]);
    let daemon = lockhouse.daemon().await;
    let mut table = Table::new("calls while the token file is not trusted");
    let client = daemon.http_client(Some(&good));
    let call = client.calling("run_code", json!({"language": "python", "code": "6 * 7"}));
    let value = async || client.post(&call).await.answer()["result"]["structuredContent"]["value"].clone();
    let runs = || lockhouse.records().iter().filter(|record| record["event"] == "execution").count();
    table.row("control: before", equal(value().await, 42.into()));
    let file = lockhouse.path("state/lockhouse/client-tokens.json");
    let set_mode = |mode| std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
    set_mode(0o666);
    for attempt in ["the first call", "the second"] {
        let reply = client.post(&call).await;
        table.row(attempt, equal(status_and_error(&reply), "503 temporarily_unavailable".into()));
        let reason = "no token can be checked now; the log of the server says why";
        table.row(format!("{attempt}: its reason"), equal(error_description(&reply), reason.into()));
    }
    table.row("they run nothing", equal(runs(), 1));
    set_mode(0o600);
    table.row("control: after", equal((value().await, runs()), (42.into(), 2)));
    table.finish();
}

#[tokio::test]
async fn policy_and_log_use_the_authenticated_name_and_not_the_client_info() {
    let policy =
        "version = 1\n[servers.fixture]\nallow = [\"*\"]\n[clients.desk]\n[clients.\"*\"]\nservers = {}\n";
    let lockhouse = Lockhouse::new().server("fixture", &[]).policy(policy);
    let (desk, other) = (token(&lockhouse, &["desk"]), token(&lockhouse, &["other"]));
    let daemon = lockhouse.daemon().await;
    let mut table = Table::new("names");
    let code = "from mcp_tools import call_tool, ToolError\ntry: r = call_tool('fixture.add', {'a': 1, 'b': 2})['sum']\n\
        except ToolError as e: r = e.code\nr";
    let pretends = |http_client: &HttpClient| {
        let mut message = http_client.calling("run_code", json!({"language": "python", "code": code}));
        message["params"]["_meta"]["io.modelcontextprotocol/clientInfo"] =
            json!({"name": "desk", "version": "0"});
        message
    };
    for (name, token, expected) in [("desk", &desk, json!(3)), ("other", &other, json!("denied"))] {
        let http_client = daemon.http_client(Some(token));
        let reply = http_client.post(&pretends(&http_client)).await;
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
async fn a_damaged_token_file_is_not_read_again_for_every_request() {
    let lockhouse = Lockhouse::new();
    let tokens = lockhouse.path("damaged.json");
    let lockhouse = lockhouse.config(&format!("[http]\ntokens = \"{}\"\n", tokens.display()));
    let good = token(&lockhouse, &["desk"]);
    let whole = std::fs::read(&tokens).unwrap();
    let daemon = lockhouse.daemon().await;
    assert_eq!(status_and_error(&list_tools(&daemon.http_client(Some(&good))).await), "200", "control");
    std::fs::write(&tokens, "x".repeat(2_000_000)).unwrap();
    let read = || {
        let io = std::fs::read_to_string(format!("/proc/{}/io", daemon.pid())).unwrap();
        io.lines().find_map(|line| line.strip_prefix("rchar: ")?.parse::<u64>().ok()).unwrap()
    };
    let (http_client, before) = (daemon.http_client(Some(&good)), read());
    for reply in futures_util::future::join_all((0..100).map(|_| list_tools(&http_client))).await {
        assert_eq!(status_and_error(&reply), "503 temporarily_unavailable");
    }
    // Reading the file for all of these requests would be 200 MB. The daemon retries the damaged file at most once
    // a second.
    let grown = read() - before;
    assert!(grown < 80_000_000, "{grown} bytes were read for 100 requests");
    std::fs::write(&tokens, whole).unwrap();
    assert_eq!(
        status_and_error(&list_tools(&http_client).await),
        "200",
        "a repaired file is effective at once"
    );
}
