//! Parses the text of `/proc/PID/status`.

/// Returns the names and values of the fields in the text of `/proc/PID/status` whose names begin with one of the letters.
/// The text has some sixty fields, so those of no interest are skipped early.
pub(super) fn fields<'a>(
    status: &'a str,
    letters: &'static [u8],
) -> impl Iterator<Item = (&'a str, &'a str)> {
    // The kernel escapes line breaks in the name of the process, so each line break ends a field.
    let mut start = 0;
    let lines = memchr::memchr_iter(b'\n', status.as_bytes())
        .map(move |end| &status[std::mem::replace(&mut start, end + 1)..end]);
    let of_interest = move |line: &&str| line.bytes().next().is_some_and(|first| letters.contains(&first));
    lines.filter(of_interest).filter_map(|line| {
        let (name, value) = line.split_at(line.bytes().position(|byte| byte == b':')?);
        Some((name, value[1..].trim_ascii()))
    })
}

/// Returns the peak resident memory in bytes from the text of `/proc/PID/status`; `None` if the text does not contain
/// it.
pub(super) fn peak_memory_bytes(status: &str) -> Option<u64> {
    let (_, peak) = fields(status, b"V").find(|(name, _)| *name == "VmHWM")?;
    peak.strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}
