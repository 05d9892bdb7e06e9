//! Where paths in arguments lead to: a policy that permits a directory means what is in it, and not what a link in it
//! points at.
//!
//! It is looked at before the call and followed by the server after it. Whoever can make links in a permitted directory
//! meanwhile can still lead a server astray; what a server can reach at all is for its own sandbox.

use std::io::ErrorKind;
use std::path::{Component, Path};
use std::time::Duration;

use lockhouse_policies::Links;

use super::schema::{Turn, on_another_thread};

/// A file system may be far away, or gone.
const PATIENCE: Duration = Duration::from_secs(2);

/// Each path without links, as far as that can be known.
pub(super) async fn resolved(paths: Vec<String>, turn: &Turn) -> Links {
    if paths.is_empty() {
        return Links::new();
    }
    on_another_thread(turn, PATIENCE, move || followed(paths)).await.unwrap_or_default()
}

/// The same at once, however long a file system takes: where nobody but the person who asks waits for it.
pub fn followed(paths: Vec<String>) -> Links {
    let led = |path: String| Some((path.clone(), without_links(Path::new(&path))?));
    paths.into_iter().filter_map(led).collect()
}

/// The deepest part that exists, without links, and the rest as it is written.
fn without_links(path: &Path) -> Option<String> {
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
            // A link to what does not exist yet: who writes there writes at its target.
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
    fn links_are_followed_as_far_as_there_is_anything() {
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
            let led = without_links(&root.join(path)).map(|led| led.trim_end_matches('/').to_owned());
            assert_eq!(led, expected.map(|path| root.join(path).display().to_string()), "{path}");
        }
        assert_eq!(without_links(Path::new("kept/inner")), None);
        assert_eq!(without_links(Path::new("/")), Some("/".to_owned()));
    }
}
