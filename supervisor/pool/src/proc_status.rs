//! Parses the text of `/proc/PID/status`.

/// Returns the names and values of all fields in the text of `/proc/PID/status`, in which each line ends with a newline.
pub(super) fn fields(status: &str) -> impl Iterator<Item = (&str, &str)> {
    let lines = memchr::memchr_iter(b'\n', status.as_bytes())
        .scan(0, move |start, end| Some(&status[std::mem::replace(start, end + 1)..end]));
    lines.filter_map(|line| {
        let colon = memchr::memchr(b':', line.as_bytes())?;
        Some((&line[..colon], line[colon + 1..].trim_ascii()))
    })
}

/// Returns the peak resident memory in bytes from the text of `/proc/PID/status`; `None` if the text does not contain
/// it.
pub(super) fn peak_memory_bytes(status: &str) -> Option<u64> {
    const NAME: &str = "\nVmHWM:";
    let start = memchr::memmem::find(status.as_bytes(), NAME.as_bytes())? + NAME.len();
    let (peak, _) = status[start..].split_once(" kB")?;
    peak.trim_ascii().parse::<u64>().ok().map(|kib| kib * 1024)
}
