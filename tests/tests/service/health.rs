//! Tests of the daemon's HTTP endpoints `/live`, `/ready` and `/health`.

use lockhouse_tests::{Lockhouse, Table, ensure, equal, wait_until};

use crate::service::{OPEN, get, health, wait_until_ready};

#[tokio::test]
async fn health_reports_the_state_of_the_service() {
    let lockhouse = Lockhouse::with_fixture().config(OPEN);
    let lockhouse = lockhouse.servers_entry("gone", serde_json::json!({"command": "/nowhere/SEKRET-not"}));
    let daemon = lockhouse.daemon().await;
    wait_until_ready(&daemon).await;
    daemon.http_client(None).run_code("python", "1 + 1").await;
    let health = wait_until("the server is connected", async || {
        Some(health(&daemon).await).filter(|health| health["upstreams"]["fixture"]["state"] == "connected")
    })
    .await;
    let mut table = Table::new("what /health says");
    table.row("live", equal(get(&daemon, "/live").await, (200, "alive\n".to_owned())));
    table.row("ready", equal(get(&daemon, "/ready").await, (200, "ready\n".to_owned())));
    table.row("version", equal(&health["version"], &env!("CARGO_PKG_VERSION").into()));
    table.row("uptime", ensure(health["uptime_s"].as_f64() > Some(0.0), &health["uptime_s"]));
    for language in ["python", "typescript"] {
        let engine = &health["engines"][language];
        table.row(format!("{language} is ready"), equal(&engine["state"], &"ready".into()));
        let level = engine["sandbox"].as_str().unwrap_or_default();
        table.row(format!("{language}: level"), ensure(["full", "reduced"].contains(&level), engine));
        table.row(format!("{language}: places"), equal(&engine["pool"]["places"], &16.into()));
        table.row(format!("{language}: runtime"), ensure(engine["runtime"].is_string(), engine));
    }
    let fixture = &health["upstreams"]["fixture"];
    table.row("tools of a server", ensure(fixture["tools"].as_u64() > Some(3), fixture));
    table.row("one that failed", ensure(health["upstreams"]["gone"]["state"] != "connected", &health));
    table.row("audit", equal(&health["audit"]["writable"], &true.into()));
    table.row("generation", equal(&health["configuration"]["generation"], &1.into()));
    daemon.reload().await;
    let again = crate::service::health(&daemon).await;
    table.row("and after a reload", equal(&again["configuration"]["generation"], &2.into()));
    table.row("nothing runs", equal(&again["running"], &0.into()));
    table.finish();
    assert_eq!(daemon.terminate().await.status, Some(0));
}

#[tokio::test]
async fn without_authentication_only_liveness_is_reported() {
    let lockhouse = Lockhouse::new();
    let daemon = lockhouse.daemon().await;
    let mut table = Table::new("who may ask what");
    for (path, status) in [("/live", 200), ("/health", 401), ("/metrics", 401), ("/mcp", 401)] {
        table.row(path, equal(get(&daemon, path).await.0, status));
    }
    wait_until_ready(&daemon).await;
    table.finish();
}

#[tokio::test]
async fn the_service_is_not_ready_while_the_audit_log_is_not_writable() {
    let lockhouse = Lockhouse::with_fixture().config(OPEN);
    let daemon = lockhouse.daemon().await;
    wait_until_ready(&daemon).await;
    let http_client = daemon.http_client(None);
    let code = "from mcp_tools.fixture import echo\necho(value='a')";
    assert_eq!(http_client.run_code("python", code).await["status"], "ok");
    let (directory, aside) = (lockhouse.audit_directory(), lockhouse.path("aside"));
    std::fs::rename(&directory, &aside).unwrap();
    std::fs::write(&directory, "").unwrap();
    let (status, words) = get(&daemon, "/ready").await;
    assert!(status == 503 && words.contains("the audit log cannot be written"), "{status} {words}");
    assert_eq!(health(&daemon).await["audit"]["writable"], false);
    std::fs::remove_file(&directory).unwrap();
    std::fs::rename(&aside, &directory).unwrap();
    wait_until_ready(&daemon).await;
    assert_eq!(http_client.run_code("python", code).await["status"], "ok");
}

