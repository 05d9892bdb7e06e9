//! Names of skills: one for the folder, however code writes it.

use std::fmt;

use lockhouse_protocol::SkillName;

/// The longest name, as the Agent Skills format has it.
const NAME_CHARS_MAX: usize = 64;
/// What the module `skills` has itself.
const RESERVED: [&str; 3] = ["save", "search", "list"];

/// Why a folder's name is none of a skill.
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

/// A name, as code writes it, that no skill can have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{written:?} is no name for a skill: {fault}")]
pub struct InvalidSkillName {
    /// Its beginning.
    written: String,
    fault: NameFault,
}

/// The name of a skill's folder: small letters, digits, and single hyphens between them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(String);

impl Name {
    /// The folder's name for a name as code writes it: `weekly_report`, `weeklyReport` and `weekly-report` are one skill.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn of(written: &str) -> Result<Self, InvalidSkillName> {
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
        Self::of_folder(&folder).map_err(|fault| InvalidSkillName { written: written(), fault })
    }

    /// The name of a folder as it is.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn of_folder(folder: &str) -> Result<Self, NameFault> {
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

    /// As Python's modules and functions are named.
    pub fn identifier(&self) -> String {
        self.0.replace('-', "_")
    }

    /// As functions are named in TypeScript.
    pub fn camel(&self) -> String {
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
        Self::of(name.as_str())
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
    fn every_way_to_write_a_name_is_one_folder() {
        for (written, folder) in [
            ("weekly_report", "weekly-report"),
            ("weeklyReport", "weekly-report"),
            ("weekly-report", "weekly-report"),
            ("WeeklyReport", "weekly-report"),
            ("report", "report"),
            ("fooV2", "foo-v2"),
            ("parseHTML", "parse-html"),
        ] {
            assert_eq!(Name::of(written).as_ref().map(Name::as_str), Ok(folder), "{written}");
        }
        let name = Name::of("weekly-report").expect("a name");
        assert_eq!((name.identifier().as_str(), name.camel().as_str()), ("weekly_report", "weeklyReport"));
    }

    #[test]
    fn what_could_be_another_path_or_no_name_is_refused() {
        for written in [
            "", ".", "..", "a/b", "a\\b", "-a", "a-", "a--b", "a__b", "_a", "2x", "é", "a b", "a\0", "save",
            "search", "list",
        ] {
            assert!(Name::of(written).is_err(), "{written:?}");
        }
        assert!(Name::of(&"a".repeat(64)).is_ok() && Name::of(&"a".repeat(65)).is_err());
        assert!(Name::of_folder("Weekly").is_err() && Name::of_folder(".versions").is_err());
    }
}
