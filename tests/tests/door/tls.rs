//! TLS: what is served over it, and certificates that are renewed.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use lockhouse_tests::{Door, Lockhouse, Visitor};
use serde_json::json;

const CONFIG: &str = "[http]\nauth = \"none\"\n[http.tls]\ncertificate = \"door.pem\"\nkey = \"door.key\"\n";

/// A file of this test: certificates of 127.0.0.1, each with its key.
pub(crate) fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/door/tls").join(name)
}

/// Puts a certificate and its key beside the configuration.
pub(crate) fn put(lockhouse: &Lockhouse, name: &str) {
    put_as(lockhouse, name, name);
}

fn put_as(lockhouse: &Lockhouse, name: &str, put: &str) {
    let content = |ending: &str| std::fs::read(file(&format!("{name}.{ending}"))).unwrap();
    for ending in ["pem", "key"] {
        let file = lockhouse.file(&format!("config/lockhouse/{put}.{ending}"), content(ending));
        std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o640)).unwrap();
    }
}

/// Somebody who trusts this certificate alone.
fn trusting(door: &Door, name: &str) -> Visitor {
    let certificate = reqwest::Certificate::from_pem(&std::fs::read(file(&format!("{name}.pem"))).unwrap());
    let client = reqwest::Client::builder().no_proxy().tls_certs_only([certificate.unwrap()]);
    Visitor::with_client(client.build().unwrap(), &door.url("/mcp"), None)
}

async fn runs(visitor: &Visitor) -> bool {
    let message = visitor.calling("run_code", json!({"language": "python", "code": "6 * 7"}));
    let reply = visitor.try_post(&message).await;
    reply.is_ok_and(|reply| reply.answer()["result"]["structuredContent"]["value"] == 42)
}

#[tokio::test]
async fn clients_come_in_over_tls_and_a_renewed_certificate_takes_effect() {
    let lockhouse = Lockhouse::new().config(CONFIG);
    put(&lockhouse, "door");
    let door = lockhouse.door().await;
    assert!(door.place().starts_with("https://127.0.0.1:"), "{}", door.place());
    assert!(runs(&trusting(&door, "door")).await, "{}", door.said());
    assert!(!runs(&trusting(&door, "renewed")).await);

    put_as(&lockhouse, "renewed", "door");
    let said = door.reload().await;
    assert!(said.contains("the certificate was read again"), "{said}");
    assert!(runs(&trusting(&door, "renewed")).await);
    assert!(!runs(&trusting(&door, "door")).await);

    put_as(&lockhouse, "expired", "door");
    let said = door.reload().await;
    assert!(said.contains("has expired") && said.contains("the one in force stays"), "{said}");
    assert!(runs(&trusting(&door, "renewed")).await);
}

#[tokio::test]
async fn handshakes_of_strangers_are_bounded_and_those_of_clients_do_not_count() {
    let lockhouse =
        Lockhouse::new().config(&format!("{CONFIG}[http.limits]\ntls_handshakes_per_peer_per_second = 1\n"));
    put(&lockhouse, "door");
    let door = lockhouse.door().await;
    // Each on a connection of its own; four at once are what one second permits after four of rest.
    for _ in 0..12 {
        assert!(runs(&trusting(&door, "door")).await, "{}", door.said());
    }
    assert!(!door.said().contains("tls_handshakes_per_peer_per_second"), "{}", door.said());
    // Who does not trust the certificate breaks off, after the signature was made.
    for _ in 0..8 {
        assert!(!runs(&trusting(&door, "renewed")).await);
    }
    door.says("tls_handshakes_per_peer_per_second of [http.limits]").await;
}

#[tokio::test]
async fn who_does_not_speak_tls_is_told() {
    let lockhouse = Lockhouse::new().config(&format!("{CONFIG}[http.limits]\ntls_seconds = 2\n"));
    put(&lockhouse, "door");
    let door = lockhouse.door().await;
    let answer = door.send(format!("GET /mcp HTTP/1.1\r\nHost: {}\r\n\r\n", door.address())).await;
    assert!(answer.starts_with("HTTP/1.1 400") && answer.ends_with("use an https URL"), "{answer}");
    // A handshake that does not go on, and one that never begins.
    for sent in [&b"\x16\x03\x01\x02\x00"[..], b""] {
        let answer = door.send(sent).await;
        assert!(!answer.starts_with("HTTP"), "{answer}");
    }
    assert!(runs(&trusting(&door, "door")).await);
}
