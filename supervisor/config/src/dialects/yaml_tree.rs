//! Parses YAML into the common syntax tree. Aliases are rejected, since a few of them can stand for a text of any size.

use lockhouse_policies::{Diagnostics, Source};
use saphyr_parser::{Event, Parser, ScalarStyle, Span};

use super::document_tree::{Key, Node, Table, Value};
use crate::redacted_diagnostic;

/// The maximum nesting depth of lists and tables in a YAML document.
const DEPTH_MAX: usize = 64;

/// Whether a text is YAML that lists MCP servers. A line of TOML or of a JSON object never begins with `mcpServers:`.
pub(super) fn looks_like_yaml(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("mcpServers:"))
}

/// Parses the first document of a YAML text.
///
/// # Errors
/// The text is not valid YAML, has an alias, or is nested more than 64 levels deep.
pub(super) fn parse(source: &Source) -> Result<Node, Diagnostics> {
    let text = &source.text;
    // Positions of the parser count characters.
    let mut bytes: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    bytes.push(text.len());
    let mut reader = Reader { events: Parser::new_from_str(text), bytes };
    reader.document().map_err(|fault| {
        let label = fault.label.to_owned();
        let diagnostic = redacted_diagnostic::new(source, fault.at, "the file is not valid YAML", label);
        diagnostic.with_help("correct the file, or give the servers as JSON with {\"mcpServers\": …}").into()
    })
}

struct Fault {
    at: Option<std::ops::Range<usize>>,
    label: &'static str,
}

struct Reader<'t> {
    events: Parser<'t, saphyr_parser::StrInput<'t>>,
    /// The byte offset of each character of the text, and as its last item the length of the text. The YAML parser
    /// counts characters.
    bytes: Vec<usize>,
}

impl<'t> Reader<'t> {
    fn byte(&self, character: usize) -> usize {
        self.bytes[character.min(self.bytes.len() - 1)]
    }

    fn range(&self, span: Span) -> std::ops::Range<usize> {
        self.byte(span.start.index())..self.byte(span.end.index())
    }

    fn next(&mut self) -> Result<(Event<'t>, std::ops::Range<usize>), Fault> {
        match self.events.next() {
            Some(Ok((event, span))) => Ok((event, self.range(span))),
            Some(Err(error)) => {
                let at = self.byte(error.marker().index());
                Err(Fault { at: Some(at..at), label: "something that does not belong here" })
            }
            None => Err(Fault { at: None, label: "the file ends too early" }),
        }
    }

    fn document(&mut self) -> Result<Node, Fault> {
        loop {
            match self.next()? {
                (Event::StreamStart | Event::DocumentStart(_) | Event::Nothing, _) => {}
                (Event::StreamEnd | Event::DocumentEnd, at) => return Ok(Node { at, value: Value::Null }),
                (event, at) => return self.node(event, at, 0),
            }
        }
    }

    fn node(&mut self, event: Event<'t>, at: std::ops::Range<usize>, depth: usize) -> Result<Node, Fault> {
        let fault = |label| Err(Fault { at: Some(at.clone()), label });
        let value = match event {
            _ if depth > DEPTH_MAX => return fault("nested too deeply"),
            Event::Alias(_) => return fault("an alias, which is not supported: write the value again"),
            Event::Scalar(text, style, ..) => scalar(&text, style),
            Event::SequenceStart(..) => {
                let mut list = Vec::new();
                loop {
                    match self.next()? {
                        (Event::SequenceEnd, _) => break Value::List(list),
                        (event, at) => list.push(self.node(event, at, depth + 1)?),
                    }
                }
            }
            Event::MappingStart(..) => {
                let mut table: Table = Vec::new();
                loop {
                    let key = match self.next()? {
                        (Event::MappingEnd, _) => break Value::Table(table),
                        (Event::Scalar(name, ..), at) => Key { at, name: name.into_owned() },
                        (_, at) => return Err(Fault { at: Some(at), label: "a key that is not a string" }),
                    };
                    let (event, at) = self.next()?;
                    let value = self.node(event, at, depth + 1)?;
                    table.retain(|(other, _)| other.name != key.name);
                    table.push((key, value));
                }
            }
            _ => return fault("something that does not belong here"),
        };
        Ok(Node { at, value })
    }
}

/// Converts a YAML scalar to null, a boolean, a number or text. A scalar that is quoted or a block (`|`, `>`) is always
/// text.
fn scalar(text: &str, style: ScalarStyle) -> Value {
    if style != ScalarStyle::Plain {
        return Value::Text(text.to_owned());
    }
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Flag(true),
        "false" | "False" | "FALSE" => Value::Flag(false),
        _ => match text.parse::<f64>() {
            Ok(number) if text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) => {
                Value::Number(number)
            }
            _ => Value::Text(text.to_owned()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Result<String, String> {
        let source = Source { path: "config.yaml".into(), text: text.into() };
        parse(&source).map(|node| node.to_json().to_string()).map_err(|faults| faults.to_string())
    }

    #[test]
    fn values_have_the_types_of_the_core_schema() {
        let text = "a: [1, -2.5, \"1\", '~']\nb: {c: true, d: ~, e: nan}\nf: |\n  two\n  lines\n";
        let expected = r#"{"a":[1,-2.5,"1","~"],"b":{"c":true,"d":null,"e":"nan"},"f":"two\nlines\n"}"#;
        assert_eq!(json(text).as_deref(), Ok(expected));
        assert_eq!(json("").as_deref(), Ok("null"));
    }

    #[test]
    fn aliases_deep_nesting_and_broken_files_are_reported_without_their_text() {
        for (text, label) in [
            ("a: &x SEKRET\nb: *x\n".to_owned(), "an alias"),
            (format!("a: {}SEKRET{}\n", "[".repeat(100), "]".repeat(100)), "nested too deeply"),
            ("a: [SEKRET\nb: 1\n".to_owned(), "does not belong here"),
            ("{a: SEKRET}: 1\n".to_owned(), "a key that is not a string"),
        ] {
            let fault = json(&text).expect_err("a fault");
            assert!(fault.contains(label) && !fault.contains("SEKRET"), "{fault}");
        }
    }
}
