//! Declares the tables of `config.toml`: each key once, with type, default, range and description. Validation, the
//! reference documentation, the JSON schema and the configuration file of the packages are derived from them.
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
//! After the default, a key can have in this order: `within RANGE`; `else "TEXT"`, which describes the default of a
//! key that is `None`; `like "TOML"`, the value for examples in place of the default; and `required = true`.

pub(super) mod json_schema;
mod range;
pub(super) mod rendering;
mod value_type;

use serde_json::Value;

pub(crate) use range::Range;
pub(super) use value_type::ValueType;

/// The declaration of a configuration key.
pub(super) struct KeySpec {
    pub(super) name: &'static str,
    /// The description of the key, in Markdown.
    pub(super) description: String,
    /// The JSON schema of the key's type, without the range of its values.
    pub(super) schema: Value,
    /// The default value of the key as TOML. `None` if there is no fixed default value.
    pub(super) default: Option<String>,
    /// The text that describes the default, for a key without a fixed default value.
    pub(super) default_text: Option<String>,
    /// An example value of the key as TOML.
    pub(super) example: Option<&'static str>,
    pub(super) range: Option<Range>,
    /// Whether the key must be set if its table exists in the file.
    pub(super) is_required: bool,
}

/// The declaration of a configuration table.
pub(super) struct TableSpec {
    /// The dotted path of the table. Empty for the top level of the file.
    pub(super) path: &'static str,
    pub(super) description: &'static str,
    pub(super) keys: Vec<KeySpec>,
    pub(super) tables: Vec<TableSpec>,
}

impl TableSpec {
    /// Returns this table and all tables nested in it.
    pub(super) fn all(&self) -> Vec<&Self> {
        std::iter::once(self).chain(self.tables.iter().flat_map(Self::all)).collect()
    }

    /// Returns the last component of the table's path.
    pub(super) fn name(&self) -> &'static str {
        self.path.rsplit('.').next().unwrap_or_default()
    }
}

/// A configuration key whose value is outside its range.
#[derive(Debug)]
pub(super) struct OutOfRange {
    /// The dotted path of the key.
    pub(super) key: String,
    pub(super) range: Range,
}

/// A configuration table with declared keys. The macro `table!` implements this trait.
pub(super) trait DeclaredTable {
    fn spec() -> TableSpec;
    /// Finds the keys of this table and its nested tables whose values are outside their ranges.
    fn out_of_range(&self) -> Vec<OutOfRange>;
    /// Returns the names of the direct subtables that differ between this table and `other`, as `[NAME]`.
    fn tables_that_differ(&self, other: &Self) -> Vec<&'static str>;
}

/// A configuration table that may be absent. An absent table has no key out of range.
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

/// Joins the lines of a key's doc comment into one line.
pub(super) fn join_lines(lines: &[&str]) -> String {
    lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
}

macro_rules! table {
    (
        #[doc = $description:literal]
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
        #[doc = $description]
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

        impl $crate::keys::DeclaredTable for $name {
            fn spec() -> $crate::keys::TableSpec {
                use $crate::keys::{self, KeySpec, TableSpec, ValueType, join_lines};
                let default = Self::default();
                let no_range: Option<keys::Range> = None;
                let keys = vec![$(
                    KeySpec {
                        name: stringify!($key),
                        description: join_lines(&[$($sentence),+]),
                        schema: <$type as ValueType>::schema(),
                        default: ValueType::toml(&default.$key),
                        default_text: None::<String>$(.or(Some($words.to_owned())))?,
                        example: None::<&'static str>$(.or(Some($example)))?,
                        range: no_range$(.or(Some(keys::Range::from($range))))?,
                        is_required: false $(|| $required)?,
                    },
                )*];
                let tables = vec![$(<$table_type as $crate::keys::DeclaredTable>::spec(),)*];
                TableSpec { path: $path, description: str::trim($description), keys, tables }
            }

            #[allow(unused_mut, reason = "a table may have neither ranges nor tables")]
            fn out_of_range(&self) -> Vec<$crate::keys::OutOfRange> {
                use $crate::keys;
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

            #[allow(unused_variables, reason = "a table may have no table below it")]
            fn tables_that_differ(&self, other: &Self) -> Vec<&'static str> {
                let differ: Vec<(bool, &'static str)> =
                    vec![$((self.$table != other.$table, concat!("[", stringify!($table), "]")),)*];
                differ.into_iter().filter(|(differs, _)| *differs).map(|(_, table)| table).collect()
            }
        }
    };
}
pub(super) use table;
