//! Parses the text of `/proc/PID/status`.

/// Returns the names and values of all fields in the text of `/proc/PID/status`.
pub(super) fn fields(status: &str) -> impl Iterator<Item = (&str, &str)> {
    status.lines().filter_map(|line| line.split_once(':').map(|(name, value)| (name, value.trim())))
}

/// Returns the peak resident memory in bytes from the text of `/proc/PID/status`; `None` if the text does not contain
/// it.
pub(super) fn peak_memory_bytes(status: &str) -> Option<u64> {
    let (_, peak) = fields(status).find(|(name, _)| *name == "VmHWM")?;
    peak.strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}
