//! The names of languages that the option `--language` accepts.

use lockhouse_protocol::Language;

/// The value of `--language`.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(super) enum LanguageName {
    /// Python 3.10 or later, as installed on this machine.
    #[value(alias = "py")]
    Python,
    /// TypeScript or JavaScript.
    #[value(alias = "ts", alias = "javascript", alias = "js")]
    Typescript,
}

impl From<LanguageName> for Language {
    fn from(name: LanguageName) -> Self {
        match name {
            LanguageName::Python => Self::Python,
            LanguageName::Typescript => Self::Typescript,
        }
    }
}
