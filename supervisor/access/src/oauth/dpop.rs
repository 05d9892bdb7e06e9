//! DPoP (RFC 9449): an access token that is bound to a key is accepted only with a proof that its sender has the key, made for
//! this request. Who reads a token and its proof, such as a front that was taken over, cannot use them again.

use std::collections::HashMap;
use std::time::Duration;

use data_encoding::BASE64URL_NOPAD;
use jsonwebtoken::jwk::{Jwk, ThumbprintHash};
use jsonwebtoken::{DecodingKey, Validation, decode, decode_header};
use lockhouse_messages::AccessRefusal;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::time::Instant;
use url::Url;

use super::OauthSettings;

/// Maximum length of a proof in bytes.
/// Bound: AI clients.
const PROOF_BYTES_MAX: usize = 8 * 1024;
/// Maximum length of the identifier of a proof (`jti`) in bytes.
/// Bound: AI clients.
const ID_BYTES_MAX: usize = 256;
/// Maximum number of proofs that are remembered, so that none is accepted twice. Each is remembered while its time of issue would
/// be accepted. Further ones are refused.
/// Bound: AI clients.
const PROOFS_MAX: usize = 65_536;
const SECOND: Duration = Duration::from_secs(1);
/// The value of `typ` in the header of a proof.
const TYPE: &str = "dpop+jwt";
/// Members of a JSON Web Key that only a private or shared key has.
const PRIVATE_MEMBERS: [&str; 8] = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"];

/// Whether access tokens must be bound to a key: `dpop` of `[http.oauth]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DpopUse {
    /// Bound tokens need a proof, or the certificate; others are accepted without one.
    #[default]
    Accepted,
    /// Tokens that are not bound are refused.
    Required,
}

impl DpopUse {
    pub const NAMES: [&str; 2] = ["accepted", "required"];
}

/// A proof as a request has it.
#[derive(Clone, Copy, Debug)]
pub struct DpopProof<'a> {
    /// The header `DPoP`.
    pub proof: &'a str,
    /// The method of the request.
    pub method: &'a str,
}

/// The proofs that were accepted, by the hash of their key and identifier, and until when they are remembered.
#[derive(Debug, Default)]
pub(super) struct AcceptedProofs(Mutex<HashMap<[u8; 32], Instant>>);

/// The claims of a proof.
#[derive(Deserialize)]
struct Claims {
    jti: String,
    htm: String,
    htu: String,
    iat: f64,
    ath: String,
}

impl AcceptedProofs {
    /// Verifies a proof for a request with this access token, which is bound to the key with the thumbprint `bound_to`. `now` is in
    /// seconds since 1970.
    ///
    /// # Errors
    /// [`AccessRefusal::InvalidProof`] with the reason.
    pub(super) fn verify(
        &self,
        settings: &OauthSettings,
        token: &str,
        bound_to: &str,
        proof: DpopProof<'_>,
        now: u64,
    ) -> Result<(), AccessRefusal> {
        let DpopProof { proof, method } = proof;
        let refused = |reason: &'static str| AccessRefusal::InvalidProof(reason.into());
        let key = key_of(proof, settings).map_err(refused)?;
        let mut validation = Validation::new(key.algorithm);
        // A proof has no `exp`, `aud` or `iss`: what it has is checked below.
        validation.required_spec_claims.clear();
        validation.validate_exp = false;
        validation.validate_aud = false;
        let claims = decode::<Claims>(proof, &key.decoding, &validation);
        let claims = claims.map_err(|_| refused("its signature or its claims are invalid"))?.claims;
        if key.thumbprint != bound_to {
            return Err(refused("it is signed with another key than that of the token"));
        }
        if claims.ath != BASE64URL_NOPAD.encode(&Sha256::digest(token)) {
            return Err(refused("it is for another token, according to its ath"));
        }
        if claims.htm != method {
            return Err(refused("it is for another method, according to its htm"));
        }
        if !is_same_resource(&claims.htu, &settings.resource) {
            return Err(refused("it is for another address, according to its htu"));
        }
        if (now as f64 - claims.iat).abs() > settings.leeway.as_secs_f64() {
            return Err(refused("it was not issued just now, according to its iat: compare the clocks"));
        }
        if claims.jti.is_empty() || claims.jti.len() > ID_BYTES_MAX {
            return Err(refused("its jti has no or too many characters"));
        }
        // Times of issue count in whole seconds, so a proof is accepted for up to a second longer.
        self.remember(&key.thumbprint, &claims.jti, 2 * settings.leeway + SECOND).map_err(refused)
    }

    /// Remembers a proof as long as its time of issue might be accepted. Fails if it is known.
    fn remember(&self, thumbprint: &str, id: &str, long: Duration) -> Result<(), &'static str> {
        let hash = Sha256::digest([thumbprint.as_bytes(), b" ", id.as_bytes()].concat());
        let (mut known, now) = (self.0.lock(), Instant::now());
        if known.get(hash.as_slice()).is_some_and(|until| *until > now) {
            return Err("it was used before");
        }
        if known.len() >= PROOFS_MAX {
            known.retain(|_, until| *until > now);
        }
        if known.len() >= PROOFS_MAX {
            return Err("too many proofs were used in this minute; retry later");
        }
        known.insert(hash.into(), now + long);
        Ok(())
    }
}

/// The key in the header of a proof.
struct ProofKey {
    algorithm: jsonwebtoken::Algorithm,
    decoding: DecodingKey,
    thumbprint: String,
}

fn key_of(proof: &str, settings: &OauthSettings) -> Result<ProofKey, &'static str> {
    if proof.len() > PROOF_BYTES_MAX {
        return Err("it is too long");
    }
    // Fails for `alg: none` and for unknown algorithms.
    let header = decode_header(proof).map_err(|_| "it is not a signed JSON Web Token")?;
    if !header.typ.as_deref().is_some_and(|typ| typ.eq_ignore_ascii_case(TYPE)) {
        return Err("its typ is not dpop+jwt");
    }
    if !settings.algorithms.contains(&header.alg) {
        return Err("it is signed with an algorithm that is not accepted here");
    }
    if header.crit.is_some() {
        return Err("it requires an extension that this server does not know");
    }
    let jwk: Jwk = header.jwk.ok_or("its header has no public key (jwk)")?;
    if has_private_member(proof) {
        return Err("its header has a private key");
    }
    let thumbprint = jwk.thumbprint(ThumbprintHash::SHA256).map_err(|_| "its key cannot be used")?;
    let decoding = DecodingKey::from_jwk(&jwk).map_err(|_| "its key cannot be used")?;
    if decoding.family() != header.alg.family() {
        return Err("its key cannot be used with its algorithm");
    }
    Ok(ProofKey { algorithm: header.alg, decoding, thumbprint })
}

fn has_private_member(proof: &str) -> bool {
    let header = proof.split('.').next().unwrap_or_default();
    let header = BASE64URL_NOPAD.decode(header.as_bytes()).unwrap_or_default();
    let header: Value = serde_json::from_slice(&header).unwrap_or_default();
    PRIVATE_MEMBERS.iter().any(|member| !header["jwk"][member].is_null())
}

/// Whether the address in a proof is that of this server, without query and fragment.
fn is_same_resource(address: &str, resource: &Url) -> bool {
    let plain = |url: &Url| {
        let mut url = url.clone();
        url.set_query(None);
        url.set_fragment(None);
        url
    };
    Url::parse(address).is_ok_and(|address| plain(&address) == plain(resource))
}

#[cfg(test)]
mod tests;
