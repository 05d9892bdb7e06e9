//! The files that the command of an upstream server executes: who changes them decides what runs at the next start,
//! outside of the worker's sandbox.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use lockhouse_upstream::{Endpoint, ServerCommand, ServerDefinition, program_files};

/// Endings of the names of files that interpreters execute.
const SCRIPTS: [&str; 14] =
    ["bash", "cjs", "cts", "jar", "js", "lua", "mjs", "mts", "php", "pl", "py", "rb", "sh", "ts"];

/// Returns the program of a server, its interpreters, and the scripts in its arguments. Modules that these import are not
/// known.
pub(super) fn server_programs(definition: &ServerDefinition) -> Vec<PathBuf> {
    let Endpoint::Stdio(command) = &definition.endpoint else { return Vec::new() };
    let mut programs = program_files(command, std::env::var_os("PATH").as_deref());
    programs.extend(scripts(command));
    programs
}

/// Returns the scripts in the arguments. A path may be relative to the server's directory, or to one in the arguments, as
/// for `uv --directory DIR run SCRIPT`.
fn scripts(command: &ServerCommand) -> Vec<PathBuf> {
    let own = command.directory.clone().unwrap_or_default();
    let values = || {
        command
            .arguments
            .iter()
            .map(|argument| argument.split_once('=').map_or(&**argument, |(_, value)| value))
    };
    let folders: Vec<PathBuf> = values().map(|value| own.join(value)).filter(|path| path.is_dir()).collect();
    let bases = std::iter::once(&own).chain(&folders);
    bases
        .flat_map(|base| values().map(move |value| base.join(value)))
        .filter(|path| is_script(path))
        .collect()
}

fn is_script(path: &Path) -> bool {
    let has_ending =
        path.extension().and_then(|ending| ending.to_str()).is_some_and(|ending| SCRIPTS.contains(&ending));
    let found = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file);
    found.is_some_and(|found| has_ending || found.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use lockhouse_upstream::ServerLimits;

    use super::*;

    #[test]
    fn programs_and_scripts_are_found_and_data_is_not() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = |name: &str| directory.path().join(name);
        std::fs::create_dir(path("src")).expect("a folder");
        for name in ["server.py", "src/main.ts", "data.db"] {
            std::fs::write(path(name), "").expect("a file");
        }
        let folder = directory.path().display().to_string();
        let found = |arguments: &[&str], directory: Option<PathBuf>| {
            let arguments = arguments.iter().map(ToString::to_string).collect();
            let command =
                ServerCommand { program: "/bin/sh".into(), arguments, directory, ..ServerCommand::default() };
            let definition =
                ServerDefinition::new(Endpoint::Stdio(command), ServerLimits::default(), String::new());
            server_programs(&definition)
        };
        for (arguments, directory, script) in [
            (&[path("server.py").to_str().expect("text")][..], None, Some("server.py")),
            (
                &["server.py", "--db", path("data.db").to_str().expect("text")],
                Some(directory.path().into()),
                Some("server.py"),
            ),
            (&["--directory", &folder, "run", "src/main.ts"], None, Some("src/main.ts")),
            (&[&format!("--script={folder}/server.py")], None, Some("server.py")),
            (&[path("data.db").to_str().expect("text")], None, None),
        ] {
            let found = found(arguments, directory);
            assert!(found.contains(&"/bin/sh".into()), "{arguments:?}: {found:?}");
            let scripts: Vec<_> = found.iter().filter(|path| path.starts_with(&folder)).cloned().collect();
            assert_eq!(scripts, script.map(path).into_iter().collect::<Vec<_>>(), "{arguments:?}");
        }
    }
}
