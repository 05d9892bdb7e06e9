//! Patterns of paths, such as `/home/ann/data/**/*.csv`, that say which files programs may read or write.

use std::path::{Component, Path, PathBuf};

/// Maximum number of components of a pattern, and of a path that is matched.
/// Bound: files of the host.
const COMPONENTS_MAX: usize = 128;

/// A pattern of absolute paths. `*` matches any part of one name, `**` any number of folders. A pattern without a star
/// matches the path itself and everything below it. Stars do not match names that begin with a dot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePattern {
    text: String,
    /// The folder before the first component with a star, or the whole path if there is no star.
    root: PathBuf,
    /// The components after the root.
    rest: Vec<Part>,
}

/// A component of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    /// A name, in which each `*` matches any characters.
    Name(String),
    /// `**`: any number of folders, or none.
    AnyDepth,
}

/// Why a text is no pattern of paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidFilePattern {
    #[error("expected an absolute path, or one that begins with ~/")]
    Relative,
    #[error("expected a path without `.`, `..`, empty parts, and control characters")]
    NotNormal,
    #[error("expected at most {COMPONENTS_MAX} parts")]
    TooLong,
    #[error("expected `**` only as a whole part of the path, as in /data/**/*.csv")]
    StarsInName,
}

impl FilePattern {
    /// Parses a pattern whose `~` is already replaced by the home directory.
    ///
    /// # Errors
    /// If the text is not an absolute path, or is not normalised.
    pub fn parse(text: &str) -> Result<Self, InvalidFilePattern> {
        let path = Path::new(text);
        if !path.is_absolute() {
            return Err(InvalidFilePattern::Relative);
        }
        let names: Vec<&str> = text.split('/').skip(1).collect();
        let names = names.strip_suffix(&[""]).unwrap_or(&names);
        let is_normal =
            |name: &&str| !matches!(*name, "" | "." | "..") && !name.chars().any(char::is_control);
        if !names.iter().all(is_normal) {
            return Err(InvalidFilePattern::NotNormal);
        }
        if names.len() > COMPONENTS_MAX {
            return Err(InvalidFilePattern::TooLong);
        }
        let literals = names.iter().take_while(|name| !name.contains('*')).count();
        let root = names[..literals].iter().fold(PathBuf::from("/"), |root, name| root.join(name));
        let part = |name: &&str| match *name {
            "**" => Ok(Part::AnyDepth),
            name if name.contains("**") => Err(InvalidFilePattern::StarsInName),
            name => Ok(Part::Name(name.to_owned())),
        };
        let mut rest: Vec<Part> = names[literals..].iter().map(part).collect::<Result<_, _>>()?;
        if rest.is_empty() {
            rest.push(Part::AnyDepth);
        }
        Ok(Self { text: text.to_owned(), root, rest })
    }

    /// Returns the pattern as it was written, with the home directory in place of `~`.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the folder that contains everything that the pattern matches, or the file itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Whether the pattern matches the path. `root` is the pattern's root, or the target of its symbolic links.
    pub fn matches(&self, root: &Path, path: &Path) -> bool {
        self.states_after(root, path).is_some_and(|states| states[self.rest.len()])
    }

    /// Whether the pattern could match a path below the folder `path`. `root` is as in [`Self::matches`].
    pub fn may_match_below(&self, root: &Path, path: &Path) -> bool {
        if root.starts_with(path) {
            return true;
        }
        self.states_after(root, path)
            .is_some_and(|states| states[..self.rest.len()].iter().any(|reached| *reached))
    }

    /// Returns which positions in `rest` the components of `path` below the root can lead to: the element at N says
    /// whether the first N parts can match all of them. `None` if the path is not below the root, or is not normal.
    fn states_after(&self, root: &Path, path: &Path) -> Option<Vec<bool>> {
        let below = path.strip_prefix(root).ok()?;
        let mut states = vec![false; self.rest.len() + 1];
        states[0] = true;
        self.skip_depths(&mut states);
        for (count, component) in below.components().enumerate() {
            let Component::Normal(name) = component else { return None };
            let name = name.to_str().filter(|_| count < COMPONENTS_MAX)?;
            let mut next = vec![false; states.len()];
            for (at, part) in self.rest.iter().enumerate().filter(|(at, _)| states[*at]) {
                match part {
                    Part::AnyDepth if !name.starts_with('.') => next[at] = true,
                    Part::Name(pattern) if name_matches(pattern, name) => next[at + 1] = true,
                    Part::AnyDepth | Part::Name(_) => {}
                }
            }
            states = next;
            self.skip_depths(&mut states);
        }
        Some(states)
    }

