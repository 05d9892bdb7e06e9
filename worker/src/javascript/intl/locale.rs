//! The locales that the sandbox has.

use super::options::IntlError;

/// A locale whose formats are known.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Locale {
    EnUs,
    EnGb,
    EnCa,
    /// For dates and times that are written in digits.
    SvSe,
}

/// Finds a locale by its language tag, and returns it with its canonical tag.
///
/// # Errors
/// The tag is invalid, or names another locale.
pub(super) fn find(tag: &str) -> Result<(Locale, &'static str), IntlError> {
    match tag.to_ascii_lowercase().as_str() {
        "en-us" => Ok((Locale::EnUs, "en-US")),
        "en" => Ok((Locale::EnUs, "en")),
        "en-gb" => Ok((Locale::EnGb, "en-GB")),
        "en-ca" => Ok((Locale::EnCa, "en-CA")),
        "sv-se" => Ok((Locale::SvSe, "sv-SE")),
        "sv" => Ok((Locale::SvSe, "sv")),
        _ if !is_well_formed(tag) => {
            Err(IntlError::Range(format!("Incorrect locale information provided: {tag:.40}")))
        }
        _ => Err(IntlError::unsupported(
            &format!("the locale {tag:.40}"),
            "it has en-US, en-GB, en-CA, and sv-SE for dates in digits; use one of them, or put the text together \
             in the program",
        )),
    }
}

/// Returns whether a tag begins with a language and consists of subtags with letters and digits.
fn is_well_formed(tag: &str) -> bool {
    let mut subtags = tag.split('-');
    let language = subtags.next().unwrap_or_default();
    matches!(language.len(), 2..=3 | 5..=8)
        && language.bytes().all(|byte| byte.is_ascii_alphabetic())
        && subtags.all(|subtag| {
            matches!(subtag.len(), 1..=8) && subtag.bytes().all(|byte| byte.is_ascii_alphanumeric())
        })
}
