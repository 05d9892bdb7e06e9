//! What is refused before anybody can come in, and in which words.

use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt;

use lockhouse_tests::{Finished, Lockhouse};

use crate::tls;

/// What a start came to that must not succeed.
fn refused(config: &str, arguments: &[&str]) -> Finished {
    let lockhouse = Lockhouse::new().config(config);
    tls::put(&lockhouse, "door");
    tls::put(&lockhouse, "expired");
    tls::put(&lockhouse, "renewed");
    lockhouse.file("config/lockhouse/words.pem", "these are words");
    lockhouse.file("config/lockhouse/broken.pem", "-----BEGIN CERTIFICATE-----\nMIIB\n");
    lockhouse.file(
        "config/lockhouse/hollow.pem",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n",
    );
    let open = lockhouse.file("config/lockhouse/open.key", std::fs::read(tls::file("door.key")).unwrap());
    std::fs::set_permissions(open, std::fs::Permissions::from_mode(0o644)).unwrap();
    let mut command = vec!["serve"];
    command.extend(arguments);
    lockhouse.run(&command)
}

fn tls_of(certificate: &str, key: &str) -> String {
    format!("[http.tls]\ncertificate = \"{certificate}\"\nkey = \"{key}\"\n")
}

#[test]
fn a_door_that_would_let_strangers_in_is_not_opened() {
    let everywhere = ["--listen", "0.0.0.0:0"];
    let mut told = String::new();
    for (name, config, arguments) in [
        ("every address without TLS", "", &everywhere[..]),
        ("every address of IPv6 without TLS", "", &["--listen", "[::]:0"]),
        ("one of several", "", &["--listen", "127.0.0.1:0", "--listen", "192.0.2.1:0"]),
        ("configured", "[http]\nlisten = [\"0.0.0.0:0\"]\n", &["--http"]),
        ("without authentication", "[http]\nauth = \"none\"\n", &everywhere),
        (
            "without authentication, with TLS",
            "[http]\nauth = \"none\"\n[http.tls]\ncertificate = \"door.pem\"\nkey = \"door.key\"\n",
            &everywhere,
        ),
        (
            "without authentication, behind a proxy",
            "[http]\nauth = \"none\"\nbehind_proxy = true\n",
            &["--listen", "127.0.0.1:0"],
        ),
        ("no address", "", &["--listen", "localhost"]),
        ("no address in the configuration", "[http]\nlisten = [\"7300\"]\n", &["--http"]),
        ("no host", "[http]\nhosts = [\"https://x\"]\n", &["--http"]),
        ("no origin", "[http]\norigins = [\"*\"]\n", &["--http"]),
        ("limits", "[http.limits]\nconnections = 0\nbodies_mib = 1\nhead_seconds = 0\n", &["--http"]),
        ("an unknown limit", "[http.limits]\nconection = 1\n", &["--http"]),
    ] {
        let finished = refused(config, arguments);
        assert_eq!(finished.status, Some(2), "{name}: {finished:?}");
        let _ = write!(told, "== {name}\n{}\n\n", finished.told());
    }
    insta::assert_snapshot!(told);
}

#[test]
fn mistakes_of_tls_are_told() {
    let mut told = String::new();
    for (name, certificate, key) in [
        ("no such certificate", "none.pem", "door.key"),
        ("no such key", "door.pem", "none.key"),
        ("words instead of a certificate", "words.pem", "door.key"),
        ("a certificate that is cut off", "broken.pem", "door.key"),
        ("a certificate that is none inside", "hollow.pem", "door.key"),
        ("a key instead of a certificate", "door.key", "door.key"),
        ("a certificate instead of a key", "door.pem", "door.pem"),
        ("the key of another certificate", "door.pem", "renewed.key"),
        ("a certificate that has expired", "expired.pem", "expired.key"),
        ("a key that every user can read", "door.pem", "open.key"),
    ] {
        let finished = refused(&tls_of(certificate, key), &["--listen", "127.0.0.1:0"]);
        assert_eq!(finished.status, Some(2), "{name}: {finished:?}");
        let _ = write!(told, "== {name}\n{}\n\n", finished.told());
    }
    insta::assert_snapshot!(told);
}

#[tokio::test]
async fn every_address_may_be_listened_at_with_tls_or_behind_a_proxy() {
    for config in [tls_of("door.pem", "door.key"), "[http]\nbehind_proxy = true\n".to_owned()] {
        let lockhouse = Lockhouse::new().config(&config);
        tls::put(&lockhouse, "door");
        let door = lockhouse_tests::Door::open(lockhouse.command(&["serve", "--listen", "0.0.0.0:0"])).await;
        assert_eq!(door.terminate().await.status, Some(0), "{config}");
    }
}

#[tokio::test]
async fn a_door_without_proof_says_so() {
    let lockhouse = Lockhouse::new().config(crate::OPEN);
    let door = lockhouse.door().await;
    door.says("is let in without proof").await;
    let guarded = Lockhouse::new();
    let door = guarded.door().await;
    let reply = door.visitor(None).request("tools/list", serde_json::json!({})).await;
    assert_eq!(reply.status, 401, "{reply:?}");
    assert!(!door.terminate().await.stderr.contains("without proof"));
}

#[test]
fn an_address_that_is_taken_is_told() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let finished = Lockhouse::new().run(&["serve", "--listen", &address]);
    assert_eq!(finished.status, Some(7));
    assert!(finished.stderr.contains(&format!("cannot listen at {address}: ")), "{finished:?}");
}
