//! The credentials that a front passes to the engine, which verifies them.

use std::fmt::{self, Debug, Formatter};

use serde::{Deserialize, Serialize};

use crate::{ClientCertificate, TokenCertificate};

/// The number of a connection of an AI client to a Unix domain socket. The engine numbers the connections of each front
/// upwards from 1, and never reuses a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ConnectionId(pub u64);

/// What shows who sends a request. The front takes it from the transport and does not interpret it. None of them is the
/// statement of a front: in particular, no message contains a user id.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Credential {
    /// The connection between front and engine itself: the one AI client that the front serves over standard input and
    /// output, or the front's own needs if it serves clients over HTTP.
    Connection,
    /// The token of the HTTP header `Authorization: Bearer TOKEN`.
    Bearer(String),
    /// The token of the HTTP header `Authorization: DPoP TOKEN`, with the header `DPoP` and the method of its request.
    BoundToken { token: String, proof: String, method: String },
    /// The token of the HTTP header `Authorization: Bearer TOKEN`, with the certificate of its client, to which it may be bound.
    CertificateToken { token: String, certificate: TokenCertificate },
    /// The certificate of the client, on a connection of TLS, whose request has no token.
    Certificate(ClientCertificate),
    /// The connection to a Unix domain socket on which the request came. The engine has asked the kernel for the user at
    /// its other end.
    UnixConnection(ConnectionId),
    /// The request has no credential.
    None,
}

impl Credential {
    /// Returns the token. `None` if the credential is no token.
    pub fn token(&self) -> Option<&str> {
        match self {
            Self::Bearer(token) | Self::BoundToken { token, .. } | Self::CertificateToken { token, .. } => {
                Some(token)
            }
            Self::Connection | Self::Certificate(_) | Self::UnixConnection(_) | Self::None => None,
        }
    }
}

impl Debug for Credential {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connection => f.write_str("Connection"),
            Self::Bearer(_) => f.write_str("Bearer(…)"),
            Self::BoundToken { .. } => f.write_str("BoundToken(…)"),
            Self::CertificateToken { certificate, .. } => write!(f, "CertificateToken(…, {certificate:?})"),
            Self::Certificate(certificate) => write!(f, "{certificate:?}"),
            Self::UnixConnection(id) => write!(f, "UnixConnection({})", id.0),
            Self::None => f.write_str("None"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Base64Bytes;

    #[test]
    fn debug_output_has_no_token() {
        let bound = Credential::BoundToken { token: "a".into(), proof: "b".into(), method: "POST".into() };
        let bytes = |bytes: &[u8]| Base64Bytes(bytes.to_vec());
        let certificate = ClientCertificate {
            chain: vec![bytes(b"der")],
            handshake: bytes(b"hash"),
            scheme: 0x0403,
            signature: bytes(b"signature"),
        };
        let with_token = Credential::CertificateToken {
            token: "lh_secret".into(),
            certificate: TokenCertificate::Handshake(certificate.clone()),
        };
        for (credential, shown) in [
            (Credential::Bearer("lh_secret".into()), "Bearer(…)"),
            (bound, "BoundToken(…)"),
            (with_token, "CertificateToken(…, Handshake(ClientCertificate(1 certificates)))"),
            (Credential::Certificate(certificate), "ClientCertificate(1 certificates)"),
        ] {
            assert_eq!(format!("{credential:?}"), shown);
            let text = serde_json::to_string(&credential).expect("it can be written");
            assert_eq!(serde_json::from_str::<Credential>(&text).expect("it can be read"), credential);
        }
    }
}
