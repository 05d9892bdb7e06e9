//! Texts in a server's configuration that may be paths.

use std::path::{Component, Path, PathBuf};

use crate::definition::ServerCommand;

/// What a server does with a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Use {
    /// Programs are searched there, as in the variable `PATH`.
    Search,
    Any,
}

/// An absolute path that a server's configuration names, without `.` and `..`. It need not exist.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Candidate {
    pub(super) path: PathBuf,
    pub(super) purpose: Use,
}

/// The variables with directories of programs and libraries.
const SEARCH_PATHS: [&str; 7] =
    ["PATH", "PYTHONPATH", "PYTHONHOME", "NODE_PATH", "LD_LIBRARY_PATH", "GEM_PATH", "CLASSPATH"];
/// The schemes of URLs whose path is a file.
const FILE_SCHEMES: [&str; 3] = ["file:", "sqlite:", "duckdb:"];

/// Finds the paths of a server's configuration. `directory` is the working directory, to which paths are relative.
pub(super) fn candidates(
    command: &ServerCommand,
    home: Option<&Path>,
    directory: Option<&Path>,
) -> Vec<Candidate> {
    let places = Places { home, directory };
    let any = |path| Candidate { path, purpose: Use::Any };
    let mut found: Vec<Candidate> =
        command.directory.iter().filter_map(|path| normal(path)).map(any).collect();
    for argument in &command.arguments {
        found.extend(places.paths(argument).into_iter().map(any));
    }
    for (name, value) in &command.environment {
        let purpose = if SEARCH_PATHS.contains(&name.as_str()) { Use::Search } else { Use::Any };
        found.extend(places.paths(value).into_iter().map(|path| Candidate { path, purpose }));
    }
    found
}

struct Places<'a> {
    home: Option<&'a Path>,
    directory: Option<&'a Path>,
}

impl Places<'_> {
    /// Returns the paths in a text: the whole text, what follows the first `=`, or the parts of a list.
    fn paths(&self, text: &str) -> Vec<PathBuf> {
        let is_name = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
        let value = match text.split_once('=') {
            Some((name, value)) if is_name(name) => value,
            _ => text,
        };
        if let Some(scheme) = FILE_SCHEMES.iter().find(|scheme| value.starts_with(**scheme)) {
            let path =
                value[scheme.len()..].trim_start_matches('/').split(['?', '#']).next().unwrap_or_default();
            return normal(&Path::new("/").join(path)).into_iter().collect();
        }
        if let Some(path) = self.path(value).filter(|path| path.exists()) {
            return vec![path];
        }
        value.split([':', ',', ';']).filter_map(|part| self.path(part.rsplit('=').next()?)).collect()
    }

    fn path(&self, text: &str) -> Option<PathBuf> {
        let is_relative = |text: &str| {
            text == "."
                || text.starts_with("./")
                || text.starts_with("../")
                || (text.contains('/') && !text.contains("//"))
        };
        if let Some(rest) = text.strip_prefix("~/") {
            normal(&self.home?.join(rest))
        } else if text.starts_with('/') {
            normal(Path::new(text))
        } else if is_relative(text) {
            // Names of packages also contain slashes.
            normal(&self.directory?.join(text)).filter(|path| path.exists())
        } else {
            None
        }
    }
}

/// Returns an absolute path without `.` and `..`. `None` for a path with `..` behind a symbolic link, whose meaning
/// depends on that link, and for a relative path.
fn normal(path: &Path) -> Option<PathBuf> {
    if !path.is_absolute() {
        return None;
    }
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir if normal.is_symlink() => return None,
            Component::ParentDir => drop(normal.pop()),
            Component::CurDir => {}
            other => normal.push(other),
        }
    }
    Some(normal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_found_in_arguments_and_variables() {
        let home = tempfile::tempdir().expect("a directory");
        let directory = home.path().join("project");
        std::fs::create_dir_all(directory.join("dist")).expect("a directory");
        std::fs::write(directory.join("dist/index.js"), "").expect("a file");
        let places = Places { home: Some(home.path()), directory: Some(&directory) };
        for (text, expected) in [
            ("/srv/data", vec!["/srv/data"]),
            ("/srv/../data/./x", vec!["/data/x"]),
            ("--root=/srv/data", vec!["/srv/data"]),
            ("type=bind,src=/a,dst=/b", vec!["/a", "/b"]),
            ("/a:/b", vec!["/a", "/b"]),
            ("sqlite:////srv/x.db?mode=ro", vec!["/srv/x.db"]),
            ("file:///srv/x", vec!["/srv/x"]),
            ("~/x", vec!["HOME/x"]),
            ("dist/index.js", vec!["HOME/project/dist/index.js"]),
            ("./dist", vec!["HOME/project/dist"]),
            (".", vec!["HOME/project"]),
            ("@scope/package", vec![]),
            ("-y", vec![]),
            ("https://example.com/path", vec!["/example.com/path"]),
            ("", vec![]),
        ] {
            let expected: Vec<PathBuf> = expected
                .into_iter()
                .map(|path| path.replace("HOME", &home.path().display().to_string()).into())
                .collect();
            assert_eq!(places.paths(text), expected, "{text}");
        }
    }
}
