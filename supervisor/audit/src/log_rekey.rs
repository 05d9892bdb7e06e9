//! Begins a new key of the audit log after the present one was lost. An administrator's key countersigns the first line of the
//! new one; without that, verification reports a fault, because whoever removes a key could have removed records too.

use std::path::Path;

use super::hash_chain::{Hash, RecordBody};
use super::local_user::LocalUser;
use super::moment::Moment;
use super::segment_index::Index;
use super::signing::{KeyError, PublicKey, SigningKey};
use super::{AuditError, AuditSettings};
use data_encoding::HEXLOWER;

/// A new key of an audit log.
#[derive(Debug)]
pub struct NewLogKey {
    /// The first new key.
    pub key: PublicKey,
    /// The key of the administrator who countersigned it.
    pub administrator: Option<PublicKey>,
}

/// Why no new key began.
#[derive(Debug, thiserror::Error)]
pub enum RekeyError {
    #[error(
        "the audit log has its key, which every line of the index replaces: a new one is needed only when it was lost"
    )]
    KeyPresent,
    #[error("{0} is not an Ed25519 key as PKCS#8 (DER)")]
    Administrator(std::path::PathBuf),
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error(transparent)]
    Audit(#[from] AuditError),
}

/// Returns the text that an administrator's key signs when a new key begins. `prev` is the hash of the last line of the index.
pub(super) fn rekey_text(prev: Hash, lost: &str, key: &str) -> String {
    format!("rekey\n{}\n{lost}\n{key}\n", HEXLOWER.encode(&prev))
}

/// Begins a new key, and records it in the index. `administrator` is the path of a private key as PKCS#8.
///
/// # Errors
/// [`RekeyError::KeyPresent`] if the log has its key. Then nothing changes.
pub fn rekey(settings: &AuditSettings, administrator: Option<&Path>) -> Result<NewLogKey, RekeyError> {
    let administrator = match administrator {
        Some(path) => {
            Some(SigningKey::load(path)?.ok_or_else(|| RekeyError::Administrator(path.to_owned()))?)
        }
        None => None,
    };
    let AuditSettings { directory, keys, .. } = settings;
    let to_error = |source| AuditError::Write { path: directory.clone(), source };
    let (mut index, lost) = match Index::open_without_key(directory, keys).map_err(to_error)? {
        Some(opened) => opened,
        None => return Err(RekeyError::KeyPresent),
    };
    let key = index.public_key();
    let lost = lost.map(|lost| lost.to_hex()).unwrap_or_default();
    let mut body = LocalUser::current().write_to(RecordBody::new("rekey").text("lost", &lost));
    if let Some(administrator) = &administrator {
        let signature = administrator.sign(rekey_text(index.last_hash(), &lost, &key.to_hex()).as_bytes());
        body = body.text("administrator", &administrator.public_key().to_hex());
        body = body.text("countersignature", &signature);
    }
    index.rekeyed(Moment::now(), body).map_err(to_error)?;
    Ok(NewLogKey { key, administrator: administrator.map(|key| key.public_key()) })
}
