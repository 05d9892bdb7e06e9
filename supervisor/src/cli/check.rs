//! `lockhouse check`: checks a program without running it.

use std::path::PathBuf;
use std::process::ExitCode;

use lockhouse_config::Files;

use super::language::LanguageName;
use super::run;

/// Options of `lockhouse check`.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Program file, or - for standard input
    #[arg(conflicts_with = "code")]
    file: Option<PathBuf>,
    /// The program text
    #[arg(short, value_name = "CODE")]
    code: Option<String>,
    /// Language [default: from the file extension]
    #[arg(long)]
    language: Option<LanguageName>,
    /// Permit only this server, or only NAME.TOOL or NAME.PREFIX* of it; may be given several times
    #[arg(long, value_name = "NAME[.TOOL]")]
    server: Vec<String>,
    /// Print the answer as JSON, as an AI client receives it
    #[arg(long)]
    json: bool,
}

/// Checks the program that the options name: its syntax, and the calls that it makes on every path. Makes no call.
pub(super) async fn check(files: &Files, arguments: Arguments) -> ExitCode {
    let Arguments { file, code, language, server, json } = arguments;
    let program = run::ProgramSource { file, code, language };
    let request = match program.into_request(server) {
        Ok(request) => lockhouse_engine::supervisor::CodeRequest { check_only: true, ..request },
        Err(error) => return super::print_error(&error, super::USAGE),
    };
    let status = run::run_program(files, request, json, &run::FileOptions::default()).await;
    if !json && status == ExitCode::SUCCESS {
        println!("no error was found");
    }
    status
}
