//! Tests of OAuth access tokens that are bound to a key of their client (DPoP, RFC 9449).

use aws_lc_rs::digest::{SHA256, digest};
use data_encoding::BASE64URL_NOPAD;
use lockhouse_tests::{Daemon, HttpClient, Issuer, Lockhouse, Signer, Table, ensure, equal};
use serde_json::{Value, json};

use crate::access::{error_description, list_tools, status_and_error, token};

const RESOURCE: &str = "https://lockhouse.example.com/mcp";

fn config(issuer: &Issuer, dpop: &str) -> String {
    format!(
        "[http]\nauth = [\"oauth\", \"token\"]\n[http.oauth]\nissuer = \"{}\"\naudience = \"{RESOURCE}\"\ndpop = \"{dpop}\"\n\
         [http.oauth.scopes]\n\"mcp:all\" = [\"*\"]\n",
        issuer.name()
    )
}

/// Returns the claims of a valid proof for this token, with those in `others` replaced.
fn proof_claims(token: &str, id: &str, others: Value) -> Value {
    let now = jsonwebtoken::get_current_timestamp();
    let hash = BASE64URL_NOPAD.encode(digest(&SHA256, token.as_bytes()).as_ref());
    let mut claims = json!({"jti": id, "htm": "POST", "htu": RESOURCE, "iat": now, "ath": hash});
    for (name, value) in others.as_object().expect("claims") {
        claims[name] = value.clone();
    }
    claims
}

fn client(daemon: &Daemon, scheme: &str, token: &str, proof: Option<&str>) -> HttpClient {
    let client = daemon.http_client(None).with("Authorization", &format!("{scheme} {token}"));
    match proof {
        Some(proof) => client.with("DPoP", proof),
        None => client,
    }
}

#[tokio::test]
async fn a_bound_token_is_accepted_once_with_each_proof_of_its_key() {
    let (signer, own, other) = (Signer::es256("one"), Signer::es256("client"), Signer::es256("thief"));
    let issuer = Issuer::start(&[&signer]);
    let mut claims = issuer.claims("ada", RESOURCE, "mcp:all");
    let unbound = signer.sign(&claims);
    claims["cnf"] = json!({"jkt": own.thumbprint()});
    let bound = signer.sign(&claims);
    claims["cnf"] = json!({"x5t#S256": "bwcK0esc3ACC3DB2Y5_lESsXE8o9ltc05O89jdN-dg2"});
    let of_certificate = signer.sign(&claims);
    let proof = |id: &str, others: Value| own.sign_proof(&proof_claims(&bound, id, others));
    let mut table = Table::new("tokens that are bound to a key");

    let lockhouse = Lockhouse::new().config(&config(&issuer, "accepted"));
    let ours = token(&lockhouse, &["desk"]);
    let daemon = lockhouse.daemon().await;
    let once = proof("once", json!({}));
    let rows = [
        ("a token with a proof", "DPoP", &bound, Some(once.clone()), "200", ""),
        ("the same proof again", "DPoP", &bound, Some(once), "401", "used before"),
        ("another proof", "dpop", &bound, Some(proof("twice", json!({}))), "200", ""),
        ("no proof", "DPoP", &bound, None, "401", "one header DPoP"),
        ("as a bearer token", "Bearer", &bound, None, "401", "is bound to a key"),
        (
            "as a bearer token with a proof",
            "Bearer",
            &bound,
            Some(proof("a", json!({}))),
            "401",
            "is bound to a key",
        ),
        (
            "the proof of a thief's key",
            "DPoP",
            &bound,
            Some(other.sign_proof(&proof_claims(&bound, "b", json!({})))),
            "401",
            "another key",
        ),
        ("for GET", "DPoP", &bound, Some(proof("c", json!({"htm": "GET"}))), "401", "htm"),
        (
            "for another server",
            "DPoP",
            &bound,
            Some(proof("d", json!({"htu": "https://a.example/mcp"}))),
            "401",
            "htu",
        ),
        ("for another token", "DPoP", &bound, Some(proof("e", json!({"ath": "x"}))), "401", "ath"),
        ("an old one", "DPoP", &bound, Some(proof("f", json!({"iat": 1_562_262_618}))), "401", "clocks"),
        ("no proof at all", "DPoP", &bound, Some("x".to_owned()), "401", "not a signed"),
        ("bound to a certificate", "Bearer", &of_certificate, None, "401", "and the connection has none"),
        (
            "an unbound token with a proof",
            "DPoP",
            &unbound,
            Some(own.sign_proof(&proof_claims(&unbound, "g", json!({})))),
            "401",
            "bound to no key",
        ),
        ("control: an unbound bearer token", "Bearer", &unbound, None, "200", ""),
        ("control: our own token", "Bearer", &ours, None, "200", ""),
    ];
    for (name, scheme, token, proof, status, words) in rows {
        let reply = list_tools(&client(&daemon, scheme, token, proof.as_deref())).await;
        let expected = match name {
            _ if status == "200" => status.to_owned(),
            "bound to a certificate" => format!("{status} invalid_token"),
            _ => format!("{status} invalid_dpop_proof"),
        };
        table.row(name, equal(status_and_error(&reply), expected));
        table.row(
            format!("{name}: the reason"),
            ensure(error_description(&reply).contains(words), reply.body),
        );
    }

    let lockhouse = Lockhouse::new().config(&config(&issuer, "required"));
    let ours = token(&lockhouse, &["desk"]);
    let daemon = lockhouse.daemon().await;
    let reply = list_tools(&client(&daemon, "Bearer", &unbound, None)).await;
    table.row(
        "required: an unbound token",
        equal(status_and_error(&reply), "401 invalid_dpop_proof".to_owned()),
    );
    let reply = list_tools(&client(&daemon, "DPoP", &bound, Some(&proof("h", json!({}))))).await;
    table.row("required: a bound token", equal(reply.status, 200));
    let reply = list_tools(&client(&daemon, "Bearer", &ours, None)).await;
    table.row("required: our own token", equal(reply.status, 200));
    table.finish();
}
