//! Files and values that a viewer downloads. A browser never displays them: they are attachments of an unknown type.

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};

use super::response_headers::CONTENT_SECURITY_POLICY;

/// Maximum number of characters of the name of a downloaded file.
const NAME_CHARS_MAX: usize = 100;
/// The name of a downloaded file whose own name has no permitted character.
const DEFAULT_NAME: &str = "result";
/// The policy for a response that a browser must not display.
const SANDBOX: HeaderValue = HeaderValue::from_static("default-src 'none'; sandbox");

/// A file or value that a viewer downloads.
#[derive(Clone, Debug)]
pub struct Attachment {
    /// The proposed name of the file. It may be the text of a program: only some characters of it are used.
    pub name: String,
    pub content: Vec<u8>,
}

impl IntoResponse for Attachment {
    fn into_response(self) -> Response {
        let disposition = format!("attachment; filename=\"{}\"", safe_name(&self.name));
        let headers: [(HeaderName, HeaderValue); 3] = [
            (header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream")),
            (CONTENT_SECURITY_POLICY, SANDBOX),
            (
                header::CONTENT_DISPOSITION,
                HeaderValue::from_str(&disposition).unwrap_or(HeaderValue::from_static("attachment")),
            ),
        ];
        (headers, Body::from(self.content)).into_response()
    }
}

/// Returns a file name of ASCII letters, digits, `.`, `_` and `-` that does not begin with a dot.
fn safe_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let is_permitted = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let safe: String =
        last.chars().map(|c| if is_permitted(c) { c } else { '_' }).take(NAME_CHARS_MAX).collect();
    let safe = safe.trim_start_matches('.');
    if safe.contains(|c: char| c.is_ascii_alphanumeric()) { safe.to_owned() } else { DEFAULT_NAME.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_have_only_harmless_characters() {
        let table = [
            ("chart.png", "chart.png"),
            ("../../etc/passwd", "passwd"),
            ("a\\b.txt", "b.txt"),
            (".bashrc", "bashrc"),
            ("x\"; filename=\"y.html\r\nSet-Cookie: a=b", "x___filename__y.html__Set-Cookie__a_b"),
            ("<img src=x onerror=alert(1)>", "_img_src_x_onerror_alert_1__"),
            ("…/…", "result"),
            ("", "result"),
        ];
        for (name, safe) in table {
            assert_eq!(safe_name(name), safe);
        }
        assert_eq!(safe_name(&"x".repeat(500)).len(), NAME_CHARS_MAX);
    }
}
