//! Writes the policy files that `lockhouse policy init` and `lockhouse policy suggest` generate.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use lockhouse_base::text_files::write_target;

/// Writes a policy file, readable only by its owner. Replaces an existing file only with `force`.
pub(in crate::cli) fn write(path: &Path, text: &str, force: bool) -> std::io::Result<()> {
    write_target(path)?;
    if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
        std::fs::create_dir_all(directory)?;
    }
    let mut options = std::fs::OpenOptions::new();
    options.write(true).mode(0o600);
    if force {
        options.create(true).truncate(true)
    } else {
        options.create_new(true)
    };
    options.open(path)?.write_all(text.as_bytes())
}
