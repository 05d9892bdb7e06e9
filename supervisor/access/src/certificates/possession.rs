//! Verifies that an AI client has the key of its certificate: the signature of a handshake of TLS 1.3.

use lockhouse_messages::ClientCertificate;
use rustls_pki_types::{CertificateDer, SignatureVerificationAlgorithm};
use webpki::{EndEntityCert, aws_lc_rs};

/// What precedes the hash of the handshake in the message that a client signs (RFC 8446, 4.4.3).
const PADDING: [u8; 64] = [0x20; 64];
/// As [`PADDING`], after it.
pub(super) const CLIENT_CONTEXT: &[u8] = b"TLS 1.3, client CertificateVerify\0";
/// Lengths of the hash in bytes: SHA-256 and SHA-384.
const HASHES: [usize; 2] = [32, 48];

/// Verifies that the key of the first certificate signed the handshake.
///
/// # Errors
/// Why the signature proves nothing.
pub(super) fn verify(certificate: &ClientCertificate) -> Result<(), &'static str> {
    let own = certificate.chain.first().ok_or("there is none")?;
    let own = CertificateDer::from(own.0.as_slice());
    let own = EndEntityCert::try_from(&own).map_err(|_| "it cannot be parsed as X.509 version 3")?;
    let algorithm = algorithm(certificate.scheme).ok_or("its key signed with an unknown algorithm")?;
    let hash = &certificate.handshake.0;
    if !HASHES.contains(&hash.len()) {
        return Err("its key signed no handshake");
    }
    let message = [&PADDING[..], CLIENT_CONTEXT, hash].concat();
    own.verify_signature(algorithm, &message, &certificate.signature.0)
        .map_err(|_| "its key did not sign the handshake")
}

/// The signature schemes that TLS 1.3 permits in handshakes (RFC 8446, 4.2.3), by their numbers.
fn algorithm(scheme: u16) -> Option<&'static dyn SignatureVerificationAlgorithm> {
    Some(match scheme {
        0x0403 => aws_lc_rs::ECDSA_P256_SHA256,
        0x0503 => aws_lc_rs::ECDSA_P384_SHA384,
        0x0603 => aws_lc_rs::ECDSA_P521_SHA512,
        0x0804 => aws_lc_rs::RSA_PSS_2048_8192_SHA256_LEGACY_KEY,
        0x0805 => aws_lc_rs::RSA_PSS_2048_8192_SHA384_LEGACY_KEY,
        0x0806 => aws_lc_rs::RSA_PSS_2048_8192_SHA512_LEGACY_KEY,
        0x0807 => aws_lc_rs::ED25519,
        _ => return None,
    })
}
