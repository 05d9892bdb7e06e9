//! Tests of requests that the page itself would not send: of other web pages, with wrong hosts, methods, types and
//! bodies. None of them changes anything.

use lockhouse_tests::{Lockhouse, Page, Table, ambiguous_heads, ensure, equal, request};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const JSON: (&str, &str) = ("Content-Type", "application/json");

#[tokio::test(flavor = "multi_thread")]
async fn other_hosts_and_origins_are_rejected() {
    let lockhouse = Lockhouse::new();
    let page = Page::start(&lockhouse, &[]).await;
    let browser = page.browser().await;
    let (address, port) = (page.address.as_str(), page.port());
    let mut table = Table::new("hosts and origins");
    let evil_with_port = format!("evil.test:{port}");
    let hosts = ["evil.test", &evil_with_port, "127.0.0.1", "127.0.0.1:1", "localhost", "0.0.0.0", "[::1]"];
    for host in hosts {
        for (method, path) in
            [("GET", "/"), ("GET", "/api/audit"), ("GET", "/api/events"), ("POST", "/api/reload")]
        {
            let headers = [browser.headers(), vec![JSON]].concat();
            let reply = page.send(request(host, method, path, &headers, "{}")).await;
            table.row(
                format!("{method} {path} with the host {host:?}"),
                equal(reply.error_code(), "wrong_host".into()),
            );
        }
    }
    for (name, sent, status) in [
        ("two hosts", request(address, "GET", "/", &[("Host", "evil.test")], ""), 400),
        ("an empty host", request("", "GET", "/", &[], ""), 400),
        ("a URL of another host", request(address, "GET", "http://evil.test/", &[], ""), 400),
        ("a URL and a host of another host", request("evil.test", "GET", "http://evil.test/", &[], ""), 421),
        ("control: the own URL", request(address, "GET", &format!("http://{address}/"), &[], ""), 200),
    ] {
        table.row(name, equal(page.send(sent).await.status, status));
    }
    let own = format!("http://{address}");
    let origins = ["http://evil.test", "null", "https://evil.test", "http://127.0.0.1", "http://localhost"];
    for origin in origins {
        for (method, path) in
            [("GET", "/api/audit"), ("GET", "/api/events"), ("POST", "/api/reload"), ("POST", "/api/login")]
        {
            let headers = [browser.headers(), vec![JSON, ("Origin", origin)]].concat();
            let reply = page.send(request(address, method, path, &headers, "{}")).await;
            table.row(format!("{method} {path} of {origin}"), equal(reply.error_code(), "forbidden".into()));
        }
    }
    for site in ["cross-site", "same-site", "none"] {
        let headers = [browser.headers(), vec![JSON, ("Sec-Fetch-Site", site)]].concat();
        let reply = page.send(request(address, "POST", "/api/reload", &headers, "{}")).await;
        table.row(format!("Sec-Fetch-Site: {site}"), equal(reply.error_code(), "forbidden".into()));
    }
    let headers =
        [browser.headers(), vec![JSON, ("Origin", &own), ("Sec-Fetch-Site", "same-origin")]].concat();
    let reply = page.send(request(address, "POST", "/api/reload", &headers, "{}")).await;
    table.row("control: the page itself", equal(reply.status, 200));
    let reply = page.send(request(address, "GET", "/", &[("Origin", &own)], "")).await;
    for header in ["access-control-allow-origin", "access-control-allow-credentials"] {
        table.row(format!("no {header}"), equal(reply.header(header), String::new()));
    }
    table.finish();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ambiguous_request_head_is_refused_and_closes_its_connection() {
    let lockhouse = Lockhouse::new();
    let page = Page::start(&lockhouse, &[]).await;
    let mut table = Table::new("HTTP/1 request heads");
    for (name, sent) in ambiguous_heads(&page.address, "/") {
        let reply = page.send(sent).await;
        let has_another = String::from_utf8_lossy(&reply.body).contains("HTTP/1.1");
        table.row(name, ensure(reply.status == 400 && !has_another, reply));
    }
    let two = request(&page.address, "GET", "/assets/theme.js", &[], "").replace("Connection: close\r\n", "");
    let two = two + &request(&page.address, "GET", "/assets/theme.js", &[], "");
    let reply = page.send(two).await;
    let has_another = String::from_utf8_lossy(&reply.body).contains("HTTP/1.1 200");
    table.row("control: two requests", ensure(reply.status == 200 && has_another, reply.head));
    table.finish();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_of_another_page_changes_nothing() {
    let lockhouse = Lockhouse::new();
    let page = Page::start(&lockhouse, &[]).await;
    let browser = page.browser().await;
    let mut table = Table::new("requests that a form or a simple script can send");
    let cookie = ("Cookie", browser.cookie.as_str());
    let key = ("X-Lockhouse-Page", browser.key.as_str());
    let address = page.address.as_str();
    for media_type in ["application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain"] {
        let reply = page
            .send(request(address, "POST", "/api/reload", &[cookie, ("Content-Type", media_type)], "{}"))
            .await;
        table.row(format!("{media_type} without the key"), equal(reply.error_code(), "no_session".into()));
        let reply = page
            .send(request(address, "POST", "/api/reload", &[cookie, key, ("Content-Type", media_type)], "{}"))
            .await;
        table.row(format!("{media_type} with the key"), equal(reply.error_code(), "content_type".into()));
    }
    let reply = page.send(request(address, "POST", "/api/reload", &[cookie, key], "{}")).await;
    table.row("no type", equal(reply.error_code(), "content_type".into()));
    let body = json!({"token": page.token}).to_string();
    let reply = page.send(request(address, "POST", "/api/login", &[JSON], &body)).await;
    table.row("a login without the header", equal(reply.error_code(), "forbidden".into()));
    let reply =
        page.send(request(address, "OPTIONS", "/api/reload", &[("Origin", "http://evil.test")], "")).await;
    table.row("a preflight gets no permission", ensure(reply.status >= 400, reply));
    let reply = page.send(request(address, "POST", "/api/reload", &[cookie, key, JSON], "{}")).await;
    table.row("control: the page's own request", equal(reply.status, 200));
    table.finish();
}

#[tokio::test(flavor = "multi_thread")]
async fn methods_paths_and_bodies_are_checked() {
    let lockhouse = Lockhouse::new();
    let page = Page::start(&lockhouse, &[]).await;
    let browser = page.browser().await;
    let headers = [browser.headers(), vec![JSON]].concat();
    let address = page.address.as_str();
    let mut table = Table::new("methods, paths and bodies");
    for (method, path) in [
        ("GET", "/api/reload"),
        ("POST", "/api/events"),
        ("DELETE", "/api/runs/x"),
        ("PUT", "/"),
        ("GET", "/api/login"),
        ("TRACE", "/"),
    ] {
        let reply = page.send(request(address, method, path, &headers, "{}")).await;
        table.row(format!("{method} {path}"), equal(reply.error_code(), "method".into()));
    }
    for path in [
        "/api/",
        "/api/nothing",
        "/assets/",
        "/assets/../Cargo.toml",
        "/assets/..%2f..%2fCargo.toml",
        "/assets/%2e%2e/%2e%2e/Cargo.toml",
        "/assets/index.html",
        "/assets//etc/passwd",
        "//etc/passwd",
        "/etc/passwd",
        "/api/runs/..%2f..%2fetc%2fpasswd",
        "/api/runs/x",
        "/api/results/..%2f..%2f..%2fetc%2fpasswd",
        "/api/results/files-..%2f..%2fetc%2fpasswd",
    ] {
        let reply = page.send(request(address, "GET", path, &headers, "")).await;
        table.row(path, equal(reply.error_code(), "not_found".into()));
    }
    let large = format!("{{\"x\":\"{}\"}}", "a".repeat(17 * 1024));
    for (name, body, code) in [
        ("no JSON", "x", "invalid"),
        ("a list", "[]", "invalid"),
        ("an unknown member", "{\"x\":1}", "invalid"),
        ("too large", large.as_str(), "too_large"),
    ] {
        let reply = page.send(request(address, "POST", "/api/reload", &headers, body)).await;
        table.row(name, equal(reply.error_code(), code.into()));
    }
    let long = request(address, "GET", &format!("/?{}", "a".repeat(40_000)), &[], "");
    let reply = page.send(long).await;
    table.row("a long head", ensure([414, 431].contains(&reply.status), reply.status));
    for path in ["/", "/assets/style.css", "/assets/app.js"] {
        table.row(
            format!("control: {path}"),
            equal(page.send(request(address, "GET", path, &[], "")).await.status, 200),
        );
    }
    table.finish();
}

#[tokio::test(flavor = "multi_thread")]
async fn responses_restrict_what_a_browser_does_with_them() {
    let lockhouse = Lockhouse::new();
    let page = Page::start(&lockhouse, &[]).await;
    let browser = page.browser().await;
    let mut table = Table::new("headers of responses");
    for path in ["/", "/assets/app.js", "/api/audit", "/api/nothing"] {
        let reply = browser.get(path).await;
        let policy = reply.header("content-security-policy");
        for part in [
            "default-src 'none'",
            "script-src 'self'",
            "connect-src 'self'",
            "frame-ancestors 'none'",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
        ] {
            table.row(
                format!("{path}: {part}"),
                ensure(policy.contains(part) && !policy.contains("unsafe"), &policy),
            );
        }
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("x-frame-options", "DENY"),
            ("referrer-policy", "no-referrer"),
            ("cache-control", "no-store"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
        ] {
            table.row(format!("{path}: {name}"), equal(reply.header(name), value.to_owned()));
        }
    }
    table.finish();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_request_is_ended_and_others_are_served() {
    let lockhouse = Lockhouse::new();
    let page = Page::start(&lockhouse, &[]).await;
    let mut slow = Vec::new();
    for _ in 0..50 {
        let mut stream = tokio::net::TcpStream::connect(&page.address).await.unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nHost: ").await.unwrap();
        slow.push(stream);
    }
    let reply = page.send(request(&page.address, "GET", "/", &[], "")).await;
    assert_eq!(reply.status, 200, "control: {reply:?}");
    for mut stream in slow {
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.is_empty() || answer.contains(" 408 "), "{answer}");
    }
}
