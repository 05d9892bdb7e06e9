//! Caches the authorization server's public keys (JWKS). A token with an unknown key id causes a new fetch, but at most
//! one per interval `refetch`, so that clients cannot make Lockhouse flood the authorization server.

use std::sync::Arc;

use parking_lot::Mutex;
use std::time::Duration;

use jsonwebtoken::jwk::{AlgorithmParameters, Jwk, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde::Deserialize;
use serde_json::value::RawValue;
use thiserror::Error;
use tokio::sync::MutexGuard;
use tokio::time::Instant;

use super::KeySource;
use super::jwks_fetch::{FetchError, JwksFetcher};
use lockhouse_messages::AccessRefusal;

/// Age of the cached public keys after which they are fetched again in the background (`REFRESH_AFTER`), and after
/// which they are no longer used if fetching fails (`EXPIRE_AFTER`).
const REFRESH_AFTER: Duration = Duration::from_mins(10);
const EXPIRE_AFTER: Duration = Duration::from_hours(1);
const KEYS_MAX: usize = 100;

/// A public key that verifies token signatures.
#[derive(Clone, Debug)]
struct VerificationKey {
    id: Option<String>,
    /// The only algorithm that the key may be used with. `None` if the JWK names no algorithm.
    algorithm: Option<Algorithm>,
    decoding: Arc<DecodingKey>,
}

impl VerificationKey {
    fn fits(&self, algorithm: Algorithm) -> bool {
        self.decoding.family() == algorithm.family() && self.algorithm.is_none_or(|only| only == algorithm)
    }
}

#[derive(Debug)]
struct CachedKeys {
    keys: Vec<VerificationKey>,
    fetched_at: Instant,
}

/// Why the public keys of the authorization server are not available.
#[derive(Debug, Error)]
enum KeysError {
    #[error(transparent)]
    Fetch(#[from] FetchError),
    #[error("the response is not a JSON Web Key Set (JWKS)")]
    NotJwks,
    #[error("the set has {0} keys, and at most {KEYS_MAX} are accepted")]
    TooManyKeys(usize),
    #[error("the set has no public key that can verify tokens")]
    NoPublicKey,
}

/// The cached public keys of one authorization server.
#[derive(Debug)]
pub(super) struct JwksCache(Arc<JwksCacheInner>);

#[derive(Debug)]
struct JwksCacheInner {
    fetcher: JwksFetcher,
    refetch: Duration,
    cached: Mutex<Option<Arc<CachedKeys>>>,
    /// When the last attempt to fetch the keys ended, successful or not. `None` before the first attempt. The task that
    /// holds this lock performs the fetch.
    last_attempt: tokio::sync::Mutex<Option<Instant>>,
}

impl JwksCache {
    pub(super) fn new(source: KeySource, issuer: String, refetch: Duration) -> Result<Self, reqwest::Error> {
        let fetcher = JwksFetcher::new(source, issuer)?;
        let (cached, last_attempt) = (Mutex::default(), tokio::sync::Mutex::default());
        Ok(Self(Arc::new(JwksCacheInner { fetcher, refetch, cached, last_attempt })))
    }

    /// Returns the public key for a token with this key id and algorithm. Fetches the keys first if they are missing or
    /// expired, or if none of them fits.
    pub(super) async fn key(
        &self,
        id: Option<&str>,
        algorithm: Algorithm,
    ) -> Result<Arc<DecodingKey>, AccessRefusal> {
        let before = self.0.cached();
        let found = before.as_ref().and_then(|cached| find_key(&cached.keys, id, algorithm));
        if let (Some(cached), Some(key)) = (&before, &found)
            && cached.fetched_at.elapsed() < EXPIRE_AFTER
        {
            if cached.fetched_at.elapsed() >= REFRESH_AFTER {
                // The cached key stays usable: the request does not wait for the background refresh.
                let (shared, cached) = (self.0.clone(), cached.clone());
                tokio::spawn(async move {
                    if let Ok(last_attempt) = shared.last_attempt.try_lock() {
                        shared.refresh(last_attempt, Some(&cached)).await;
                    }
                });
            }
            return Ok(key.clone());
        }
        self.0.refresh(self.0.last_attempt.lock().await, before.as_ref()).await;
        let Some(cached) = self.0.cached().filter(|cached| cached.fetched_at.elapsed() < EXPIRE_AFTER) else {
            return Err(AccessRefusal::JwksUnavailable);
        };
        let unknown = AccessRefusal::InvalidJwt(
            "the token is signed with a key that is not one of the authorization server's".into(),
        );
        find_key(&cached.keys, id, algorithm).ok_or(unknown)
    }
}

impl JwksCacheInner {
    fn cached(&self) -> Option<Arc<CachedKeys>> {
        self.cached.lock().clone()
    }

    /// Fetches the public keys, unless another task has fetched newer keys than `before` meanwhile, or the last attempt
    /// was less than `refetch` ago. `last_attempt` is the lock that makes this task the only one that fetches.
    async fn refresh(
        &self,
        mut last_attempt: MutexGuard<'_, Option<Instant>>,
        before: Option<&Arc<CachedKeys>>,
    ) {
        let is_newer = match (self.cached(), before) {
            (Some(now), Some(before)) => !Arc::ptr_eq(&now, before),
            (now, _) => now.is_some(),
        };
        if is_newer || last_attempt.is_some_and(|last_attempt| last_attempt.elapsed() < self.refetch) {
            return;
        }
        let got = self.fetcher.fetch_jwks().await.map_err(KeysError::from).and_then(|text| parse_jwks(&text));
        *last_attempt = Some(Instant::now());
        match got {
            Ok(keys) => {
                tracing::debug!("fetched {} keys of the authorization server", keys.len());
                let cached = Some(Arc::new(CachedKeys { keys, fetched_at: Instant::now() }));
                *self.cached.lock() = cached;
            }
            Err(reason) => {
                tracing::error!("cannot fetch the keys of the authorization server: {reason}")
            }
        }
    }
}

/// Finds the public key with this key id and algorithm. For a token without a key id, only the algorithm must fit.
/// Returns `None` if no key or more than one key fits.
fn find_key(keys: &[VerificationKey], id: Option<&str>, algorithm: Algorithm) -> Option<Arc<DecodingKey>> {
    let named = |key: &&VerificationKey| id.is_none() || key.id.as_deref() == id;
    let mut fitting = keys.iter().filter(named).filter(|key| key.fits(algorithm));
    match (fitting.next(), fitting.next()) {
        (Some(key), None) => Some(key.decoding.clone()),
        // Ambiguous: several keys have this id.
        _ => None,
    }
}

/// Parses a JWKS. Returns the public keys that can verify signatures, and ignores other entries.
fn parse_jwks(text: &str) -> Result<Vec<VerificationKey>, KeysError> {
    #[derive(Deserialize)]
    struct Set<'a> {
        #[serde(borrow)]
        keys: Vec<&'a RawValue>,
    }
    let set: Set<'_> = serde_json::from_str(text).map_err(|_| KeysError::NotJwks)?;
    if set.keys.len() > KEYS_MAX {
        return Err(KeysError::TooManyKeys(set.keys.len()));
    }
    let keys: Vec<VerificationKey> = set.keys.iter().filter_map(|key| public_key(key.get())).collect();
    match keys.is_empty() {
        true => Err(KeysError::NoPublicKey),
        false => Ok(keys),
    }
}

fn public_key(text: &str) -> Option<VerificationKey> {
    let key: Jwk = serde_json::from_str(text).ok()?;
    let is_public = matches!(
        key.algorithm,
        AlgorithmParameters::RSA(_)
            | AlgorithmParameters::EllipticCurve(_)
            | AlgorithmParameters::OctetKeyPair(_)
    );
    let signs = key.common.public_key_use.as_ref().is_none_or(|of| *of == PublicKeyUse::Signature);
    if !is_public || !signs {
        return None;
    }
    let algorithm = match key.common.key_algorithm {
        Some(named) => Some(Algorithm::try_from(named).ok()?),
        None => None,
    };
    let decoding = DecodingKey::from_jwk(&key).ok()?;
    Some(VerificationKey { id: key.common.key_id, algorithm, decoding: Arc::new(decoding) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const X: &str = "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU";
    const Y: &str = "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0";

    fn key(more: &str) -> String {
        format!(r#"{{"kty": "EC", "crv": "P-256", "x": "{X}", "y": "{Y}"{more}}}"#)
    }

    #[test]
    fn symmetric_and_encryption_keys_are_ignored() {
        let text = format!(
            r#"{{"keys": [{{"kty": "oct", "k": "c2VjcmV0", "kid": "a"}}, {}, {}, {{"kty": "new"}}, 7]}}"#,
            key(r#", "kid": "a", "use": "enc""#),
            key(r#", "kid": "b", "use": "sig", "alg": "ES256""#)
        );
        let keys = parse_jwks(&text).expect("a set");
        assert_eq!(keys.len(), 1);
        assert!(find_key(&keys, Some("b"), Algorithm::ES256).is_some());
        assert!(find_key(&keys, None, Algorithm::ES256).is_some(), "the only one");
        for (id, algorithm) in [
            (Some("a"), Algorithm::HS256),
            (Some("b"), Algorithm::HS256),
            (Some("b"), Algorithm::RS256),
            (Some("b"), Algorithm::ES384),
            (Some("c"), Algorithm::ES256),
        ] {
            assert!(find_key(&keys, id, algorithm).is_none(), "{id:?} {algorithm:?}");
        }
    }

    #[test]
    fn an_ambiguous_key_id_is_rejected() {
        let two = format!(r#"{{"keys": [{0}, {0}]}}"#, key(r#", "kid": "a""#));
        let keys = parse_jwks(&two).expect("a set");
        assert!(find_key(&keys, Some("a"), Algorithm::ES256).is_none());
        assert!(find_key(&keys, None, Algorithm::ES256).is_none());
    }

    #[test]
    fn invalid_key_sets_are_rejected() {
        let many = format!(r#"{{"keys": [{}]}}"#, vec![key(""); KEYS_MAX + 1].join(","));
        for text in ["", "[]", "{}", r#"{"keys": {}}"#, r#"{"keys": []}"#, r#"{"keys": [1]}"#, &many] {
            assert!(parse_jwks(text).is_err(), "{text}");
        }
    }
}
