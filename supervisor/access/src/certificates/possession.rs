//! Verifies that an AI client has the key of its certificate: the signature of a handshake of TLS 1.3.

use lockhouse_messages::ClientCertificate;
use rustls_pki_types::{CertificateDer, SignatureVerificationAlgorithm};
use webpki::{EndEntityCert, aws_lc_rs};

/// Lengths of the hash in bytes: SHA-256 and SHA-384.
const HASHES: [usize; 2] = [32, 48];

/// Verifies that the key of the first certificate signed the handshake. Returns this certificate.
///
/// # Errors
/// Why the signature proves nothing.
pub(super) fn verify(certificate: &ClientCertificate) -> Result<CertificateDer<'_>, &'static str> {
    let own = certificate.chain.first().ok_or("there is none")?;
    let own = CertificateDer::from(own.0.as_slice());
    let parsed = EndEntityCert::try_from(&own).map_err(|_| "it cannot be parsed as X.509 version 3")?;
    let algorithm = algorithm(certificate.scheme).ok_or("its key signed with an unknown algorithm")?;
    if !HASHES.contains(&certificate.handshake.0.len()) {
        return Err("its key signed no handshake");
    }
    parsed
        .verify_signature(algorithm, &certificate.signed_message(), &certificate.signature.0)
        .map_err(|_| "its key did not sign the handshake")?;
    Ok(own)
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
