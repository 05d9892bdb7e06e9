//! The files below one directory: made in memory, compared with what is there, and written each in one step.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use lockhouse_base::files;
use lockhouse_catalog::{python_name, stubs};
use lockhouse_protocol::ServerName;

use super::Offered;
use crate::cli::{UNAVAILABLE, USAGE};

/// In the first line of each file: no other file is ever overwritten or removed.
const MARKER: &str = "Written by `lockhouse stubs`: do not edit.";
/// Where files are that belong to one server.
const OF_SERVERS: [(&str, &str); 3] =
    [("python/mcp_tools", ".pyi"), ("python/mcp_tools/aio", ".pyi"), ("typescript/mcp_tools", ".d.ts")];
const TSCONFIG: &str = r#"{
  "compilerOptions": {
    "strict": true,
    "noEmit": true,
    "target": "es2023",
    "lib": ["es2023"],
    "types": [],
    "module": "esnext",
    "moduleResolution": "bundler",
    "moduleDetection": "force"
  },
  "include": ["**/*.ts"]
}
"#;

/// Why a tree was not written, or not all of it.
#[derive(Debug, thiserror::Error)]
pub(super) enum TreeError {
    #[error("{} is not of `lockhouse stubs` and stays as it is; choose another directory with --out, or move it away", .0.display())]
    Foreign(PathBuf),
    #[error("cannot write {}: {source}", .path.display())]
    Unwritable { path: PathBuf, source: io::Error },
}

impl TreeError {
    pub(super) fn status(&self) -> u8 {
        match self {
            Self::Foreign(_) => USAGE,
            Self::Unwritable { .. } => UNAVAILABLE,
        }
    }
}

/// Files by their path below the directory.
#[derive(Debug, Default)]
pub(super) struct Tree(BTreeMap<String, String>);

impl Tree {
    fn add(&mut self, path: &str, opening: &str, closing: &str, content: &str) {
        self.0.insert(path.to_owned(), format!("{opening} {MARKER}{closing}\n{content}"));
    }

    pub(super) fn add_python(&mut self, offered: &[Offered]) {
        let (mut package, mut later) = (String::new(), String::new());
        for one in offered {
            let name = python_name(one.server.as_str());
            let (module, module_later) = stubs::python(&described(one), &name);
            // Below `mcp_tools` that is the package of async functions.
            if name != "aio" {
                self.add(&format!("python/mcp_tools/{name}.pyi"), "#", "", &module);
                package.push_str(&format!("from . import {name} as {name}\n"));
            }
            self.add(&format!("python/mcp_tools/aio/{name}.pyi"), "#", "", &module_later);
            later.push_str(&format!("from . import {name} as {name}\n"));
        }
        // The names of the package itself win.
        let imports = |text: &str, of: &str| {
            let is_free = |line: &&str| {
                let name = line.rsplit(' ').next().unwrap_or_default();
                !of.contains(&format!("def {name}(")) && !of.contains(&format!("class {name}("))
            };
            text.lines().filter(is_free).map(|line| format!("{line}\n")).collect::<String>()
        };
        let whole = format!(
            "{}\nfrom . import aio as aio\n{}",
            stubs::PYTHON_PACKAGE,
            imports(&package, stubs::PYTHON_PACKAGE)
        );
        self.add("python/mcp_tools/__init__.pyi", "#", "", &whole);
        let whole =
            format!("{}\n{}", stubs::PYTHON_ASYNC_PACKAGE, imports(&later, stubs::PYTHON_ASYNC_PACKAGE));
        self.add("python/mcp_tools/aio/__init__.pyi", "#", "", &whole);
    }

    pub(super) fn add_typescript(&mut self, offered: &[Offered], known: &[ServerName]) {
        let names: Vec<&str> = known.iter().map(ServerName::as_str).collect();
        for one in offered {
            let path = format!("typescript/mcp_tools/{}.d.ts", one.server);
            self.add(&path, "//", "", &stubs::typescript(&described(one), &names));
        }
        self.add("typescript/mcp_tools.d.ts", "//", "", stubs::TYPESCRIPT_PACKAGE);
        self.add("typescript/globals.d.ts", "//", "", stubs::TYPESCRIPT_GLOBALS);
        self.add("typescript/tsconfig.json", "//", "", TSCONFIG);
    }

