//! `lockhouse --version --verbose`: reports which build this is, from which files it runs, and how to verify them.

mod elf;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, UNIX_EPOCH};

use clap::Parser;
use lockhouse_config::installed_file;
use lockhouse_upstream::program_digest;
use serde_json::{Value, json};

use self::elf::{GlibcVersion, ProgramFile};
use super::table;

const VERSION: &str = env!("CARGO_PKG_VERSION");
const LICENCE: &str = env!("CARGO_PKG_LICENSE");
const UNKNOWN: &str = "unknown";

/// The command line of the detailed version. The ordinary parser prints the version as soon as it reads `--version`.
#[derive(Debug, Parser)]
#[command(disable_version_flag = true, disable_help_flag = true)]
pub(super) struct Arguments {
    #[arg(short = 'V', long, required = true)]
    version: bool,
    #[arg(long, required_unless_present = "json")]
    verbose: bool,
    #[arg(long)]
    json: bool,
}

/// What the build script knew: see `supervisor/build.rs`.
struct Build {
    commit: Option<&'static str>,
    /// In RFC 3339, the time of the commit.
    date: Option<String>,
    profile: Option<&'static str>,
    target: Option<&'static str>,
    rustc: Option<&'static str>,
    /// The number of components in the software bill of materials.
    components: Option<u64>,
}

/// One of the three programs of Lockhouse, as it was found.
struct Installed {
    name: &'static str,
    /// The path and what the file contains, or why it could not be found or read.
    found: Result<(PathBuf, Contents), NotReadable>,
}

/// Why a program could not be found or read.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct NotReadable(String);

struct Contents {
    /// In hexadecimal digits.
    sha256: String,
    /// Whether the file has the list of its dependencies, in the form of `cargo auditable`.
    has_dependency_list: bool,
    /// The oldest version of the GNU C library with which the program runs.
    glibc: Option<GlibcVersion>,
}

/// Prints the report. Files that are missing are reported as such, and do not change the exit status.
pub(super) fn version(arguments: &Arguments) -> ExitCode {
    let build = Build::embedded();
    let installed = [
        Installed::read("lockhouse", std::env::current_exe().map_err(|error| NotReadable(error.to_string()))),
        Installed::read("lockhouse-worker", engine("lockhouse-worker", "the JavaScript engine")),
        Installed::read("liblockhouse_python.so", engine("liblockhouse_python.so", "the Python engine")),
    ];
    match arguments.json {
        true => println!("{:#}", to_json(&build, &installed)),
        false => print(&build, &installed),
    }
    ExitCode::SUCCESS
}

/// Finds a language engine where a configuration without `extension` and `worker` has it.
fn engine(name: &str, what: &'static str) -> Result<PathBuf, NotReadable> {
    let path = installed_file(None, name, what).map_err(|missing| NotReadable(missing.to_string()))?;
    Ok(path.canonicalize().unwrap_or(path))
}

impl Build {
    fn embedded() -> Self {
        let seconds = known(env!("SOURCE_DATE_EPOCH")).and_then(|text| text.parse().ok());
        let time = seconds.and_then(|seconds| UNIX_EPOCH.checked_add(Duration::from_secs(seconds)));
        Self {
            commit: known(env!("LOCKHOUSE_BUILD_COMMIT")),
            date: time.map(|time| humantime::format_rfc3339_seconds(time).to_string()),
            profile: known(env!("LOCKHOUSE_BUILD_PROFILE")),
            target: known(env!("LOCKHOUSE_BUILD_TARGET")),
            rustc: known(env!("LOCKHOUSE_BUILD_RUSTC")),
            components: known(env!("LOCKHOUSE_BUILD_COMPONENTS")).and_then(|text| text.parse().ok()),
        }
    }
}

fn known(text: &'static str) -> Option<&'static str> {
    (!text.is_empty()).then_some(text)
}

fn features() -> Vec<&'static str> {
    if cfg!(feature = "otel") { vec!["otel"] } else { Vec::new() }
}

impl Installed {
    fn read(name: &'static str, path: Result<PathBuf, NotReadable>) -> Self {
        let contents = |path: &Path| -> std::io::Result<Contents> {
            let file = ProgramFile::open(path)?;
            Ok(Contents {
                sha256: program_digest(path)?,
                has_dependency_list: file.has_dependency_list,
                glibc: file.oldest_glibc,
            })
        };
        let found = path.and_then(|path| match contents(&path) {
            Ok(contents) => Ok((path, contents)),
            Err(error) => Err(NotReadable(format!("{} cannot be read: {error}", path.display()))),
        });
        Self { name, found }
    }

