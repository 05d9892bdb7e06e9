//! The stub files that `lockhouse stubs` generates below one directory. They are rendered in memory, checked against
//! existing files, and replaced atomically one by one.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use lockhouse_base::files;
use lockhouse_catalog::stubs::StubTool;
use lockhouse_catalog::{python_name, stubs};
use lockhouse_protocol::ServerName;

use super::{PermittedTool, PermittedTools};
use crate::cli::{UNAVAILABLE, USAGE};

/// The text in the first line of each generated file. Existing files without this text are never overwritten or
/// removed.
const MARKER: &str = "Written by `lockhouse stubs`: do not edit.";
/// The stub files that belong to a single upstream server: the directory of the file, and the suffix that follows the
/// server's name in the file name.
const SERVER_FILES: [(&str, &str); 3] =
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

/// Why the stub files were not written, or only some of them.
#[derive(Debug, thiserror::Error)]
pub(super) enum TreeError {
    #[error("{} was not written by `lockhouse stubs`, so it is not replaced; choose another directory with --out, or move the file", .0.display())]
    NotGenerated(PathBuf),
    #[error("cannot write {}: {source}", .path.display())]
    Unwritable { path: PathBuf, source: io::Error },
}

impl TreeError {
    pub(super) fn status(&self) -> u8 {
        match self {
            Self::NotGenerated(_) => USAGE,
            Self::Unwritable { .. } => UNAVAILABLE,
        }
    }
}

/// The contents of the stub files, by their path below the output directory.
#[derive(Debug, Default)]
pub(super) struct Tree(BTreeMap<String, String>);

impl Tree {
    fn add(&mut self, path: &str, opening: &str, closing: &str, content: &str) {
        self.0.insert(path.to_owned(), format!("{opening} {MARKER}{closing}\n{content}"));
    }

    pub(super) fn add_python(&mut self, permitted: &[PermittedTools]) {
        let (mut package, mut async_package) = (String::new(), String::new());
        for one in permitted {
            let name = python_name(one.server.as_str());
            let (module, async_module) = stubs::python(&to_stub_server(one), &name);
            // `mcp_tools.aio` is the package of async functions, so a server of that name has no synchronous module.
            if name != "aio" {
                self.add(&format!("python/mcp_tools/{name}.pyi"), "#", "", &module);
                package.push_str(&format!("from . import {name} as {name}\n"));
            }
            self.add(&format!("python/mcp_tools/aio/{name}.pyi"), "#", "", &async_module);
            async_package.push_str(&format!("from . import {name} as {name}\n"));
        }
        // Names that the package itself defines take precedence over server modules.
        let imports = |text: &str, package: &str| {
            let is_free = |line: &&str| {
                let name = line.rsplit(' ').next().unwrap_or_default();
                !package.contains(&format!("def {name}(")) && !package.contains(&format!("class {name}("))
            };
            text.lines().filter(is_free).map(|line| format!("{line}\n")).collect::<String>()
        };
        let whole = format!(
            "{}\nfrom . import aio as aio\n{}",
            stubs::PYTHON_PACKAGE,
            imports(&package, stubs::PYTHON_PACKAGE)
        );
        self.add("python/mcp_tools/__init__.pyi", "#", "", &whole);
        let whole = format!(
            "{}\n{}",
            stubs::PYTHON_ASYNC_PACKAGE,
            imports(&async_package, stubs::PYTHON_ASYNC_PACKAGE)
        );
        self.add("python/mcp_tools/aio/__init__.pyi", "#", "", &whole);
    }

    pub(super) fn add_typescript(&mut self, permitted: &[PermittedTools], known: &[ServerName]) {
        let names: Vec<&str> = known.iter().map(ServerName::as_str).collect();
        for one in permitted {
            let path = format!("typescript/mcp_tools/{}.d.ts", one.server);
            self.add(&path, "//", "", &stubs::typescript(&to_stub_server(one), &names));
        }
        self.add("typescript/mcp_tools.d.ts", "//", "", stubs::TYPESCRIPT_PACKAGE);
        self.add("typescript/globals.d.ts", "//", "", stubs::TYPESCRIPT_GLOBALS);
        self.add("typescript/tsconfig.json", "//", "", TSCONFIG);
    }

