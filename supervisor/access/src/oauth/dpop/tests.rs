//! Proofs: the example of RFC 9449, section 7.1, and others that differ from a valid one in one thing.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use serde_json::json;

use super::super::KeySource;
use super::*;

const TOKEN: &str = "Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU";
const PROOF: &str = "eyJ0eXAiOiJkcG9wK2p3dCIsImFsZyI6IkVTMjU2IiwiandrIjp7Imt0eSI6IkVDIiwieCI6Imw4dEZyaHgtMzR0VjNoUklDUkRZOXpDa0RscEJoRjQyVVFVZldWQVdCRnMiLCJ5IjoiOVZFNGpmX09rX282NHpiVFRsY3VOSmFqSG10NnY5VERWclUwQ2R2R1JEQSIsImNydiI6IlAtMjU2In19.eyJqdGkiOiJlMWozVl9iS2ljOC1MQUVCIiwiaHRtIjoiR0VUIiwiaHR1IjoiaHR0cHM6Ly9yZXNvdXJjZS5leGFtcGxlLm9yZy9wcm90ZWN0ZWRyZXNvdXJjZSIsImlhdCI6MTU2MjI2MjYxOCwiYXRoIjoiZlVIeU8ycjJaM0RaNTNFc05yV0JiMHhXWG9hTnk1OUlpS0NBcWtzbVFFbyJ9.2oW9RP35yRqzhrtNP86L-Ey71EOptxRimPPToA1plemAgR6pxHF8y6-yqyVnmcw6Fy1dqd-jfxSYoMxhAJpLjA";
const THUMBPRINT: &str = "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I";
const ISSUED: u64 = 1_562_262_618;

fn settings(resource: &str) -> OauthSettings {
    let url = |text: &str| Url::parse(text).expect("a URL");
    OauthSettings {
        takes_certificates: false,
        issuer: url("https://id.example.com/"),
        issuer_text: "https://id.example.com/".into(),
        audience: resource.into(),
        resource: url(resource),
        keys: KeySource::File("none".into()),
        scopes: [("s".to_owned(), vec!["*".to_owned()])].into(),
        algorithms: vec![jsonwebtoken::Algorithm::ES256],
        dpop: DpopUse::Accepted,
        leeway: Duration::from_secs(60),
        refetch: Duration::from_secs(30),
    }
}

fn reason(verified: Result<(), AccessRefusal>) -> String {
    match verified {
        Err(AccessRefusal::InvalidProof(reason)) => reason.into_owned(),
        other => format!("{other:?}"),
    }
}

#[test]
fn the_example_of_the_rfc_is_accepted_once_in_its_minute() {
    let settings = settings("https://resource.example.org/protectedresource");
    let proof = DpopProof { proof: PROOF, method: "GET" };
    let proofs = AcceptedProofs::default();
    assert_eq!(proofs.verify(&settings, TOKEN, THUMBPRINT, proof, ISSUED), Ok(()));
    assert_eq!(reason(proofs.verify(&settings, TOKEN, THUMBPRINT, proof, ISSUED)), "it was used before");
    let exact = OauthSettings { leeway: Duration::ZERO, ..settings.clone() };
    let proofs = AcceptedProofs::default();
    assert_eq!(proofs.verify(&exact, TOKEN, THUMBPRINT, proof, ISSUED), Ok(()));
    let again = reason(proofs.verify(&exact, TOKEN, THUMBPRINT, proof, ISSUED));
    assert_eq!(again, "it was used before", "also without any leeway");
    let at = |now: u64, token: &str, key: &str, method: &'static str| {
        reason(AcceptedProofs::default().verify(
            &settings,
            token,
            key,
            DpopProof { proof: PROOF, method },
            now,
        ))
    };
    assert_eq!(at(ISSUED + 60, TOKEN, THUMBPRINT, "GET"), "Ok(())");
    for now in [ISSUED + 61, ISSUED - 61] {
        assert!(at(now, TOKEN, THUMBPRINT, "GET").contains("compare the clocks"), "{now}");
    }
    assert!(at(ISSUED, "another", THUMBPRINT, "GET").contains("its ath"));
    assert!(at(ISSUED, TOKEN, "another", "GET").contains("another key"));
    assert!(at(ISSUED, TOKEN, THUMBPRINT, "POST").contains("its htm"));
}

/// A key of a client, and the parts of the proof that it signs.
struct Client {
    key: EcdsaKeyPair,
    header: Value,
    claims: Value,
}

