//! Tests of configurations that would make the daemon reachable without authentication or TLS: `lockhouse serve`
//! refuses to start and says why.

use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt;

use lockhouse_tests::{CommandOutput, Lockhouse};

use crate::http::tls;

/// Runs `lockhouse serve` with a configuration under which it must fail to start, and returns its output.
fn failed_start(config: &str, arguments: &[&str]) -> CommandOutput {
    let lockhouse = Lockhouse::new().config(config);
    tls::install_certificate(&lockhouse, "daemon");
    tls::install_certificate(&lockhouse, "expired");
    tls::install_certificate(&lockhouse, "renewed");
    lockhouse.file("config/lockhouse/words.pem", "these are words");
    lockhouse.file("config/lockhouse/broken.pem", "-----BEGIN CERTIFICATE-----\nMIIB\n");
    lockhouse.file(
        "config/lockhouse/hollow.pem",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n",
    );
    let open = lockhouse
        .file("config/lockhouse/open.key", std::fs::read(tls::certificate_file("daemon.key")).unwrap());
    std::fs::set_permissions(open, std::fs::Permissions::from_mode(0o644)).unwrap();
    let mut command = vec!["serve"];
    command.extend(arguments);
    lockhouse.run(&command)
}

fn tls_of(certificate: &str, key: &str) -> String {
    format!("[http.tls]\ncertificate = \"{certificate}\"\nkey = \"{key}\"\n")
}

#[test]
fn an_address_that_would_admit_unauthenticated_clients_is_not_listened_on() {
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
            "[http]\nauth = \"none\"\n[http.tls]\ncertificate = \"daemon.pem\"\nkey = \"daemon.key\"\n",
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
        let finished = failed_start(config, arguments);
        assert_eq!(finished.status, Some(2), "{name}: {finished:?}");
        let _ = write!(told, "== {name}\n{}\n\n", finished.transcript());
    }
    insta::assert_snapshot!(told);
}

#[test]
fn tls_configuration_errors_are_reported() {
    let mut told = String::new();
    for (name, certificate, key) in [
        ("no such certificate", "none.pem", "daemon.key"),
        ("no such key", "daemon.pem", "none.key"),
        ("words instead of a certificate", "words.pem", "daemon.key"),
        ("a certificate that is cut off", "broken.pem", "daemon.key"),
        ("a certificate that is none inside", "hollow.pem", "daemon.key"),
        ("a key instead of a certificate", "daemon.key", "daemon.key"),
        ("a certificate instead of a key", "daemon.pem", "daemon.pem"),
        ("the key of another certificate", "daemon.pem", "renewed.key"),
        ("a certificate that has expired", "expired.pem", "expired.key"),
        ("a key that every user can read", "daemon.pem", "open.key"),
    ] {
        let finished = failed_start(&tls_of(certificate, key), &["--listen", "127.0.0.1:0"]);
        assert_eq!(finished.status, Some(2), "{name}: {finished:?}");
        let _ = write!(told, "== {name}\n{}\n\n", finished.transcript());
    }
    insta::assert_snapshot!(told);
}

#[tokio::test]
async fn with_tls_or_behind_a_proxy_every_address_is_permitted() {
    for config in [tls_of("daemon.pem", "daemon.key"), "[http]\nbehind_proxy = true\n".to_owned()] {
        let lockhouse = Lockhouse::new().config(&config);
        tls::install_certificate(&lockhouse, "daemon");
        let daemon =
            lockhouse_tests::Daemon::open(lockhouse.command(&["serve", "--listen", "0.0.0.0:0"])).await;
        assert_eq!(daemon.terminate().await.status, Some(0), "{config}");
    }
}

#[tokio::test]
async fn a_daemon_without_authentication_logs_that() {
    let lockhouse = Lockhouse::new().config(crate::http::OPEN);
    let daemon = lockhouse.daemon().await;
    daemon.wait_for_log("are accepted without authentication").await;
    let guarded = Lockhouse::new();
    let daemon = guarded.daemon().await;
    let reply = daemon.http_client(None).request("tools/list", serde_json::json!({})).await;
    assert_eq!(reply.status, 401, "{reply:?}");
    assert!(!daemon.terminate().await.stderr.contains("without authentication"));
}

#[test]
fn an_address_in_use_is_reported() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let finished = Lockhouse::new().run(&["serve", "--listen", &address]);
    assert_eq!(finished.status, Some(7));
    assert!(finished.stderr.contains(&format!("cannot listen at {address}: ")), "{finished:?}");
}
