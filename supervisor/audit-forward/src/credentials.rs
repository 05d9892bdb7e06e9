//! What identifies this machine to a destination, with the values of secrets.

use std::collections::BTreeMap;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use crate::destination_entry::ClientIdentity;

/// What identifies this machine to a destination. The debug output hides the values of headers.
#[derive(Clone, Debug, Default)]
pub struct Credentials {
    pub(crate) headers: HeaderMap,
    pub(crate) identity: Option<ClientIdentity>,
}

/// A header that cannot be sent.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("it cannot be the name of a header, or its value has a character that no header may have")]
pub struct InvalidHeader {
    pub name: String,
}

impl Credentials {
    /// Takes the headers of each request, with their values.
    ///
    /// # Errors
    /// [`InvalidHeader`], without the value.
    pub fn new(
        headers: &BTreeMap<String, String>,
        identity: Option<ClientIdentity>,
    ) -> Result<Self, InvalidHeader> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let invalid = || InvalidHeader { name: name.clone() };
            let mut secret = HeaderValue::from_str(value).map_err(|_| invalid())?;
            secret.set_sensitive(true);
            map.insert(HeaderName::try_from(name).map_err(|_| invalid())?, secret);
        }
        Ok(Self { headers: map, identity })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_of_a_header_is_shown_nowhere() {
        let new = |name: &str, value: &str| Credentials::new(&[(name.into(), value.into())].into(), None);
        let credentials = new("Authorization", "Bearer SEKRET").expect("valid");
        assert_eq!(credentials.headers["authorization"], "Bearer SEKRET");
        assert!(!format!("{credentials:?}").contains("SEKRET"), "{credentials:?}");
        for (name, value) in [("a b", "SEKRET"), ("A", "SEKRET\n")] {
            let error = new(name, value).expect_err("invalid");
            assert!(error.name == name && !error.to_string().contains("SEKRET"), "{error}");
        }
    }
}
