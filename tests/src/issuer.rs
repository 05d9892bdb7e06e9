//! An authorization server that says and signs what the test wants.

use std::sync::Arc;

use parking_lot::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::{KeyPair as RsaKeys, KeySize};
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Value, json};

use crate::{HttpAnswer, HttpServer};

/// Bytes of PKCS #8 before the RSA key that it holds.
const RSA_BEGINS: usize = 26;

/// A key pair with a name.
#[derive(Clone)]
pub struct Signer {
    id: String,
    algorithm: Algorithm,
    key: EncodingKey,
}

impl Signer {
    /// Of an elliptic curve.
    ///
    /// # Panics
    /// If there is no randomness.
    #[must_use]
    pub fn es256(id: &str) -> Self {
        let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
        let key = EncodingKey::from_ec_der(key.expect("a key").as_ref());
        Self { id: id.to_owned(), algorithm: Algorithm::ES256, key }
    }

    /// Of RSA.
    ///
    /// # Panics
    /// If there is no randomness.
    #[must_use]
    pub fn rs256(id: &str) -> Self {
        let keys = RsaKeys::generate(KeySize::Rsa2048).expect("a key");
        let der: Pkcs8V1Der<'static> = keys.as_der().expect("a key");
        let key = EncodingKey::from_rsa_der(&der.as_ref()[RSA_BEGINS..]);
        Self { id: id.to_owned(), algorithm: Algorithm::RS256, key }
    }

    /// The public key, as a server publishes it.
    ///
    /// # Panics
    /// If it is none.
    #[must_use]
    pub fn public(&self) -> Value {
        let mut key = Jwk::from_encoding_key(&self.key, self.algorithm).expect("a public key");
        key.common.key_id = Some(self.id.clone());
        serde_json::to_value(key).expect("JSON")
    }

    /// A token that says this.
    ///
    /// # Panics
    /// If it cannot be signed.
    #[must_use]
    pub fn sign(&self, claims: &Value) -> String {
        let header = Header { kid: Some(self.id.clone()), ..Header::new(self.algorithm) };
        encode(&header, claims, &self.key).expect("a token")
    }

    /// A token that says this, and in its header `typ`.
    ///
    /// # Panics
    /// If it cannot be signed.
    #[must_use]
    pub fn sign_as(&self, typ: &str, claims: &Value) -> String {
        let header =
            Header { kid: Some(self.id.clone()), typ: Some(typ.to_owned()), ..Header::new(self.algorithm) };
        encode(&header, claims, &self.key).expect("a token")
    }

    /// A token that says this, signed by HMAC with the text of the public key: who mistakes one for the other accepts it.
    ///
    /// # Panics
    /// If it cannot be signed.
    #[must_use]
    pub fn sign_with_the_public_key(&self, claims: &Value) -> String {
        let header = Header { kid: Some(self.id.clone()), ..Header::new(Algorithm::HS256) };
        let secret = self.public()["x"].as_str().unwrap_or_default().to_owned();
        encode(&header, claims, &EncodingKey::from_base64_secret(&standard(&secret)).expect("a secret"))
            .expect("a token")
    }
}

/// Base64 of the other alphabet.
fn standard(text: &str) -> String {
    let padding = "=".repeat((4 - text.len() % 4) % 4);
    text.replace('-', "+").replace('_', "/") + &padding
}

/// An authorization server on this machine.
#[derive(Clone)]
pub struct Issuer {
    server: HttpServer,
    keys: Arc<Mutex<Vec<Value>>>,
    instead: Arc<Mutex<Option<HttpAnswer>>>,
}

impl Issuer {
    /// Starts it, with these keys.
    ///
    /// # Panics
    /// If there is no port.
    #[must_use]
    pub fn start(signers: &[&Signer]) -> Self {
        let keys = Arc::new(Mutex::new(signers.iter().map(|signer| signer.public()).collect::<Vec<_>>()));
        let instead = Arc::<Mutex<Option<HttpAnswer>>>::default();
        let (published, broken) = (keys.clone(), instead.clone());
        let server = HttpServer::start_knowing(move |own: String| {
            move |request| {
                let own = own.trim_end_matches('/');
                match request.path.as_str() {
                    "/.well-known/openid-configuration" => {
                        HttpAnswer::json(200, &json!({"issuer": own, "jwks_uri": format!("{own}/jwks")}))
                    }
                    "/jwks" => match broken.lock().clone() {
                        Some(answer) => answer,
                        None => HttpAnswer::json(200, &json!({"keys": *published.lock()})),
                    },
                    _ => HttpAnswer::status(404),
                }
            }
        });
        Self { server, keys, instead }
    }

    /// As tokens say it.
    #[must_use]
    pub fn name(&self) -> String {
        self.server.url("")
    }

    /// How often its keys were asked for.
    #[must_use]
    pub fn asked(&self) -> usize {
        self.server.requests().iter().filter(|request| request.path == "/jwks").count()
    }

    /// Publishes these keys from now on.
    ///
    /// # Panics
    /// Never.
    pub fn publish(&self, signers: &[&Signer]) {
        *self.keys.lock() = signers.iter().map(|signer| signer.public()).collect();
    }

    /// Answers this instead of keys.
    ///
    /// # Panics
    /// Never.
    pub fn breaks(&self, answer: Option<HttpAnswer>) {
        *self.instead.lock() = answer;
    }

    /// What a good token says of somebody: for `audience`, and for five minutes.
    #[must_use]
    pub fn claims(&self, subject: &str, audience: &str, scope: &str) -> Value {
        let now = now();
        json!({
            "iss": self.name(), "sub": subject, "aud": audience, "iat": now, "nbf": now, "exp": now + 300, "scope": scope,
        })
    }
}

/// Seconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs()
}
