//! A skill: its fields, their validation, and the text of its SKILL.md.

use std::fmt::Write as _;

use lockhouse_policies::is_hidden;
use lockhouse_protocol::Language;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::signature::signature;
use super::skill_name::{InvalidSkillName, Name};
use data_encoding::HEXLOWER;

/// Maximum length, in bytes, of a skill's code and of its tests, each.
/// Bound: skills.
pub(super) const CODE_BYTES_MAX: usize = 256 * 1024;
/// Maximum number of characters of the description of a skill, as in the Agent Skills specification.
/// Bound: skills.
const DESCRIPTION_CHARS_MAX: usize = 1_024;
/// Maximum number of tags of a skill.
/// Bound: skills.
const TAGS_MAX: usize = 16;
/// Maximum number of characters of a tag of a skill.
/// Bound: skills.
const TAG_CHARS_MAX: usize = 40;

/// Why a skill is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SkillFault {
    #[error("{0} is missing")]
    Missing(&'static str),
    #[error("there is no language {0:?}: python or typescript")]
    UnknownLanguage(String),
    #[error(transparent)]
    Name(#[from] InvalidSkillName),
    #[error("the description is empty: say in a sentence what the skill does and when to use it")]
    EmptyDescription,
    #[error("the description has {0} characters, the limit is {DESCRIPTION_CHARS_MAX}")]
    LongDescription(usize),
    #[error("the description has the hidden character {0:?}")]
    HiddenCharacter(char),
    #[error("there are {0} tags, the limit is {TAGS_MAX}")]
    TooManyTags(usize),
    #[error("{0:?} is no tag: use 1 to {TAG_CHARS_MAX} visible characters without a comma")]
    InvalidTag(String),
    #[error("the {0} is empty")]
    Empty(&'static str),
    #[error("the {file} has {bytes} bytes, the limit is {CODE_BYTES_MAX}")]
    TooLong { file: &'static str, bytes: usize },
}

/// A skill: a reusable function that a program has saved, or that a shared directory contains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skill {
    pub name: Name,
    /// What the skill does, on one line.
    pub description: String,
    pub tags: Vec<String>,
    pub language: Language,
    /// The version number of the skill; the first version has the number 1.
    pub version: u32,
    pub code: String,
    /// A program in the language of the skill that imports the skill and tests it. `None` if the skill has no tests.
    pub tests: Option<String>,
}

impl Skill {
    /// Creates a skill from the arguments of a call of `skills.save`, which were validated against the tool's schema.
    ///
    /// # Errors
    /// Fails if a field is invalid. The error describes the first fault.
    pub fn from_arguments(arguments: &Map<String, Value>) -> Result<Self, SkillFault> {
        let text = |name: &str| arguments.get(name).and_then(Value::as_str);
        let of = |name: &'static str| text(name).ok_or(SkillFault::Missing(name));
        let tags = arguments.get("tags").and_then(Value::as_array).into_iter().flatten();
        let tags = tags.filter_map(Value::as_str).map(str::to_owned).collect();
        let language = match of("language")? {
            "python" => Language::Python,
            "typescript" => Language::Typescript,
            other => return Err(SkillFault::UnknownLanguage(other.to_owned())),
        };
        let skill = Self {
            name: Name::parse(of("name")?)?,
            description: of("description")?.split_whitespace().collect::<Vec<_>>().join(" "),
            tags,
            language,
            version: 1,
            code: with_final_newline(of("code")?),
            tests: text("tests").filter(|tests| !tests.trim().is_empty()).map(with_final_newline),
        };
        skill.validate()?;
        Ok(skill)
    }

    /// Checks that all fields except the name are valid.
    ///
    /// # Errors
    /// Fails if a field is invalid. The error describes the first fault.
    pub(super) fn validate(&self) -> Result<(), SkillFault> {
        check_description(&self.description)?;
        check_tags(&self.tags)?;
        for (file, text) in [("code", Some(&self.code)), ("tests", self.tests.as_ref())] {
            let Some(text) = text else { continue };
            if text.trim().is_empty() {
                return Err(SkillFault::Empty(file));
            }
            if text.len() > CODE_BYTES_MAX {
                return Err(SkillFault::TooLong { file, bytes: text.len() });
            }
        }
        Ok(())
    }

    /// Whether two skills are equal except for their version numbers.
    pub(super) fn has_same_content(&self, other: &Self) -> bool {
        let version = other.version;
        Self { version, ..self.clone() } == *other
    }

    /// Returns the SHA-256 digest of the skill's code, in hexadecimal.
    pub fn digest(&self) -> String {
        HEXLOWER.encode(&Sha256::digest(self.code.as_bytes()))
    }

    /// Returns the signature of the skill's function; `None` if the code defines no function.
    pub fn signature(&self) -> Option<String> {
        signature(self.language, &self.name, &self.code)
    }

    /// Returns the statement with which a program imports the skill's function.
    pub fn import_statement(&self) -> String {
        let identifier = self.name.to_snake_case();
        match self.language {
            Language::Python => format!("from skills.{identifier} import {}", self.function_name()),
            Language::Typescript => {
                format!("import {{ {} }} from \"skills/{identifier}\";", self.function_name())
            }
        }
    }

    /// Returns the name of the skill's function. If the code defines no function, the name is derived from the
    /// skill's name.
    fn function_name(&self) -> String {
        super::signature::function_name(self.language, &self.name, &self.code).unwrap_or_else(|| {
            match self.language {
                Language::Python => self.name.to_snake_case(),
                Language::Typescript => self.name.to_camel_case(),
            }
        })
    }

    /// Returns the name of the file that contains the code of a skill in this language.
    pub(super) fn code_file(language: Language) -> &'static str {
        match language {
            Language::Python => "skill.py",
            Language::Typescript => "skill.ts",
        }
    }

    /// Returns the name of the file that contains the tests of a skill in this language.
    pub(super) fn tests_file(language: Language) -> &'static str {
        match language {
            Language::Python => "tests.py",
            Language::Typescript => "tests.ts",
        }
    }

    /// Returns the text of the SKILL.md. Strings in its front matter are written as JSON, which is valid YAML.
    pub(super) fn to_markdown(&self) -> String {
        let Self { name, description, tags, language, version, .. } = self;
        let (language, quoted) = (language.as_str(), |text: &str| Value::from(text).to_string());
        let mut text = format!("---\nname: {name}\ndescription: {}\nmetadata:\n", quoted(description));
        let _ = writeln!(text, "  version: \"{version}\"\n  language: {language}");
        if !tags.is_empty() {
            let _ = writeln!(text, "  tags: {}", quoted(&tags.join(", ")));
        }
        let fence = if self.language == Language::Python { "python" } else { "ts" };
        let _ = write!(
            text,
            "---\n\n# {name}\n\n{description}\n\nThe code is in `{}`. In code that Lockhouse runs:\n\n```{fence}\n{}\n```\n",
            Self::code_file(self.language),
            self.import_statement()
        );
        text
    }

    /// Returns the entry of the skill in lists and search results, as JSON: all fields except code and tests, with
    /// the import statement and the signature.
    pub fn summary(&self) -> Value {
        let mut row = json!({
            "name": self.name.as_str(), "description": self.description, "tags": self.tags,
            "language": self.language.as_str(), "version": self.version, "import": self.import_statement(),
        });
        if let Some(signature) = self.signature() {
            row["signature"] = signature.into();
        }
        row
    }
}

