//! The certificate of an AI client, as a front passes it on.

use std::fmt::{self, Debug, Formatter};

use serde::{Deserialize, Serialize};

use crate::base64_bytes::Base64Bytes;

/// What precedes the hash of the handshake in the message that a client signs (RFC 8446, 4.4.3): spaces, and a text that names the
/// side.
const PADDING: [u8; 64] = [0x20; 64];
const CONTEXT: &[u8] = b"TLS 1.3, client CertificateVerify\0";

/// A certificate that a client showed in a handshake of TLS 1.3, with the signature by which it proved that it has the key. The
/// engine verifies both, so no front can name a certificate whose owner has not connected to one.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientCertificate {
    /// The certificates in DER: the client's first.
    pub chain: Vec<Base64Bytes>,
    /// The hash of the handshake, which the client signed (RFC 8446, 4.4.3).
    pub handshake: Base64Bytes,
    /// The signature scheme, by its number in TLS.
    pub scheme: u16,
    pub signature: Base64Bytes,
}

/// Where the certificate that comes with a token is from. The token is the credential; the certificate only restricts its use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TokenCertificate {
    /// The client showed it to the front.
    Handshake(ClientCertificate),
    /// The client showed it to a trusted proxy, which passes it on in a header of the request: in DER, without a proof.
    Proxy(Base64Bytes),
}

impl ClientCertificate {
    /// Returns the hash of the handshake in a message that a client signs. `None` if it is not of this form.
    pub fn handshake_hash(message: &[u8]) -> Option<&[u8]> {
        message.strip_prefix(&PADDING)?.strip_prefix(CONTEXT)
    }

    /// Returns the message that the client signed.
    pub fn signed_message(&self) -> Vec<u8> {
        [&PADDING, CONTEXT, &self.handshake.0].concat()
    }

    /// Returns the certificate of the client itself, in DER. Empty if there is none.
    pub fn own(&self) -> &[u8] {
        self.chain.first().map_or(&[], |own| &own.0)
    }
}

impl TokenCertificate {
    /// As [`ClientCertificate::own`].
    pub fn own(&self) -> &[u8] {
        match self {
            Self::Handshake(certificate) => certificate.own(),
            Self::Proxy(own) => &own.0,
        }
    }
}

impl Debug for ClientCertificate {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "ClientCertificate({} certificates)", self.chain.len())
    }
}
