//! The content blocks of a result: their form, their texts, and whether they only repeat the structured content.

use serde::Deserialize;
use serde_json::value::RawValue;

/// The content blocks of a tool's result. Each has the members that its type requires.
pub(super) struct Content<'a> {
    json: &'a str,
    blocks: Vec<Block<'a>>,
}

/// The members of a content block that programs get as values.
#[derive(Deserialize)]
struct Block<'a> {
    #[serde(rename = "type", borrow)]
    kind: Option<&'a RawValue>,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
    #[serde(borrow)]
    resource: Option<&'a RawValue>,
    /// Members beside the text of a text block.
    #[serde(borrow)]
    annotations: Option<&'a RawValue>,
    #[serde(rename = "_meta", borrow)]
    meta: Option<&'a RawValue>,
}

impl Block<'_> {
    fn is(&self, kind: &str) -> bool {
        self.kind.is_some_and(|value| value.get().trim_matches('"') == kind)
    }
}

/// Returns a JSON value if it is a string.
fn string(value: Option<&RawValue>) -> Option<&RawValue> {
    value.filter(|value| value.get().starts_with('"'))
}

/// Whether a JSON value is an object.
fn is_object(value: Option<&RawValue>) -> bool {
    value.is_some_and(|value| value.get().starts_with('{'))
}

/// What is wrong with a content, in words that complete "the server's result is malformed: ".
#[derive(Debug, thiserror::Error)]
pub(super) enum ContentFault {
    #[error("its content is no list")]
    NoList,
    /// The block with this number.
    #[error("block {0} of its content is no object")]
    NoObject(usize),
    #[error("block {block} of its content has no valid {member}")]
    Lacking { block: usize, member: &'static str },
}

/// Says which part of a content is not what it must be.
fn what_is_no_block(json: &str) -> ContentFault {
    let Ok(rows) = serde_json::from_str::<Vec<&RawValue>>(json) else { return ContentFault::NoList };
    let index = rows.iter().position(|row| serde_json::from_str::<Block<'_>>(row.get()).is_err());
    ContentFault::NoObject(index.unwrap_or_default() + 1)
}

impl<'a> Content<'a> {
    /// Parses the content of a result. `None` stands for a result without content.
    pub(super) fn parse(content: Option<&'a RawValue>) -> Result<Self, ContentFault> {
        let json = content.map_or("[]", RawValue::get);
        let blocks: Vec<Block<'_>> = serde_json::from_str(json).map_err(|_| what_is_no_block(json))?;
        for (index, block) in blocks.iter().enumerate() {
            let member = match block {
                block if string(block.kind).is_none() => "type",
                block if block.is("text") && string(block.text).is_none() => "text",
                block if (block.is("image") || block.is("audio")) && string(block.data).is_none() => "data",
                block if block.is("resource") && !is_object(block.resource) => "resource",
                _ => continue,
            };
            return Err(ContentFault::Lacking { block: index + 1, member });
        }
        Ok(Self { json, blocks })
    }

    /// Returns the JSON of all blocks.
    pub(super) fn json(&self) -> &'a str {
        self.json
    }

    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Returns the text of the only block, as a JSON string; `None` if there are other blocks or no block.
    pub(super) fn only_text(&self) -> Option<&'a str> {
        match &self.blocks[..] {
            [block] if block.is("text") => block.text.map(RawValue::get),
            _ => None,
        }
    }

    /// Whether a value that has the texts of the blocks has all of the content: no text block has other members.
    pub(super) fn is_plain(&self) -> bool {
        self.blocks
            .iter()
            .all(|block| block.is("text") && block.annotations.is_none() && block.meta.is_none())
    }

    /// Returns the texts of the text blocks. A text with a lone surrogate is returned as its JSON.
    pub(super) fn texts(&self) -> impl Iterator<Item = String> {
        let texts = self.blocks.iter().filter(|block| block.is("text")).filter_map(|block| block.text);
        texts.map(|text| serde_json::from_str(text.get()).unwrap_or_else(|_| text.get().to_owned()))
    }

    /// Whether the content only repeats a structured value, as servers write it for clients that know no structured
    /// content: as one text of the whole value, or as one text for each item of a list.
    pub(super) fn repeats(&self, whole: &RawValue, value: &RawValue) -> bool {
        if !self.is_plain() {
            return false;
        }
        let texts: Vec<String> = self.texts().collect();
        match &texts[..] {
            [] => true,
            [text] if same_json(text, whole.get()) || same_json(text, value.get()) => true,
            texts => {
                let items: Option<Vec<&RawValue>> = serde_json::from_str(value.get()).ok();
                items.is_some_and(|items| {
                    items.len() == texts.len()
                        && items.iter().zip(texts).all(|(item, text)| same_json(text, item.get()))
                })
            }
        }
    }
}

