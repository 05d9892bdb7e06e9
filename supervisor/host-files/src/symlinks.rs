//! Resolves symbolic links in path arguments of calls. If links were not resolved, a policy that permits a
//! directory would also permit the targets of links in it, which may be outside of the directory.
//!
//! The links are resolved before the call, and the upstream server resolves them again. In the meantime, a process
//! that can create links in a permitted directory can still redirect the server. Only the server's own sandbox
//! limits what it can reach then.

use std::io::ErrorKind;
use std::path::{Component, Path};

use lockhouse_policies::ResolvedPaths;

/// Resolves the symbolic links of paths on the current thread, without a timeout. Only for `lockhouse` commands of
/// the user: such a command may block on a slow file system, but the supervisor may not.
pub fn resolve_paths(paths: Vec<String>) -> ResolvedPaths {
    let resolved = |path: String| Some((path.clone(), resolve_path(Path::new(&path))?));
    paths.into_iter().filter_map(resolved).collect()
}

/// Resolves the symbolic links of an absolute path, of which the last parts need not exist. Returns `None`
/// for a relative path or a link that cannot be resolved.
fn resolve_path(path: &Path) -> Option<String> {
    let is_plain = |part: Component<'_>| matches!(part, Component::RootDir | Component::Normal(_));
    if !path.is_absolute() || !path.components().all(is_plain) {
        return None;
    }
    for existing in path.ancestors() {
        match std::fs::canonicalize(existing) {
            Ok(real) => {
                let rest = path.strip_prefix(existing).ok()?;
                let whole = if rest.as_os_str().is_empty() { real } else { real.join(rest) };
                return whole.into_os_string().into_string().ok();
            }
            // The path is a link to a target that does not exist. Writing to the link would create the target.
            Err(error)
                if error.kind() == ErrorKind::NotFound && std::fs::symlink_metadata(existing).is_ok() =>
            {
                return None;
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(_) => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_are_resolved_up_to_the_deepest_existing_ancestor() {
        let directory = tempfile::tempdir().expect("a directory");
        let root = directory.path().canonicalize().expect("a path");
        std::fs::create_dir_all(root.join("kept/inner")).expect("a directory");
        std::fs::create_dir(root.join("other")).expect("a directory");
        std::fs::write(root.join("file"), "").expect("a file");
        symlink(root.join("other"), root.join("kept/out")).expect("a link");
        symlink(root.join("nothing"), root.join("kept/dangling")).expect("a link");
        symlink("loop", root.join("kept/loop")).expect("a link");
        let rows = [
            ("kept/inner", Some("kept/inner")),
            ("kept/inner/", Some("kept/inner")),
            ("kept/inner/new/file.txt", Some("kept/inner/new/file.txt")),
            ("kept/out", Some("other")),
            ("kept/out/new", Some("other/new")),
            ("kept/dangling", None),
            ("kept/dangling/new", None),
            ("kept/loop", None),
            ("kept/out/../x", None),
            ("file/below", None),
        ];
        for (path, expected) in rows {
            let resolved =
                resolve_path(&root.join(path)).map(|resolved| resolved.trim_end_matches('/').to_owned());
            assert_eq!(resolved, expected.map(|path| root.join(path).display().to_string()), "{path}");
        }
        assert_eq!(resolve_path(Path::new("kept/inner")), None);
        assert_eq!(resolve_path(Path::new("/")), Some("/".to_owned()));
    }
}
