//! Verifies certificates of AI clients: that the client has the key, that an authority of the configuration has issued the
//! certificate for a client, and whom it names.

mod possession;
mod trust_files;

use std::path::PathBuf;
use std::time::Duration;

use data_encoding::BASE64URL_NOPAD;
use lockhouse_base::principal::{Principal, Validity};
use lockhouse_messages::{AccessRefusal, ClientCertificate, TokenCertificate};
use rustls_pki_types::{CertificateDer, UnixTime};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::time::Instant;
use webpki::{EndEntityCert, Error, ExpirationPolicy, KeyUsage, RevocationOptionsBuilder};
use x509_cert::Certificate;
use x509_cert::der::Decode;
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

use super::exact_name::is_exact_name;
pub use trust_files::TrustFileError;
use trust_files::{Trust, TrustFiles};

/// Maximum number of characters of the name of a client. With `certificate:` before it, it is a name of a policy, which has at most 64.
/// Bound: AI clients.
const NAME_CHARS_MAX: usize = 52;
/// A connection lasts at most this long with one certificate.
const VALIDITY_MAX: Duration = Duration::from_hours(24);

/// Which name of a certificate names the client. It is one of its alternative names (`subjectAltName`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CertificateName {
    #[default]
    Email,
    Dns,
    /// A URI, such as a SPIFFE id.
    Uri,
}

impl CertificateName {
    pub const NAMES: [&str; 3] = ["email", "dns", "uri"];
}

/// The settings of `[http.client_certificates]` that concern the engine.
#[derive(Clone, Debug)]
pub struct CertificateSettings {
    /// The certificates of the authorities that issue certificates to clients, in PEM format.
    pub authorities: PathBuf,
    /// The lists of the certificates that were revoked, in PEM format.
    pub revoked: Option<PathBuf>,
    pub name: CertificateName,
}

/// Verifies certificates of AI clients.
#[derive(Debug)]
pub(super) struct ClientCertificates {
    files: TrustFiles,
    name: CertificateName,
}

impl ClientCertificates {
    /// Reads the files.
    pub(super) fn new(settings: CertificateSettings) -> Result<Self, TrustFileError> {
        let CertificateSettings { authorities, revoked, name } = settings;
        Ok(Self { files: TrustFiles::read(authorities, revoked)?, name })
    }

    /// Returns the client that a certificate names.
    ///
    /// # Errors
    /// Why the certificate does not authenticate it.
    pub(super) fn principal(&self, certificate: &ClientCertificate) -> Result<Principal, AccessRefusal> {
        let refused = |reason: &'static str| AccessRefusal::InvalidCertificate(reason.into());
        let own = possession::verify(certificate).map_err(refused)?;
        let between = certificate.chain.iter().skip(1).map(|der| CertificateDer::from(der.0.as_slice()));
        let trust = self.files.current().ok_or(AccessRefusal::AuthoritiesUnreadable)?;
        verify_trust(&trust, &own, &between.collect::<Vec<_>>()).map_err(refused)?;
        let own = Certificate::from_der(&own).map_err(|_| refused("it cannot be parsed"))?;
        let name = name(&own, self.name).map_err(refused)?;
        let expires = own.tbs_certificate().validity().not_after.to_unix_duration();
        let now = Duration::from_secs(UnixTime::now().as_secs());
        let left = expires.saturating_sub(now).min(VALIDITY_MAX);
        let validity = Validity::Until(Instant::now() + left);
        let proven = proven_by_certificate(&name);
        Ok(Principal::authenticated(&proven, &format!("certificate:{name}"), None, validity))
    }
}

/// Returns the authenticated name of a client whose certificate has this name. No other authenticated name has a space.
pub fn proven_by_certificate(name: &str) -> String {
    format!("certificate {name}")
}

/// Returns the thumbprint of the certificate that comes with a token (RFC 8705, 3.1).
///
/// # Errors
/// The client has not proved that it has the key.
pub(super) fn thumbprint(certificate: &TokenCertificate) -> Result<String, &'static str> {
    if let TokenCertificate::Handshake(shown) = certificate {
        possession::verify(shown)?;
    }
    Ok(thumbprint_of(certificate.own()))
}

fn thumbprint_of(der: &[u8]) -> String {
    BASE64URL_NOPAD.encode(&Sha256::digest(der))
}

fn verify_trust(
    trust: &Trust,
    own: &CertificateDer<'_>,
    between: &[CertificateDer<'_>],
) -> Result<(), &'static str> {
    let own = EndEntityCert::try_from(own).map_err(|_| "it cannot be parsed as X.509 version 3")?;
    let revoked: Vec<_> = trust.revoked.iter().collect();
    let revocation = RevocationOptionsBuilder::new(&revoked).ok();
    let revocation = revocation.map(|lists| lists.with_expiration_policy(ExpirationPolicy::Enforce).build());
    let verified = own.verify_for_usage(
        webpki::ALL_VERIFICATION_ALGS,
        &trust.authorities,
        between,
        UnixTime::now(),
        KeyUsage::client_auth(),
        revocation,
        None,
    );
    verified.map(drop).map_err(|error| match error {
        Error::CertExpired { .. } => "it has expired",
        Error::CertNotValidYet { .. } => "it is not valid yet: compare the clocks",
        Error::CertRevoked => "it was revoked",
        Error::CrlExpired { .. } => {
            "the list of revoked certificates has expired, so the operator must renew it"
        }
        Error::UnknownRevocationStatus => "the operator has no list of revoked certificates of its authority",
        Error::RequiredEkuNotFoundContext(_) => "it is not for clients (clientAuth)",
        Error::UnknownIssuer => "no authority of the configuration has issued it",
        _ => "its chain is not valid",
    })
}

/// Returns the one name of this kind.
fn name(certificate: &Certificate, kind: CertificateName) -> Result<String, &'static str> {
    let found = certificate.tbs_certificate().get_extension::<SubjectAltName>();
    let (_, SubjectAltName(names)) =
        found.map_err(|_| "its alternative names cannot be parsed")?.ok_or("it has no alternative names")?;
    let mut of_kind = names.iter().filter_map(|name| match (name, kind) {
        (GeneralName::Rfc822Name(name), CertificateName::Email)
        | (GeneralName::DnsName(name), CertificateName::Dns)
        | (GeneralName::UniformResourceIdentifier(name), CertificateName::Uri) => Some(name.as_str()),
        _ => None,
    });
    match (of_kind.next(), of_kind.next()) {
        (Some(name), None) if is_exact_name(name, NAME_CHARS_MAX) => Ok(name.to_owned()),
        (Some(_), None) => Err("its name must have 1 to 52 printable ASCII characters, without spaces"),
        (Some(_), Some(_)) => Err("it has more than one name of the configured kind"),
        (None, _) => Err("it has no name of the configured kind"),
    }
}

#[cfg(test)]
mod tests;
