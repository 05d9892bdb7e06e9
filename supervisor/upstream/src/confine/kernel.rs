//! What the kernel of this host lacks for the sandbox of upstream servers.

use std::fmt;
use std::io;

use landlock::ABI;
use lockhouse_sandbox::landlock_version;

use super::ConfineError;

/// The first Landlock ABI that can move files between directories.
const MOVES: (i64, &str) = (2, "Linux 5.19");
/// The first Landlock ABI that restricts truncation. Without it a sandboxed server can empty every file of its user, so an
/// older one does not meet a required sandbox.
const TRUNCATION: (i64, &str) = (3, "Linux 6.2");
/// The first Landlock ABI that restricts ioctl(2) on device files.
const DEVICES: (i64, &str) = (5, "Linux 6.10");
/// The first Landlock ABI that restricts signals.
const SIGNALS: (i64, &str) = (6, "Linux 6.12");

/// A part of the sandbox that the kernel does not enforce. Shown, it is a sentence for users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KernelGap {
    /// There is no Landlock, for the reason that the kernel gave.
    Files(String),
    /// This and the others: the Landlock ABI of the kernel is too old.
    Truncation(i64),
    Moves(i64),
    Devices(i64),
    Signals(i64),
}

impl KernelGap {
    /// Returns a word for it, for tables and JSON. The words are stable.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Files(_) => "files",
            Self::Truncation(_) => "truncation",
            Self::Moves(_) => "moves",
            Self::Devices(_) => "devices",
            Self::Signals(_) => "signals",
        }
    }

    /// Whether no server that needs the whole sandbox starts with this gap: it can destroy the files of its user.
    pub fn is_refused_if_required(&self) -> bool {
        matches!(self, Self::Files(_) | Self::Truncation(_))
    }
}

impl fmt::Display for KernelGap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (text, found, (since, kernel)) = match self {
            Self::Files(reason) => {
                return write!(
                    f,
                    "this kernel has no Landlock, or it is switched off ({reason}), so a server with `sandbox` can read and change \
                     every file of its user"
                );
            }
            Self::Truncation(found) => {
                ("a server with `sandbox` can empty every file of its user", found, TRUNCATION)
            }
            Self::Moves(found) => ("a server with `sandbox` cannot move files between folders", found, MOVES),
            Self::Devices(found) => (
                "device files in folders that are granted to a server with `sandbox` are not restricted",
                found,
                DEVICES,
            ),
            Self::Signals(found) => (
                "a server with `sandbox` can send signals to other processes of its user, though not to Lockhouse",
                found,
                SIGNALS,
            ),
        };
        if *found == 0 {
            return f.write_str(text);
        }
        write!(f, "{text} (this kernel has version {found} of Landlock; {kernel} has {since})")
    }
}

/// Returns what the kernel of this host does not enforce of a sandbox. An empty list means that nothing is missing.
pub fn kernel_gaps() -> Vec<KernelGap> {
    let found = landlock_version();
    let is_missing = |since: (i64, &str)| found < since.0;
    if found == 0 {
        // Without Landlock, nothing restricts files, so nothing restricts a part of them.
        let reason = io::Error::last_os_error().to_string();
        return vec![KernelGap::Files(reason), KernelGap::Signals(found)];
    }
    let gaps = [
        (TRUNCATION, KernelGap::Truncation(found)),
        (MOVES, KernelGap::Moves(found)),
        (DEVICES, KernelGap::Devices(found)),
        (SIGNALS, KernelGap::Signals(found)),
    ];
    gaps.into_iter().filter(|(since, _)| is_missing(*since)).map(|(_, gap)| gap).collect()
}

/// Checks the kernel for a sandbox that is required.
///
/// # Errors
/// [`ConfineError::NoLandlock`] and [`ConfineError::TooOld`], if the sandbox is required.
pub(super) fn check(requires_full: bool) -> Result<(), ConfineError> {
    if !requires_full {
        return Ok(());
    }
    match kernel_gaps().into_iter().find(KernelGap::is_refused_if_required) {
        Some(gap @ KernelGap::Files(_)) => Err(ConfineError::NoLandlock { gap }),
        Some(gap) => Err(ConfineError::TooOld { gap }),
        None => Ok(()),
    }
}

/// Returns the Landlock ABI whose access rights the kernel must restrict, since it supports them: its own one, or that of a
/// required sandbox if it has a newer one. `None` if there is no Landlock.
pub(super) fn least_abi() -> Option<ABI> {
    match landlock_version() {
        0 => None,
        1 => Some(ABI::V1),
        2 => Some(ABI::V2),
        _ => Some(ABI::V3),
    }
}