pub(super) fn check_description(description: &str) -> Result<(), SkillFault> {
    if description.is_empty() {
        return Err(SkillFault::EmptyDescription);
    }
    let chars = description.chars().count();
    if chars > DESCRIPTION_CHARS_MAX {
        return Err(SkillFault::LongDescription(chars));
    }
    match description.chars().find(|c| is_hidden(*c)) {
        Some(hidden) => Err(SkillFault::HiddenCharacter(hidden)),
        None => Ok(()),
    }
}

fn check_tags(tags: &[String]) -> Result<(), SkillFault> {
    if tags.len() > TAGS_MAX {
        return Err(SkillFault::TooManyTags(tags.len()));
    }
    let is_tag = |tag: &&String| {
        let fits =
            !tag.trim().is_empty() && tag.trim() == tag.as_str() && tag.chars().count() <= TAG_CHARS_MAX;
        fits && !tag.contains(',') && !tag.chars().any(is_hidden)
    };
    match tags.iter().find(|tag| !is_tag(tag)) {
        Some(tag) => Err(SkillFault::InvalidTag(tag.chars().take(TAG_CHARS_MAX).collect())),
        None => Ok(()),
    }
}

/// Makes a text end with exactly one newline.
fn with_final_newline(text: &str) -> String {
    let text = text.trim_end_matches(['\n', '\r']);
    format!("{text}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_of_a_skill_are_reported() {
        let good = json!({"name": "weekly_report", "description": "Reports.", "language": "python", "code": "x = 1"});
        let code_or_error = |member: &str, value: Value| {
            let mut arguments = good.as_object().cloned().expect("an object");
            arguments.insert(member.to_owned(), value);
            Skill::from_arguments(&arguments).map_or_else(|fault| fault.to_string(), |skill| skill.code)
        };
        let long = "x".repeat(CODE_BYTES_MAX);
        for (member, value, expected) in [
            ("tests", json!(" "), "x = 1\n"),
            ("code", Value::Null, "code is missing"),
            ("code", json!(" "), "the code is empty"),
            ("code", json!(long), "the code has 262145 bytes, the limit is 262144"),
            ("tests", json!(long), "the tests has 262145 bytes, the limit is 262144"),
            ("language", json!("perl"), "there is no language \"perl\": python or typescript"),
            (
                "name",
                json!("2x"),
                "\"2x\" is no name for a skill: it may not begin with a digit, since code imports it by its name",
            ),
            (
                "name",
                json!("save"),
                "\"save\" is no name for a skill: the module skills has that name itself",
            ),
            (
                "description",
                json!("x".repeat(1_025)),
                "the description has 1025 characters, the limit is 1024",
            ),
            ("tags", json!(["a,b"]), "\"a,b\" is no tag: use 1 to 40 visible characters without a comma"),
            ("tags", json!(vec!["a"; 17]), "there are 17 tags, the limit is 16"),
        ] {
            assert_eq!(code_or_error(member, value), expected, "{member}");
        }
    }
}
