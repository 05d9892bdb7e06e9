//! Tests of the check of the HTTP headers `Host` and `Origin`, which protects the daemon against DNS rebinding and
//! hostile web pages.

use lockhouse_tests::{Daemon, Lockhouse, Table, ensure};

use crate::http::OPEN;

/// Sends an HTTP GET request with these header lines, such as `Host: example.com`. Returns the status and the whole
/// response. The status is 0 if the daemon closes the connection without a response.
async fn get(daemon: &Daemon, path: &str, headers: &[String]) -> (u16, String) {
    let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
    let request =
        format!("GET {path} HTTP/1.1\r\nAccept: text/event-stream\r\nConnection: close\r\n{headers}\r\n");
    let answer = daemon.send(request).await;
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
    (status.unwrap_or(0), answer)
}

#[tokio::test]
async fn a_foreign_host_or_origin_is_refused_on_every_path() {
    let config = format!(
        "{OPEN}hosts = [\"mcp.example.com\", \"proxy:8443\"]\norigins = [\"https://app.example.com\"]\n"
    );
    let lockhouse = Lockhouse::new().config(&config);
    let daemon = lockhouse.daemon().await;
    let (own, port) = (daemon.address(), daemon.address().split(':').nth(1).unwrap().to_owned());
    let mut table = Table::new("hosts and origins");
    // A request that passes the check gets an error about its missing session id.
    for (name, host, origin, refused) in [
        ("the address", own.clone(), None, None),
        ("localhost", format!("localhost:{port}"), None, None),
        ("a configured name", "mcp.example.com".into(), None, None),
        ("a configured name with its port", "proxy:8443".into(), None, None),
        ("our own page", own.clone(), Some(format!("http://{own}")), None),
        ("our own page by another name", own.clone(), Some(format!("http://localhost:{port}")), None),
        ("our own page by another address", own.clone(), Some(format!("http://[::1]:{port}")), Some(403)),
        (
            "our own page over TLS, which is not spoken",
            own.clone(),
            Some(format!("https://{own}")),
            Some(403),
        ),
        ("a configured page", own.clone(), Some("https://app.example.com".into()), None),
        ("a name that leads here", format!("evil.example:{port}"), None, Some(421)),
        ("a name that begins like ours", format!("localhost.evil.example:{port}"), None, Some(421)),
        ("another port", "127.0.0.1:1".into(), None, Some(421)),
        ("no port", "127.0.0.1".into(), None, Some(421)),
        ("a configured name with another port", "proxy:8444".into(), None, Some(421)),
        ("rebinding", format!("evil.example:{port}"), Some(format!("http://evil.example:{port}")), Some(421)),
        ("a stranger's page", own.clone(), Some("https://evil.example".into()), Some(403)),
        ("a page without an origin", own.clone(), Some("null".into()), Some(403)),
        (
            "a page over http that may come over https",
            own.clone(),
            Some("http://app.example.com".into()),
            Some(403),
        ),
        ("another server of this host", own.clone(), Some("http://127.0.0.1:1".into()), Some(403)),
        ("a user before the host", format!("x@{own}"), None, Some(400)),
        ("no host", "/".into(), None, Some(400)),
    ] {
        for path in ["/mcp", "/", "/live", "/.well-known/oauth-protected-resource"] {
            let mut headers = vec![format!("Host: {host}")];
            headers.extend(origin.iter().map(|origin| format!("Origin: {origin}")));
            let (status, answer) = get(&daemon, path, &headers).await;
            let holds = match refused {
                Some(refused) => status == refused,
                None => ![0, 400, 403, 421].contains(&status) || answer.contains("Session ID is required"),
            };
            table.row(format!("{name}: {path}"), ensure(holds, answer));
        }
    }
    for (name, headers) in [
        ("no Host header", vec![]),
        ("two Host headers", vec![format!("Host: {own}"), "Host: evil.example".to_owned()]),
    ] {
        let (status, answer) = get(&daemon, "/mcp", &headers).await;
        table.row(name, ensure(status == 400, answer));
    }
    let (status, answer) =
        get(&daemon, &format!("http://{own}/mcp"), &["Host: evil.example".to_owned()]).await;
    table.row("a URL of another host than the header", ensure(status == 400, answer));
    table.finish();
}

#[tokio::test]
async fn responses_have_no_cors_headers() {
    let lockhouse = Lockhouse::new().config(OPEN);
    let daemon = lockhouse.daemon().await;
    let own = daemon.address();
    let preflight = format!(
        "OPTIONS /mcp HTTP/1.1\r\nHost: {own}\r\nOrigin: https://evil.example\r\nAccess-Control-Request-Method: POST\r\n\
         Connection: close\r\n\r\n"
    );
    let answer = daemon.send(preflight).await.to_lowercase();
    assert!(answer.starts_with("http/1.1 403") && !answer.contains("access-control"), "{answer}");
    let same = format!("OPTIONS /mcp HTTP/1.1\r\nHost: {own}\r\nConnection: close\r\n\r\n");
    let answer = daemon.send(same).await.to_lowercase();
    assert!(answer.starts_with("http/1.1 405") && !answer.contains("access-control"), "{answer}");
}