impl Client {
    fn new() -> Self {
        let key = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).expect("a key");
        let point = key.public_key().as_ref();
        let [x, y] = [&point[1..33], &point[33..65]].map(|part| BASE64URL_NOPAD.encode(part));
        let jwk = json!({"kty": "EC", "crv": "P-256", "x": x, "y": y});
        Self {
            key,
            header: json!({"typ": "dpop+jwt", "alg": "ES256", "jwk": jwk}),
            claims: json!({
                "jti": "1", "htm": "POST", "htu": "https://mcp.example.com/mcp?x=1#y", "iat": ISSUED,
                "ath": BASE64URL_NOPAD.encode(&Sha256::digest(TOKEN)),
            }),
        }
    }

    fn thumbprint(&self) -> String {
        let jwk: Jwk = serde_json::from_value(self.header["jwk"].clone()).expect("a key");
        jwk.thumbprint(ThumbprintHash::SHA256).expect("a thumbprint")
    }

    fn proof(&self) -> String {
        let encode = |part: &Value| BASE64URL_NOPAD.encode(part.to_string().as_bytes());
        let signed = format!("{}.{}", encode(&self.header), encode(&self.claims));
        let signature = self.key.sign(&SystemRandom::new(), signed.as_bytes()).expect("a signature");
        format!("{signed}.{}", BASE64URL_NOPAD.encode(signature.as_ref()))
    }

    fn verified(&self, thumbprint: &str) -> String {
        let settings = settings("https://mcp.example.com/mcp");
        let proof = self.proof();
        let proof = DpopProof { proof: &proof, method: "POST" };
        reason(AcceptedProofs::default().verify(&settings, TOKEN, thumbprint, proof, ISSUED))
    }
}

#[test]
fn a_proof_that_differs_in_one_thing_is_refused() {
    let good = Client::new();
    assert_eq!(good.verified(&good.thumbprint()), "Ok(())", "control");
    for (part, member, value, expected) in [
        ("header", "typ", json!("jwt"), "its typ"),
        ("header", "typ", Value::Null, "its typ"),
        ("header", "alg", json!("none"), "not a signed"),
        ("header", "alg", json!("HS256"), "algorithm"),
        ("header", "alg", json!("RS256"), "algorithm"),
        ("header", "crit", json!(["x"]), "extension"),
        ("header", "jwk", Value::Null, "no public key"),
        ("claims", "jti", json!(""), "jti"),
        ("claims", "jti", json!("x".repeat(ID_BYTES_MAX + 1)), "jti"),
        ("claims", "jti", Value::Null, "claims"),
        ("claims", "htu", json!("https://mcp.example.com/other"), "htu"),
        ("claims", "htu", json!("http://mcp.example.com/mcp"), "htu"),
        ("claims", "htu", json!("https://mcp.example.com.evil.org/mcp"), "htu"),
        ("claims", "htu", json!("mcp"), "htu"),
        ("claims", "htm", json!("post"), "htm"),
        ("claims", "iat", json!(ISSUED + 3600), "clocks"),
        ("claims", "ath", json!("x"), "ath"),
        ("claims", "ath", Value::Null, "claims"),
    ] {
        let mut client = Client::new();
        let thumbprint = client.thumbprint();
        let changed = if part == "header" { &mut client.header } else { &mut client.claims };
        changed[member] = value.clone();
        let found = client.verified(&thumbprint);
        assert!(found.contains(expected), "{part} {member} {value}: {found}");
    }
}

#[test]
fn a_private_key_or_another_signature_is_refused() {
    let mut client = Client::new();
    let thumbprint = client.thumbprint();
    client.header["jwk"]["d"] = json!("AAAA");
    assert!(client.verified(&thumbprint).contains("private key"));
    let (mut forged, other) = (Client::new(), Client::new());
    forged.header = other.header.clone();
    assert!(forged.verified(&other.thumbprint()).contains("signature"));
}

#[test]
fn remembered_proofs_are_bounded() {
    let proofs = AcceptedProofs::default();
    for number in 0..PROOFS_MAX {
        assert_eq!(proofs.remember("k", &number.to_string(), Duration::from_secs(60)), Ok(()));
    }
    assert!(proofs.remember("k", "more", Duration::from_secs(60)).is_err());
    assert_eq!(proofs.0.lock().len(), PROOFS_MAX);
}
