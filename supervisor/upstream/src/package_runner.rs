//! Programs such as `npx`, which download a package and run it. They obey settings (`.npmrc`) and run programs
//! (`node_modules/.bin`) of the directory in which they start, and of those above it. That directory is the one of the AI
//! client, and may hold files of strangers, such as a repository that somebody looks at.

use std::path::{Path, PathBuf};

use lockhouse_base::files::create_private_directory;

use super::definition::ServerCommand;

/// The package runners that obey the current directory, each with the arguments with which it is one; none if it always
/// is. `uvx` is not among them: it ignores the settings of the current directory.
const RUNNERS: [(&str, &[&str]); 11] = [
    ("bun", &["x"]),
    ("bunx", &[]),
    ("deno", &["run"]),
    ("npm", &["exec", "x"]),
    ("npx", &[]),
    ("pipx", &["run"]),
    ("pn", &["dlx"]),
    ("pnpm", &["dlx"]),
    ("pnpx", &[]),
    ("pnx", &[]),
    ("yarn", &["dlx"]),
];
/// Programs that run the program in their arguments.
const WRAPPERS: [&str; 6] = ["bash", "corepack", "dash", "env", "mise", "sh"];

/// Returns the directory in which a server starts; `None` for the current one. A package runner without a configured
/// directory starts in `folder`, the server's own folder, which is created, or in `/` if there is none.
pub(super) fn directory(command: &ServerCommand, folder: Option<&Path>) -> std::io::Result<Option<PathBuf>> {
    if command.directory.is_some() || !is_runner(command) {
        return Ok(command.directory.clone());
    }
    match folder {
        Some(folder) => create_private_directory(folder).map(|()| Some(folder.to_owned())),
        None => Ok(Some("/".into())),
    }
}

/// Whether a command runs a package, itself or in the arguments of a wrapper such as `sh -c`. Options may precede the
/// argument that makes a program a runner.
fn is_runner(command: &ServerCommand) -> bool {
    let arguments = command.arguments.iter().map(String::as_str);
    let words: Vec<&str> = arguments.flat_map(str::split_whitespace).collect();
    let runs = |program: &str, arguments: &[&str]| {
        let runner = RUNNERS.iter().find(|(runner, _)| file_name(program) == *runner);
        let is_it = |known: &[&str]| known.is_empty() || arguments.iter().any(|word| known.contains(word));
        runner.is_some_and(|(_, known)| is_it(known))
    };
    let is_wrapped = || words.iter().enumerate().any(|(at, word)| runs(word, &words[at + 1..]));
    runs(&command.program, &words) || WRAPPERS.contains(&file_name(&command.program)) && is_wrapped()
}

fn file_name(program: &str) -> &str {
    Path::new(program).file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_package_runners_without_a_directory_start_in_a_folder_of_their_own() {
        let parent = tempfile::tempdir().expect("a directory");
        let folder = parent.path().join("own");
        let start = |program: &str, arguments: &[&str], directory: Option<&str>| {
            let command = ServerCommand {
                program: program.into(),
                arguments: arguments.iter().map(ToString::to_string).collect(),
                directory: directory.map(PathBuf::from),
                ..ServerCommand::default()
            };
            super::directory(&command, Some(&folder)).expect("a directory")
        };
        for (program, arguments) in [
            ("npx", &["-y", "x"][..]),
            ("/usr/bin/npx", &[]),
            ("npm", &["exec", "x"]),
            ("npm", &["-y", "exec", "x"]),
            ("bunx", &["x"]),
            ("pipx", &["run", "x"]),
            ("pnpm", &["--package=a", "dlx", "b"]),
            ("deno", &["run", "-A", "npm:x"]),
            ("sh", &["-c", "npx -y x"]),
            ("env", &["A=b", "/usr/bin/npm", "exec", "x"]),
        ] {
            assert_eq!(start(program, arguments, None).as_ref(), Some(&folder), "{program}");
            assert_eq!(start(program, arguments, Some(".")), Some(PathBuf::from(".")), "{program}");
        }
        assert!(folder.is_dir());
        for (program, arguments) in [
            ("node", &["npx"][..]),
            ("npm", &["start"]),
            ("pnpm", &["exec", "x"]),
            ("uvx", &["x"]),
            ("sh", &["-c", "node server.js"]),
        ] {
            assert_eq!(start(program, arguments, None), None, "{program}");
        }
        let command = ServerCommand { program: "npx".into(), ..ServerCommand::default() };
        assert_eq!(super::directory(&command, None).expect("a directory"), Some(PathBuf::from("/")));
    }
}
