//! Names of skills. All spellings of a skill's name that programs may use are converted to one name, that of
//! the skill's folder.

use std::fmt;

use lockhouse_protocol::SkillName;

/// Maximum number of characters of a skill's name, as in the Agent Skills specification.
/// Bound: skills.
const NAME_CHARS_MAX: usize = 64;
/// Names that no skill may have, because the module `skills` that programs import already contains functions with
/// these names.
const RESERVED: [&str; 4] = ["save", "search", "list", "run"];

/// Why a name is not valid for the folder of a skill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameFault {
    #[error("use 1 to 64 of a-z 0-9 and, between words, _ or -")]
    Characters,
    #[error("it may not begin or end with _ or -, nor have two of them together")]
    Separators,
    #[error("it may not begin with a digit, since code imports it by its name")]
    Digit,
    #[error("the module skills has that name itself")]
    Reserved,
}

/// The error for a program that uses an invalid skill name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{written:?} is no name for a skill: {fault}")]
pub struct InvalidSkillName {
    /// The invalid name as written in the program, truncated.
    written: String,
    fault: NameFault,
}

/// The name of a skill, which is also the name of its folder: lower-case letters, digits and single hyphens.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(String);

impl Name {
    /// Converts a skill's name as written in a program: `weekly_report`, `weeklyReport` and `weekly-report` are
    /// the same skill.
    ///
    /// # Errors
    /// Fails if the name is not valid. The error describes the fault.
    pub fn parse(written: &str) -> Result<Self, InvalidSkillName> {
        let mut folder = String::with_capacity(written.len());
        let mut before = '-';
        for c in written.chars().take(2 * NAME_CHARS_MAX) {
            if c.is_ascii_uppercase() && (before.is_ascii_lowercase() || before.is_ascii_digit()) {
                folder.push('-');
            }
            folder.push(if c == '_' { '-' } else { c.to_ascii_lowercase() });
            before = c;
        }
        let written = || written.chars().take(NAME_CHARS_MAX).collect();
        Self::from_folder(&folder).map_err(|fault| InvalidSkillName { written: written(), fault })
    }

    /// Checks that the name of a folder is a valid name of a skill.
    ///
    /// # Errors
    /// Fails if no skill may have this name. The error describes the fault.
    pub fn from_folder(folder: &str) -> Result<Self, NameFault> {
        let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if folder.is_empty() || folder.len() > NAME_CHARS_MAX || !folder.chars().all(allowed) {
            return Err(NameFault::Characters);
        }
        if folder.starts_with('-') || folder.ends_with('-') || folder.contains("--") {
            return Err(NameFault::Separators);
        }
        if folder.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(NameFault::Digit);
        }
        if RESERVED.contains(&folder) {
            return Err(NameFault::Reserved);
        }
        Ok(Self(folder.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the name in snake case, for Python.
    pub fn to_snake_case(&self) -> String {
        self.0.replace('-', "_")
    }

    /// Returns the name in camel case, for TypeScript.
    pub fn to_camel_case(&self) -> String {
        let mut words = self.0.split('-');
        let mut camel = words.next().unwrap_or_default().to_owned();
        for word in words {
            let mut letters = word.chars();
            camel.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
            camel.push_str(letters.as_str());
        }
        camel
    }
}

impl TryFrom<&SkillName> for Name {
    type Error = InvalidSkillName;

    fn try_from(name: &SkillName) -> Result<Self, InvalidSkillName> {
        Self::parse(name.as_str())
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_spellings_of_a_name_map_to_one_folder() {
        for (written, folder) in [
            ("weekly_report", "weekly-report"),
            ("weeklyReport", "weekly-report"),
            ("weekly-report", "weekly-report"),
            ("WeeklyReport", "weekly-report"),
            ("report", "report"),
            ("fooV2", "foo-v2"),
            ("parseHTML", "parse-html"),
        ] {
            assert_eq!(Name::parse(written).as_ref().map(Name::as_str), Ok(folder), "{written}");
        }
        let name = Name::parse("weekly-report").expect("a name");
        assert_eq!(
            (name.to_snake_case().as_str(), name.to_camel_case().as_str()),
            ("weekly_report", "weeklyReport")
        );
    }

    #[test]
    fn invalid_skill_names_are_refused() {
        for written in [
            "", ".", "..", "a/b", "a\\b", "-a", "a-", "a--b", "a__b", "_a", "2x", "é", "a b", "a\0", "save",
            "search", "list",
        ] {
            assert!(Name::parse(written).is_err(), "{written:?}");
        }
        assert!(Name::parse(&"a".repeat(64)).is_ok() && Name::parse(&"a".repeat(65)).is_err());
        assert!(Name::from_folder("Weekly").is_err() && Name::from_folder(".versions").is_err());
    }
}
