//! Programs that run code of the directory in which they start. Package runners such as `npx` obey settings (`.npmrc`) and
//! run programs (`node_modules/.bin`) of it, and of those above it; `bun`, `deno` and `tsx` obey its `bunfig.toml`, `deno.json` and
//! `tsconfig.json`; `python -m` and `uv run` take modules and projects from
//! it. That directory is the one of the AI client, and may hold files of strangers, such as a repository that somebody
//! looks at.

use std::path::{Path, PathBuf};

use lockhouse_base::files::create_private_directory;

use super::definition::ServerCommand;

/// The programs that run code of the current directory, each with the arguments with which it does; none if it always
/// does. `uvx` is not among them: it ignores the settings of the current directory.
const RUNNERS: [(&str, &[&str]); 16] = [
    ("bun", &[]),
    ("bunx", &[]),
    ("deno", &[]),
    ("npm", &["exec", "x"]),
    ("npm-cli.js", &["exec", "x"]),
    ("npx", &[]),
    ("npx-cli.js", &[]),
    ("pipx", &["run"]),
    ("pn", &["dlx"]),
    ("pnpm", &["dlx"]),
    ("pnpx", &[]),
    ("pnx", &[]),
    ("tsx", &[]),
    ("uv", &["run"]),
    ("yarn", &["dlx"]),
    ("yarnpkg", &["dlx"]),
];
/// The long option of Python that has a value in the next word.
const PYTHON_LONG_OPTION: &str = "-check-hash-based-pycs";
/// Options of node that name a module to load before the script.
const NODE_OPTIONS: [&str; 5] = ["--experimental-loader", "--import", "--loader", "--require", "-r"];
/// Options of node with code, which may load a package.
const NODE_CODE: [&str; 5] = ["--eval", "--print", "-e", "-p", "-pe"];
/// What separates words of a command line, such as that of `sh -c`.
const SEPARATORS: &str = "'\"`;&|()<>{}$=";

/// Returns the directory in which a server starts; `None` for the current one. A program that runs code of the
/// current directory, without a configured directory, starts in `folder`, the server's own folder, which is created, or in `/` if there is none.
pub(super) fn directory(command: &ServerCommand, folder: Option<&Path>) -> std::io::Result<Option<PathBuf>> {
    if command.directory.is_some() || !is_runner(command) {
        return Ok(command.directory.clone());
    }
    match folder {
        Some(folder) => create_private_directory(folder).map(|()| Some(folder.to_owned())),
        None => Ok(Some("/".into())),
    }
}

/// Whether a command runs code of the current directory, itself or through any other program, such as `sh -c` or
/// `timeout`. Options may precede the argument that makes a program a runner.
fn is_runner(command: &ServerCommand) -> bool {
    let separates = |letter: char| letter.is_whitespace() || SEPARATORS.contains(letter);
    let node_options = command.environment.get("NODE_OPTIONS").map(String::as_str).unwrap_or_default();
    if preloads_package(&node_options.split_whitespace().collect::<Vec<_>>()) {
        return true;
    }
    let own: Vec<&str> = command.arguments.iter().map(String::as_str).collect();
    if is_python(file_name(&command.program)) {
        return runs_module(&own);
    }
    let arguments = own.iter().flat_map(|argument| argument.split(separates)).filter(|word| !word.is_empty());
    let words: Vec<&str> = std::iter::once(&*command.program).chain(arguments).collect();
    words.iter().enumerate().any(|(at, word)| {
        let (name, arguments) = (file_name(word), &words[at + 1..]);
        let runner = RUNNERS.iter().find(|(runner, _)| *runner == name);
        let is_it = |known: &[&str]| known.is_empty() || arguments.iter().any(|word| known.contains(word));
        // In a command line, the options may be far from the program: `P=python3; "$P" -m server`.
        let is_module = || arguments.iter().any(|word| word.starts_with("-m") || word.starts_with("-c"));
        runner.is_some_and(|(_, known)| is_it(known))
            || is_python(name) && (runs_module(arguments) || is_module())
            || is_node(name) && preloads_package(arguments)
    })
}

/// Whether this is the name of a Python interpreter, such as `python3.13t`.
fn is_python(name: &str) -> bool {
    let rest = ["python", "pypy"].iter().find_map(|program| name.strip_prefix(program));
    rest.is_some_and(|version| version.bytes().all(|byte| byte.is_ascii_digit() || b".tdw-".contains(&byte)))
}

fn is_node(name: &str) -> bool {
    ["node", "nodejs"].contains(&name)
}

