//! The name of this host.

/// Returns the name of this host, as the kernel knows it. `None` if it has none, or the name cannot be read.
#[must_use]
pub fn host_name() -> Option<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    let name = name.trim();
    (!name.is_empty()).then(|| name.to_owned())
}
