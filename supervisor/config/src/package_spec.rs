//! The names of Python packages in the configuration, each possibly with extras and a version specifier.

use std::fmt;
use std::str::FromStr;

/// Maximum length of the name of a Python package with its versions, in bytes.
/// Bound: configuration and policy.
const BYTES_MAX: usize = 200;

/// A Python package that programs can import: a name such as `pandas`, possibly with extras and version specifiers, as in
/// `pandas[excel]>=2,<4`. Other forms that installers accept (paths, URLs, options) are invalid.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(try_from = "String")]
pub struct PackageSpec(String);

/// The error for text that names no package.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no name of a Python package; write NAME, or NAME with versions, such as \"pandas>=2,<4\"")]
pub struct InvalidPackage(String);

impl PackageSpec {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the name without extras and versions, as the entry has it.
    pub fn name(&self) -> &str {
        let end = self.0.find(|c: char| !is_name(c)).unwrap_or(self.0.len());
        &self.0[..end]
    }

    /// Whether two entries name the same package: case does not matter, and `-`, `_` and `.` are the same.
    pub fn is_same_package(&self, other: &Self) -> bool {
        normalized(self.name()) == normalized(other.name())
    }

    /// Returns the name as package indexes normalise it: lower case, with `-` for `_` and `.`.
    pub fn normalized_name(&self) -> String {
        normalized(self.name())
    }
}

fn normalized(name: &str) -> String {
    name.to_ascii_lowercase().replace(['_', '.'], "-")
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-_.".contains(c)
}

impl FromStr for PackageSpec {
    type Err = InvalidPackage;

    fn from_str(text: &str) -> Result<Self, InvalidPackage> {
        let text = text.trim();
        let spec = Self(text.to_owned());
        let (name, rest) = text.split_at(spec.name().len());
        let (extras, versions) = match rest.trim_start().strip_prefix('[') {
            Some(rest) => rest.split_once(']').unwrap_or(("?", "")),
            None => ("", rest),
        };
        let ends_well = |name: &str| {
            let alphanumeric = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
            alphanumeric(name.chars().next()) && alphanumeric(name.chars().next_back())
        };
        let is_valid = text.len() <= BYTES_MAX
            && ends_well(name)
            && extras.chars().all(|c| is_name(c) || c == ',' || c == ' ')
            && is_version_list(versions.trim());
        if is_valid { Ok(spec) } else { Err(InvalidPackage(text.chars().take(BYTES_MAX).collect())) }
    }
}

/// Whether the text is empty or a list of version specifiers such as `>=2, <4`.
fn is_version_list(text: &str) -> bool {
    let is_specifier = |part: &str| {
        let version = part.trim().trim_start_matches(|c| "<>=!~".contains(c));
        let has_operator = version.len() < part.trim().len();
        let version = version.trim();
        let is_version = |c: char| c.is_ascii_alphanumeric() || ".*+!_-".contains(c);
        has_operator && !version.is_empty() && version.chars().all(is_version)
    };
    text.is_empty() || text.split(',').all(is_specifier)
}

impl TryFrom<String> for PackageSpec {
    type Error = InvalidPackage;

    fn try_from(text: String) -> Result<Self, InvalidPackage> {
        text.parse()
    }
}

impl fmt::Display for PackageSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_with_versions_are_valid() {
        for (text, name) in [
            ("pandas", "pandas"),
            ("scikit-learn", "scikit-learn"),
            (" pandas>=2,<4 ", "pandas"),
            ("pandas [excel] == 2.*", "pandas"),
            ("a~=1.0", "a"),
        ] {
            assert_eq!(text.parse::<PackageSpec>().map(|spec| spec.name().to_owned()), Ok(name.to_owned()));
        }
        for text in [
            "",
            "-r file",
            "--index-url=http://a",
            "a b",
            "pandas>",
            "pandas 2",
            "a @ http://b",
            "./a",
            "a;b",
            "a\nb",
            "a[x",
            "é",
            "a-",
            "a>=1 --pre",
            "git+https://a",
        ] {
            assert!(text.parse::<PackageSpec>().is_err(), "{text:?}");
        }
        let [a, b] =
            ["Scikit_Learn", "scikit-learn>1"].map(|text| text.parse::<PackageSpec>().expect("a name"));
        assert!(a.is_same_package(&b));
    }
}
