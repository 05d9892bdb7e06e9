//! The hostile programs in `hostile/`: one attack per file, with a header that states the expected outcome.
//!
//! The header is the comment lines at the top of the file, each `key: text`:
//!
//! - `attack`: what the program attempts.
//! - `outcome`: the accepted statuses of the run, separated by `|`, then words that the error message must contain.
//!   The status `ok` is followed by JSON instead, which must equal the value of the run. Several `outcome` lines are
//!   alternatives.
//! - `outcome with packages` (optional): the same, in place of the `outcome` lines, for workers with packages of PyPI.
//! - `control`: `outside` if the same file must succeed in a plain interpreter without the sandbox, which shows that
//!   the attack itself works; `outside as root` if it succeeds there only for root; `none: REASON` if it cannot be run
//!   there.
//! - `preload` (optional): modules that the configuration preloads for the program, separated by spaces.
//! - `limits` (optional): keys of the configuration table `[limits]` with their values, separated by commas. A program
//!   with another key than `timeout_seconds` exhausts the resource that this key limits. Such a program runs alone or
//!   beside few others.
//! - `endurance` (optional): the program is one of those that the endurance suites repeat, with a deadline of less than a
//!   second. It `ends at its deadline`, or `ends by its deadline`, if it may end earlier, at another limit or with an error.

use std::path::{Path, PathBuf};

use serde_json::Value;

const STATUSES: [&str; 5] = ["ok", "error", "limit", "timeout", "killed"];

/// One hostile program, with the expectations from the header of its file.
#[derive(Clone, Debug)]
pub struct Attack {
    /// The name of the program's file, without the extension.
    pub name: String,
    /// A description of what the program attempts.
    pub what: String,
    /// The accepted outcomes of the program; one of them must occur.
    pub outcomes: Vec<Outcome>,
    /// The outcomes that are accepted in place of these in workers with packages; empty if they are the same there.
    pub outcomes_with_packages: Vec<Outcome>,
    /// Whether the program is also run in a plain interpreter, outside the sandbox, where it must succeed.
    pub control: Control,
    /// The modules that the worker's interpreter loads before the worker enters the sandbox.
    pub preload: Vec<String>,
    /// The lines of the configuration table `[limits]` with which the program is run.
    pub limits: Vec<String>,
    /// When the program ends in the endurance suites; `None` if it is not one of theirs.
    pub endurance: Option<Ending>,
    /// The source code of the program, with its header.
    pub source: String,
}

/// An accepted outcome of a hostile program.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// The run has the status `ok` and returns this value.
    Value(Value),
    /// The run has one of these statuses, and these words in its error message.
    Failure {
        /// The accepted statuses of the run.
        statuses: Vec<String>,
        /// The text that the error message must contain.
        words: String,
    },
}

/// When a program without end ends, if its deadline is short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// At its deadline, and not earlier.
    AtDeadline,
    /// At its deadline, or earlier at another limit or with an error.
    ByDeadline,
}

/// Whether a hostile program is also run outside the sandbox, where it must succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Control {
    /// The program is also run outside the sandbox, and must succeed there.
    Outside,
    /// If the tests run as root, the program is also run outside the sandbox, and must succeed there.
    OutsideAsRoot,
    /// The program is not run outside the sandbox.
    None,
}

impl Attack {
    /// Returns all hostile programs in a language, sorted by name.
    ///
    /// # Panics
    /// If the folder is missing or a file has no valid header. The panic message names all files with invalid
    /// headers.
    #[must_use]
    pub fn all(language: &str) -> Vec<Self> {
        let (folder, marker, ending) = match language {
            "python" => ("python", "#", "py"),
            _ => ("typescript", "//", "ts"),
        };
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("hostile").join(folder);
        let entries = std::fs::read_dir(&folder).expect("the folder of hostile programs");
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
        paths.sort();
        let (mut attacks, mut faults) = (Vec::new(), Vec::new());
        for path in paths {
            assert!(path.extension().is_some_and(|is| is == ending), "{} is no program", path.display());
            let source = std::fs::read_to_string(&path).expect("a text file");
            match Self::parse(&path, marker, source) {
                Ok(attack) => attacks.push(attack),
                Err(fault) => faults.push(format!("{}: {fault}", path.display())),
            }
        }
        assert!(faults.is_empty(), "{}", faults.join("\n"));
        attacks
    }

