//! Runs the installer of Python packages: uv if it is in PATH, else pip. Both install built distributions (wheels) only, so
//! that no code of a package runs while it is installed, and check the hash of every file. They run in `/`, so that they
//! find the settings of the user and the system, and none that somebody put into the current directory or above it.

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use lockhouse_config::{PackageSpec, find_program};
use tokio::process::Command;

use super::lock_file::{self, LockError};
use super::package_index;
use super::uv_settings::{SOURCE_VARIABLES, source_setting};
use crate::cli::terminal::sanitize_lines;

/// Maximum number of characters of an installer's output that an error shows.
const OUTPUT_CHARS_MAX: usize = 1_500;
/// Number of the last lines of an installer's output that an error shows.
const OUTPUT_LINES_MAX: usize = 8;

/// Why packages could not be installed.
#[derive(Debug, thiserror::Error)]
pub(super) enum InstallError {
    #[error("cannot run {}: {source}", .program.display())]
    Start { program: PathBuf, source: std::io::Error },
    #[error("cannot write {}: {source}", .path.display())]
    File { path: PathBuf, source: std::io::Error },
    #[error(
        "{interpreter} cannot make a virtual environment. Install python3-venv (Debian: apt install python3-venv), or uv:\n{output}"
    )]
    NoVenv { interpreter: String, output: String },
    #[error(
        "the package index cannot be reached. Connect this machine to the network, or name a mirror in the environment: \
         PIP_INDEX_URL for pip, UV_DEFAULT_INDEX for uv:\n{0}"
    )]
    NoNetwork(String),
    #[error(
        "a package was not found for this Python. Check the spelling; packages without a built distribution (wheel) for this \
         version of Python cannot be installed:\n{0}"
    )]
    NotFound(String),
    #[error(
        "the versions of the packages contradict each other. `lockhouse python lock --upgrade` selects all versions anew; \
         otherwise remove a package, or change its version:\n{0}"
    )]
    Conflict(String),
    #[error(
        "a file of a package does not have the hash of the lock file. It was changed, or the lock file is not of this index:\n{0}"
    )]
    WrongHash(String),
    #[error("this pip is too old to report hashes. Install uv, or a Python with pip 22.2 or later:\n{0}")]
    OldPip(String),
    #[error(
        "{} has the setting {setting}, with which uv builds packages from source, which runs their code. Remove it, or name \
         another settings file in UV_CONFIG_FILE for this command", .path.display()
    )]
    SourceSetting { path: PathBuf, setting: String },
    #[error("the installer failed:\n{0}")]
    Other(String),
    #[error(transparent)]
    Lock(#[from] LockError),
}

/// The installer, with the virtual environment that it installs into.
pub(super) struct Installer {
    /// The path of uv; `None` if pip is used.
    uv: Option<PathBuf>,
    interpreter: PathBuf,
    environment: PathBuf,
}

/// The selected versions of packages.
pub(super) struct Resolution {
    /// The text of the lock file.
    pub(super) lock_text: String,
    /// The indexes and folders in which the installer looked.
    pub(super) indexes: Vec<String>,
}

impl Installer {
    /// Selects the installer. `interpreter` is the Python of the new environment.
    pub(super) fn new(interpreter: PathBuf, environment: PathBuf) -> Self {
        // The installer runs in another directory.
        let interpreter = std::path::absolute(&interpreter).unwrap_or(interpreter);
        Self { uv: find_program("uv"), interpreter, environment }
    }

