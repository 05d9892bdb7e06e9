//! Seeds for the fuzz targets: tokens of Lockhouse's form, and tokens of an authorization server, valid and not.

use std::collections::BTreeMap;

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use data_encoding::BASE64URL_NOPAD;

pub(crate) const ISSUER: &str = "https://issuer.example";
pub(crate) const AUDIENCE: &str = "https://lockhouse.example/mcp";

/// A token of Lockhouse's form, whose checksum is right.
const WELL_FORMED: &str = "lh_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA2c4jy7";
const HEADER: &str = r#"{"alg":"EdDSA","kid":"k","typ":"at+jwt"}"#;
const VALID: &str = r#"{"iss":"https://issuer.example","aud":"https://lockhouse.example/mcp","sub":"s","exp":4102444800,"iat":1,"scope":"run"}"#;

/// Returns the seeds of each target.
pub fn seeds() -> BTreeMap<&'static str, Vec<Vec<u8>>> {
    let claims = |changed: &str, to: &str| signed(HEADER, &VALID.replace(changed, to));
    let invalid = [
        claims("4102444800", "1"),
        claims("4102444800", "1e400"),
        claims("\"iat\":1", "\"iat\":4102444800"),
        claims("\"iat\":1", "\"nbf\":4102444800"),
        claims("issuer.example", "other.example"),
        claims("lockhouse.example", "other.example"),
        claims("\"sub\":\"s\"", "\"sub\":\"é\""),
        claims("\"scope\":\"run\"", "\"scp\":[\"other\"]"),
        claims("\"exp\":4102444800,", ""),
        signed(r#"{"alg":"none"}"#, VALID),
        signed(r#"{"alg":"HS256"}"#, VALID),
        signed(r#"{"alg":"EdDSA","typ":"dpop+jwt"}"#, VALID),
        signed(r#"{"alg":"EdDSA","crit":["b64"]}"#, VALID),
        signed(r#"{"alg":"EdDSA","kid":"unknown"}"#, VALID),
        WELL_FORMED.to_owned(),
        format!("{WELL_FORMED}8"),
        "a.b.c".to_owned(),
        "x".repeat(17 * 1024),
    ];
    let tokens = valid_tokens().into_iter().chain(invalid).map(String::into_bytes).collect();
    BTreeMap::from([("bearer_tokens", tokens)])
}

pub(crate) fn valid_tokens() -> [String; 2] {
    [signed(HEADER, VALID), signed(r#"{"alg":"EdDSA"}"#, &VALID.replace("\"run\"", "[\"run\",\"other\"]"))]
}

/// Returns the key set of the authorization server.
pub(crate) fn key_set() -> String {
    let public = BASE64URL_NOPAD.encode(key().public_key().as_ref());
    format!(r#"{{"keys":[{{"kty":"OKP","crv":"Ed25519","alg":"EdDSA","kid":"k","x":"{public}"}}]}}"#)
}

fn key() -> Ed25519KeyPair {
    Ed25519KeyPair::from_seed_unchecked(&[7; 32]).expect("a seed of 32 bytes")
}

fn signed(header: &str, claims: &str) -> String {
    let parts = [header, claims].map(|part| BASE64URL_NOPAD.encode(part.as_bytes()));
    let text = parts.join(".");
    let signature = BASE64URL_NOPAD.encode(key().sign(text.as_bytes()).as_ref());
    format!("{text}.{signature}")
}
