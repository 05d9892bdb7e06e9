//! Why a language runs no code.

use std::path::PathBuf;
use std::sync::Arc;

use lockhouse_base::language::Language;
use lockhouse_pool::PoolError;

/// A program that an engine needs is in none of the places where it may be installed.
#[derive(Clone, Debug, thiserror::Error)]
#[error("cannot find {what}; looked at {}. {advice}", list(.looked_at))]
pub struct MissingProgram {
    pub what: &'static str,
    pub looked_at: Vec<PathBuf>,
    /// Whole sentences: what to install or to set.
    pub advice: &'static str,
}

/// Why a language has no pool of workers.
#[derive(Clone, Debug, thiserror::Error)]
pub enum NoEngine {
    /// The command that runs needs another language alone, or none.
    #[error("{} was not started", .0.as_str())]
    NotStarted(Language),
    #[error(transparent)]
    MissingProgram(#[from] MissingProgram),
}

/// Why a language has no zygote that is ready to fork workers.
#[derive(Clone, Debug, thiserror::Error)]
pub enum NotPrepared {
    #[error(transparent)]
    NoEngine(#[from] NoEngine),
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
    fn every_reason_says_which_program_or_language_it_is_about() {
        let missing = MissingProgram {
            what: "python3",
            looked_at: ["/usr/bin/python3", "/bin/python3"].map(PathBuf::from).to_vec(),
            advice: "Install python3.",
        };
        let text = "cannot find python3; looked at /usr/bin/python3, /bin/python3. Install python3.";
        assert_eq!(NotPrepared::from(NoEngine::from(missing)).to_string(), text);
        assert_eq!(NoEngine::NotStarted(Language::Python).to_string(), "python was not started");
        assert_eq!(NotPrepared::from(Arc::new(PoolError::Closed)).to_string(), PoolError::Closed.to_string());
    }
}
