//! How a table of the configuration is declared: each key once, with its type, its default, its range and the sentence that
//! explains it. Checks, the reference, the JSON schema and the packaged configuration come from that declaration.
//!
//! ```text
//! table! {
//!     /// what the table is about
//!     pub(super) struct Limits = "limits" {
//!         /// what the key means
//!         calls: u32 = 1_000, within 1..=1_000_000;
//!         table below: OtherTable;
//!     }
//! }
//! ```
//! After the default a key can have, in this order: `within RANGE`, `else "WORDS"` for the default of a key that is `None`,
//! `like "TOML"` as the value in examples instead of the default, and `required = true`.

mod range;
pub(super) mod reference;
pub(super) mod schema;
mod value_type;

use serde_json::Value;

pub(crate) use range::Range;
pub(super) use value_type::ValueType;

/// A key as it is declared.
pub(super) struct KeySpec {
    pub(super) name: &'static str,
    /// The sentence that explains it, with Markdown in it.
    pub(super) about: String,
    /// JSON schema of the type alone, without the range.
    pub(super) schema: Value,
    /// As TOML.
    pub(super) default: Option<String>,
    /// The default of a key that has no value by itself, in words.
    pub(super) default_words: Option<String>,
    /// A value for examples, as TOML.
    pub(super) example: Option<&'static str>,
    pub(super) range: Option<Range>,
    /// Whether its table cannot do without it.
    pub(super) is_required: bool,
}

/// A table as it is declared.
pub(super) struct TableSpec {
    /// From the top of the file, with dots; empty for the file itself.
    pub(super) path: &'static str,
    pub(super) about: &'static str,
    pub(super) keys: Vec<KeySpec>,
    pub(super) tables: Vec<TableSpec>,
}

impl TableSpec {
    /// This table and all below it.
    pub(super) fn all(&self) -> Vec<&Self> {
        std::iter::once(self).chain(self.tables.iter().flat_map(Self::all)).collect()
    }

    /// The name within the table above.
    pub(super) fn name(&self) -> &'static str {
        self.path.rsplit('.').next().unwrap_or_default()
    }
}

/// A key whose value cannot work.
#[derive(Debug)]
pub(super) struct OutOfRange {
    /// With the tables around it and dots between.
    pub(super) key: String,
    pub(super) range: Range,
}

/// Implemented by `table!`.
pub(super) trait DeclaredTable {
    fn spec() -> TableSpec;
    /// Keys of this table and of those below it whose value is outside its range.
    fn out_of_range(&self) -> Vec<OutOfRange>;
    /// The tables right below that differ, as people write them.
    fn tables_that_differ(&self, other: &Self) -> Vec<&'static str>;
}

/// A table that need not be there.
impl<T: DeclaredTable> DeclaredTable for Option<T> {
    fn spec() -> TableSpec {
        T::spec()
    }

    fn out_of_range(&self) -> Vec<OutOfRange> {
        self.as_ref().map(T::out_of_range).unwrap_or_default()
    }

    fn tables_that_differ(&self, other: &Self) -> Vec<&'static str> {
        self.as_ref()
            .zip(other.as_ref())
            .map(|(one, other)| one.tables_that_differ(other))
            .unwrap_or_default()
    }
}

/// Of the lines of a doc comment.
pub(super) fn sentence(lines: &[&str]) -> String {
    lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
}

macro_rules! table {
    (
        #[doc = $about:literal]
        $visibility:vis struct $name:ident = $path:literal {
            $(
                $(#[doc = $sentence:literal])+
                $(#[serde($($serde:tt)+)])?
                $key:ident: $type:ty = $default:expr
                    $(, within $range:expr)? $(, else $words:literal)? $(, like $example:literal)?
                    $(, required = $required:literal)?;
            )*
            $(table $table:ident: $table_type:ty;)*
            $(beside #[serde($($beside_serde:tt)+)] $beside:ident: $beside_type:ty;)*
        }
    ) => {
        #[doc = $about]
        #[derive(Clone, Debug, serde::Deserialize, PartialEq)]
        #[serde(deny_unknown_fields, default)]
        $visibility struct $name {
            $(
                $(#[doc = $sentence])+
                $(#[serde($($serde)+)])?
                $visibility $key: $type,
            )*
            $($visibility $table: $table_type,)*
            $(
                #[serde($($beside_serde)+)]
                $visibility $beside: $beside_type,
            )*
        }

        impl Default for $name {
            fn default() -> Self {
                Self {
                    $($key: $default,)*
                    $($table: Default::default(),)*
                    $($beside: Default::default(),)*
                }
            }
        }

        impl $crate::config::keys::DeclaredTable for $name {
            fn spec() -> $crate::config::keys::TableSpec {
                use $crate::config::keys::{self, KeySpec, TableSpec, ValueType, sentence};
                let default = Self::default();
                let no_range: Option<keys::Range> = None;
                let keys = vec![$(
                    KeySpec {
                        name: stringify!($key),
                        about: sentence(&[$($sentence),+]),
                        schema: <$type as ValueType>::schema(),
                        default: ValueType::toml(&default.$key),
                        default_words: None::<String>$(.or(Some($words.to_owned())))?,
                        example: None::<&'static str>$(.or(Some($example)))?,
                        range: no_range$(.or(Some(keys::Range::from($range))))?,
                        is_required: false $(|| $required)?,
                    },
                )*];
                let tables = vec![$(<$table_type as $crate::config::keys::DeclaredTable>::spec(),)*];
                TableSpec { path: $path, about: str::trim($about), keys, tables }
            }

            #[allow(unused_mut)] // A table may have neither ranges nor tables.
            fn out_of_range(&self) -> Vec<$crate::config::keys::OutOfRange> {
                use $crate::config::keys;
                let mut found = Vec::<keys::OutOfRange>::new();
                $($(
                    let range = keys::Range::from($range);
                    if !keys::ValueType::is_within(&self.$key, &range) {
                        let key = concat!($path, ".", stringify!($key)).to_owned();
                        found.push(keys::OutOfRange { key, range });
                    }
                )?)*
                $(found.extend(keys::DeclaredTable::out_of_range(&self.$table));)*
                found
            }

            #[allow(unused_variables)] // A table may have none below it.
            fn tables_that_differ(&self, other: &Self) -> Vec<&'static str> {
                let differ: Vec<(bool, &'static str)> =
                    vec![$((self.$table != other.$table, concat!("[", stringify!($table), "]")),)*];
                differ.into_iter().filter(|(differs, _)| *differs).map(|(_, table)| table).collect()
            }
        }
    };
}
pub(super) use table;