    /// Adds README.md, an index of all upstream servers and their permitted tools.
    pub(super) fn add_index(&mut self, permitted: &[PermittedTools]) {
        let mut text = String::from("# Tools\n\n");
        for one in permitted {
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
            for PermittedTool { tool, requires_approval, .. } in &one.tools {
                let asks = if *requires_approval { " (requires approval)" } else { "" };
                text.push_str(&format!(
                    "- `{}`{asks}: {}\n",
                    tool.identifier,
                    escape_markdown(&tool.summary)
                ));
            }
            text.push('\n');
        }
        self.add("README.md", "<!--", " -->", text.trim_end_matches('\n'));
        if let Some(index) = self.0.get_mut("README.md") {
            index.push('\n');
        }
    }

    /// Writes all stub files below the directory `out`, or none if one of them would replace a file that was not
    /// generated. Returns the written files, as paths relative to `out`, with their sizes in bytes.
    pub(super) fn write(&self, out: &Path) -> Result<Vec<(String, usize)>, TreeError> {
        for path in self.0.keys().map(|path| out.join(path)) {
            if path.symlink_metadata().is_ok() && !is_generated(&path) {
                return Err(TreeError::NotGenerated(path));
            }
        }
        let mut written = Vec::new();
        for (path, content) in &self.0 {
            let place = out.join(path);
            files::replace(&place, content.as_bytes())
                .map_err(|source| TreeError::Unwritable { path: place, source })?;
            written.push((path.clone(), content.len()));
        }
        Ok(written)
    }

    /// Removes the stub files of upstream servers that are not in `known`. Returns the removed files, as paths relative
    /// to `out`.
    pub(super) fn remove_unconfigured(&self, out: &Path, known: &[ServerName]) -> Vec<String> {
        let mut removed = Vec::new();
        for (folder, ending) in SERVER_FILES {
            let Ok(entries) = out.join(folder).read_dir() else { continue };
            for entry in entries.flatten() {
                let name = entry.file_name().to_string_lossy().into_owned();
                let Some(server) = name.strip_suffix(ending) else { continue };
                let is_known = server == "__init__"
                    || known
                        .iter()
                        .any(|name| name.as_str() == server || python_name(name.as_str()) == server);
                if !is_known && is_generated(&entry.path()) && std::fs::remove_file(entry.path()).is_ok() {
                    removed.push(format!("{folder}/{name}"));
                }
            }
        }
        removed.sort();
        removed
    }
}

fn to_stub_server<'a>(one: &'a PermittedTools) -> stubs::Server<'a> {
    let stub = |permitted: &'a PermittedTool| StubTool {
        tool: &permitted.tool,
        requires_approval: permitted.requires_approval,
        observed_output: permitted.observed_output.as_ref(),
    };
    let tools = one.tools.iter().map(stub).collect();
    stubs::Server { name: one.server.as_str(), tools }
}

/// Whether `lockhouse stubs` generated the file. A file that cannot be read counts as not generated.
fn is_generated(path: &Path) -> bool {
    use io::BufRead;
    if !path.is_file() {
        return false;
    }
    let Ok(file) = std::fs::File::open(path) else { return false };
    let mut first = Vec::new();
    let read = io::BufReader::new(io::Read::take(file, 200)).read_until(b'\n', &mut first);
    read.is_ok() && String::from_utf8_lossy(&first).contains(MARKER)
}

/// Escapes text for use in Markdown.
fn escape_markdown(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in lockhouse_policies::printable(text).chars() {
        if matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#' | '|' | '!' | '~') {
            plain.push('\\');
        }
        plain.push(c);
    }
    plain
}
