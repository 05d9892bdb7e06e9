//! Reads the options of a formatter or collator, and reports values that are invalid or not supported.

use rquickjs::{Ctx, Exception, Object};

/// Why the options, the locale or the value of a formatter are rejected.
#[derive(Debug, thiserror::Error)]
pub(super) enum IntlError {
    /// Becomes a `RangeError` of the program.
    #[error("{0}")]
    Range(String),
    /// Becomes a `TypeError` of the program.
    #[error("{0}")]
    Type(String),
    /// An exception that was thrown while the options were read, or a failed allocation.
    #[error(transparent)]
    Engine(#[from] rquickjs::Error),
}

impl IntlError {
    /// Reports something of the Intl standard that the sandbox does not have. `supported` says what there is and what to
    /// use instead.
    pub(super) fn unsupported(what: &str, supported: &str) -> Self {
        Self::Range(format!("{what} is not available in the Lockhouse sandbox: {supported}"))
    }

    /// Throws the error in JavaScript.
    pub(super) fn throw(self, ctx: &Ctx<'_>) -> rquickjs::Error {
        match self {
            Self::Range(message) => Exception::throw_range(ctx, &message),
            Self::Type(message) => Exception::throw_type(ctx, &message),
            Self::Engine(error) => error,
        }
    }
}

/// The options that a program gave. The JavaScript part has converted each value to a string.
pub(super) struct Options<'js> {
    object: Object<'js>,
    /// The function or class that takes the options, for messages.
    service: String,
}

impl<'js> Options<'js> {
    pub(super) fn new(object: Object<'js>, service: String) -> Self {
        Self { object, service }
    }

    pub(super) fn service(&self) -> &str {
        &self.service
    }

    /// Returns the value of an option; `None` if it is not given.
    pub(super) fn text(&self, name: &str) -> Result<Option<String>, IntlError> {
        Ok(self.object.get::<_, Option<String>>(name)?)
    }

    pub(super) fn has(&self, name: &str) -> Result<bool, IntlError> {
        Ok(self.text(name)?.is_some())
    }

    /// Returns which of the choices the value of an option is; `None` if it is not given.
    pub(super) fn choice<T: Copy>(
        &self,
        name: &str,
        choices: &[(&'static str, T)],
    ) -> Result<Option<(&'static str, T)>, IntlError> {
        let Some(value) = self.text(name)? else { return Ok(None) };
        if let Some(found) = choices.iter().find(|(choice, _)| *choice == value) {
            return Ok(Some(*found));
        }
        let known: Vec<&str> = choices.iter().map(|(choice, _)| *choice).collect();
        Err(IntlError::Range(format!(
            "Value {value} out of range for {} options property {name}: the Lockhouse sandbox has {}",
            self.service,
            known.join(", ")
        )))
    }

    /// Returns the value of an option that is an integer within limits; `None` if it is not given.
    pub(super) fn integer(&self, name: &str, limits: (u32, u32)) -> Result<Option<u32>, IntlError> {
        let Some(value) = self.text(name)? else { return Ok(None) };
        match value.parse::<f64>() {
            Ok(number) if number >= f64::from(limits.0) && number <= f64::from(limits.1) => {
                Ok(Some(number as u32))
            }
            _ => Err(IntlError::Range(format!(
                "{name} value is out of range: it is {} to {}",
                limits.0, limits.1
            ))),
        }
    }

    /// Rejects an option whose value is not the only one that the sandbox has.
    pub(super) fn only(&self, name: &str, value: &str) -> Result<(), IntlError> {
        match self.text(name)? {
            Some(given) if given != value => {
                Err(IntlError::unsupported(&format!("{name} {given}"), &format!("{name} is {value} there")))
            }
            _ => Ok(()),
        }
    }
}
