//! Where each AI client keeps its servers.

use std::path::PathBuf;

use super::references::Surroundings;

/// An AI client whose files we know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Client {
    ClaudeCode,
    ClaudeDesktop,
    Codex,
    Cursor,
    Gemini,
    Opencode,
    Qwen,
    Vscode,
    Windsurf,
    Zed,
}

/// Files of a project that hold servers: of the directory where Lockhouse is started.
const PROJECT_FILES: [&str; 9] = [
    ".mcp.json",
    ".cursor/mcp.json",
    ".vscode/mcp.json",
    ".codex/config.toml",
    ".gemini/settings.json",
    ".qwen/settings.json",
    ".zed/settings.json",
    "opencode.json",
    "opencode.jsonc",
];

impl Client {
    /// As people know it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "Claude Code",
            Self::ClaudeDesktop => "Claude Desktop",
            Self::Codex => "Codex",
            Self::Cursor => "Cursor",
            Self::Gemini => "Gemini CLI",
            Self::Opencode => "OpenCode",
            Self::Qwen => "Qwen Code",
            Self::Vscode => "VS Code",
            Self::Windsurf => "Windsurf",
            Self::Zed => "Zed",
        }
    }

    /// Its user's files, the one first that it would make itself.
    pub(crate) fn files(self, surroundings: &Surroundings) -> Vec<PathBuf> {
        let variable = |name: &str| {
            surroundings.environment.get(name).map(PathBuf::from).filter(|path| path.is_absolute())
        };
        let Some(home) = &surroundings.home else { return Vec::new() };
        let config = variable("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"));
        match self {
            Self::ClaudeCode => {
                vec![variable("CLAUDE_CONFIG_DIR").unwrap_or(home.clone()).join(".claude.json")]
            }
            Self::ClaudeDesktop => vec![config.join("Claude/claude_desktop_config.json")],
            Self::Codex => {
                vec![variable("CODEX_HOME").unwrap_or_else(|| home.join(".codex")).join("config.toml")]
            }
            Self::Cursor => vec![home.join(".cursor/mcp.json")],
            Self::Gemini => vec![home.join(".gemini/settings.json")],
            Self::Opencode => ["opencode.json", "opencode.jsonc", "config.json"]
                .map(|name| config.join("opencode").join(name))
                .into(),
            Self::Qwen => vec![home.join(".qwen/settings.json")],
            Self::Vscode => {
                ["mcp.json", "settings.json"].map(|name| config.join("Code/User").join(name)).into()
            }
            Self::Windsurf => vec![home.join(".codeium/windsurf/mcp_config.json")],
            Self::Zed => vec![config.join("zed/settings.json")],
        }
    }

    /// Its files that are there.
    pub(crate) fn found(self, surroundings: &Surroundings) -> Vec<PathBuf> {
        self.files(surroundings).into_iter().filter(|path| path.is_file()).collect()
    }
}

/// Files of the project that are there. Whoever made the project wrote them, which need not be this user.
pub(crate) fn project_files(surroundings: &Surroundings) -> Vec<PathBuf> {
    use clap::ValueEnum;
    let users: Vec<PathBuf> =
        Client::value_variants().iter().flat_map(|client| client.files(surroundings)).collect();
    let files = PROJECT_FILES.iter().map(|name| surroundings.directory.join(name));
    files.filter(|path| path.is_file() && !users.contains(path)).collect()
}
