//! The forms in which programs print a value: as it is, escaped as in JSON, JavaScript, Python and HTML, percent-encoded, in
//! hexadecimal, and in base64 as a part of a longer text.

use std::collections::BTreeSet;

use data_encoding::{BASE64_NOPAD, BASE64URL_NOPAD, HEXLOWER, HEXUPPER};

/// The characters that encoders of URLs leave as they are, beside letters and digits: those of RFC 3986, of Python's
/// `quote`, of `encodeURIComponent`, of `encodeURI`, and of forms. The last writes a space as `+`.
const URL_CHARACTERS: [&str; 5] = ["-._~", "-._~/", "-_.!~*'()", ";,/?:@&=+$-_.!~*'()#", "*-._"];

/// A text that shows a value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Form {
    pub(super) text: String,
    /// Whether the character before the text has bits of the value too, if it is one of base64.
    pub(super) begins_within: bool,
    /// The same for the character after the text.
    pub(super) ends_within: bool,
}

impl From<String> for Form {
    fn from(text: String) -> Self {
        Self { text, begins_within: false, ends_within: false }
    }
}

/// Returns the forms of a value, each once.
pub(super) fn forms(value: &str) -> BTreeSet<Form> {
    let bytes = value.as_bytes();
    let json = serde_json::to_string(value).unwrap_or_default();
    let json = json.strip_prefix('"').and_then(|json| json.strip_suffix('"')).unwrap_or(value);
    let mut texts = vec![value.to_owned(), json.to_owned()];
    // Members of some encoders: `/` is escaped in PHP, and markup in Go.
    texts.push(json.replace('/', "\\/"));
    texts.push(['<', '>', '&'].iter().fold(json.to_owned(), |text, c| text.replace(*c, &unicode_escape(*c))));
    let ascii: String =
        json.chars().map(|c| if c.is_ascii() { c.to_string() } else { unicode_escape(c) }).collect();
    // A JSON text as a string of another one.
    texts.extend([json, &ascii].map(|json| json.replace('\\', "\\\\").replace('"', "\\\"")));
    texts.push(ascii);
    texts.extend(["&#39;", "&#x27;", "&#039;", "&apos;"].map(|quote| html(value, "&quot;", quote)));
    texts.push(html(value, "&#34;", "&#39;"));
    for quote in ['\0', '\'', '"'] {
        texts.push(value.chars().map(|c| escaped(c, quote, &|c| c.to_string())).collect());
        texts.push(value.chars().map(|c| escaped(c, quote, &hex_escape)).collect());
        texts.push(value.chars().map(|c| escaped(c, quote, &bytes_escape)).collect());
    }
    for kept in URL_CHARACTERS {
        let encoded =
            percent_encoded(bytes, |byte| byte.is_ascii_alphanumeric() || kept.as_bytes().contains(&byte));
        texts.extend([encoded.replace("%20", "+"), encoded.clone()]);
        texts.push(lower_hexadecimal(&encoded));
    }
    let encoded = percent_encoded(bytes, |_| false);
    texts.extend([lower_hexadecimal(&encoded), encoded, HEXLOWER.encode(bytes), HEXUPPER.encode(bytes)]);
    let base64 = (0..3).flat_map(|offset| base64(bytes, offset));
    texts.into_iter().map(Form::from).chain(base64).collect()
}

/// Returns a text as in HTML and XML, with these forms of quotes.
fn html(value: &str, double: &str, single: &str) -> String {
    let markup = value.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    markup.replace('"', double).replace('\'', single)
}

/// Returns a character as Python's `repr` and JavaScript's `inspect` write it within quotes of this kind.
fn escaped(c: char, quote: char, beyond_ascii: &dyn Fn(char) -> String) -> String {
    match c {
        '\\' => "\\\\".into(),
        '\n' => "\\n".into(),
        '\r' => "\\r".into(),
        '\t' => "\\t".into(),
        c if c == quote => format!("\\{c}"),
        c if c.is_ascii_control() => format!("\\x{:02x}", u32::from(c)),
        c if c.is_ascii() => c.to_string(),
        c => beyond_ascii(c),
    }
}

/// Returns a character as Python's `ascii` writes it.
fn hex_escape(c: char) -> String {
    match u32::from(c) {
        code @ ..=0xff => format!("\\x{code:02x}"),
        code @ ..=0xffff => format!("\\u{code:04x}"),
        code => format!("\\U{code:08x}"),
    }
}

/// Returns the bytes of a character as Python's `repr` of bytes writes them.
fn bytes_escape(c: char) -> String {
    c.encode_utf8(&mut [0; 4]).bytes().map(|byte| format!("\\x{byte:02x}")).collect()
}

/// Returns a character as JSON escapes it.
fn unicode_escape(c: char) -> String {
    c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect()
}

fn percent_encoded(bytes: &[u8], is_kept: impl Fn(u8) -> bool) -> String {
    let encoded =
        |byte: &u8| if is_kept(*byte) { char::from(*byte).to_string() } else { format!("%{byte:02X}") };
    bytes.iter().map(encoded).collect()
}

/// Returns a percent-encoded text with small hexadecimal digits.
fn lower_hexadecimal(encoded: &str) -> String {
    let mut pieces = encoded.split('%');
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |text, piece| {
        let (digits, rest) = piece.split_at_checked(2).unwrap_or((piece, ""));
        text + "%" + &digits.to_ascii_lowercase() + rest
    })
}

/// Returns what does not depend on its surroundings in the base64 of a longer text that contains the value: with the two
/// alphabets. `offset` is the position of the value in the text, modulo 3.
fn base64(bytes: &[u8], offset: usize) -> [Form; 2] {
    let padded = [&[0; 2][..offset], bytes].concat();
    let bits = 8 * padded.len();
    // Characters have six bits.
    let (start, end) = ((8 * offset).div_ceil(6), bits / 6);
    [BASE64_NOPAD, BASE64URL_NOPAD].map(|alphabet| Form {
        text: alphabet.encode(&padded).get(start..end).unwrap_or_default().to_owned(),
        begins_within: offset > 0,
        ends_within: bits % 6 > 0,
    })
}
