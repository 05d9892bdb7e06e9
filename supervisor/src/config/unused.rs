//! Servers that are configured and not used.

use super::left_out::LeftOut;
use super::requirements::Refusal;

/// One of them. Its name is as it is written, which need not be a name that a server may have.
#[derive(Clone, Debug)]
pub(crate) struct Unused {
    pub(crate) name: String,
    /// `FILE:LINE`
    pub(crate) origin: String,
    /// Without any value of the file.
    pub(crate) reason: String,
    /// Whether that is what the file asks for.
    pub(crate) disabled: bool,
}

impl Unused {
    pub(super) fn left_out(name: &str, origin: &str, reason: &LeftOut) -> Self {
        let disabled = matches!(reason, LeftOut::Disabled);
        Self { name: name.to_owned(), origin: origin.to_owned(), reason: reason.to_string(), disabled }
    }
}

impl From<&Refusal> for Unused {
    fn from(refusal: &Refusal) -> Self {
        let (name, origin, reason) = refusal.parts();
        Self { name, origin, reason, disabled: false }
    }
}
