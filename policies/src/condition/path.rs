//! Paths below a folder. What a path says and where it leads to must both be below it.
//!
//! A folder of the policy may itself be reached by a link: then where it leads to is what counts for where paths lead to.
//! Both come from whoever asks for the decision, since nothing here looks at a file.

use std::fmt;

use super::ambiguous::ambiguity;
use super::{Judged, World};

/// A folder: absolute, without `.`, `..` or empty components.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Root(String);

impl Root {
    /// # Errors
    /// Why no path could be judged by it.
    pub(crate) fn new(text: &str) -> Result<Self, &'static str> {
        check(text)?;
        let components: Vec<&str> = components(text).collect();
        Ok(Self(format!("/{}", components.join("/"))))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// Whether a path says what it means, to every program that reads it.
pub(super) fn check(path: &str) -> Result<(), &'static str> {
    if !path.starts_with('/') {
        Err("it is no absolute path")
    } else if path.split('/').any(|component| component == "..") {
        Err("it has `..`")
    } else {
        ambiguity(path).map_or(Ok(()), Err)
    }
}

pub(super) fn judge(roots: &[Root], path: &str, world: World<'_>) -> Judged {
    if let Err(unknown) = check(path) {
        return Judged::Unknown(unknown);
    }
    let said = roots.iter().any(|root| is_below(path, &root.0));
    let World::Known(links) = world else { return Judged::of(said) };
    let Some(end) = links.get(path).filter(|end| check(end).is_ok()) else {
        return Judged::Unknown("nobody knows where its links lead");
    };
    let (mut leads, mut unknown) = (false, false);
    for Root(root) in roots {
        match links.get(root).filter(|real| check(real).is_ok()) {
            Some(real) => leads |= is_below(end, real),
            // What has no links and begins so shows that the folder has none.
            None if is_below(end, root) => leads = true,
            None => unknown = true,
        }
    }
    match (said, leads) {
        (true, true) => Judged::Met,
        (_, false) if unknown => Judged::Unknown("nobody knows where the folder's links lead"),
        (false, false) => Judged::NotMet,
        (true, false) => Judged::Unknown("its links lead elsewhere"),
        (false, true) => Judged::Unknown("its links lead there from elsewhere"),
    }
}

/// The folder itself is below it too.
fn is_below(path: &str, root: &str) -> bool {
    let mut path = components(path);
    components(root).all(|component| path.next() == Some(component))
}

fn components(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|component| !matches!(*component, "" | "."))
}

impl fmt::Display for Root {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Links;

    #[test]
    fn what_a_path_says_and_where_it_leads_must_agree() {
        let roots = [Root::new("/srv//docs/").unwrap()];
        let links = |pairs: &[(&str, &str)]| -> Links {
            pairs.iter().map(|(from, to)| ((*from).to_owned(), (*to).to_owned())).collect()
        };
        let unknown = |judged| matches!(judged, Judged::Unknown(_));
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
                judge(&roots, path, World::Known(&links(&[(path, end), root]))),
                Judged::of(met),
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
            assert!(unknown(judge(&roots, path, World::Known(&links(&[(path, end), root])))), "{path}");
        }
        assert!(unknown(judge(&roots, "/srv/docs/a", World::Known(&links(&[plain])))));
        assert!(unknown(judge(&roots, "/srv/docs/a", World::Known(&links(&[("/srv/docs/a", "/x")])))));
        let root_unknown = links(&[("/srv/docs/a", "/srv/docs/a")]);
        assert_eq!(judge(&roots, "/srv/docs/a", World::Known(&root_unknown)), Judged::Met);
        assert_eq!(judge(&[Root::new("/").unwrap()], "/x", World::Plain), Judged::Met);
        assert!(Root::new("docs").is_err() && Root::new("/a/../b").is_err());
    }
}
