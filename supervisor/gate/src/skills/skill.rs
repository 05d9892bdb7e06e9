//! One skill, as it is kept and as it is proposed.

use std::fmt::Write as _;

use lockhouse_base::language::Language;
use lockhouse_policies::is_hidden;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::name::Name;
use super::signature::signature;
use data_encoding::HEXLOWER;

/// Bytes of code, and of tests.
pub(super) const CODE_BYTES_MAX: usize = 256 * 1024;
/// Characters of a description, as the Agent Skills format has it.
const DESCRIPTION_CHARS_MAX: usize = 1_024;
const TAGS_MAX: usize = 16;
const TAG_CHARS_MAX: usize = 40;

/// What a skill is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skill {
    pub name: Name,
    /// One line.
    pub description: String,
    pub tags: Vec<String>,
    pub language: Language,
    /// From 1.
    pub version: u32,
    pub code: String,
    /// Code in the same language that imports the skill.
    pub tests: Option<String>,
}

impl Skill {
    /// Of the arguments of `skills.save`, which fit its schema.
    ///
    /// # Errors
    /// What is wrong with them, in words.
    pub fn proposed(arguments: &Map<String, Value>) -> Result<Self, String> {
        let text = |name: &str| arguments.get(name).and_then(Value::as_str);
        let of = |name: &str| text(name).ok_or_else(|| format!("{name} is missing"));
        let tags = arguments.get("tags").and_then(Value::as_array).into_iter().flatten();
        let tags = tags.filter_map(Value::as_str).map(str::to_owned).collect();
        let language = match of("language")? {
            "python" => Language::Python,
            "typescript" => Language::Typescript,
            other => return Err(format!("there is no language {other:?}: python or typescript")),
        };
        let skill = Self {
            name: Name::of(of("name")?)?,
            description: of("description")?.split_whitespace().collect::<Vec<_>>().join(" "),
            tags,
            language,
            version: 1,
            code: whole_lines(of("code")?),
            tests: text("tests").filter(|tests| !tests.trim().is_empty()).map(whole_lines),
        };
        skill.check()?;
        Ok(skill)
    }

    /// Whether everything is within its bounds.
    ///
    /// # Errors
    /// What is not, in words.
    pub(super) fn check(&self) -> Result<(), String> {
        check_description(&self.description)?;
        check_tags(&self.tags)?;
        for (what, text) in [("code", Some(&self.code)), ("tests", self.tests.as_ref())] {
            let Some(text) = text else { continue };
            if text.trim().is_empty() {
                return Err(format!("the {what} is empty"));
            }
            if text.len() > CODE_BYTES_MAX {
                return Err(format!("the {what} has {} bytes, the limit is {CODE_BYTES_MAX}", text.len()));
            }
        }
        Ok(())
    }

    /// Whether nothing but the version sets the two apart.
    pub(super) fn says_the_same(&self, other: &Self) -> bool {
        let version = other.version;
        Self { version, ..self.clone() } == *other
    }

    /// SHA-256 of the code.
    pub fn digest(&self) -> String {
        HEXLOWER.encode(&Sha256::digest(self.code.as_bytes()))
    }

    /// How its function is called, as the code has it.
    pub fn signature(&self) -> Option<String> {
        signature(self.language, &self.name, &self.code)
    }

    /// How code gets at it.
    pub fn import(&self) -> String {
        let identifier = self.name.identifier();
        match self.language {
            Language::Python => format!("from skills.{identifier} import {}", self.function()),
            Language::Typescript => format!("import {{ {} }} from \"skills/{identifier}\";", self.function()),
        }
    }

    /// The name of its function, or the one that it should have.
    fn function(&self) -> String {
        super::signature::function(self.language, &self.name, &self.code).unwrap_or_else(|| {
            match self.language {
                Language::Python => self.name.identifier(),
                Language::Typescript => self.name.camel(),
            }
        })
    }

    pub(super) fn code_file(language: Language) -> &'static str {
        match language {
            Language::Python => "skill.py",
            Language::Typescript => "skill.ts",
        }
    }

    pub(super) fn tests_file(language: Language) -> &'static str {
        match language {
            Language::Python => "tests.py",
            Language::Typescript => "tests.ts",
        }
    }

    /// The SKILL.md. A JSON string is a YAML one too.
    pub(super) fn document(&self) -> String {
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
            self.import()
        );
        text
    }

    /// What is told of it in lists and searches.
    pub fn summary(&self) -> Value {
        let mut row = json!({
            "name": self.name.as_str(), "description": self.description, "tags": self.tags,
            "language": self.language.as_str(), "version": self.version, "import": self.import(),
        });
        if let Some(signature) = self.signature() {
            row["signature"] = signature.into();
        }
        row
    }
}

pub(super) fn check_description(description: &str) -> Result<(), String> {
    if description.is_empty() {
        return Err(
            "the description is empty: say in a sentence what the skill does and when to use it".into()
        );
    }
    let chars = description.chars().count();
    if chars > DESCRIPTION_CHARS_MAX {
        return Err(format!("the description has {chars} characters, the limit is {DESCRIPTION_CHARS_MAX}"));
    }
    match description.chars().find(|c| is_hidden(*c)) {
        Some(hidden) => Err(format!("the description has the hidden character {hidden:?}")),
        None => Ok(()),
    }
}

pub(super) fn check_tags(tags: &[String]) -> Result<(), String> {
    if tags.len() > TAGS_MAX {
        return Err(format!("there are {} tags, the limit is {TAGS_MAX}", tags.len()));
    }
    let is_tag = |tag: &&String| {
        let fits =
            !tag.trim().is_empty() && tag.trim() == tag.as_str() && tag.chars().count() <= TAG_CHARS_MAX;
        fits && !tag.contains(',') && !tag.chars().any(is_hidden)
    };
    match tags.iter().find(|tag| !is_tag(tag)) {
        Some(tag) => {
            let tag: String = tag.chars().take(TAG_CHARS_MAX).collect();
            Err(format!("{tag:?} is no tag: use 1 to {TAG_CHARS_MAX} visible characters without a comma"))
        }
        None => Ok(()),
    }
}

/// Ends with a line's end.
fn whole_lines(text: &str) -> String {
    let text = text.trim_end_matches(['\n', '\r']);
    format!("{text}\n")
}
