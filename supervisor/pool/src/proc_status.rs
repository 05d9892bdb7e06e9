//! Parses the text of `/proc/PID/status`.

use memchr::memmem;

/// Returns the value of a field in the text of `/proc/PID/status`; `None` if the text does not contain the field. `name`
/// ends with the colon. The first field of the text, the name of the process, cannot be read.
pub(super) fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    // The kernel escapes line breaks in the name of the process, so each line break begins a field.
    let mut found = memmem::find_iter(status.as_bytes(), name);
    let start =
        found.find(|start| start.checked_sub(1).is_some_and(|before| status.as_bytes()[before] == b'\n'))?;
    status[start + name.len()..].lines().next().map(str::trim)
}

/// Returns the peak resident memory in bytes from the text of `/proc/PID/status`; `None` if the text does not contain
/// it.
pub(super) fn peak_memory_bytes(status: &str) -> Option<u64> {
    let peak = field(status, "VmHWM:")?;
    peak.strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}
