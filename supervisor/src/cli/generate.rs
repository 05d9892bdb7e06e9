//! `lockhouse generate`: manual pages, completions, the configuration with every key commented out and its JSON schema, as packages
//! install them. Not for people, and not in the help.

use std::io::Result;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{CommandFactory, ValueEnum};
use clap_complete::Shell;

use super::{UNAVAILABLE, complain};
use crate::config;

/// The shells that packages install completions for.
const SHELLS: [Shell; 3] = [Shell::Bash, Shell::Zsh, Shell::Fish];
const MANUAL: &str = "Lockhouse";

#[derive(Clone, Copy, Debug, ValueEnum)]
enum What {
    Man,
    Completions,
    Configuration,
    Schema,
}

/// What to write, and where.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    what: What,
    /// A directory that is there
    directory: PathBuf,
}

/// Writes the files and says which.
pub(super) fn generate(arguments: &Arguments) -> ExitCode {
    let command = visible(super::Arguments::command()).disable_help_subcommand(true);
    let written = match arguments.what {
        What::Man => manual(command, &arguments.directory),
        What::Completions => completions(command, &arguments.directory),
        What::Configuration => {
            write(arguments.directory.join("config.toml"), &config::packaged_configuration())
        }
        What::Schema => {
            let schema = format!("{:#}\n", config::json_schema());
            write(arguments.directory.join("config.schema.json"), &schema)
        }
    };
    match written {
        Ok(files) => {
            for file in files {
                println!("{}", file.display());
            }
            ExitCode::SUCCESS
        }
        Err(error) => complain(&error, UNAVAILABLE),
    }
}

fn write(path: PathBuf, text: &str) -> Result<Vec<PathBuf>> {
    std::fs::write(&path, text)?;
    Ok(vec![path])
}

/// The command without those that are not for people.
fn visible(command: clap::Command) -> clap::Command {
    let subcommands = command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()).cloned();
    let made = clap::Command::new(env!("CARGO_PKG_NAME"))
        .args(command.get_arguments().cloned())
        .subcommands(subcommands)
        .subcommand_required(true)
        .version(env!("CARGO_PKG_VERSION"))
        .about(command.get_about().cloned().unwrap_or_default());
    made.after_help(command.get_after_help().cloned().unwrap_or_default())
}

/// A page for each command, and one for all.
fn manual(mut command: clap::Command, directory: &Path) -> Result<Vec<PathBuf>> {
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
