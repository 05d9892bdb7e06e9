//! Counts how many Landlock layers a process can still get. The kernel shows nowhere how many it has.

use std::io;

use landlock::{Access, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetError};

use lockhouse_sandbox::landlock_version;

use super::ABI;

/// The number of Landlock layers that a process can have (`LANDLOCK_MAX_NUM_LAYERS` of the kernel).
pub const LANDLOCK_LAYERS_MAX: u32 = 16;

/// Returns how many Landlock layers this process can still get, and gives it all of them. A process without layers has
/// room for [`LANDLOCK_LAYERS_MAX`]; so has one on a kernel without Landlock.
///
/// # Errors
/// If the kernel or a system-call filter refuses the question.
pub fn use_up_landlock_room() -> io::Result<u32> {
    if !has_landlock()? {
        return Ok(LANDLOCK_LAYERS_MAX);
    }
    let mut room = 0;
    loop {
        match add_layer() {
            Ok(()) => room += 1,
            Err(error) if has_errno(&error, libc::E2BIG) => return Ok(room),
            Err(error) => return Err(io::Error::other(error)),
        }
    }
}

/// Whether the kernel has Landlock.
///
/// # Errors
/// If a system-call filter refuses the question.
pub fn has_landlock() -> io::Result<bool> {
    if landlock_version() > 0 {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::ENOSYS | libc::EOPNOTSUPP) => Ok(false),
        _ => Err(error),
    }
}

fn add_layer() -> Result<(), RulesetError> {
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    ruleset.handle_access(AccessFs::from_all(ABI::V1))?.create()?.restrict_self().map(drop)
}

fn has_errno(error: &(dyn std::error::Error + 'static), errno: i32) -> bool {
    let is_it = error.downcast_ref::<io::Error>().is_some_and(|error| error.raw_os_error() == Some(errno));
    is_it || error.source().is_some_and(|source| has_errno(source, errno))
}
