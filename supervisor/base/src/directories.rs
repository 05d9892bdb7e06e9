//! The directories of Lockhouse's own files, for a user or a systemd service. Each function returns `None` if no
//! environment variable that it reads is set to an absolute path.

use std::path::{Path, PathBuf};

/// Returns the directory of the configuration: `$XDG_CONFIG_HOME/lockhouse`, or `~/.config/lockhouse`.
pub fn configuration() -> Option<PathBuf> {
    xdg("XDG_CONFIG_HOME", ".config")
}

/// Returns the directory of persistent state: `$STATE_DIRECTORY` (systemd), else `$XDG_STATE_HOME/lockhouse`, else
/// `~/.local/state/lockhouse`.
pub fn state() -> Option<PathBuf> {
    absolute("STATE_DIRECTORY").or_else(|| xdg("XDG_STATE_HOME", ".local/state"))
}

/// Returns the directory of the audit log: `$LOGS_DIRECTORY` (systemd). If the variable is not set, the caller stores
/// the audit log in the state directory.
pub fn logs() -> Option<PathBuf> {
    absolute("LOGS_DIRECTORY")
}

/// Returns the directory of caches: `$CACHE_DIRECTORY` (systemd), else `$XDG_CACHE_HOME/lockhouse`, else
/// `~/.cache/lockhouse`.
pub fn cache() -> Option<PathBuf> {
    absolute("CACHE_DIRECTORY").or_else(|| xdg("XDG_CACHE_HOME", ".cache"))
}

/// Replaces `~` at the beginning of a path by a home directory. Without one, the path stays as it is.
pub fn expand_home(path: &Path, home: Option<&Path>) -> PathBuf {
    match (path.strip_prefix("~"), home) {
        (Ok(below), Some(home)) if below == Path::new("") => home.to_owned(),
        (Ok(below), Some(home)) => home.join(below),
        _ => path.to_owned(),
    }
}

fn xdg(variable: &str, below_home: &str) -> Option<PathBuf> {
    let base = absolute(variable).or_else(|| absolute("HOME").map(|home| home.join(below_home)))?;
    Some(base.join("lockhouse"))
}

fn absolute(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tilde_alone_stands_for_the_home_directory() {
        for (path, expanded) in [
            ("~", "/home/a"),
            ("~/", "/home/a"),
            ("~/b/c", "/home/a/b/c"),
            ("~//b", "/home/a/b"),
            ("~b/c", "~b/c"),
            ("b/~/c", "b/~/c"),
            ("/b", "/b"),
            ("", ""),
        ] {
            let with_home = expand_home(Path::new(path), Some(Path::new("/home/a")));
            assert_eq!(with_home.to_str(), Some(expanded), "{path}");
            assert_eq!(expand_home(Path::new(path), None), Path::new(path));
        }
    }
}
