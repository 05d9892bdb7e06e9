//! Programs such as `npx`, which download a package and run it. They obey settings (`.npmrc`) and run programs
//! (`node_modules/.bin`) of the directory in which they start, and of those above it. That directory is the one of the AI
//! client, and may hold files of strangers, such as a repository that somebody looks at.

use std::path::{Path, PathBuf};

use lockhouse_base::files::create_private_directory;

use super::definition::ServerCommand;

/// The package runners that obey the current directory, each with the first arguments with which it is one; none if it
/// always is. `uvx` is not among them: it ignores the settings of the current directory.
const RUNNERS: [(&str, &[&str]); 7] = [
    ("bun", &["x"]),
    ("bunx", &[]),
    ("npm", &["exec", "x"]),
    ("npx", &[]),
    ("pnpm", &["dlx"]),
    ("pnpx", &[]),
    ("yarn", &["dlx"]),
];

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

fn is_runner(command: &ServerCommand) -> bool {
    let name = Path::new(&command.program).file_name().unwrap_or_default();
    let first = command.arguments.first().map(String::as_str);
    let is_it = |(runner, arguments): &(&str, &[&str])| {
        name == *runner && (arguments.is_empty() || first.is_some_and(|first| arguments.contains(&first)))
    };
    RUNNERS.iter().any(is_it)
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
        for (program, arguments) in
            [("npx", &["-y", "x"][..]), ("/usr/bin/npx", &[]), ("npm", &["exec", "x"]), ("bunx", &["x"])]
        {
            assert_eq!(start(program, arguments, None).as_ref(), Some(&folder), "{program}");
            assert_eq!(start(program, arguments, Some(".")), Some(PathBuf::from(".")), "{program}");
        }
        assert!(folder.is_dir());
        for (program, arguments) in
            [("node", &["npx"][..]), ("npm", &["start"]), ("pnpm", &["exec", "x"]), ("uvx", &["x"])]
        {
            assert_eq!(start(program, arguments, None), None, "{program}");
        }
        let command = ServerCommand { program: "npx".into(), ..ServerCommand::default() };
        assert_eq!(super::directory(&command, None).expect("a directory"), Some(PathBuf::from("/")));
    }
}
