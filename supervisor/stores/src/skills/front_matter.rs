//! Parses the YAML front matter of a SKILL.md, which is untrusted.

use std::collections::BTreeMap;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError};

/// Maximum number of YAML events (scalars, and beginnings and ends of lists and mappings) in the front matter of a
/// skill. A front matter with more is rejected.
/// Bound: skills.
const EVENTS_MAX: usize = 2_000;
/// Maximum nesting depth of lists and mappings in the front matter of a skill.
/// Bound: skills.
const DEPTH_MAX: usize = 16;

/// Why a front matter is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrontMatterFault {
    #[error("it does not begin with a line ---, followed by name and description")]
    NoBeginning,
    #[error("its front matter has no end: a second line --- is missing")]
    NoEnd,
    #[error("its front matter is not YAML: {0}")]
    NotYaml(#[from] ScanError),
    #[error("its front matter has more than {EVENTS_MAX} parts")]
    TooManyParts,
    #[error("line {0} has an alias (*), which is not followed")]
    Alias(usize),
    #[error("line {0} has an anchor (&), which is not followed")]
    Anchor(usize),
    #[error("its front matter is not a mapping of keys to values")]
    NoMapping,
    #[error("line {0} is nested too deeply")]
    TooDeep(usize),
}

/// The fields of a front matter that Lockhouse uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FrontMatter {
    pub(super) name: Option<String>,
    pub(super) description: Option<String>,
    /// The keys of the field `metadata`, each with its values. A key whose value is a list has several values.
    pub(super) metadata: BTreeMap<String, Vec<String>>,
}

impl FrontMatter {
    /// Parses the front matter of a SKILL.md: the text between the first line, which must be `---`, and the next line
    /// `---`.
    ///
    /// # Errors
    /// Fails if there is no valid front matter. The error describes the first fault.
    pub(super) fn parse(document: &str) -> Result<Self, FrontMatterFault> {
        let document = document.strip_prefix('\u{feff}').unwrap_or(document);
        let mut lines = document.split_inclusive('\n');
        if lines.next().is_none_or(|first| first.trim_end() != "---") {
            return Err(FrontMatterFault::NoBeginning);
        }
        let head = document.find('\n').map_or(document.len(), |end| end + 1);
        let mut length = 0;
        for line in lines {
            if line.trim_end() == "---" {
                return Self::parse_yaml(&document[head..head + length]);
            }
            length += line.len();
        }
        Err(FrontMatterFault::NoEnd)
    }

    fn parse_yaml(yaml: &str) -> Result<Self, FrontMatterFault> {
        let mut read = Self::default();
        // The mappings and lists around the parser's position.
        let mut open: Vec<Level> = Vec::new();
        for (count, event) in Parser::new_from_str(yaml).enumerate() {
            let (event, span) = event?;
            let line = span.start.line() + 1;
            if count >= EVENTS_MAX {
                return Err(FrontMatterFault::TooManyParts);
            }
            match event {
                Event::Alias(_) => return Err(FrontMatterFault::Alias(line)),
                Event::Scalar(_, _, anchor, _)
                | Event::SequenceStart(anchor, _)
                | Event::MappingStart(anchor, _)
                    if anchor != 0 =>
                {
                    return Err(FrontMatterFault::Anchor(line));
                }
                Event::MappingStart(..) => open.push(Level::Mapping(None)),
                Event::SequenceStart(..) => open.push(Level::Sequence),
                Event::MappingEnd | Event::SequenceEnd => {
                    open.pop();
                    finish_value(&mut open);
                }
                Event::Scalar(text, style, ..) => match open.last_mut() {
                    Some(Level::Mapping(key @ None)) => *key = Some(text.into_owned()),
                    Some(_) => {
                        read.set_value(&open, &text, style);
                        finish_value(&mut open);
                    }
                    None => return Err(FrontMatterFault::NoMapping),
                },
                _ => {}
            }
            if open.len() > DEPTH_MAX {
                return Err(FrontMatterFault::TooDeep(line));
            }
        }
        Ok(read)
    }

    /// Stores a scalar value in the field for the current key path, which `open` describes. Ignores unknown keys
    /// and nulls; `style` distinguishes a null from a quoted string such as `"null"`.
    fn set_value(&mut self, open: &[Level], text: &str, style: ScalarStyle) {
        let is_null = style == ScalarStyle::Plain && matches!(text, "" | "~" | "null");
        let keys: Vec<&str> = open.iter().filter_map(Level::key).collect();
        match (keys.as_slice(), open.len()) {
            _ if is_null => {}
            (["name"], 1) => self.name = Some(text.to_owned()),
            (["description"], 1) => self.description = Some(text.to_owned()),
            (["metadata", key], 2 | 3) => {
                self.metadata.entry((*key).to_owned()).or_default().push(text.to_owned());
            }
            _ => {}
        }
    }
}

/// A mapping or list that the parser has entered and not yet left.
enum Level {
    /// A mapping. Contains the key whose value comes next, or `None` if a key comes next.
    Mapping(Option<String>),
    Sequence,
}

impl Level {
    fn key(&self) -> Option<&str> {
        match self {
            Self::Mapping(key) => key.as_deref(),
            Self::Sequence => None,
        }
    }
}

/// Updates `open` at the end of a value: if the value is in a mapping, the next scalar is a key.
fn finish_value(open: &mut [Level]) {
    if let Some(Level::Mapping(key)) = open.last_mut() {
        *key = None;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn valid_front_matter_is_parsed() {
        let text = "---\nname: pdf\ndescription: >\n  Reads\n  files.\nlicense: MIT\nallowed-tools: [a, b]\nmetadata:\n  \
                    version: \"2\"\n  tags: [x, 'y z']\n  deep: {a: {b: c}}\n---\n# Body\n---\n";
        let read = FrontMatter::parse(text).expect("valid");
        assert_eq!(
            (read.name.as_deref(), read.description.as_deref()),
            (Some("pdf"), Some("Reads files.\n"))
        );
        assert_eq!(read.metadata["version"], ["2"]);
        assert_eq!(read.metadata["tags"], ["x", "y z"]);
        assert!(!read.metadata.contains_key("b"));
    }

    #[test]
    fn invalid_front_matter_is_reported() {
        for (text, why) in [
            ("", "begin with"),
            ("# Title\n", "begin with"),
            ("---\nname: a\n", "has no end"),
            ("---\nname: a: b: c\n---\n", "not YAML"),
            ("---\n- a\n- b\n---\n", ""),
            ("---\na: &x [1]\nb: *x\n---\n", "anchor"),
            ("---\nname: *x\n---\n", ""),
            ("---\njust text\n---\n", "not a mapping"),
        ] {
            match FrontMatter::parse(text) {
                Err(fault) => assert!(fault.to_string().contains(why), "{text:?}: {fault}"),
                Ok(read) => assert_eq!((why, read), ("", FrontMatter::default()), "{text:?}"),
            }
        }
        let deep = format!("---\na: {}\n---\n", "[".repeat(5_000));
        assert!(FrontMatter::parse(&deep).is_err());
        let bomb = format!("---\n{}---\n", "a: &a [x]\n".repeat(10));
        assert!(FrontMatter::parse(&bomb).is_err());
    }

    proptest! {
        #[test]
        fn no_input_makes_the_parser_panic(text in "[-:&*!|>'\"{}\\[\\],#%@ \\n\\ta-c]{0,200}") {
            let _ = FrontMatter::parse(&format!("---\n{text}\n---\n"));
            let _ = FrontMatter::parse(&text);
        }
    }
}
