//! Gives back the memory of program code that only the start of the process needed.
//!
//! Most of the program is code for commands, configuration files and the start. After the start, this code would stay in
//! memory as long as the process lives: two thirds of the memory of an idle supervisor.
#![allow(unsafe_code, reason = "madvise has no safe wrapper")]

use std::time::Duration;

/// Time from the start of the process until its code is released. Servers and language engines have started by then.
const AFTER_START: Duration = Duration::from_secs(3);

/// Waits until the process has started, and releases its code. The kernel maps the code that is still needed again when it
/// runs, from its cache of the file.
pub(super) async fn release_after_start() {
    tokio::time::sleep(AFTER_START).await;
    let Ok(mappings) = std::fs::read_to_string("/proc/self/maps") else { return };
    for (start, length) in mappings.lines().filter_map(code) {
        // SAFETY: the mapping is of a file and was never writable, so the kernel can read its pages again.
        unsafe { libc::madvise(std::ptr::without_provenance_mut(start), length, libc::MADV_DONTNEED) };
    }
}

/// Returns address and length of a mapping of `/proc/self/maps`, if it is code of a file.
fn code(mapping: &str) -> Option<(usize, usize)> {
    let (addresses, rest) = mapping.split_once(' ')?;
    let is_code = rest.starts_with("r-xp ") && rest.contains('/');
    let (start, end) = addresses.split_once('-').filter(|_| is_code)?;
    let [start, end] = [start, end].map(|address| usize::from_str_radix(address, 16).ok());
    let start = start?;
    Some((start, end?.checked_sub(start)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_code_of_files_is_released() {
        let rows = [
            ("5600-5800 r-xp 00001000 fe:00 102 /usr/bin/lockhouse", Some((0x5600, 0x200))),
            ("5600-5800 r--p 00001000 fe:00 102 /usr/bin/lockhouse", None),
            ("5600-5800 rw-p 00001000 fe:00 102 /usr/bin/lockhouse", None),
            ("5600-5800 rwxp 00001000 fe:00 102 /usr/bin/lockhouse", None),
            ("7ffc-7ffe r-xp 00000000 00:00 0 [vdso]", None),
            ("7ffc-7ffe r-xp 00000000 00:00 0 ", None),
            ("", None),
        ];
        for (mapping, expected) in rows {
            assert_eq!(code(mapping), expected, "{mapping}");
        }
    }
}