    /// What there is, for whoever looks around.
    pub(super) fn add_index(&mut self, offered: &[Offered]) {
        let mut text = String::from("# Tools\n\n");
        for one in offered {
            let name = python_name(one.server.as_str());
            let count = one.tools.len();
            text.push_str(&format!("## {}\n\n{count} permitted tools", one.server));
            for (path, form) in [
                (format!("python/mcp_tools/{name}.pyi"), "Python"),
                (format!("typescript/mcp_tools/{}.d.ts", one.server), "TypeScript"),
            ] {
                if self.0.contains_key(&path) {
                    text.push_str(&format!(" · [{form}]({path})"));
                }
            }
            text.push_str("\n\n");
            for (tool, asks) in &one.tools {
                let asks = if *asks { " (a person is asked)" } else { "" };
                text.push_str(&format!("- `{}`{asks}: {}\n", tool.identifier, plain(&tool.summary)));
            }
            text.push('\n');
        }
        self.add("README.md", "<!--", " -->", text.trim_end_matches('\n'));
        if let Some(index) = self.0.get_mut("README.md") {
            index.push('\n');
        }
    }

    /// Writes all files, or none if one of them is somebody else's; files of servers that are configured no more go. Gives
    /// what was written, with its bytes, and what was removed.
    pub(super) fn write(
        &self,
        out: &Path,
        known: &[ServerName],
    ) -> Result<(Vec<(String, usize)>, Vec<String>), TreeError> {
        for path in self.0.keys().map(|path| out.join(path)) {
            if path.symlink_metadata().is_ok() && !is_ours(&path) {
                return Err(TreeError::Foreign(path));
            }
        }
        let mut written = Vec::new();
        for (path, content) in &self.0 {
            let place = out.join(path);
            files::replace(&place, content.as_bytes())
                .map_err(|source| TreeError::Unwritable { path: place, source })?;
            written.push((path.clone(), content.len()));
        }
        Ok((written, self.remove_old(out, known)))
    }

    fn remove_old(&self, out: &Path, known: &[ServerName]) -> Vec<String> {
        let mut removed = Vec::new();
        for (folder, ending) in OF_SERVERS {
            let Ok(entries) = out.join(folder).read_dir() else { continue };
            for entry in entries.flatten() {
                let name = entry.file_name().to_string_lossy().into_owned();
                let Some(server) = name.strip_suffix(ending) else { continue };
                let is_known = server == "__init__"
                    || known
                        .iter()
                        .any(|name| name.as_str() == server || python_name(name.as_str()) == server);
                if !is_known && is_ours(&entry.path()) && std::fs::remove_file(entry.path()).is_ok() {
                    removed.push(format!("{folder}/{name}"));
                }
            }
        }
        removed.sort();
        removed
    }
}

fn described(one: &Offered) -> stubs::Server<'_> {
    let tools = one.tools.iter().map(|(tool, asks)| (tool, *asks)).collect();
    stubs::Server { name: one.server.as_str(), tools }
}

/// Whether a file is one that was written here. What cannot be read is not.
fn is_ours(path: &Path) -> bool {
    use io::BufRead;
    if !path.is_file() {
        return false;
    }
    let Ok(file) = std::fs::File::open(path) else { return false };
    let mut first = Vec::new();
    let read = io::BufReader::new(io::Read::take(file, 200)).read_until(b'\n', &mut first);
    read.is_ok() && String::from_utf8_lossy(&first).contains(MARKER)
}

/// Text that Markdown shows as it is.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in lockhouse_policies::printable(text).chars() {
        if matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#' | '|' | '!' | '~') {
            plain.push('\\');
        }
        plain.push(c);
    }
    plain
}
