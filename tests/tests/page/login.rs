//! Tests of the one-time link and of the sessions that it begins.

use lockhouse_tests::{Lockhouse, Page, Table, ensure, equal, request};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn a_link_begins_one_session() {
    let lockhouse = Lockhouse::new();
    let page = Page::start(&lockhouse, &[]).await;
    let mut table = Table::new("logins");
    table.row(
        "the page listens on the loopback interface",
        equal(page.address.clone(), format!("localhost:{}", page.port())),
    );
    table.row("the token has 256 bits", equal(page.token.len(), 64));
    for (name, token) in [
        ("no token", ""),
        ("another token", &"0".repeat(64)),
        ("a part of the token", &page.token[..63]),
        ("the token in upper case", &page.token.to_uppercase()),
        ("a long token", &"a".repeat(10_000)),
    ] {
        let reply = page.log_in(token).await;
        table.row(name, equal((reply.status, reply.error_code()), (401, "no_session".to_owned())));
        table.row(format!("{name}: no cookie"), equal(reply.header("set-cookie"), String::new()));
    }
    let reply = page.log_in(&page.token).await;
    table.row("control: the token of the link", equal(reply.status, 200));
    let cookie = reply.header("set-cookie");
    let name = format!("lockhouse_page_{}=", page.port());
    for part in [name.as_str(), "; HttpOnly", "; SameSite=Strict", "; Path=/", "; Max-Age=43200"] {
        table.row(format!("the cookie has {part}"), ensure(cookie.contains(part), &cookie));
    }
    table.row("without TLS, it is not Secure", ensure(!cookie.contains("Secure"), &cookie));
    let again = page.log_in(&page.token).await;
    table.row(
        "the same token again",
        equal((again.status, again.error_code()), (401, "no_session".to_owned())),
    );
    table.finish();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_expires() {
    let lockhouse = Lockhouse::new();
    let page = Page::start(&lockhouse, &["--link-seconds", "1"]).await;
    // A link that works would be used up by a request, so its expiry cannot be polled.
    tokio::time::sleep(std::time::Duration::from_millis(1_100)).await;
    let reply = page.log_in(&page.token).await;
    assert_eq!((reply.status, reply.error_code().as_str()), (401, "no_session"), "{reply:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_served_without_a_session() {
    let lockhouse = Lockhouse::new();
    let page = Page::start(&lockhouse, &[]).await;
    let browser = page.browser().await;
    let other = Page::start(&lockhouse, &[]).await.browser().await;
    let mut table = Table::new("requests without a session");
    let json = ("Content-Type", "application/json");
    let wrong_key = "0".repeat(64);
    let credentials: [(&str, Vec<(&str, &str)>); 6] = [
        ("nothing", vec![]),
        ("the cookie alone", vec![("Cookie", &browser.cookie)]),
        ("the key alone", vec![("X-Lockhouse-Page", &browser.key)]),
        ("another key", vec![("Cookie", &browser.cookie), ("X-Lockhouse-Page", &wrong_key)]),
        ("the key of a login", vec![("Cookie", &browser.cookie), ("X-Lockhouse-Page", "login")]),
        ("a session of another process", other.headers()),
    ];
    let run = "/api/runs/00000000-0000-7000-8000-000000000000";
    for path in ["/api/events", "/api/audit", "/api/results/files-x", run] {
        for (name, headers) in &credentials {
            let reply = page.send(request(&page.address, "GET", path, headers, "")).await;
            table.row(format!("{path} with {name}"), equal(reply.error_code(), "no_session".to_owned()));
        }
    }
    for path in ["/api/reload", "/api/policy/apply", "/api/approvals/answer", "/api/runs/end", "/api/logout"]
    {
        for (name, headers) in &credentials {
            let headers = [headers.as_slice(), &[json]].concat();
            let reply = page.send(request(&page.address, "POST", path, &headers, "{}")).await;
            table.row(format!("{path} with {name}"), equal(reply.error_code(), "no_session".to_owned()));
        }
    }
    table.row(
        "control: with both",
        equal(browser.get("/api/audit?event=login").await.error_code() != "no_session", true),
    );
    table.row("control: an action", equal(browser.post("/api/reload", json!({})).await.status, 200));
    table.finish();
}

#[tokio::test(flavor = "multi_thread")]
async fn logging_out_ends_the_session_and_its_streams() {
    let lockhouse = Lockhouse::new();
    let page = Page::start(&lockhouse, &[]).await;
    let browser = page.browser().await;
    let mut events = browser.events().await;
    assert_eq!(events.next("hello").await["may"][0], "approve");
    assert_eq!(browser.post("/api/logout", json!({})).await.status, 200);
    let refused = browser.try_events().await.expect_err("no session");
    assert!(refused.contains(" 401 "), "{refused}");
    events.ended().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_unix_socket_serves_its_own_user() {
    let lockhouse = Lockhouse::new();
    let path = lockhouse.path("run/page.sock");
    let path = path.to_str().unwrap();
    let mut command =
        tokio::process::Command::from(lockhouse.command(&["page", "--no-open", "--unix", path]));
    command.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().unwrap();
    let mut lines = {
        use tokio::io::AsyncBufReadExt as _;
        tokio::io::BufReader::new(child.stdout.take().unwrap()).lines()
    };
    let link = lines.next_line().await.unwrap().unwrap();
    assert!(link.starts_with("http://localhost:PORT/#token="), "{link}");
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(path).unwrap().permissions()) & 0o777;
    assert_eq!(mode, 0o600);
    let client = reqwest::Client::builder().unix_socket(path).build().unwrap();
    let token = link.split("token=").nth(1).unwrap();
    let log_in = |host: &'static str| {
        let body = json!({"token": token}).to_string();
        let request = client.post(format!("http://{host}/api/login")).header("X-Lockhouse-Page", "login");
        request.header("Content-Type", "application/json").body(body).send()
    };
    assert_eq!(log_in("evil.test:8080").await.unwrap().status().as_u16(), 421);
    assert_eq!(log_in("localhost:8080").await.unwrap().status().as_u16(), 200);
}
