//! The SHA-256 of a server's program, by which an administrator's requirements identify it.

use std::io::Read;
use std::path::Path;

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use super::definition::ProgramRequirement;

/// The maximum size in bytes of a program whose SHA-256 is compared. The SHA-256 of a larger program counts as unknown:
/// the program is not approved by it, and is denied by it.
const PROGRAM_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// Why a program that requirements fix or approve is not started.
#[derive(Debug, thiserror::Error)]
pub(super) enum ProgramError {
    #[error(
        "its program {path} has the sha256 {found}, and the administrator's requirements approve another one"
    )]
    Changed { path: String, found: String },
    #[error(
        "its program {path} cannot be read, so the administrator's requirements cannot be checked: {source}"
    )]
    Unreadable { path: String, source: std::io::Error },
}

/// Returns the SHA-256 of a program in hexadecimal digits. Blocks.
///
/// # Errors
/// If the file cannot be read, or is larger than [`PROGRAM_BYTES_MAX`].
pub fn program_digest(path: &Path) -> std::io::Result<String> {
    let file = std::fs::File::open(path)?;
    if file.metadata()?.len() > PROGRAM_BYTES_MAX {
        return Err(std::io::ErrorKind::FileTooLarge.into());
    }
    let mut file = file.take(PROGRAM_BYTES_MAX + 1);
    let (mut digest, mut buffer, mut total) = (Sha256::new(), vec![0; 64 * 1024], 0);
    loop {
        let count = file.read(&mut buffer)?;
        total += count as u64;
        match count {
            0 => break,
            _ if total > PROGRAM_BYTES_MAX => return Err(std::io::ErrorKind::FileTooLarge.into()),
            count => digest.update(&buffer[..count]),
        }
    }
    Ok(HEXLOWER.encode(&digest.finalize()))
}

/// Checks that a program which is about to start has the SHA-256 that requirements approve, if they name one.
pub(super) async fn check_program(path: &str, requirement: &ProgramRequirement) -> Result<(), ProgramError> {
    let Some(approved) = requirement.sha256.clone() else { return Ok(()) };
    let path = path.to_owned();
    let check = move || match program_digest(Path::new(&path)) {
        Ok(found) if found == approved => Ok(()),
        Ok(found) => Err(ProgramError::Changed { path, found }),
        Err(source) => Err(ProgramError::Unreadable { path, source }),
    };
    // Reading a large program takes a while.
    tokio::task::spawn_blocking(check).await.unwrap_or_else(|error| {
        Err(ProgramError::Unreadable { path: String::new(), source: std::io::Error::other(error) })
    })
}
