//! Takes the certificate that a client shows in the handshake of TLS, with the proof that it has the key. The engine verifies
//! both, and decides whom the certificate names; here only what no honest client sends ends the handshake.

use std::sync::Arc;

use lockhouse_messages::{Base64Bytes, ClientCertificate};
use parking_lot::Mutex;
use tokio_rustls::rustls::client::danger::HandshakeSignatureValid;
use tokio_rustls::rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls13_signature};
use tokio_rustls::rustls::pki_types::{CertificateDer, UnixTime};
use tokio_rustls::rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use tokio_rustls::rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, SignatureScheme,
};

/// Maximum number of certificates that a client may show.
/// Bound: AI clients.
const CHAIN_MAX: usize = 8;
/// Maximum size of these certificates together, in bytes.
/// Bound: AI clients.
const CHAIN_BYTES_MAX: usize = 32 * 1024;
/// The certificate that the client of one connection shows. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct ShownCertificate {
    algorithms: WebPkiSupportedAlgorithms,
    /// The certificates, before the client has proved that it has the key.
    chain: Arc<Mutex<Vec<Base64Bytes>>>,
    shown: Arc<Mutex<Option<ClientCertificate>>>,
}

impl ShownCertificate {
    /// For a new connection, with the algorithms by which signatures are verified.
    pub(super) fn new(algorithms: WebPkiSupportedAlgorithms) -> Self {
        Self { algorithms, chain: Arc::default(), shown: Arc::default() }
    }

    /// Returns the certificate after the handshake. `None` if the client has shown none.
    pub(super) fn take(&self) -> Option<Arc<ClientCertificate>> {
        self.shown.lock().take().map(Arc::new)
    }
}

impl ClientCertVerifier for ShownCertificate {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        own: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let bytes = own.len() + between.iter().map(|certificate| certificate.len()).sum::<usize>();
        if between.len() >= CHAIN_MAX || bytes > CHAIN_BYTES_MAX {
            return Err(CertificateError::ApplicationVerificationFailure.into());
        }
        let chain = std::iter::once(own).chain(between);
        *self.chain.lock() = chain.map(|certificate| Base64Bytes(certificate.to_vec())).collect();
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::General("client certificates need TLS 1.3".into()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        own: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let valid = verify_tls13_signature(message, own, signed, &self.algorithms)?;
        let hash = ClientCertificate::handshake_hash(message);
        let hash = hash.ok_or_else(|| Error::General("it is no handshake of a client".into()))?;
        *self.shown.lock() = Some(ClientCertificate {
            chain: std::mem::take(&mut self.chain.lock()),
            handshake: Base64Bytes(hash.to_vec()),
            scheme: signed.scheme.into(),
            signature: Base64Bytes(signed.signature().to_vec()),
        });
        Ok(valid)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
