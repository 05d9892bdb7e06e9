//! The command line: one file per command.

#[macro_use]
mod output; // First: the others print through its macros.

mod approvals;
mod audit;
mod command_log;
mod configuration;
mod confine;
mod consent;
mod demo;
mod doctor;
mod generate;
mod import;
mod init;
mod language;
mod orders;
mod policy;
mod result;
mod run;
mod runs;
mod serve;
mod server;
mod sessions;
mod shutdown;
mod skills;
mod status;
mod stubs;
mod table;
mod terminal;
mod token;
mod tools;
mod unavailable;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use lockhouse_audit::AuditError;
use lockhouse_base::language::Language;
use lockhouse_base::telemetry::{log, traces};
use lockhouse_engine::supervisor::{self, Supervisor};
use lockhouse_policies::Policy;

use crate::config::{self, ConfigError, Files, Settings};

/// Wrong arguments, or a file that cannot be used; clap's own exit status is the same.
pub(crate) const USAGE: u8 = 2;
/// This host cannot run code safely, or something that was needed is not available.
pub(crate) const UNAVAILABLE: u8 = 7;

/// An MCP server that runs code in sealed workers, with every other MCP server as a library.
#[derive(Debug, Parser)]
#[command(version, about, after_help = EXIT_CODES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    files: Files,
}

const EXIT_CODES: &str = "Exit status: 0 ok, 1 the code failed, 2 wrong arguments or files, 3 timeout, 4 limit, \
    5 killed, 6 cancelled, 7 not available on this host. LOCKHOUSE_LOG=debug shows more on stderr.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve one AI client over standard input and output, or many over HTTP
    Serve(serve::Arguments),
    /// Run a program, as run_code would
    Run(run::Arguments),
    /// Print what was too long for the answer of `lockhouse run --json`
    Result(result::Arguments),
    /// Show what Lockhouse does, with a small server of its own
    Demo,
    /// Answer what running code asks a person for
    Approvals(approvals::Arguments),
    /// List, search and show the tools of the configured servers
    #[command(subcommand)]
    Tools(tools::Command),
    /// Write the permitted tools as files that type checkers, editors and people read
    Stubs(stubs::Arguments),
    /// Add, remove, list and try upstream servers
    #[command(subcommand)]
    Server(server::Command),
    /// Take the servers that AI clients have into the configuration, and plaintext secrets out of it
    Import(import::Arguments),
    /// Write the entry that points at Lockhouse into an AI client's own file
    Init(init::Arguments),
    /// List, show, test, approve, remove and export the skills that code has saved
    Skills(skills::Arguments),
    /// Check the configuration
    #[command(subcommand)]
    Config(configuration::Command),
    /// Write, check and explain the policy
    #[command(subcommand)]
    Policy(policy::Command),
    /// Show how every Lockhouse of this user is that runs: ready or not, engines, servers, queue
    Status(status::Arguments),
    /// List and end what runs now
    #[command(subcommand)]
    Runs(runs::Command),
    /// List and end what AI clients keep between runs
    #[command(subcommand)]
    Sessions(sessions::Command),
    /// Make, list and revoke the tokens with which AI clients come in over HTTP
    #[command(subcommand)]
    Token(token::Command),
    /// Look into the audit log, verify it and export it
    #[command(subcommand)]
    Audit(audit::Command),
    /// Say what protections this host gives, and try what a sealed worker must not be able to do
    Doctor(doctor::Arguments),
    /// Confine this process and become a program: upstream servers with `sandbox` are started so
    #[command(hide = true)]
    Confine(confine::Arguments),
    /// The demo's own upstream server
    #[command(hide = true)]
    DemoServer,
    /// Write manual pages or completions for shells into a directory
    #[command(hide = true)]
    Generate(generate::Arguments),
}

/// Runs the command that was asked for.
pub(crate) fn main() -> ExitCode {
    let Arguments { command, files } = Arguments::try_parse().unwrap_or_else(|error| misunderstood(error));
    // What follows is the supervisor's own, and part of it would stay with the program.
    if let Command::Confine(arguments) = command {
        return confine::confine(arguments);
    }
    let format = match &command {
        Command::Serve(_) => config::log_format(&files),
        _ => log::Format::Text,
    };
    give_memory_back();
    if let Err(error) = harden() {
        return complain(&error, UNAVAILABLE);
    }
    log::install(format, default_log(&command));
    // One thread for everything: zygotes end with the thread that started them, and no call pays for a change of
    // thread on its way.
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return complain(&error, UNAVAILABLE),
    };
    let status = runtime.block_on(async {
        match command {
            Command::Serve(arguments) => serve::serve(&files, arguments).await,
            Command::Run(arguments) => run::run(&files, arguments).await,
            Command::Result(arguments) => result::result(&files, &arguments),
            Command::Demo => demo::demo().await,
            Command::Approvals(arguments) => approvals::approvals(&arguments).await,
            Command::Tools(command) => tools::tools(&files, command).await,
            Command::Stubs(arguments) => stubs::stubs(&files, &arguments).await,
            Command::Server(command) => server::server(&files, command).await,
            Command::Import(arguments) => import::import(&files, &arguments),
            Command::Init(arguments) => init::init(&files, &arguments),
            Command::Skills(arguments) => skills::skills(&files, arguments).await,
            Command::Config(command) => configuration::configuration(&files, command),
            Command::Policy(command) => policy::policy(&files, command).await,
            Command::Status(arguments) => status::status(&arguments).await,
            Command::Runs(command) => runs::runs(command).await,
            Command::Sessions(command) => sessions::sessions(command).await,
            Command::Token(command) => token::token(&files, command),
            Command::Audit(command) => audit::audit(&files, command).await,
            Command::Doctor(arguments) => doctor::doctor(&files, &arguments).await,
            Command::Confine(arguments) => confine::confine(arguments),
            Command::Generate(arguments) => generate::generate(&arguments),
            Command::DemoServer => match demo::server::serve().await {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => complain(error.as_ref(), UNAVAILABLE),
            },
        }
    });
    traces::flush();
    shutdown::shut_down(runtime);
    if output::failed() { ExitCode::from(UNAVAILABLE) } else { status }
}

