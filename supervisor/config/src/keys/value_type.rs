//! The types that configuration keys can have: their JSON schema, their TOML form, and their range checks.

use std::collections::BTreeMap;
use std::path::PathBuf;

use lockhouse_access::{AuthMode, CertificateName, ConfiguredUser, DpopUse};
use lockhouse_approvals::{ApproverKind, Presence};
use lockhouse_audit::SinkAddress;
use lockhouse_audit_forward::{DestinationEntry, ForwardFormat};
use lockhouse_base::http_checks::host_check::{HostName, PageOrigin};
use lockhouse_base::telemetry::log::Format;
use lockhouse_front::http::{ListenAddress, TlsVersion, TrustedProxy};
use lockhouse_front::{AnswerForm, BuiltinTool};
use lockhouse_upstream::TextDecoding;
use serde_json::{Value, json};

use super::range::Range;
use crate::engine_sharing::EngineSharing;
use crate::module_name::ModuleName;
use crate::notice_entry::NoticeEntry;
use crate::package_spec::PackageSpec;

/// A type that a configuration key can have.
pub(crate) trait ValueType {
    fn schema() -> Value;

    /// Formats this value, the default of a key, as TOML. `None` if the key has no default, or if defaults of this type
    /// are not shown.
    fn toml(&self) -> Option<String> {
        None
    }

    fn is_within(&self, _range: &Range) -> bool {
        true
    }
}

impl ValueType for bool {
    fn schema() -> Value {
        json!({"type": "boolean"})
    }

    fn toml(&self) -> Option<String> {
        Some(self.to_string())
    }
}

impl ValueType for u32 {
    fn schema() -> Value {
        json!({"type": "integer", "minimum": 0, "maximum": Self::MAX})
    }

    fn toml(&self) -> Option<String> {
        Some(self.to_string())
    }

    fn is_within(&self, range: &Range) -> bool {
        range.has_number(f64::from(*self))
    }
}

impl ValueType for f64 {
    fn schema() -> Value {
        json!({"type": "number"})
    }

    fn toml(&self) -> Option<String> {
        Some(self.to_string())
    }

    fn is_within(&self, range: &Range) -> bool {
        range.has_number(*self)
    }
}

impl ValueType for String {
    fn schema() -> Value {
        json!({"type": "string"})
    }

    fn toml(&self) -> Option<String> {
        Some(Value::from(self.as_str()).to_string())
    }

    fn is_within(&self, range: &Range) -> bool {
        range.has_text(self)
    }
}

impl ValueType for SinkAddress {
    fn schema() -> Value {
        json!({"type": "string", "pattern": "^unix:/"})
    }
}

impl<T: ValueType> ValueType for Option<T> {
    fn schema() -> Value {
        T::schema()
    }

    fn toml(&self) -> Option<String> {
        self.as_ref()?.toml()
    }

    fn is_within(&self, range: &Range) -> bool {
        self.as_ref().is_none_or(|value| value.is_within(range))
    }
}

impl<T: ValueType> ValueType for Vec<T> {
    fn schema() -> Value {
        json!({"type": "array", "items": T::schema()})
    }

    fn toml(&self) -> Option<String> {
        let entries: Option<Vec<String>> = self.iter().map(T::toml).collect();
        Some(format!("[{}]", entries?.join(", ")))
    }

    fn is_within(&self, range: &Range) -> bool {
        range.has_entries(self.len())
    }
}

impl<T: ValueType> ValueType for BTreeMap<String, T> {
    fn schema() -> Value {
        json!({"type": "object", "additionalProperties": T::schema()})
    }
}

/// Implements [`ValueType`] for types whose values are strings in TOML.
macro_rules! texts {
    ($($type:ty),+) => {
        $(impl ValueType for $type {
            fn schema() -> Value {
                json!({"type": "string"})
            }
        })+
    };
}
texts!(PathBuf, ModuleName, PackageSpec, ListenAddress, HostName, PageOrigin, TrustedProxy);

impl ValueType for NoticeEntry {
    fn schema() -> Value {
        let text = || json!({"type": "string"});
        let seconds = || json!({"type": "integer", "minimum": 0, "maximum": u32::MAX});
        let properties = json!({
            "url": text(),
            "secret": text(),
            "command": {"type": "array", "items": text()},
            "after_seconds": seconds(),
            "remind_seconds": seconds(),
        });
        json!({"type": "object", "properties": properties, "additionalProperties": false})
    }
}

impl ValueType for DestinationEntry {
    fn schema() -> Value {
        let text = || json!({"type": "string"});
        let headers = json!({"type": "object", "additionalProperties": text()});
        let properties = json!({"to": text(), "headers": headers, "certificate": text(), "key": text()});
        let table = json!({"type": "object", "properties": properties, "required": ["to"], "additionalProperties": false});
        json!({"anyOf": [text(), table]})
    }
}

impl ValueType for ConfiguredUser {
    fn schema() -> Value {
        json!({"type": ["string", "integer"]})
    }
}

impl ValueType for AuthMode {
    fn schema() -> Value {
        let way = json!({"enum": ["token", "oauth", "certificate", "peer"]});
        json!({"anyOf": [{"enum": ["token", "oauth", "certificate", "peer", "none"]}, {"type": "array", "items": way, "minItems": 1}]})
    }
}

impl ValueType for CertificateName {
    fn schema() -> Value {
        json!({"enum": Self::NAMES})
    }

    fn toml(&self) -> Option<String> {
        Some(json!(self).to_string())
    }
}

impl ValueType for DpopUse {
    fn schema() -> Value {
        json!({"enum": Self::NAMES})
    }

    fn toml(&self) -> Option<String> {
        Some(json!(self).to_string())
    }
}

impl ValueType for BuiltinTool {
    fn schema() -> Value {
        json!({"enum": BuiltinTool::ALL.map(BuiltinTool::as_str)})
    }
}

impl ValueType for AnswerForm {
    fn schema() -> Value {
        json!({"enum": ["text", "value", "labelled", "structured"]})
    }
}

impl ValueType for TlsVersion {
    fn schema() -> Value {
        json!({"enum": Self::NAMES})
    }

    fn toml(&self) -> Option<String> {
        Some(json!(self).to_string())
    }
}

impl ValueType for ApproverKind {
    fn schema() -> Value {
        json!({"enum": ["any", "local"]})
    }
}

impl ValueType for Presence {
    fn schema() -> Value {
        json!({"enum": Presence::NAMES})
    }
}

impl ValueType for TextDecoding {
    fn schema() -> Value {
        json!({"enum": TextDecoding::NAMES})
    }
}

impl ValueType for EngineSharing {
    fn schema() -> Value {
        json!({"enum": ["own", "shared"]})
    }
}

impl ValueType for ForwardFormat {
    fn schema() -> Value {
        json!({"enum": ["json", "ocsf"]})
    }
}

impl ValueType for Format {
    fn schema() -> Value {
        json!({"enum": ["text", "json", "journald"]})
    }
}
