//! `lockhouse landlock-room`: prints how many Landlock layers its process can still get. To count them is to use them up, so
//! a process of its own does it.

use std::process::ExitCode;

use lockhouse_upstream::use_up_landlock_room;

use super::{UNAVAILABLE, print_error};

/// Prints the number of Landlock layers that this process can still get.
pub(super) fn landlock_room() -> ExitCode {
    match use_up_landlock_room() {
        Ok(room) => {
            println!("{room}");
            ExitCode::SUCCESS
        }
        Err(error) => print_error(&error, UNAVAILABLE),
    }
}
