//! A language as it is named on the command line.

use lockhouse_base::language::Language;

/// The value of `--language`.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(super) enum LanguageName {
    /// Python 3.10 or later, as the machine has it.
    #[value(alias = "py")]
    Python,
    /// TypeScript, and with it JavaScript.
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