    fn parse(path: &Path, marker: &str, source: String) -> Result<Self, String> {
        let name = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default().to_owned();
        let (mut what, mut control, mut preload, mut limits, mut endurance) = (None, None, None, None, None);
        let (mut outcomes, mut outcomes_with_packages) = (Vec::new(), Vec::new());
        for line in source.lines().map_while(|line| line.strip_prefix(marker)) {
            let (key, text) = line.split_once(": ").ok_or("a line of the header has no `key: text`")?;
            let text = text.trim();
            let repeated = match key.trim() {
                "attack" => what.replace(text.to_owned()).is_some(),
                "outcome" => {
                    outcomes.push(Outcome::parse(text)?);
                    false
                }
                "outcome with packages" => {
                    outcomes_with_packages.push(Outcome::parse(text)?);
                    false
                }
                "control" => control.replace(Control::parse(text)?).is_some(),
                "preload" => preload.replace(words(text, ' ')).is_some(),
                "limits" => limits.replace(words(text, ',')).is_some(),
                "endurance" => endurance.replace(Ending::parse(text)?).is_some(),
                other => return Err(format!("the header has no key {other:?}")),
            };
            if repeated {
                return Err(format!("{} stands there twice", key.trim()));
            }
        }
        Ok(Self {
            name,
            what: what.ok_or("attack is missing")?,
            outcomes: (!outcomes.is_empty()).then_some(outcomes).ok_or("outcome is missing")?,
            outcomes_with_packages,
            control: control.ok_or("control is missing")?,
            preload: preload.unwrap_or_default(),
            limits: limits.map(sorted).unwrap_or_default(),
            endurance,
            source,
        })
    }
}

impl Attack {
    /// Whether an answer of `run_code` is one of the accepted outcomes of this hostile program.
    #[must_use]
    pub fn is_met_by(&self, answer: &Value) -> bool {
        self.outcomes.iter().any(|outcome| outcome.fits(answer))
    }

    /// Returns this hostile program with the outcomes that are accepted in workers with packages.
    #[must_use]
    pub fn with_packages(mut self) -> Self {
        if !self.outcomes_with_packages.is_empty() {
            self.outcomes = std::mem::take(&mut self.outcomes_with_packages);
        }
        self
    }

    /// Whether the program exhausts at most its time limit and no other resource, so that other programs can run beside
    /// it.
    #[must_use]
    pub fn is_harmless(&self) -> bool {
        self.limits.iter().all(|limit| limit.starts_with("timeout_seconds "))
    }
}

impl Outcome {
    fn parse(text: &str) -> Result<Self, String> {
        let (statuses, rest) = text.split_once(' ').ok_or("an outcome needs words, or the value after ok")?;
        if statuses == "ok" {
            let value = serde_json::from_str(rest);
            return value.map(Self::Value).map_err(|error| format!("the value is not JSON: {error}"));
        }
        let statuses = words(statuses, '|');
        match statuses.iter().find(|status| *status == "ok" || !STATUSES.contains(&status.as_str())) {
            Some(status) => Err(format!("{status:?} cannot stand there")),
            None => Ok(Self::Failure { statuses, words: rest.to_owned() }),
        }
    }

    fn fits(&self, answer: &Value) -> bool {
        match self {
            Self::Value(value) => answer["status"] == "ok" && answer["value"] == *value,
            Self::Failure { statuses, words } => {
                let message = answer["error"]["message"].as_str().unwrap_or_default();
                statuses.iter().any(|status| answer["status"] == status.as_str()) && message.contains(words)
            }
        }
    }
}

impl Ending {
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "ends at its deadline" => Ok(Self::AtDeadline),
            "ends by its deadline" => Ok(Self::ByDeadline),
            _ => Err("endurance is `ends at its deadline` or `ends by its deadline`".into()),
        }
    }
}

impl Control {
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "outside" => Ok(Self::Outside),
            "outside as root" => Ok(Self::OutsideAsRoot),
            _ if text.strip_prefix("none: ").is_some_and(|reason| !reason.is_empty()) => Ok(Self::None),
            _ => Err("control is `outside`, `outside as root` or `none: REASON`".into()),
        }
    }
}

fn words(text: &str, between: char) -> Vec<String> {
    text.split(between).map(|word| word.trim().to_owned()).filter(|word| !word.is_empty()).collect()
}

fn sorted(mut words: Vec<String>) -> Vec<String> {
    words.sort();
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(header: &str) -> Result<Attack, String> {
        Attack::parse(Path::new("a.py"), "#", header.to_owned())
    }

    #[test]
    fn an_invalid_attack_header_is_rejected() {
        let good = "# attack: a\n# outcome: error|killed no\n# control: none: b\n# limits: x = 1, y = 2\ncode\n# attack: c";
        let attack = parse(good).unwrap();
        assert_eq!((attack.what.as_str(), attack.limits.len()), ("a", 2));
        let bad = [
            "# attack: a\n# control: outside\n",
            "# attack: a\n# outcome: error\n# control: outside\n",
            "# attack: a\n# outcome: fine x\n# control: outside\n",
            "# attack: a\n# outcome: ok x\n# control: outside\n",
            "# attack: a\n# outcome: error x\n# control: none\n",
            "# attack: a\n# attack: a\n# outcome: error x\n# control: outside\n",
            "# attack: a\n# outcome: error x\n# control: outside\n# colour: red\n",
            "# attack: a\n# outcome: error x\n# control: outside\n# endurance: long\n",
        ];
        for header in bad {
            assert!(parse(header).is_err(), "{header}");
        }
    }
}
