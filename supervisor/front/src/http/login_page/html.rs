//! The HTML of the page of logins. Nothing on it runs, and nothing comes from elsewhere.

use axum::body::Body;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY};
use axum::response::{Html, IntoResponse, Response};

/// Forbids scripts, frames and everything from elsewhere.
const CONTENT_RULES: &str = "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";
const STYLE: &str = "body{font:16px/1.5 sans-serif;max-width:36rem;margin:4rem auto;padding:0 1rem}\
    label{display:block;margin:1rem 0 .25rem}input{width:100%;font:inherit;padding:.4rem;box-sizing:border-box}\
    button{font:inherit;padding:.4rem 1rem;margin:1rem .5rem 0 0}";

/// Returns a page with one sentence.
pub(super) fn message(status: StatusCode, text: &str) -> Response {
    page(status, &format!("<p>{}</p>", escaped(text)))
}

/// Returns a page with this content, which is HTML.
pub(super) fn page(status: StatusCode, content: &str) -> Response {
    let document = format!(
        "<!DOCTYPE html><html lang=\"en\"><meta charset=\"utf-8\"><title>Lockhouse</title><style>{STYLE}</style>{content}"
    );
    let headers = [
        (CONTENT_SECURITY_POLICY, CONTENT_RULES),
        (CACHE_CONTROL, "no-store"),
        (REFERRER_POLICY, "no-referrer"),
    ];
    (status, headers, Html(Body::from(document))).into_response()
}

/// Escapes a text for HTML.
pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}