    fn contents(&self) -> Option<&Contents> {
        self.found.as_ref().ok().map(|(_, contents)| contents)
    }
}

/// Returns the oldest version of the GNU C library with which all of the programs run. `None` if it is unknown for any.
fn oldest_glibc(installed: &[Installed]) -> Option<GlibcVersion> {
    let versions: Option<Vec<GlibcVersion>> =
        installed.iter().map(|program| program.contents()?.glibc).collect();
    versions?.into_iter().max()
}

fn have_dependency_lists(installed: &[Installed]) -> bool {
    installed.iter().all(|program| program.contents().is_some_and(|contents| contents.has_dependency_list))
}

fn bill_of_materials() -> String {
    format!("lockhouse-{VERSION}.cdx.json")
}

fn to_json(build: &Build, installed: &[Installed]) -> Value {
    let program = |program: &Installed| match &program.found {
        Ok((path, contents)) => json!({
            "name": program.name,
            "path": path.display().to_string(),
            "sha256": contents.sha256,
            "auditable": contents.has_dependency_list,
            "glibc": contents.glibc.map(|version| version.to_string()),
        }),
        Err(reason) => json!({"name": program.name, "error": reason.to_string()}),
    };
    let text = |value: Option<&str>| value.unwrap_or(UNKNOWN).to_owned();
    json!({
        "version": VERSION,
        "commit": text(build.commit),
        "date": text(build.date.as_deref()),
        "profile": text(build.profile),
        "target": text(build.target),
        "rustc": text(build.rustc),
        "features": features(),
        "glibc": oldest_glibc(installed).map_or(UNKNOWN.to_owned(), |version| version.to_string()),
        "auditable": have_dependency_lists(installed),
        "components": build.components,
        "programs": installed.iter().map(program).collect::<Vec<_>>(),
        "sbom": bill_of_materials(),
        "checksums": "SHA256SUMS",
        "signature": "SHA256SUMS.sig",
        "licence": LICENCE,
        "third_party_licences": "THIRD-PARTY-LICENSES",
    })
}

fn print(build: &Build, installed: &[Installed]) {
    let text = |value: Option<&str>| value.unwrap_or(UNKNOWN).to_owned();
    let features = features();
    let dependencies = match have_dependency_lists(installed) {
        true => "embedded in every program; `cargo audit bin PROGRAM` reads it",
        false => "not embedded in every program: only builds for packages have it",
    };
    let components = build.components.map_or(UNKNOWN.to_owned(), |number| number.to_string());
    let rows = [
        ("commit", build.commit.map_or("development build".to_owned(), str::to_owned)),
        ("date of commit", text(build.date.as_deref())),
        ("profile", text(build.profile)),
        ("target", text(build.target)),
        ("compiler", text(build.rustc)),
        ("features", if features.is_empty() { "none".into() } else { features.join(", ") }),
        ("oldest glibc", oldest_glibc(installed).map_or(UNKNOWN.into(), |version| version.to_string())),
        ("dependency list", dependencies.to_owned()),
        ("components", format!("{components}, listed in {}", bill_of_materials())),
        ("signature", "SHA256SUMS.sig, of the checksums in SHA256SUMS".to_owned()),
        ("licence", LICENCE.to_owned()),
        ("libraries' licences", "THIRD-PARTY-LICENSES, in each package".to_owned()),
    ];
    println!("lockhouse {VERSION}");
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, value) in rows {
        println!("{name:width$}  {value}");
    }
    let rows = installed.iter().map(|program| {
        let (path, sha256) = match &program.found {
            Ok((path, contents)) => (path.display().to_string(), contents.sha256.clone()),
            Err(reason) => (reason.to_string(), UNKNOWN.to_owned()),
        };
        vec![program.name.to_owned(), path, sha256]
    });
    println!("\n{}", table::render(&["program", "path", "SHA-256"], &rows.collect::<Vec<_>>()));
    println!(
        "\nThe files {}, SHA256SUMS and SHA256SUMS.sig are beside the packages of the release; docs/supply-chain.md describes how to verify them.",
        bill_of_materials()
    );
}