#[tokio::test]
async fn metrics_can_have_a_separate_local_listener() {
    let lockhouse = Lockhouse::new();
    let socket = lockhouse.path("metrics.sock");
    // A socket that a killed process left behind.
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    let config = format!("[metrics]\nlisten = [\"unix:{}\"]\n", socket.display());
    let lockhouse = lockhouse.config(&config);
    let daemon = lockhouse.daemon().await;
    daemon.wait_for_log("serving metrics at").await;
    let client = reqwest::Client::builder().no_proxy().unix_socket(socket.clone()).build().unwrap();
    let mut table = Table::new("metrics at a separate listener without authentication");
    for (path, status) in [("/live", 200), ("/health", 200), ("/metrics", 200), ("/mcp", 404)] {
        let answer = client.get(format!("http://localhost{path}")).send().await.unwrap();
        table.row(path, equal(answer.status().as_u16(), status));
    }
    table.finish();
    let elsewhere = Lockhouse::new().config("[metrics]\nlisten = [\"0.0.0.0:7301\"]\n");
    let refused = elsewhere.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(refused.status, Some(2), "{}", refused.transcript());
    assert!(refused.stderr.contains("can be reached from other machines"), "{}", refused.stderr);
}

#[tokio::test]
async fn a_token_with_limited_grants_sees_nothing_of_other_clients() {
    let lockhouse = Lockhouse::with_fixture().config("[tools]\nhealth = true\n");
    let token = |arguments: &[&str]| {
        let finished = lockhouse.run(&[&["token", "create"], arguments].concat());
        assert_eq!(finished.status, Some(0), "{finished:?}");
        finished.stdout.trim_end().to_owned()
    };
    let (whole, part) = (token(&["whole"]), token(&["part", "--only", "fixture.echo"]));
    let daemon = lockhouse.daemon().await;
    wait_until_ready(&daemon).await;
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let mut table = Table::new("health by the grants of the token");
    for (name, token, status) in [("the whole", &whole, 200), ("a part", &part, 403)] {
        for path in ["/health", "/metrics"] {
            let answer = client.get(daemon.url(path)).bearer_auth(token).send().await.unwrap();
            table.row(format!("{path} with {name}"), equal(answer.status().as_u16(), status));
        }
    }
    let counts =
        ["running", "queue", "upstreams", "sessions", "results", "configuration", "uptime_s", "pid", "pool"];
    for (name, token, is_shown) in [("the whole", &whole, true), ("a part", &part, false)] {
        let health = daemon.http_client(Some(token)).call("health", serde_json::json!({})).await;
        table.row(format!("{name}: it is ready"), equal(&health["ready"], &true.into()));
        for count in counts {
            let found = health.to_string().contains(&format!("\"{count}\""));
            table.row(format!("{name}: {count}"), ensure(found == is_shown, &health));
        }
    }
    table.finish();
}

#[tokio::test]
async fn the_health_tool_is_offered_if_it_is_enabled() {
    let without = Lockhouse::new();
    let session = without.serve().await;
    assert_eq!(session.tools().await.len(), 3);
    let with = Lockhouse::with_fixture().config("[tools]\nhealth = true\n");
    let session = with.serve().await;
    let tools: Vec<String> = session.tools().await.iter().map(|tool| tool.name.to_string()).collect();
    assert_eq!(tools, ["run_code", "search_tools", "get_result", "health"]);
    let answer = session.call("health", serde_json::json!({})).await.unwrap();
    let health = answer.structured_content.unwrap();
    assert!(
        health["engines"]["python"].is_object() && health["upstreams"]["fixture"].is_object(),
        "{health}"
    );
}