/// Whether a text shows a JSON value: as JSON that differs in white space or escapes only, or a string as it is.
fn same_json(text: &str, value: &str) -> bool {
    if value.starts_with('"') {
        return serde_json::from_str::<String>(value).is_ok_and(|string| string == text);
    }
    without_space(text).eq(without_space(value))
        || lockhouse_base::json::parse_bounded(text.as_bytes(), VALUES_MAX)
            .ok()
            .zip(lockhouse_base::json::parse_bounded(value.as_bytes(), VALUES_MAX).ok())
            .is_some_and(|(text, value)| text == value)
}

/// Maximum number of values of a text that is parsed to compare it with a structured value.
const VALUES_MAX: usize = 20_000;

/// Returns the bytes of a JSON text without the white space between its values.
fn without_space(json: &str) -> impl Iterator<Item = u8> + '_ {
    let (mut in_string, mut escaped) = (false, false);
    json.bytes().filter(move |byte| {
        let keep = in_string || !byte.is_ascii_whitespace();
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ => {}
        }
        keep
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn raw(value: &serde_json::Value) -> Box<RawValue> {
        serde_json::value::to_raw_value(value).expect("JSON")
    }

    #[test]
    fn malformed_content_is_described() {
        let text = json!({"type": "text", "text": "a"});
        for (content, expected) in [
            (json!("plain"), "its content is no list"),
            (json!({"type": "text"}), "its content is no list"),
            (json!([text, 5]), "block 2 of its content is no object"),
            (json!([null]), "block 1 of its content is no object"),
            (json!([["text"]]), "block 1 of its content is no object"),
            (json!([{"text": "a"}]), "block 1 of its content has no valid type"),
            (json!([{"type": "text", "text": 1}]), "block 1 of its content has no valid text"),
            (json!([{"type": "image", "data": null}]), "block 1 of its content has no valid data"),
            (json!([{"type": "resource", "resource": null}]), "block 1 of its content has no valid resource"),
        ] {
            let content_json = raw(&content);
            let fault = Content::parse(Some(&content_json)).err().map(|fault| fault.to_string());
            assert_eq!(fault.as_deref(), Some(expected), "{content}");
        }
        for content in
            [json!([]), json!([text, {"type": "image", "data": "aa"}, {"type": "new", "more": [1]}])]
        {
            assert!(Content::parse(Some(&raw(&content))).is_ok(), "{content}");
        }
    }

    #[test]
    fn content_that_repeats_a_value_is_recognized() {
        let texts = |texts: &[&str]| -> serde_json::Value {
            texts.iter().map(|text| json!({"type": "text", "text": text})).collect()
        };
        let noted = json!([{"type": "text", "text": "1", "annotations": {"priority": 1}}]);
        for (content, whole, expected) in [
            (texts(&[]), json!({"a": 1}), true),
            (
                texts(&["{\n  \"a\": [1, 2.5],\n  \"b\": \"ž \\\" x\"\n}"]),
                json!({"a": [1, 2.5], "b": "ž \" x"}),
                true,
            ),
            (texts(&["{\"b\": \"\\u017e\", \"a\": 1}"]), json!({"a": 1, "b": "ž"}), true),
            (texts(&["[1]"]), json!({"result": [1]}), true),
            (texts(&["a", "b"]), json!({"result": ["a", "b"]}), true),
            (texts(&["{\"n\":1}", "{\"n\":2}"]), json!({"result": [{"n": 1}, {"n": 2}]}), true),
            (texts(&["a"]), json!({"result": "a"}), true),
            (texts(&["3 rows"]), json!({"rows": 3}), false),
            (json!([{"type": "text", "text": "\u{fffd}"}]), json!({"rows": 3}), false),
            (texts(&["{\"a\": 2}"]), json!({"a": 1}), false),
            (texts(&["a", "c"]), json!({"result": ["a", "b"]}), false),
            (json!([{"type": "image", "data": ""}]), json!({"a": 1}), false),
            (noted, json!({"result": 1}), false),
        ] {
            let (content_json, whole_json) = (raw(&content), raw(&whole));
            let value = whole.get("result").map_or_else(|| whole_json.clone(), raw);
            let content = Content::parse(Some(&content_json)).expect("valid");
            assert_eq!(content.repeats(&whole_json, &value), expected, "{content_json} {whole}");
        }
    }
}
