//! The files with the authorities and the lists of revoked certificates. They are read again when they have changed.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use lockhouse_base::files::FileVersion;
use parking_lot::Mutex;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, CertificateRevocationListDer, TrustAnchor};
use thiserror::Error;
use webpki::{CertRevocationList, OwnedCertRevocationList, anchor_from_trusted_cert};

/// Maximum size of one of the files, in bytes.
/// Bound: configuration and policy.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Time for which a fault is remembered: unauthenticated requests must not each cause a read.
const RECHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Why a file of `[http.client_certificates]` cannot be used, and what to change.
#[derive(Debug, Error)]
pub enum TrustFileError {
    #[error("cannot read {path}, which [http.client_certificates] names: {source}")]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("{path}, which [http.client_certificates] names, is not a file of at most 16 MiB")]
    NoFile { path: PathBuf },
    #[error(
        "{path} has no certificate that can be used: authorities names a PEM file that has -----BEGIN CERTIFICATE-----"
    )]
    NoCertificate { path: PathBuf },
    #[error(
        "{path} has no list that can be used: revoked names a PEM file that has -----BEGIN X509 CRL-----"
    )]
    NoList { path: PathBuf },
}

/// Whom certificates of clients are from, and which were revoked.
#[derive(Debug)]
pub(super) struct Trust {
    pub(super) authorities: Vec<TrustAnchor<'static>>,
    pub(super) revoked: Vec<CertRevocationList<'static>>,
}

#[derive(Debug)]
pub(super) struct TrustFiles {
    authorities: PathBuf,
    revoked: Option<PathBuf>,
    read: Mutex<ReadFiles>,
}

#[derive(Debug)]
struct ReadFiles {
    versions: Vec<Option<FileVersion>>,
    /// `None` if the files cannot be used.
    trust: Option<Arc<Trust>>,
    at: Instant,
}

impl TrustFiles {
    /// Reads the files for the first time.
    pub(super) fn read(authorities: PathBuf, revoked: Option<PathBuf>) -> Result<Self, TrustFileError> {
        let versions = versions(&authorities, revoked.as_deref());
        let trust = Some(Arc::new(Trust::read(&authorities, revoked.as_deref())?));
        let read = Mutex::new(ReadFiles { versions, trust, at: Instant::now() });
        Ok(Self { authorities, revoked, read })
    }

    /// Returns what the files contain now. `None` if they cannot be used: then no certificate is accepted, and the log says why.
    pub(super) fn current(&self) -> Option<Arc<Trust>> {
        let found = versions(&self.authorities, self.revoked.as_deref());
        let mut read = self.read.lock();
        let is_current = found == read.versions;
        if is_current && (read.trust.is_some() || read.at.elapsed() < RECHECK_INTERVAL) {
            return read.trust.clone();
        }
        let trust = Trust::read(&self.authorities, self.revoked.as_deref()).map(Arc::new);
        let trust = trust.inspect_err(|error| {
            if !is_current {
                tracing::error!("no client certificate is accepted: {error}");
            }
        });
        *read = ReadFiles { versions: found, trust: trust.ok(), at: Instant::now() };
        read.trust.clone()
    }
}

impl Trust {
    fn read(authorities: &Path, revoked: Option<&Path>) -> Result<Self, TrustFileError> {
        Ok(Self {
            authorities: read_authorities(authorities)?,
            revoked: revoked.map(read_lists).transpose()?.unwrap_or_default(),
        })
    }
}

fn read_authorities(path: &Path) -> Result<Vec<TrustAnchor<'static>>, TrustFileError> {
    let parse =
        |certificate: CertificateDer<'_>| Some(anchor_from_trusted_cert(&certificate).ok()?.to_owned());
    read_pem(path, parse, || TrustFileError::NoCertificate { path: path.to_owned() })
}

fn read_lists(path: &Path) -> Result<Vec<CertRevocationList<'static>>, TrustFileError> {
    let parse =
        |list: CertificateRevocationListDer<'_>| Some(OwnedCertRevocationList::from_der(&list).ok()?.into());
    read_pem(path, parse, || TrustFileError::NoList { path: path.to_owned() })
}

/// Reads all objects of one kind in a PEM file. Fails with `unusable` if there is none, or if one cannot be parsed.
fn read_pem<D: PemObject, T>(
    path: &Path,
    parse: impl Fn(D) -> Option<T>,
    unusable: impl Fn() -> TrustFileError,
) -> Result<Vec<T>, TrustFileError> {
    let text = read_file(path)?;
    let objects = D::pem_slice_iter(&text).map(|object| parse(object.ok()?));
    let objects: Option<Vec<T>> = objects.collect();
    objects.filter(|objects| !objects.is_empty()).ok_or_else(unusable)
}

fn read_file(path: &Path) -> Result<Vec<u8>, TrustFileError> {
    let unreadable = |source| TrustFileError::Unreadable { path: path.to_owned(), source };
    let found = std::fs::metadata(path).map_err(unreadable)?;
    if !found.is_file() || found.len() > FILE_BYTES_MAX {
        return Err(TrustFileError::NoFile { path: path.to_owned() });
    }
    std::fs::read(path).map_err(unreadable)
}

fn versions(authorities: &Path, revoked: Option<&Path>) -> Vec<Option<FileVersion>> {
    let files = std::iter::once(authorities).chain(revoked);
    files.map(FileVersion::following_links).collect()
}
