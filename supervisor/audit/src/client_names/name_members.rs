//! The members of a record that have names, and their replacement.

use std::fmt;
use std::io;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::hash_chain::push_string;

/// The members of a record with the name of an AI client or of its user.
const MEMBERS: [&str; 4] = ["client", "account", "token", "approver"];

/// The members of a JSON object in their order, the values as they are written.
#[derive(Debug)]
pub(crate) struct MembersOfNames<'a>(Vec<(String, &'a RawValue)>);

impl<'a> MembersOfNames<'a> {
    /// Parses a record, which is a JSON object.
    pub(crate) fn parse(object: &'a str) -> io::Result<Self> {
        Ok(serde_json::from_str(object)?)
    }

    /// Returns the object with other texts in place of its names. `None` if `replacement` has none for any of them.
    pub(crate) fn with_names(
        &self,
        mut replacement: impl FnMut(&str) -> io::Result<Option<String>>,
    ) -> io::Result<Option<String>> {
        let (mut object, mut is_changed) = (String::with_capacity(512), false);
        for (member, value) in &self.0 {
            object.push(if object.is_empty() { '{' } else { ',' });
            push_string(&mut object, member);
            object.push(':');
            let is_name = MEMBERS.contains(&member.as_str());
            let replaced = match is_name.then(|| serde_json::from_str::<String>(value.get())) {
                Some(Ok(name)) => replacement(&name)?,
                Some(Err(_)) | None => None,
            };
            is_changed |= replaced.is_some();
            match replaced {
                Some(text) => push_string(&mut object, &text),
                None => object.push_str(value.get()),
            }
        }
        object.push('}');
        Ok(is_changed.then_some(object))
    }
}

impl<'de> Deserialize<'de> for MembersOfNames<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = MembersOfNames<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a record")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(MembersOfNames(members))
            }
        }
        deserializer.deserialize_map(Members)
    }
}
