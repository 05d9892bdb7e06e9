//! The messages between the front and the signer, over a socket that keeps their boundaries.
//!
//! A request has the number of a signature scheme in two bytes and a number of its own in four (big endian), then the message
//! to sign. A response has the number of its request, then the signature; without one, the signer has refused.

use tokio_rustls::rustls::SignatureScheme;
use tokio_rustls::rustls::sign::SigningKey;

/// Maximum length in bytes of a message to sign: that of TLS 1.3 has 98 to 146, that of TLS 1.2 some hundred.
/// Bound: AI clients.
pub(super) const MESSAGE_BYTES_MAX: usize = 1024;
/// Maximum length in bytes of a request.
pub(super) const REQUEST_BYTES_MAX: usize = REQUEST_HEAD + MESSAGE_BYTES_MAX;
/// Maximum length in bytes of a response: a signature of an RSA key with 16,384 bits has 2,048.
pub(super) const RESPONSE_BYTES_MAX: usize = RESPONSE_HEAD + 2048;
const REQUEST_HEAD: usize = 6;
const RESPONSE_HEAD: usize = 4;

/// What precedes the hash of the handshake in a message that a server signs (RFC 8446, 4.4.3).
const TLS13_PADDING: [u8; 64] = [0x20; 64];
const TLS13_CONTEXT: &[u8] = b"TLS 1.3, server CertificateVerify\0";
/// Lengths of the hash in bytes: SHA-256 and SHA-384.
const TLS13_HASHES: [usize; 2] = [32, 48];

/// Signature schemes, the ones that the front offers clients first.
const SCHEMES: [SignatureScheme; 9] = [
    SignatureScheme::ED25519,
    SignatureScheme::ECDSA_NISTP256_SHA256,
    SignatureScheme::ECDSA_NISTP384_SHA384,
    SignatureScheme::ECDSA_NISTP521_SHA512,
    SignatureScheme::RSA_PSS_SHA512,
    SignatureScheme::RSA_PSS_SHA384,
    SignatureScheme::RSA_PSS_SHA256,
    SignatureScheme::RSA_PKCS1_SHA512,
    SignatureScheme::RSA_PKCS1_SHA256,
];

/// A request for a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SignatureRequest<'m> {
    pub(super) scheme: u16,
    pub(super) number: u32,
    pub(super) message: &'m [u8],
}

impl<'m> SignatureRequest<'m> {
    /// Encodes the request. Returns `None` if the message is too long.
    pub(super) fn encode(&self) -> Option<Vec<u8>> {
        let head = [&self.scheme.to_be_bytes()[..], &self.number.to_be_bytes()[..]].concat();
        (self.message.len() <= MESSAGE_BYTES_MAX).then(|| [&head, self.message].concat())
    }

    /// Decodes a request. Returns `None` if it has no complete head.
    pub(super) fn decode(packet: &'m [u8]) -> Option<Self> {
        let (scheme, rest) = packet.split_first_chunk()?;
        let (number, message) = rest.split_first_chunk()?;
        Some(Self { scheme: u16::from_be_bytes(*scheme), number: u32::from_be_bytes(*number), message })
    }
}

/// Encodes a response. `signature` is `None` if the signer refuses.
pub(super) fn encode_response(number: u32, signature: Option<Vec<u8>>) -> Vec<u8> {
    [&number.to_be_bytes()[..], &signature.unwrap_or_default()].concat()
}

/// Returns the number of the request that a packet responds to, and the signature, which is empty if the signer refused.
pub(super) fn decode_response(packet: &[u8]) -> Option<(u32, &[u8])> {
    let (number, signature) = packet.split_first_chunk()?;
    Some((u32::from_be_bytes(*number), signature))
}

/// Whether a message is what a server signs in a handshake of TLS 1.3, and nothing else that a signature could be used for.
pub(super) fn is_tls13_handshake(message: &[u8]) -> bool {
    let hash = message.strip_prefix(&TLS13_PADDING).and_then(|rest| rest.strip_prefix(TLS13_CONTEXT));
    hash.is_some_and(|hash| TLS13_HASHES.contains(&hash.len()))
}

/// Returns the signature schemes of a key, by their numbers in TLS.
pub(super) fn schemes(key: &dyn SigningKey) -> Vec<u16> {
    let has = |scheme: &SignatureScheme| key.choose_scheme(&[*scheme]).is_some();
    SCHEMES.into_iter().filter(has).map(u16::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_message_of_a_handshake_is_one() {
        let message = |padding: usize, context: &[u8], hash: usize| {
            [&vec![0x20; padding][..], context, &vec![7; hash][..]].concat()
        };
        let client = b"TLS 1.3, client CertificateVerify\0";
        for (name, message, expected) in [
            ("SHA-256", message(64, TLS13_CONTEXT, 32), true),
            ("SHA-384", message(64, TLS13_CONTEXT, 48), true),
            ("no hash", message(64, TLS13_CONTEXT, 0), false),
            ("another length", message(64, TLS13_CONTEXT, 33), false),
            ("a client's", message(64, client, 32), false),
            ("less padding", message(63, TLS13_CONTEXT, 32), false),
            ("more padding", message(65, TLS13_CONTEXT, 32), false),
            ("nothing", Vec::new(), false),
            ("a digest", vec![7; 32], false),
        ] {
            assert_eq!(is_tls13_handshake(&message), expected, "{name}");
        }
    }

    #[test]
    fn requests_and_responses_survive_the_way() {
        let request = SignatureRequest { scheme: 0x0403, number: 7, message: b"message" };
        let encoded = request.encode().expect("short");
        assert_eq!(SignatureRequest::decode(&encoded), Some(request));
        assert_eq!(SignatureRequest::decode(&encoded[..5]), None);
        let long = vec![0; MESSAGE_BYTES_MAX + 1];
        assert_eq!(SignatureRequest { message: &long, ..request }.encode(), None);
        assert_eq!(decode_response(&encode_response(7, Some(vec![1, 2]))), Some((7, &[1, 2][..])));
        assert_eq!(decode_response(&encode_response(7, None)), Some((7, &[][..])));
        assert_eq!(decode_response(&[0; 3]), None);
    }
}
