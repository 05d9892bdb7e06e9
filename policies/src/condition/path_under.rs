//! The policy condition `under`: a path is in a folder. The path as written and the path with symbolic links
//! resolved must both be in the folder.
//!
//! The path of the folder may contain symbolic links. The resolved path is therefore compared with the resolved
//! folder. The caller resolves all links, because this crate does no I/O.

use std::fmt;

use super::ambiguous_paths::ambiguity;
use super::{ConditionResult, PathResolution};

/// The folder of an `under` condition: an absolute path without `.`, `..` or empty components.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RootFolder(String);

impl RootFolder {
    /// Parses the absolute path of a folder, and removes `.` and empty components.
    ///
    /// # Errors
    /// Returns why the text is not a valid folder path.
    pub(crate) fn new(text: &str) -> Result<Self, &'static str> {
        check(text)?;
        let components: Vec<&str> = components(text).collect();
        Ok(Self(format!("/{}", components.join("/"))))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// Checks that a path is absolute, has no `..`, and that every program reads the path the same way.
///
/// # Errors
/// Returns the reason when the path fails the check.
pub(super) fn check(path: &str) -> Result<(), &'static str> {
    if !path.starts_with('/') {
        Err("it is not an absolute path")
    } else if path.split('/').any(|component| component == "..") {
        Err("it contains `..`")
    } else {
        ambiguity(path).map_or(Ok(()), Err)
    }
}

pub(super) fn evaluate(roots: &[RootFolder], path: &str, paths: PathResolution<'_>) -> ConditionResult {
    if let Err(unknown) = check(path) {
        return ConditionResult::Unknown(unknown);
    }
    let path_is_below = roots.iter().any(|root| is_below(path, &root.0));
    let PathResolution::Known(resolved_paths) = paths else {
        return ConditionResult::from_bool(path_is_below);
    };
    let Some(end) = resolved_paths.get(path).filter(|end| check(end).is_ok()) else {
        return ConditionResult::Unknown("the target of its symbolic links is unknown");
    };
    let (mut target_is_below, mut unknown) = (false, false);
    for RootFolder(root) in roots {
        match resolved_paths.get(root).filter(|real| check(real).is_ok()) {
            Some(real) => target_is_below |= is_below(end, real),
            // A resolved path that starts with the folder shows that the folder has no symbolic links.
            None if is_below(end, root) => target_is_below = true,
            None => unknown = true,
        }
    }
    match (path_is_below, target_is_below) {
        (true, true) => ConditionResult::Met,
        (_, false) if unknown => {
            ConditionResult::Unknown("the target of the folder's symbolic links is unknown")
        }
        (false, false) => ConditionResult::NotMet,
        (true, false) => ConditionResult::Unknown("its symbolic links lead out of the folder"),
        (false, true) => {
            ConditionResult::Unknown("it is outside of the folder, and its symbolic links lead into it")
        }
    }
}

/// Whether `path` is `root` or below it.
fn is_below(path: &str, root: &str) -> bool {
    let mut path = components(path);
    components(root).all(|component| path.next() == Some(component))
}

fn components(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|component| !matches!(*component, "" | "."))
}

impl fmt::Display for RootFolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::ResolvedPaths;

    #[test]
    fn a_path_and_its_target_must_both_be_under_the_folder() {
        let roots = [RootFolder::new("/srv//docs/").unwrap()];
        let resolved_paths = |pairs: &[(&str, &str)]| -> ResolvedPaths {
            pairs.iter().map(|(from, to)| ((*from).to_owned(), (*to).to_owned())).collect()
        };
        let unknown = |result| matches!(result, ConditionResult::Unknown(_));
        let plain = ("/srv/docs", "/srv/docs");
        let linked = ("/srv/docs", "/data/docs");

        for (path, end, root, met) in [
            ("/srv/docs/a", "/srv/docs/a", plain, true),
            ("/srv/docs", "/srv/docs", plain, true),
            ("/srv/./docs//a", "/srv/docs/a", plain, true),
            ("/srv/docs/a", "/data/docs/a", linked, true),
            ("/srv/docs2/a", "/srv/docs2/a", plain, false),
            ("/srv", "/srv", plain, false),
            ("/", "/", plain, false),
        ] {
            assert_eq!(
                evaluate(&roots, path, PathResolution::Known(&resolved_paths(&[(path, end), root]))),
                ConditionResult::from_bool(met),
                "{path}"
            );
        }
        for (path, end, root) in [
            ("/srv/docs/link", "/etc/passwd", plain),
            ("/tmp/link", "/srv/docs/a", plain),
            ("/data/docs/a", "/data/docs/a", linked),
            ("/srv/docs/../x", "/srv/x", plain),
            ("docs/a", "/srv/docs/a", plain),
            ("/srv/docs/%2e%2e/a", "/srv/docs/%2e%2e/a", plain),
            ("/srv/docs/a\n", "/srv/docs/a", plain),
            ("/srv/docs/a ", "/srv/docs/a", plain),
            ("/srv/docs/ ../a", "/srv/docs/a", plain),
            ("", "", plain),
        ] {
            assert!(
                unknown(evaluate(&roots, path, PathResolution::Known(&resolved_paths(&[(path, end), root])))),
                "{path}"
            );
        }
        assert!(unknown(evaluate(&roots, "/srv/docs/a", PathResolution::Known(&resolved_paths(&[plain])))));
        assert!(unknown(evaluate(
            &roots,
            "/srv/docs/a",
            PathResolution::Known(&resolved_paths(&[("/srv/docs/a", "/x")]))
        )));
        let root_unknown = resolved_paths(&[("/srv/docs/a", "/srv/docs/a")]);
        assert_eq!(
            evaluate(&roots, "/srv/docs/a", PathResolution::Known(&root_unknown)),
            ConditionResult::Met
        );
        assert_eq!(
            evaluate(&[RootFolder::new("/").unwrap()], "/x", PathResolution::NoSymlinks),
            ConditionResult::Met
        );
        assert!(RootFolder::new("docs").is_err() && RootFolder::new("/a/../b").is_err());
    }
}