    pub(super) fn name(&self) -> &'static str {
        if self.uv.is_some() { "uv" } else { "pip" }
    }

    /// Creates the virtual environment.
    pub(super) async fn create(&self) -> Result<(), InstallError> {
        let command = match &self.uv {
            Some(uv) => command(
                uv,
                &["venv", "--quiet", "--python", &text(&self.interpreter), &text(&self.environment)],
            ),
            None => command(&self.interpreter, &["-I", "-m", "venv", &text(&self.environment)]),
        };
        let output = run(command).await?;
        match output.status.success() {
            true => Ok(()),
            false => Err(InstallError::NoVenv {
                interpreter: text(&self.interpreter),
                output: last_lines(&output),
            }),
        }
    }

    /// Selects a version of each package and of what it requires. `pins` are versions to keep, as `name==version`.
    pub(super) async fn resolve(
        &self,
        packages: &[PackageSpec],
        pins: &[String],
    ) -> Result<Resolution, InstallError> {
        let wanted: String = packages.iter().map(|package| format!("{package}\n")).collect();
        let requirements = self.write("requirements.in", &wanted)?;
        let constraints = self.write("constraints.txt", &pins.join("\n"))?;
        match &self.uv {
            Some(uv) => {
                if let Some((path, setting)) = source_setting() {
                    return Err(InstallError::SourceSetting { path, setting });
                }
                let mut command =
                    command(uv, &["pip", "compile", "--quiet", "--generate-hashes", "--no-header"]);
                command.args(["--no-annotate", "--emit-index-annotation", "--only-binary", ":all:"]);
                command.args(["--python", &self.python(), "--constraints", &constraints, &requirements]);
                let output = run_checked(command).await?.stdout;
                let (lock_text, indexes) = package_index::take_annotations(&String::from_utf8_lossy(&output));
                lock_file::check(&lock_text)?;
                Ok(Resolution { lock_text, indexes })
            }
            None => {
                let report = text(&self.environment.join("report.json"));
                let mut command =
                    self.pip(&["install", "--dry-run", "--ignore-installed", "--report", &report]);
                command.args(["--constraint", &constraints, "--requirement", &requirements]);
                let output = run_checked(command).await?.stdout;
                let report = std::fs::read_to_string(&report);
                let report =
                    report.map_err(|source| InstallError::File { path: self.environment.clone(), source })?;
                let indexes = package_index::of_pip(&String::from_utf8_lossy(&output));
                Ok(Resolution { lock_text: lock_file::from_pip_report(&report)?, indexes })
            }
        }
    }

    /// Installs exactly what the lock file names, and checks the hash of each file.
    pub(super) async fn install(&self, lock_text: &str) -> Result<(), InstallError> {
        let lock = self.write("requirements.lock", lock_text)?;
        let command = match &self.uv {
            Some(uv) => {
                let mut command = command(uv, &["pip", "install", "--quiet", "--python", &self.python()]);
                command.args(["--require-hashes", "--no-deps", "--compile-bytecode"]);
                // Not `:all:`: settings for single packages would override it.
                for (name, _) in lock_file::pins(lock_text) {
                    command.args(["--only-binary", &name]);
                }
                command.args(["--requirement", &lock]);
                command
            }
            None => self.pip(&["install", "--require-hashes", "--no-deps", "--requirement", &lock]),
        };
        run_checked(command).await.map(drop)
    }

    fn pip(&self, arguments: &[&str]) -> Command {
        let mut command = command(Path::new(&self.python()), &["-I", "-m", "pip"]);
        command.args(arguments).args(["--disable-pip-version-check", "--no-input"]);
        command.args(["--only-binary", ":all:"]);
        command
    }

    fn python(&self) -> String {
        text(&self.environment.join("bin/python"))
    }

    /// Writes a file for the installer into the environment. Returns its path.
    fn write(&self, name: &str, content: &str) -> Result<String, InstallError> {
        let path = self.environment.join(name);
        std::fs::write(&path, content).map_err(|source| InstallError::File { path: path.clone(), source })?;
        Ok(text(&path))
    }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn command(program: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).current_dir("/").stdin(Stdio::null()).kill_on_drop(true);
    for name in SOURCE_VARIABLES {
        command.env_remove(name);
    }
    command
}

async fn run(mut command: Command) -> Result<Output, InstallError> {
    let program = PathBuf::from(command.as_std().get_program());
    command.output().await.map_err(|source| InstallError::Start { program, source })
}

async fn run_checked(command: Command) -> Result<Output, InstallError> {
    let output = run(command).await?;
    if output.status.success() { Ok(output) } else { Err(classify(&output)) }
}

/// The error for the failure of an installer, by words in its output.
fn classify(output: &Output) -> InstallError {
    let all = String::from_utf8_lossy(&output.stderr).to_lowercase();
    let has = |words: &[&str]| words.iter().any(|words| all.contains(words));
    let lines = last_lines(output);
    if has(&["no such option: --report"]) {
        InstallError::OldPip(lines)
    } else if has(&["do not match the hashes", "hash mismatch"]) {
        InstallError::WrongHash(lines)
    } else if has(&[
        "connection",
        "name resolution",
        "dns error",
        "error sending request",
        "network is unreachable",
        "timed out",
    ]) {
        InstallError::NoNetwork(lines)
    } else if has(&["resolutionimpossible", "conflicting dependencies", "are incompatible", "depend on"]) {
        InstallError::Conflict(lines)
    } else if has(&[
        "no matching distribution",
        "not found in the",
        "no version of",
        "no wheels",
        "requires-python",
        "different python",
    ]) {
        InstallError::NotFound(lines)
    } else {
        InstallError::Other(lines)
    }
}

fn last_lines(output: &Output) -> String {
    let all =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let lines: Vec<&str> = all.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    let last = lines[lines.len().saturating_sub(OUTPUT_LINES_MAX)..].join("\n");
    sanitize_lines(&last.chars().take(OUTPUT_CHARS_MAX).collect::<String>())
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    #[test]
    fn failures_are_recognised_by_their_words() {
        let failure = |stderr: &str| {
            let status = std::process::ExitStatus::from_raw(256);
            classify(&Output { status, stdout: Vec::new(), stderr: stderr.into() })
        };
        let not_found = "ERROR: Could not find a version that satisfies the requirement nope\nERROR: No matching distribution found for nope";
        assert!(matches!(failure(not_found), InstallError::NotFound(_)));
        let offline = format!(
            "WARNING: Retrying: NewConnectionError('Failed to establish a new connection')\n{not_found}"
        );
        assert!(matches!(failure(&offline), InstallError::NoNetwork(_)));
        let uv = "  × No solution found when resolving dependencies:\n  ╰─▶ Because nope was not found in the package registry and you require nope";
        assert!(matches!(failure(uv), InstallError::NotFound(_)));
        let conflict = "ERROR: ResolutionImpossible: for help visit https://pip.pypa.io";
        assert!(matches!(failure(conflict), InstallError::Conflict(_)));
        let hash = "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.";
        assert!(matches!(failure(hash), InstallError::WrongHash(_)));
        assert!(matches!(failure("no such option: --report"), InstallError::OldPip(_)));
        assert!(failure("strange \u{1b}[2J").to_string().ends_with("strange \u{fffd}[2J"));
    }
}
