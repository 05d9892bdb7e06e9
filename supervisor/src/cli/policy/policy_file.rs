//! Writes the policy files that `lockhouse policy init` and `lockhouse policy suggest` generate.

use std::path::Path;

use lockhouse_base::text_files::{Draft, write_target};

/// Writes a policy file. A new one is readable only by its owner. Replaces an existing file only with `force`.
pub(in crate::cli) fn write(path: &Path, text: &str, force: bool) -> std::io::Result<()> {
    let path = write_target(path)?;
    if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
        std::fs::create_dir_all(directory)?;
    }
    let draft = Draft::write(&path, text)?;
    if force { draft.publish() } else { draft.publish_new() }
}
