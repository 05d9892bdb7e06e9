//! A security key and a browser that do what a test tells them.

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::encoding::{AsDer as _, PublicKeyX509Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _};
use data_encoding::BASE64URL_NOPAD;
use serde_json::{Value, json};

/// Touched, and its user verified.
const PROVEN: u8 = 0b101;
const HAS_CREDENTIAL: u8 = 0b100_0000;

/// A key with one credential, in a browser that shows a page.
pub(super) struct Authenticator {
    pair: EcdsaKeyPair,
    credential: [u8; 16],
    origin: String,
}

impl Authenticator {
    /// `address` is that of the page: `localhost:PORT`.
    pub(super) fn new(address: &str, credential: u8) -> Self {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING).unwrap();
        Self { pair, credential: [credential; 16], origin: format!("http://{address}") }
    }

    /// Returns the same key in a browser that shows another page.
    pub(super) fn at(self, address: &str) -> Self {
        Self { origin: format!("http://{address}"), ..self }
    }

    pub(super) fn id(&self) -> String {
        BASE64URL_NOPAD.encode(&self.credential)
    }

    /// Returns the body with which the page registers the key.
    pub(super) fn registration(&self, code: &str) -> Value {
        let challenge = digest(&SHA256, format!("lockhouse enrolment 1\0{code}").as_bytes());
        let client = self.client_data("webauthn.create", &BASE64URL_NOPAD.encode(challenge.as_ref()));
        let data =
            [&authenticator_data(PROVEN | HAS_CREDENTIAL)[..], &[0; 16], &[0, 16], &self.credential].concat();
        let public_key: PublicKeyX509Der<'_> = self.pair.public_key().as_der().unwrap();
        json!({
            "code": code, "credential": self.id(), "client_data": BASE64URL_NOPAD.encode(&client),
            "authenticator_data": BASE64URL_NOPAD.encode(&data),
            "public_key": BASE64URL_NOPAD.encode(public_key.as_ref()), "algorithm": -7,
        })
    }

    /// Signs a challenge, and returns the proof.
    pub(super) fn sign(&self, challenge: &str) -> Value {
        let (client, data) = (self.client_data("webauthn.get", challenge), authenticator_data(PROVEN));
        let signed = [&data[..], digest(&SHA256, &client).as_ref()].concat();
        let signature = self.pair.sign(&SystemRandom::new(), &signed).unwrap();
        json!({
            "credential": self.id(), "client_data": BASE64URL_NOPAD.encode(&client),
            "authenticator_data": BASE64URL_NOPAD.encode(&data),
            "signature": BASE64URL_NOPAD.encode(signature.as_ref()),
        })
    }

    fn client_data(&self, ceremony: &str, challenge: &str) -> Vec<u8> {
        json!({"type": ceremony, "challenge": challenge, "origin": self.origin, "crossOrigin": false})
            .to_string()
            .into_bytes()
    }
}

fn authenticator_data(flags: u8) -> Vec<u8> {
    [digest(&SHA256, b"localhost").as_ref(), &[flags], &[0; 4]].concat()
}
