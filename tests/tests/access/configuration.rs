//! Tests that `lockhouse serve` refuses to start with an authentication configuration that would accept nobody or
//! everybody.

use std::os::unix::fs::PermissionsExt;

use lockhouse_tests::{Lockhouse, Table, ensure};

/// The keys of `[http.oauth]` that are required.
const GOOD: &str = "issuer = \"https://id.example.com\"\naudience = \"https://a.example.com/mcp\"\n[http.oauth.scopes]\nx = [\"*\"]\n";

#[tokio::test]
async fn a_configuration_that_accepts_no_client_or_any_client_is_rejected() {
    let mut table = Table::new("configurations");
    for (name, text, words) in [
        ("no table", "[http]\nauth = \"oauth\"\n".to_owned(), "needs [http.oauth]"),
        (
            "plain http",
            format!("[http.oauth]\n{}", GOOD.replace("https://id", "http://id")),
            "must begin with https://",
        ),
        (
            "no audience",
            format!("[http.oauth]\n{}", GOOD.replace("https://a.example.com/mcp", "")),
            "audience",
        ),
        (
            "no resource",
            format!("[http.oauth]\n{}", GOOD.replace("https://a.example.com/mcp", "api://x")),
            "resource",
        ),
        (
            "a shared secret",
            format!("[http.oauth]\nalgorithms = [\"HS256\"]\n{GOOD}"),
            "is not a supported algorithm with a key pair",
        ),
        (
            "alg none",
            format!("[http.oauth]\nalgorithms = [\"none\"]\n{GOOD}"),
            "is not a supported algorithm with a key pair",
        ),
        ("no scope", format!("[http.oauth]\n{}", GOOD.replace("x = [\"*\"]", "")), "scopes"),
        (
            "a scope in quotes",
            format!("[http.oauth]\n{}", GOOD.replace("x = ", "'a\"b' = ")),
            "name of a scope",
        ),
        (
            "a grant of nothing",
            format!("[http.oauth]\n{}", GOOD.replace("\"*\"", "\"a b\"")),
            "no name of a server",
        ),
        (
            "keys over plain http",
            format!("[http.oauth]\njwks = \"http://a.example.com/jwks\"\n{GOOD}"),
            "must begin with https://",
        ),
        (
            "an unknown user",
            "[http]\nauth = \"peer\"\nusers = [\"no such user\"]\n".to_owned(),
            "there is no user",
        ),
        ("none beside token", "[http]\nauth = [\"token\", \"none\"]\n".to_owned(), "cannot be combined"),
        (
            "a proxy and users of the machine",
            "[http]\nauth = \"peer\"\nbehind_proxy = true\n".to_owned(),
            "would be authenticated as the proxy's user",
        ),
        (
            "certificates without authorities",
            "[http]\nauth = \"certificate\"\n".to_owned(),
            "needs authorities in [http.client_certificates]",
        ),
        (
            "certificates without TLS",
            "[http]\nauth = \"certificate\"\n[http.client_certificates]\nauthorities = \"ca.pem\"\n"
                .to_owned(),
            "needs [http.tls]",
        ),
        (
            "tokens bound to certificates without OAuth",
            "[http.client_certificates]\nbound_tokens = true\n".to_owned(),
            "needs auth = \"oauth\"",
        ),
        (
            "certificates of proxies of which none is trusted",
            format!(
                "[http]\nauth = \"oauth\"\n[http.client_certificates]\nbound_tokens = true\nfrom_proxies = true\n[http.oauth]\n{GOOD}"
            ),
            "and trusted_proxies of [http]",
        ),
        (
            "certificates with an old version of TLS",
            format!(
                "[http]\nauth = \"oauth\"\ntls_minimum = \"1.2\"\n[http.client_certificates]\nbound_tokens = true\n\
                 [http.tls]\ncertificate = \"x\"\nkey = \"x\"\n[http.oauth]\n{GOOD}"
            ),
            "needs tls_minimum = \"1.3\"",
        ),
        (
            "an absent file of authorities",
            "[http]\nauth = \"certificate\"\n[http.client_certificates]\nauthorities = \"ca.pem\"\n\
             [http.tls]\ncertificate = \"x\"\nkey = \"x\"\n"
                .to_owned(),
            "ca.pem",
        ),
        ("no way", "[http]\nauth = []\n".to_owned(), "would be rejected"),
        ("no rate", "[clients]\nruns = \"many\"\n".to_owned(), "runs is out of range"),
    ] {
        let lockhouse = Lockhouse::new().config(&text);
        let finished = lockhouse.run(&["serve", "--listen", "127.0.0.1:0"]);
        let reported = finished.status == Some(2) && finished.stderr.contains(words);
        table.row(name, ensure(reported, format!("{finished:?}")));
    }
    table.finish();
}

#[test]
fn keys_that_another_account_can_change_are_rejected() {
    let folder = tempfile::tempdir().expect("a folder");
    let keys = folder.path().join("keys.json");
    std::fs::write(&keys, r#"{"keys": []}"#).expect("a file");
    let mut table = Table::new("modes of the file of keys");
    for (mode, is_rejected) in [(0o644, false), (0o666, true)] {
        std::fs::set_permissions(&keys, std::fs::Permissions::from_mode(mode)).expect("a mode");
        let text = format!("[http.oauth]\njwks = \"{}\"\n{GOOD}", keys.display());
        let finished = Lockhouse::new().config(&text).run(&["tools", "list"]);
        let reported = finished.stderr.contains("who could change what code may do");
        let is_expected = (finished.status, reported) == (Some(if is_rejected { 2 } else { 0 }), is_rejected);
        table.row(format!("{mode:o}"), ensure(is_expected, format!("{finished:?}")));
    }
    table.finish();
}
