//! Errors for a language whose language engine cannot run code.

use std::path::PathBuf;
use std::sync::Arc;

use lockhouse_pool::PoolError;
use lockhouse_protocol::Language;

/// The error for a program that a language engine needs and that was not found.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("cannot find {what}; looked at {}. {advice}", list(.looked_at))]
pub struct MissingProgram {
    pub what: &'static str,
    pub looked_at: Vec<PathBuf>,
    /// What the user should install or configure, in whole sentences.
    pub advice: &'static str,
}

/// Why a language has no pool of workers.
#[derive(Clone, Debug, thiserror::Error)]
pub enum EngineUnavailable {
    /// The pool of this language was not started, because the `lockhouse` command does not use the language.
    #[error("{} was not started", .0.as_str())]
    NotStarted(Language),
    #[error(transparent)]
    MissingProgram(#[from] MissingProgram),
}

/// Why no zygote can fork workers for a language.
#[derive(Clone, Debug, thiserror::Error)]
pub enum PrepareError {
    #[error(transparent)]
    Engine(#[from] EngineUnavailable),
    #[error(transparent)]
    Pool(#[from] Arc<PoolError>),
}

fn list(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_names_its_program_or_language() {
        let missing = MissingProgram {
            what: "python3",
            looked_at: ["/usr/bin/python3", "/bin/python3"].map(PathBuf::from).to_vec(),
            advice: "Install python3.",
        };
        let text = "cannot find python3; looked at /usr/bin/python3, /bin/python3. Install python3.";
        assert_eq!(PrepareError::from(EngineUnavailable::from(missing)).to_string(), text);
        assert_eq!(EngineUnavailable::NotStarted(Language::Python).to_string(), "python was not started");
        assert_eq!(
            PrepareError::from(Arc::new(PoolError::Closed)).to_string(),
            PoolError::Closed.to_string()
        );
    }
}