/// Whether Python takes a module (`-m`), or runs an expression (`-c`) that can import one, from the current directory.
fn runs_module(arguments: &[&str]) -> bool {
    let mut arguments = arguments.iter();
    while let Some(options) = arguments.next().and_then(|word| word.strip_prefix('-')) {
        if options.starts_with('-') {
            if options == PYTHON_LONG_OPTION {
                arguments.next();
            }
            continue;
        }
        // Several options can be in one word; the first one with a value takes the rest of it, or the next word.
        match options.find(|option| "mcWX".contains(option)) {
            Some(at) if options[at..].starts_with(['m', 'c']) => return true,
            Some(at) if at + 1 == options.len() => _ = arguments.next(),
            _ => {}
        }
    }
    false
}

/// Whether node loads a package before the script or in the code of an option, which it looks for in `node_modules` of the current directory.
fn preloads_package(arguments: &[&str]) -> bool {
    let mut arguments = arguments.iter();
    while let Some(option) = arguments.next().filter(|word| word.starts_with('-')) {
        let (name, value) =
            option.split_once('=').map_or((*option, None), |(name, value)| (name, Some(value)));
        if NODE_CODE.contains(&name) {
            return true;
        }
        if NODE_OPTIONS.contains(&name) {
            let value = value.or_else(|| arguments.next().copied()).unwrap_or_default();
            // A path is one of the current directory too, unless it is absolute.
            if !value.starts_with('/') && !value.starts_with("file:///") && !value.starts_with("data:") {
                return true;
            }
        }
    }
    false
}

fn file_name(program: &str) -> &str {
    Path::new(program).file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Commands that run code of the current directory.
    const RUN: &[(&str, &[&str])] = &[
        ("npx", &["-y", "x"]),
        ("/usr/bin/npx", &[]),
        ("npm", &["exec", "x"]),
        ("npm", &["-y", "exec", "x"]),
        ("bunx", &["x"]),
        ("pipx", &["run", "x"]),
        ("pnpm", &["--package=a", "dlx", "b"]),
        ("deno", &["run", "-A", "npm:x"]),
        ("deno", &["-A", "npm:x"]),
        ("bun", &["/opt/server.ts"]),
        ("tsx", &["/opt/server.ts"]),
        ("sh", &["-c", "npx -y x"]),
        ("env", &["A=b", "/usr/bin/npm", "exec", "x"]),
        ("timeout", &["60", "npx", "-y", "x"]),
        ("node", &["/usr/lib/node_modules/npm/bin/npx-cli.js", "x"]),
        ("sh", &["-c", "exec 'npx' x"]),
        ("bash", &["-c", "X=1;npx x"]),
        ("bash", &["-c", "$(which npx) x"]),
        ("python3", &["-m", "server"]),
        ("python", &["-X", "utf8", "-um", "server"]),
        ("python3", &["-c", "import server"]),
        ("python3", &["-mserver"]),
        ("python3", &["-cimport server"]),
        ("python3", &["--check-hash-based-pycs", "default", "-m", "server"]),
        ("python3.13t", &["-m", "server"]),
        ("env", &["-S", "python3 -mserver"]),
        ("sh", &["-c", "P=python3; \"$P\" -m server"]),
        ("node", &["--import", "tracing", "server.js"]),
        ("node", &["--require=./hook.js", "server.js"]),
        ("sh", &["-c", "exec node -r hook server.js"]),
        ("node", &["-e", "require('server')"]),
        ("/usr/bin/python3.11", &["-u", "-m", "server"]),
        ("uv", &["run", "server.py"]),
    ];
    /// Commands that do not.
    const RUN_NOT: &[(&str, &[&str])] = &[
        ("node", &["server.js"]),
        ("python3", &["server.py"]),
        ("python3", &["server.py", "-c", "settings.toml"]),
        ("python3", &["-Wm", "-X", "utf8", "server.py"]),
        ("node", &["--import=file:///opt/hook.mjs", "server.js", "-r", "x"]),
        ("npm", &["start"]),
        ("pnpm", &["exec", "x"]),
        ("uvx", &["x"]),
        ("sh", &["-c", "node server.js"]),
    ];

    #[test]
    fn only_runners_without_a_directory_start_in_a_folder_of_their_own() {
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
        for (program, arguments) in RUN {
            assert_eq!(start(program, arguments, None).as_ref(), Some(&folder), "{program}");
            assert_eq!(start(program, arguments, Some(".")), Some(PathBuf::from(".")), "{program}");
        }
        assert!(folder.is_dir());
        for (program, arguments) in RUN_NOT {
            assert_eq!(start(program, arguments, None), None, "{program}");
        }
        let environment = [("NODE_OPTIONS".to_owned(), "--import tracing".to_owned())].into();
        let command = ServerCommand { program: "node".into(), environment, ..ServerCommand::default() };
        assert_eq!(super::directory(&command, Some(&folder)).expect("a directory"), Some(folder));
        let command = ServerCommand { program: "npx".into(), ..ServerCommand::default() };
        assert_eq!(super::directory(&command, None).expect("a directory"), Some(PathBuf::from("/")));
    }
}
