//! Validates the JSON Web Token of a request: signature, issuer, audience, expiry and type.

use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, Validation, decode, decode_header};

use super::ResourceServer;
use super::claims::Claims;
use lockhouse_messages::AccessRefusal;

/// Maximum number of bytes of an access token.
/// Bound: AI clients.
const TOKEN_BYTES_MAX: usize = 16 * 1024;

impl ResourceServer {
    /// Validates an access token and returns its claims.
    pub(super) async fn claims(&self, token: &str) -> Result<Claims, AccessRefusal> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(AccessRefusal::InvalidJwt("the token is too long".into()));
        }
        // `decode_header` fails for `alg: none` and for unknown algorithms.
        let header = decode_header(token)
            .map_err(|_| AccessRefusal::InvalidJwt("the token is not a signed JSON Web Token".into()))?;
        if !self.settings.algorithms.contains(&header.alg) {
            return Err(AccessRefusal::InvalidJwt(
                "the token is signed with an algorithm that is not accepted here".into(),
            ));
        }
        if !header.typ.as_deref().is_none_or(is_access_token) {
            return Err(AccessRefusal::InvalidJwt(
                "the token is not an access token, according to its typ".into(),
            ));
        }
        if header.crit.is_some() {
            return Err(AccessRefusal::InvalidJwt(
                "the token requires an extension that this server does not know".into(),
            ));
        }
        let key = self.keys.key(header.kid.as_deref(), header.alg).await?;
        let mut validation = Validation::new(header.alg);
        validation.leeway = self.settings.leeway.as_secs();
        validation.validate_nbf = true;
        validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        validation.set_audience(&[&self.settings.audience]);
        validation.set_issuer(&[&self.settings.issuer_text]);
        let decoded = decode::<Claims>(token, &key, &validation)
            .map_err(|error| AccessRefusal::InvalidJwt(describe_error(error.kind()).into()))?;
        let claims = decoded.claims;
        // `Validation` also accepts a list of issuers; Lockhouse does not.
        if claims.iss != self.settings.issuer_text {
            return Err(AccessRefusal::InvalidJwt("the token has another issuer".into()));
        }
        let now = jsonwebtoken::get_current_timestamp();
        if claims.iat.is_some_and(|issued| issued > now.saturating_add(self.settings.leeway.as_secs())) {
            return Err(AccessRefusal::InvalidJwt(
                "the token was issued in the future: compare the clocks".into(),
            ));
        }
        Ok(claims)
    }
}

/// Parses the name of an asymmetric signature algorithm. Returns `None` for other names. Shared-secret algorithms
/// (HMAC) are not accepted, because any server that can verify such a token can also forge one.
pub fn algorithm(name: &str) -> Option<Algorithm> {
    let algorithm: Algorithm = name.parse().ok()?;
    let secret = [Algorithm::HS256, Algorithm::HS384, Algorithm::HS512].contains(&algorithm);
    (!secret).then_some(algorithm)
}

/// Returns whether the `typ` header of a JWT is that of an access token (RFC 9068) or of a plain JWT. Other tokens that
/// authorization servers sign with the same keys (DPoP proofs, logout tokens) must not be accepted.
fn is_access_token(typ: &str) -> bool {
    let kind = typ.to_ascii_lowercase();
    ["jwt", "at+jwt"].contains(&kind.strip_prefix("application/").unwrap_or(&kind))
}

/// Describes why an OAuth access token failed validation, for the client and the log.
fn describe_error(kind: &ErrorKind) -> &'static str {
    match kind {
        ErrorKind::ExpiredSignature => "the token has expired",
        ErrorKind::ImmatureSignature => "the token is not valid yet",
        ErrorKind::InvalidIssuer => "the token has another issuer",
        ErrorKind::InvalidAudience => "the token is for another server, according to its audience",
        ErrorKind::InvalidSignature => "the signature of the token is invalid",
        ErrorKind::InvalidAlgorithm => "the token is signed with an algorithm that its key does not permit",
        ErrorKind::MissingRequiredClaim(claim) => match claim.as_str() {
            "aud" => "the token has no audience",
            "exp" => "the token has no expiry",
            "iss" => "the token has no issuer",
            _ => "the token has no subject",
        },
        _ => "the token is malformed",
    }
}
