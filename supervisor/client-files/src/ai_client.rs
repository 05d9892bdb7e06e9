//! The paths of the configuration files in which each AI client stores its MCP servers.

use std::path::PathBuf;

use lockhouse_config::Environment;

/// An AI client whose configuration files Lockhouse can read and change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AiClient {
    ClaudeCode,
    ClaudeDesktop,
    Cline,
    Codex,
    Continue,
    Copilot,
    Cursor,
    Gemini,
    Opencode,
    Qwen,
    Vscode,
    Windsurf,
    Zed,
}

/// The name of the file in which Cline, as a command and as an extension of VS Code, stores its MCP servers.
const CLINE_FILE: &str = "cline_mcp_settings.json";

/// The paths of AI clients' configuration files that list the MCP servers of a project, relative to the project
/// directory.
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

impl AiClient {
    /// Returns the display name of the AI client.
    pub fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "Claude Code",
            Self::ClaudeDesktop => "Claude Desktop",
            Self::Cline => "Cline",
            Self::Codex => "Codex",
            Self::Continue => "Continue",
            Self::Copilot => "Copilot CLI",
            Self::Cursor => "Cursor",
            Self::Gemini => "Gemini CLI",
            Self::Opencode => "OpenCode",
            Self::Qwen => "Qwen Code",
            Self::Vscode => "VS Code",
            Self::Windsurf => "Windsurf",
            Self::Zed => "Zed",
        }
    }

    /// Returns the paths of the AI client's configuration files for this user. The first path is that of the file that
    /// the AI client itself would create.
    pub fn files(self, environment: &Environment) -> Vec<PathBuf> {
        let variable =
            |name: &str| environment.variables.get(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let Some(home) = &environment.home else { return Vec::new() };
        let config = variable("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"));
        match self {
            Self::ClaudeCode => {
                vec![variable("CLAUDE_CONFIG_DIR").unwrap_or(home.clone()).join(".claude.json")]
            }
            Self::ClaudeDesktop => vec![config.join("Claude/claude_desktop_config.json")],
            Self::Cline => vec![
                home.join(".cline/data/settings").join(CLINE_FILE),
                config.join("Code/User/globalStorage/saoudrizwan.claude-dev/settings").join(CLINE_FILE),
            ],
            Self::Codex => {
                vec![variable("CODEX_HOME").unwrap_or_else(|| home.join(".codex")).join("config.toml")]
            }
            Self::Continue => vec![home.join(".continue/config.yaml")],
            Self::Copilot => {
                let directory = variable("COPILOT_HOME").unwrap_or_else(|| home.join(".copilot"));
                vec![directory.join("mcp-config.json")]
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

    /// Returns the paths of the AI client's existing configuration files for this user.
    pub fn existing_files(self, environment: &Environment) -> Vec<PathBuf> {
        self.files(environment).into_iter().filter(|path| path.is_file()).collect()
    }
}

/// Returns the paths of the existing configuration files that list MCP servers in the current project. The project's
/// author, who may be another person than this user, wrote these files.
pub fn project_files(environment: &Environment) -> Vec<PathBuf> {
    use clap::ValueEnum;
    let users: Vec<PathBuf> =
        AiClient::value_variants().iter().flat_map(|client| client.files(environment)).collect();
    let files = PROJECT_FILES.iter().map(|name| environment.directory.join(name));
    files.filter(|path| path.is_file() && !users.contains(path)).collect()
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;
    use lockhouse_upstream::{SandboxPlaces, ServerCommand, profile_paths};

    use super::*;

    /// The files contain secrets of other servers, and commands that the AI client runs.
    #[test]
    fn the_sandbox_profile_grants_no_directory_of_an_ai_client() {
        let home = tempfile::tempdir().expect("a directory");
        let home = home.path().canonicalize().expect("a path");
        let mut environment = Environment::default();
        environment.home = Some(home.clone());
        for client in AiClient::value_variants() {
            for file in client.files(&environment) {
                let directory = file.parent().expect("a directory");
                std::fs::create_dir_all(directory).expect("a directory");
                std::fs::write(&file, "{}").expect("a file");
                let arguments = vec![directory.display().to_string(), file.display().to_string()];
                let command = ServerCommand { program: "true".into(), arguments, ..ServerCommand::default() };
                let granted = profile_paths(&command, Some(&home), &SandboxPlaces::default());
                assert!(granted.write.is_empty(), "{granted:?}");
                assert_eq!(granted.read, [file], "{granted:?}");
                assert_eq!(granted.withheld.len(), 1, "{granted:?}");
            }
        }
    }
}
