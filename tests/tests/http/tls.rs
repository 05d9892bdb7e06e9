//! Tests of TLS at the daemon's HTTP port: requests over TLS, limits on handshakes, and the renewal of certificates.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use lockhouse_tests::{Daemon, HttpClient, Lockhouse};
use serde_json::json;

const CONFIG: &str =
    "[http]\nauth = \"none\"\n[http.tls]\ncertificate = \"daemon.pem\"\nkey = \"daemon.key\"\n";

/// Returns the path of a file in `tests/http/tls`, such as a certificate for 127.0.0.1 or its private key.
pub(crate) fn certificate_file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/http/tls").join(name)
}

/// Copies the test certificate `name` and its private key into Lockhouse's configuration directory.
pub(crate) fn install_certificate(lockhouse: &Lockhouse, name: &str) {
    install_certificate_as(lockhouse, name, name);
}

fn install_certificate_as(lockhouse: &Lockhouse, name: &str, target: &str) {
    let content = |ending: &str| std::fs::read(certificate_file(&format!("{name}.{ending}"))).unwrap();
    for ending in ["pem", "key"] {
        let file = lockhouse.file(&format!("config/lockhouse/{target}.{ending}"), content(ending));
        std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o640)).unwrap();
    }
}

/// Returns an HTTP client for the daemon that trusts only the test certificate `name`.
pub(crate) fn client_that_trusts(daemon: &Daemon, name: &str) -> HttpClient {
    let certificate =
        reqwest::Certificate::from_pem(&std::fs::read(certificate_file(&format!("{name}.pem"))).unwrap());
    let client = reqwest::Client::builder().no_proxy().tls_certs_only([certificate.unwrap()]);
    HttpClient::with_client(client.build().unwrap(), &daemon.url("/mcp"), None)
}

async fn can_run_code(http_client: &HttpClient) -> bool {
    let message = http_client.calling("run_code", json!({"language": "python", "code": "6 * 7"}));
    let reply = http_client.try_post(&message).await;
    reply.is_ok_and(|reply| reply.answer()["result"]["structuredContent"]["value"] == 42)
}

#[tokio::test]
async fn clients_connect_over_tls_and_a_renewed_certificate_takes_effect() {
    let lockhouse = Lockhouse::new().config(CONFIG);
    install_certificate(&lockhouse, "daemon");
    let daemon = lockhouse.daemon().await;
    assert!(daemon.listening_at().starts_with("https://127.0.0.1:"), "{}", daemon.listening_at());
    assert!(can_run_code(&client_that_trusts(&daemon, "daemon")).await, "{}", daemon.log());
    assert!(!can_run_code(&client_that_trusts(&daemon, "renewed")).await);

    install_certificate_as(&lockhouse, "renewed", "daemon");
    let said = daemon.reload().await;
    assert!(said.contains("the certificate was reloaded"), "{said}");
    assert!(can_run_code(&client_that_trusts(&daemon, "renewed")).await);
    assert!(!can_run_code(&client_that_trusts(&daemon, "daemon")).await);

    install_certificate_as(&lockhouse, "expired", "daemon");
    let said = daemon.reload().await;
    assert!(said.contains("has expired") && said.contains("the current one stays in use"), "{said}");
    assert!(can_run_code(&client_that_trusts(&daemon, "renewed")).await);
}

#[tokio::test]
async fn tls_handshakes_of_unauthenticated_peers_are_rate_limited() {
    let lockhouse =
        Lockhouse::new().config(&format!("{CONFIG}[http.limits]\ntls_handshakes_per_peer_per_second = 1\n"));
    install_certificate(&lockhouse, "daemon");
    let daemon = lockhouse.daemon().await;
    // Each handshake uses a new connection. After four seconds without handshakes four are permitted at once.
    for _ in 0..12 {
        assert!(can_run_code(&client_that_trusts(&daemon, "daemon")).await, "{}", daemon.log());
    }
    assert!(!daemon.log().contains("tls_handshakes_per_peer_per_second"), "{}", daemon.log());
    // A client that does not trust the certificate aborts the handshake after the server has signed it.
    for _ in 0..8 {
        assert!(!can_run_code(&client_that_trusts(&daemon, "renewed")).await);
    }
    daemon.wait_for_log("tls_handshakes_per_peer_per_second of [http.limits]").await;
}

#[tokio::test]
async fn a_plain_http_request_to_a_tls_port_gets_an_error() {
    let lockhouse = Lockhouse::new().config(&format!("{CONFIG}[http.limits]\ntls_seconds = 2\n"));
    install_certificate(&lockhouse, "daemon");
    let daemon = lockhouse.daemon().await;
    let answer = daemon.send(format!("GET /mcp HTTP/1.1\r\nHost: {}\r\n\r\n", daemon.address())).await;
    assert!(answer.starts_with("HTTP/1.1 400") && answer.ends_with("use an https URL"), "{answer}");
    // A handshake that stalls, and a connection that never begins one.
    for sent in [&b"\x16\x03\x01\x02\x00"[..], b""] {
        let answer = daemon.send(sent).await;
        assert!(!answer.starts_with("HTTP"), "{answer}");
    }
    assert!(can_run_code(&client_that_trusts(&daemon, "daemon")).await);
}