/// Says what is wrong with the arguments, and ends.
fn misunderstood(mut error: clap::Error) -> ! {
    let words: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    let Some(hint) = server::hint(&error, &words) else { error.exit() };
    // clap's own tip would have one argument after --, and not the command.
    error.remove(clap::error::ContextKind::Suggested);
    eprint!("{error}\nhint: {hint}\n");
    std::process::exit(USAGE.into())
}

/// Open files of the supervisor, where the host permits so many.
const DESCRIPTORS: u64 = 16 * 1024;

/// The supervisor holds every connection: nobody may read its memory, from a core file or through ptrace.
fn harden() -> Result<(), std::io::Error> {
    nix::sys::prctl::set_dumpable(false)?;
    nix::sys::prctl::set_child_subreaper(true)?;
    rlimit::Resource::CORE.set(0, 0)?;
    // A few descriptors for each worker: the usual 1,024 are too few for many at one time.
    let (soft, hard) = rlimit::Resource::NOFILE.get()?;
    rlimit::Resource::NOFILE.set(soft.max(DESCRIPTORS).min(hard), hard)?;
    // A log that reached RLIMIT_FSIZE is an error to tell, not a death.
    ignore_file_size_signal()
}

#[allow(unsafe_code, reason = "Signal dispositions")]
fn ignore_file_size_signal() -> Result<(), std::io::Error> {
    use nix::sys::signal::{SigHandler, Signal, signal};
    // SAFETY: ignoring a signal installs no code.
    unsafe { signal(Signal::SIGXFSZ, SigHandler::SigIgn) }?;
    Ok(())
}

/// Bytes from which a block is a mapping of its own.
const MAPPED_FROM_BYTES: i32 = 256 * 1024;

/// A message of megabytes is a mapping of its own, and goes back to the system when it is freed. By default glibc raises that
/// threshold to the largest such block that it has seen, and hostile workers could make this process keep what they sent.
#[allow(unsafe_code, reason = "A tunable of the allocator")]
fn give_memory_back() {
    // SAFETY: sets a number, while there is one thread.
    unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED_FROM_BYTES) };
}

/// What is logged where LOCKHOUSE_LOG says nothing.
fn default_log(command: &Command) -> &'static str {
    match command {
        Command::Serve(_) => "lockhouse=info,rmcp=off,warn",
        // These tell themselves which servers failed or are left out, and once is enough.
        Command::Tools(_) | Command::Stubs(_) | Command::Policy(_) => {
            "lockhouse=warn,lockhouse_upstream::hold=error,rmcp=off,error"
        }
        Command::Server(_) | Command::Import(_) | Command::Config(_) => {
            "lockhouse=warn,lockhouse_upstream::hold=error,lockhouse::config::servers=error,rmcp=off,error"
        }
        _ => "lockhouse=warn,rmcp=off,error",
    }
}

/// Says what is wrong, on stderr.
pub(crate) fn complain(error: &(impl std::error::Error + ?Sized), status: u8) -> ExitCode {
    eprintln!("lockhouse: {error}");
    ExitCode::from(status)
}

/// Says what is wrong with the configuration, with colour where there is a person to see it.
fn complain_config(error: &ConfigError) -> ExitCode {
    match error {
        ConfigError::Faults(faults) => {
            eprintln!("{}", faults.render(terminal::shows_colour()));
            ExitCode::from(USAGE)
        }
        _ => complain(error, USAGE),
    }
}

/// Everything that is configured, or all of it as it was.
fn read(files: &Files) -> Result<(Settings, Policy), ConfigError> {
    Ok((Settings::load(files)?, config::load_policy(files)?))
}

fn load(files: &Files) -> Result<(Settings, Policy), ExitCode> {
    read(files).map_err(|error| complain_config(&error))
}

fn start(files: &Files, languages: &[Language]) -> Result<Supervisor, ExitCode> {
    let (settings, policy) = load(files)?;
    start_with(settings.engine, policy, languages)
}

fn start_with(
    settings: supervisor::Settings,
    policy: Policy,
    languages: &[Language],
) -> Result<Supervisor, ExitCode> {
    started(Supervisor::start(settings, policy, languages))
}

fn started(supervisor: Result<Supervisor, AuditError>) -> Result<Supervisor, ExitCode> {
    supervisor.map_err(|error| complain(&error, UNAVAILABLE))
}
