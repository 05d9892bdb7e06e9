//! The search path for programs (`PATH`) of an engine that AI clients share.
//!
//! Upstream servers inherit it, and what they start with it cannot be known in advance. So clients share an engine only
//! if their search paths are equal, without the directories that an AI client or the tools that started it have put in:
//! Codex puts a directory with a random name and one of its package in front, npm the programs of a project. Those never
//! reach the engine, whoever starts it: no client can give the servers of others a directory that these do not have.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Folders whose programs belong to an AI client or a project, or are temporary.
const FOREIGN_FOLDERS: [&str; 3] = [".codex", "node_modules", "tmp"];

/// Returns the search path of an engine for a client with the search path `path`. Directories below
/// [`FOREIGN_FOLDERS`] are left out, except those with one of `programs`, the files that are executed to start the
/// servers.
pub(super) fn engine_path(path: &OsStr, programs: &[PathBuf]) -> OsString {
    let has_program = |folder: &Path| programs.iter().any(|program| program.parent() == Some(folder));
    // A relative directory is one of the server's own directory.
    let is_kept = |folder: &PathBuf| folder.is_relative() || !is_foreign(folder) || has_program(folder);
    std::env::join_paths(std::env::split_paths(path).filter(is_kept)).unwrap_or_default()
}

fn is_foreign(folder: &Path) -> bool {
    folder.iter().any(|name| FOREIGN_FOLDERS.iter().any(|foreign| name == *foreign))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_belongs_to_clients_is_left_out() {
        let programs = ["/usr/bin/npx".into(), "/p/node_modules/.bin/server".into(), "/tmp/x/tool".into()];
        for (path, expected) in [
            ("/home/a/.local/bin:/usr/bin", "/home/a/.local/bin:/usr/bin"),
            (
                "/home/a/.codex/tmp/arg0/codex-arg0fZi2Ti:/usr/lib/node_modules/@openai/codex/vendor/codex-path:/usr/bin",
                "/usr/bin",
            ),
            ("/home/a/.codex/packages/codex-path:/bin", "/bin"),
            ("/p/node_modules/.bin:/q/node_modules/.bin:/bin", "/p/node_modules/.bin:/bin"),
            ("/tmp/x/:/tmp/y:/tmp:/home/a/tmp/bin:/bin", "/tmp/x/:/bin"),
            ("bin:node_modules/.bin::/bin", "bin:node_modules/.bin::/bin"),
            ("/home/a/tmpx:/home/a/.codexes", "/home/a/tmpx:/home/a/.codexes"),
            ("/tmp", ""),
            ("", ""),
        ] {
            let found = engine_path(OsStr::new(path), &programs);
            assert_eq!(found, expected, "{path}");
            assert_eq!(engine_path(&found, &programs), expected, "the engine finds the same");
        }
    }
}
