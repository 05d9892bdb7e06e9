//! The keys with which an authorization server signs: remembered, and looked for again when one is not known, seldom enough
//! that nobody can make us ask for them as often as they like.

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
use super::fetch::{Fetch, FetchError};
use crate::access::refused::Why;

/// After which keys are looked for again, and after which they count no more if they cannot be had.
const FRESH: Duration = Duration::from_mins(10);
const STALE: Duration = Duration::from_hours(1);
const KEYS_MAX: usize = 100;

/// One key.
#[derive(Clone, Debug)]
struct Key {
    id: Option<String>,
    /// The only one that it is for, if it says so.
    algorithm: Option<Algorithm>,
    decoding: Arc<DecodingKey>,
}

impl Key {
    fn fits(&self, algorithm: Algorithm) -> bool {
        self.decoding.family() == algorithm.family() && self.algorithm.is_none_or(|only| only == algorithm)
    }
}

#[derive(Debug)]
struct Known {
    keys: Vec<Key>,
    since: Instant,
}

/// Why the keys are not to be had.
#[derive(Debug, Error)]
enum KeysError {
    #[error(transparent)]
    Fetch(#[from] FetchError),
    #[error("what came is no set of keys (JWKS)")]
    NoSet,
    #[error("the set has {0} keys, and may have {KEYS_MAX}")]
    TooMany(usize),
    #[error("there is no public key in the set that tokens could be checked with")]
    NoPublicKey,
}

/// The keys of one authorization server.
#[derive(Debug)]
pub(super) struct Keys(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    fetch: Fetch,
    refetch: Duration,
    known: Mutex<Option<Arc<Known>>>,
    /// When it was last tried; whoever holds it is the one who tries.
    tried: tokio::sync::Mutex<Option<Instant>>,
}

impl Keys {
    pub(super) fn new(source: KeySource, issuer: String, refetch: Duration) -> Result<Self, reqwest::Error> {
        let fetch = Fetch::new(source, issuer)?;
        let (known, tried) = (Mutex::default(), tokio::sync::Mutex::default());
        Ok(Self(Arc::new(Shared { fetch, refetch, known, tried })))
    }

    /// The key that a token says it is signed with.
    pub(super) async fn key(&self, id: Option<&str>, algorithm: Algorithm) -> Result<Arc<DecodingKey>, Why> {
        let before = self.0.known();
        let found = before.as_ref().and_then(|known| found(&known.keys, id, algorithm));
        if let (Some(known), Some(key)) = (&before, &found)
            && known.since.elapsed() < STALE
        {
            if known.since.elapsed() >= FRESH {
                // Nobody waits for a server that may be slow to say the same again.
                let (shared, known) = (self.0.clone(), known.clone());
                tokio::spawn(async move {
                    if let Ok(tried) = shared.tried.try_lock() {
                        shared.look(tried, Some(&known)).await;
                    }
                });
            }
            return Ok(key.clone());
        }
        self.0.look(self.0.tried.lock().await, before.as_ref()).await;
        let Some(known) = self.0.known().filter(|known| known.since.elapsed() < STALE) else {
            return Err(Why::KeysUnavailable);
        };
        let unknown =
            Why::Foreign("the token is signed with a key that is not one of the authorization server's");
        self::found(&known.keys, id, algorithm).ok_or(unknown)
    }
}

impl Shared {
    fn known(&self) -> Option<Arc<Known>> {
        self.known.lock().clone()
    }

    /// Gets the keys, unless somebody else just did or it was tried a moment ago.
    async fn look(&self, mut tried: MutexGuard<'_, Option<Instant>>, before: Option<&Arc<Known>>) {
        let is_newer = match (self.known(), before) {
            (Some(now), Some(before)) => !Arc::ptr_eq(&now, before),
            (now, _) => now.is_some(),
        };
        if is_newer || tried.is_some_and(|tried| tried.elapsed() < self.refetch) {
            return;
        }
        let got = self.fetch.keys().await.map_err(KeysError::from).and_then(|text| keys(&text));
        *tried = Some(Instant::now());
        match got {
            Ok(keys) => {
                tracing::debug!("{} keys of the authorization server are known", keys.len());
                let known = Some(Arc::new(Known { keys, since: Instant::now() }));
                *self.known.lock() = known;
            }
            Err(reason) => {
                tracing::error!("the keys of the authorization server are not to be had: {reason}")
            }
        }
    }
}

/// The key of that id; a token that names none is only of a server with one key that fits.
fn found(keys: &[Key], id: Option<&str>, algorithm: Algorithm) -> Option<Arc<DecodingKey>> {
    let named = |key: &&Key| id.is_none() || key.id.as_deref() == id;
    let mut fitting = keys.iter().filter(named).filter(|key| key.fits(algorithm));
    match (fitting.next(), fitting.next()) {
        (Some(key), None) => Some(key.decoding.clone()),
        // Two of one id are nobody's.
        _ => None,
    }
}

/// The keys that are of use here. Others are passed over: a server may have them for something else.
fn keys(text: &str) -> Result<Vec<Key>, KeysError> {
    #[derive(Deserialize)]
    struct Set<'a> {
        #[serde(borrow)]
        keys: Vec<&'a RawValue>,
    }
    let set: Set<'_> = serde_json::from_str(text).map_err(|_| KeysError::NoSet)?;
    if set.keys.len() > KEYS_MAX {
        return Err(KeysError::TooMany(set.keys.len()));
    }
    let keys: Vec<Key> = set.keys.iter().filter_map(|key| public_key(key.get())).collect();
    match keys.is_empty() {
        true => Err(KeysError::NoPublicKey),
        false => Ok(keys),
    }
}

fn public_key(text: &str) -> Option<Key> {
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
    Some(Key { id: key.common.key_id, algorithm, decoding: Arc::new(decoding) })
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
    fn secrets_and_keys_for_something_else_are_passed_over() {
        let text = format!(
            r#"{{"keys": [{{"kty": "oct", "k": "c2VjcmV0", "kid": "a"}}, {}, {}, {{"kty": "new"}}, 7]}}"#,
            key(r#", "kid": "a", "use": "enc""#),
            key(r#", "kid": "b", "use": "sig", "alg": "ES256""#)
        );
        let keys = keys(&text).expect("a set");
        assert_eq!(keys.len(), 1);
        assert!(found(&keys, Some("b"), Algorithm::ES256).is_some());
        assert!(found(&keys, None, Algorithm::ES256).is_some(), "the only one");
        for (id, algorithm) in [
            (Some("a"), Algorithm::HS256),
            (Some("b"), Algorithm::HS256),
            (Some("b"), Algorithm::RS256),
            (Some("b"), Algorithm::ES384),
            (Some("c"), Algorithm::ES256),
        ] {
            assert!(found(&keys, id, algorithm).is_none(), "{id:?} {algorithm:?}");
        }
    }

    #[test]
    fn of_two_keys_none_is_guessed() {
        let two = format!(r#"{{"keys": [{0}, {0}]}}"#, key(r#", "kid": "a""#));
        let keys = keys(&two).expect("a set");
        assert!(found(&keys, Some("a"), Algorithm::ES256).is_none());
        assert!(found(&keys, None, Algorithm::ES256).is_none());
    }

    #[test]
    fn what_is_no_set_of_keys_is_told() {
        let many = format!(r#"{{"keys": [{}]}}"#, vec![key(""); KEYS_MAX + 1].join(","));
        for text in ["", "[]", "{}", r#"{"keys": {}}"#, r#"{"keys": []}"#, r#"{"keys": [1]}"#, &many] {
            assert!(keys(text).is_err(), "{text}");
        }
    }
}
