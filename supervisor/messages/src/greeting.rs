//! The first message in each direction of a connection between processes. Both processes must understand them whatever
//! their versions are, so these types only ever get members that may be absent.

use serde::{Deserialize, Serialize};

use crate::Incarnation;

/// The versions of the protocol between fronts and the engine that this build speaks: from the oldest to the newest. A
/// connection uses the newest version that both ends speak.
pub const VERSIONS: VersionRange = VersionRange { oldest: 3, newest: 3 };

/// A range of protocol versions, with both ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VersionRange {
    pub oldest: u32,
    pub newest: u32,
}

impl VersionRange {
    /// Returns the newest version in both ranges. `None` if they have none in common.
    #[must_use]
    pub fn newest_common(self, other: Self) -> Option<u32> {
        let newest = self.newest.min(other.newest);
        (newest >= self.oldest.max(other.oldest)).then_some(newest)
    }
}

/// The first message of a front.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Greeting {
    Hello {
        /// The newest version that the front speaks.
        version: u32,
        /// The oldest version that the front speaks. `None` if it speaks only `version`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        oldest: Option<u32>,
        /// The digest of the setup (configuration, policy and environment) that the engine must have. `None` if the engine
        /// itself started the front, or alone decides about its setup.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        setup: Option<String>,
    },
}

impl Greeting {
    /// Creates the greeting of this build.
    #[must_use]
    pub fn new(setup: Option<String>) -> Self {
        Self::Hello { version: VERSIONS.newest, oldest: Some(VERSIONS.oldest), setup }
    }

    /// Returns the versions that the front speaks.
    #[must_use]
    pub fn versions(&self) -> VersionRange {
        let Self::Hello { version, oldest, .. } = self;
        VersionRange { oldest: oldest.unwrap_or(*version), newest: *version }
    }
}

/// The engine's reply to a [`Greeting`]. After every reply but `Welcome`, the engine closes the connection.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum GreetingReply {
    /// The engine accepts the front.
    Welcome {
        /// The version that the connection uses.
        version: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        incarnation: Option<Incarnation>,
    },
    /// The engine speaks none of the front's versions. `version` is the newest that it speaks.
    Unsupported { version: u32 },
    /// The engine has another setup than the one in [`Greeting::Hello`].
    OtherSetup,
    /// The engine accepts no further front now.
    Busy,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_uses_the_newest_common_version() {
        let range = |oldest, newest| VersionRange { oldest, newest };
        for (one, other, expected) in [
            (range(3, 3), range(3, 3), Some(3)),
            (range(3, 4), range(3, 3), Some(3)),
            (range(3, 5), range(4, 6), Some(5)),
            (range(3, 3), range(2, 2), None),
            (range(4, 5), range(2, 3), None),
        ] {
            assert_eq!(one.newest_common(other), expected, "{one:?} {other:?}");
            assert_eq!(other.newest_common(one), expected, "{other:?} {one:?}");
        }
    }

    #[test]
    fn greetings_of_other_builds_are_understood() {
        let read = |text| serde_json::from_str::<Greeting>(text).expect(text);
        let hello = read(r#"{"Hello":{"version":2,"setup":"abc"}}"#);
        assert_eq!(hello, Greeting::Hello { version: 2, oldest: None, setup: Some("abc".into()) });
        let hello = read(r#"{"Hello":{"version":9,"oldest":3,"setup":"abc","role":"run"}}"#);
        assert_eq!(hello.versions(), VersionRange { oldest: 3, newest: 9 });
        let reply =
            serde_json::from_str::<GreetingReply>(r#"{"Unsupported":{"version":2}}"#).expect("a reply");
        assert_eq!(reply, GreetingReply::Unsupported { version: 2 });
    }
}
