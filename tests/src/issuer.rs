//! An OAuth authorization server for tests, whose tokens and published keys the test chooses.

use std::sync::Arc;

use parking_lot::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::{KeyPair as RsaKeys, KeySize};
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use jsonwebtoken::jwk::{Jwk, ThumbprintHash};
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Value, json};

use crate::{HttpAnswer, HttpServer};

/// The offset in bytes of the RSA key in a PKCS #8 document.
const RSA_BEGINS: usize = 26;

/// A key pair with a key id, which signs OAuth access tokens.
#[derive(Clone)]
pub struct Signer {
    id: String,
    algorithm: Algorithm,
    key: EncodingKey,
}

impl Signer {
    /// Creates a signer with a new ES256 key pair (elliptic curve P-256) and the key id `id`.
    ///
    /// # Panics
    /// If the system has no randomness.
    #[must_use]
    pub fn es256(id: &str) -> Self {
        let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
        let key = EncodingKey::from_ec_der(key.expect("a key").as_ref());
        Self { id: id.to_owned(), algorithm: Algorithm::ES256, key }
    }

    /// Creates a signer with a new RS256 key pair (RSA) and the key id `id`.
    ///
    /// # Panics
    /// If the system has no randomness.
    #[must_use]
    pub fn rs256(id: &str) -> Self {
        let keys = RsaKeys::generate(KeySize::Rsa2048).expect("a key");
        let der: Pkcs8V1Der<'static> = keys.as_der().expect("a key");
        let key = EncodingKey::from_rsa_der(&der.as_ref()[RSA_BEGINS..]);
        Self { id: id.to_owned(), algorithm: Algorithm::RS256, key }
    }

    /// Returns the public key as a JSON Web Key.
    ///
    /// # Panics
    /// If the key pair is invalid.
    #[must_use]
    pub fn public(&self) -> Value {
        let mut key = Jwk::from_encoding_key(&self.key, self.algorithm).expect("a public key");
        key.common.key_id = Some(self.id.clone());
        serde_json::to_value(key).expect("JSON")
    }

    /// Signs a JSON Web Token with these claims.
    ///
    /// # Panics
    /// If signing fails.
    #[must_use]
    pub fn sign(&self, claims: &Value) -> String {
        let header = Header { kid: Some(self.id.clone()), ..Header::new(self.algorithm) };
        encode(&header, claims, &self.key).expect("a token")
    }

    /// Signs a JSON Web Token with these claims and this `typ` in its header.
    ///
    /// # Panics
    /// If signing fails.
    #[must_use]
    pub fn sign_as(&self, typ: &str, claims: &Value) -> String {
        let header =
            Header { kid: Some(self.id.clone()), typ: Some(typ.to_owned()), ..Header::new(self.algorithm) };
        encode(&header, claims, &self.key).expect("a token")
    }

    /// Signs a JSON Web Token with these claims and the public key in its header, as a client signs the proof that it has the key
    /// (DPoP).
    ///
    /// # Panics
    /// If signing fails.
    #[must_use]
    pub fn sign_proof(&self, claims: &Value) -> String {
        let key = Jwk::from_encoding_key(&self.key, self.algorithm).expect("a public key");
        let header =
            Header { typ: Some("dpop+jwt".to_owned()), jwk: Some(key), ..Header::new(self.algorithm) };
        encode(&header, claims, &self.key).expect("a proof")
    }

    /// Returns the thumbprint of the public key (RFC 7638).
    ///
    /// # Panics
    /// If the key pair is invalid.
    #[must_use]
    pub fn thumbprint(&self) -> String {
        let key = Jwk::from_encoding_key(&self.key, self.algorithm).expect("a public key");
        key.thumbprint(ThumbprintHash::SHA256).expect("a thumbprint")
    }

    /// Creates a forged token of the algorithm HS256. The HMAC secret is the x-coordinate of the ES256 public key,
    /// which everyone knows. A verifier that trusts the algorithm in the token's header could accept this token.
    ///
    /// # Panics
    /// If signing fails.
    #[must_use]
    pub fn sign_with_the_public_key(&self, claims: &Value) -> String {
        let header = Header { kid: Some(self.id.clone()), ..Header::new(Algorithm::HS256) };
        let secret = self.public()["x"].as_str().unwrap_or_default().to_owned();
        encode(&header, claims, &EncodingKey::from_base64_secret(&standard(&secret)).expect("a secret"))
            .expect("a token")
    }
}

/// Converts base64url text to standard base64.
fn standard(text: &str) -> String {
    let padding = "=".repeat((4 - text.len() % 4) % 4);
    text.replace('-', "+").replace('_', "/") + &padding
}

/// An OAuth authorization server on this machine, for tests.
#[derive(Clone)]
pub struct Issuer {
    server: HttpServer,
    keys: Arc<Mutex<Vec<Value>>>,
    instead: Arc<Mutex<Option<HttpAnswer>>>,
}

impl Issuer {
    /// Starts an OAuth authorization server, which publishes the public keys of these signers.
    ///
    /// # Panics
    /// If no port can be bound.
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

    /// Returns the URL of this issuer, which its tokens have as their `iss` claim.
    #[must_use]
    pub fn name(&self) -> String {
        self.server.url("")
    }

    /// Returns the number of requests for the published keys that the server has received.
    #[must_use]
    pub fn key_requests(&self) -> usize {
        self.server.requests().iter().filter(|request| request.path == "/jwks").count()
    }

    /// Replaces the published keys by the public keys of these signers.
    ///
    /// # Panics
    /// If a key pair is invalid.
    pub fn publish(&self, signers: &[&Signer]) {
        *self.keys.lock() = signers.iter().map(|signer| signer.public()).collect();
    }

    /// Makes the server answer requests for its keys with `answer`; `None` makes it publish its keys again.
    pub fn fail_with(&self, answer: Option<HttpAnswer>) {
        *self.instead.lock() = answer;
    }

    /// Returns the claims of a valid access token of this issuer for `subject` and `audience`, with the scopes in
    /// `scope`, separated by spaces. The token expires in five minutes.
    #[must_use]
    pub fn claims(&self, subject: &str, audience: &str, scope: &str) -> Value {
        let now = now();
        json!({
            "iss": self.name(), "sub": subject, "aud": audience, "iat": now, "nbf": now, "exp": now + 300, "scope": scope,
        })
    }
}

/// Returns the current Unix time in seconds.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs()
}