    /// Adds the positions that are reached without a component: after `**`, which may match no folder.
    fn skip_depths(&self, states: &mut [bool]) {
        for (at, part) in self.rest.iter().enumerate() {
            states[at + 1] |= states[at] && *part == Part::AnyDepth;
        }
    }
}

/// Whether a name matches a pattern in which each `*` stands for any characters. A star does not match a dot at the
/// beginning of the name. The time is bounded by the product of both lengths.
fn name_matches(pattern: &str, name: &str) -> bool {
    if name.starts_with('.') && !pattern.starts_with('.') {
        return false;
    }
    let mut pieces = pattern.split('*');
    let first = pieces.next().unwrap_or_default();
    let Some(mut left) = name.strip_prefix(first) else { return false };
    let Some(last) = pieces.next_back() else { return left.is_empty() };
    for piece in pieces {
        let Some(at) = left.find(piece) else { return false };
        left = &left[at + piece.len()..];
    }
    left.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_paths() {
        let rows = [
            ("/d", "/d", true),
            ("/d", "/d/a/b.csv", true),
            ("/d/", "/d/a", true),
            ("/d", "/d2", false),
            ("/d", "/d/.ssh/id", false),
            ("/d", "/d/a/.env", false),
            ("/d/.env", "/d/.env", true),
            ("/d/**/*.csv", "/d/a.csv", true),
            ("/d/**/*.csv", "/d/a/b/c.csv", true),
            ("/d/**/*.csv", "/d/a/b/c.txt", false),
            ("/d/**/*.csv", "/d/.a/c.csv", false),
            ("/d/*.csv", "/d/a/b.csv", false),
            ("/d/*.csv", "/d/.csv", false),
            ("/d/.*", "/d/.csv", true),
            ("/d/a*b*c", "/d/aXbXc", true),
            ("/d/a*b*c", "/d/abcX", false),
            ("/d/*a", "/d/a", true),
            ("/d/a*a", "/d/a", false),
            ("/d/*/x", "/d/y/x", true),
            ("/d/*/x", "/d/x", false),
            ("/d/**", "/d/x/y", true),
            ("/d/**/a/**/b", "/d/1/a/2/3/b", true),
            ("/d/**/a/**/b", "/d/1/2/3/b", false),
            ("/", "/etc/x", true),
            ("/d", "/d/../e", false),
        ];
        for (pattern, path, expected) in rows {
            let parsed = FilePattern::parse(pattern).expect("a pattern");
            assert_eq!(parsed.matches(&parsed.root, Path::new(path)), expected, "{pattern} {path}");
        }
    }

    #[test]
    fn folders_on_the_way_to_a_match_can_be_listed() {
        let rows = [
            ("/d/**/*.csv", "/d", true),
            ("/d/**/*.csv", "/d/a/b", true),
            ("/d/**/*.csv", "/e", false),
            ("/d/**/*.csv", "/", true),
            ("/d/*/x", "/d/a", true),
            ("/d/*/x", "/d/a/b", false),
            ("/d/a.csv", "/d", true),
        ];
        for (pattern, folder, expected) in rows {
            let parsed = FilePattern::parse(pattern).expect("a pattern");
            assert_eq!(
                parsed.may_match_below(&parsed.root, Path::new(folder)),
                expected,
                "{pattern} {folder}"
            );
        }
    }

    #[test]
    fn texts_that_are_no_patterns_are_errors() {
        let rows = [
            ("d/x", InvalidFilePattern::Relative),
            ("~/d", InvalidFilePattern::Relative),
            ("/d/../e", InvalidFilePattern::NotNormal),
            ("/d//e", InvalidFilePattern::NotNormal),
            ("/d/\0", InvalidFilePattern::NotNormal),
            ("/d/a**", InvalidFilePattern::StarsInName),
        ];
        for (text, expected) in rows {
            assert_eq!(FilePattern::parse(text), Err(expected), "{text}");
        }
        assert_eq!(FilePattern::parse(&"/d".repeat(COMPONENTS_MAX + 1)), Err(InvalidFilePattern::TooLong));
    }

    #[test]
    fn a_pattern_with_many_stars_takes_bounded_time() {
        let pattern =
            FilePattern::parse(&format!("/d/{}x", "**/*a*a*a*a*a*/".repeat(30))).expect("a pattern");
        let path = format!("/d{}", format!("/{}", "a".repeat(200)).repeat(100));
        assert!(!pattern.matches(&pattern.root, Path::new(&path)));
    }
}
