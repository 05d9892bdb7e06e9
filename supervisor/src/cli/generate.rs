//! `lockhouse generate`: writes the files that Lockhouse's packages install: manual pages, shell completions,
//! configuration template, JSON schema and Agent Skill. The command is hidden from the help.

use std::io::Result;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{CommandFactory, ValueEnum};
use clap_complete::Shell;
use lockhouse_config as config;

use super::{UNAVAILABLE, guide, print_error};

/// The shells for which completions are generated.
const SHELLS: [Shell; 3] = [Shell::Bash, Shell::Zsh, Shell::Fish];
const MANUAL: &str = "Lockhouse";

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Artifact {
    Man,
    Completions,
    Configuration,
    Schema,
    Skill,
}

/// Options of `lockhouse generate`: what to generate, and the directory for the files.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    artifact: Artifact,
    /// An existing directory, to which the files are written
    directory: PathBuf,
}

/// Writes the generated files and prints their paths.
pub(super) fn generate(arguments: &Arguments) -> ExitCode {
    let command = without_hidden(super::Arguments::command()).disable_help_subcommand(true);
    let written = match arguments.artifact {
        Artifact::Man => manual_pages(command, &arguments.directory),
        Artifact::Completions => completions(command, &arguments.directory),
        Artifact::Configuration => {
            write(arguments.directory.join("config.toml"), &config::packaged_configuration())
        }
        Artifact::Schema => {
            let schema = format!("{:#}\n", config::json_schema());
            write(arguments.directory.join("config.schema.json"), &schema)
        }
        Artifact::Skill => write(arguments.directory.join("SKILL.md"), &guide::skill()),
    };
    match written {
        Ok(files) => {
            for file in files {
                println!("{}", file.display());
            }
            ExitCode::SUCCESS
        }
        Err(error) => print_error(&error, UNAVAILABLE),
    }
}

fn write(path: PathBuf, text: &str) -> Result<Vec<PathBuf>> {
    std::fs::write(&path, text)?;
    Ok(vec![path])
}

/// Returns `command` without its hidden subcommands, so that they do not appear in manual pages and completions.
fn without_hidden(command: clap::Command) -> clap::Command {
    let subcommands = command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()).cloned();
    let made = clap::Command::new(env!("CARGO_PKG_NAME"))
        .args(command.get_arguments().cloned())
        .subcommands(subcommands)
        .subcommand_required(true)
        .version(env!("CARGO_PKG_VERSION"))
        .about(command.get_about().cloned().unwrap_or_default());
    made.after_help(command.get_after_help().cloned().unwrap_or_default())
}

/// Writes a manual page for `lockhouse` and for each of its commands to `directory`, and returns the paths of the
/// pages.
fn manual_pages(mut command: clap::Command, directory: &Path) -> Result<Vec<PathBuf>> {
    command.build();
    let mut pages = Vec::new();
    let mut commands = vec![&command];
    while let Some(command) = commands.pop() {
        commands.extend(command.get_subcommands());
        let page = clap_mangen::Man::new(command.clone()).manual(MANUAL);
        pages.push(page.generate_to(directory)?);
    }
    pages.sort();
    Ok(pages)
}

fn completions(mut command: clap::Command, directory: &Path) -> Result<Vec<PathBuf>> {
    let name = command.get_name().to_owned();
    SHELLS.iter().map(|shell| clap_complete::generate_to(*shell, &mut command, &name, directory)).collect()
}
