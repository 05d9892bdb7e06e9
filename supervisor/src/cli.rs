//! The command line of `lockhouse`: parses the arguments and runs the selected command. Each command has its own file
//! in `cli/`.

#[macro_use]
mod output; // Declared first: the other modules print through its macros.

mod account_name;
mod all_users;
mod approvals;
mod approve;
mod audit;
mod audit_forwarding;
mod check;
mod client_sandbox;
mod cluster;
mod command_audit_log;
mod command_error;
mod configuration;
mod confine;
mod confirmation;
mod control_client;
mod demo;
mod desktop_browser;
mod detached_process;
mod doctor;
mod engine;
mod engine_description;
mod engine_lock;
mod engine_log;
mod engine_socket;
mod front_starter;
mod generate;
mod guide;
mod http_front;
mod id_prefix;
mod import;
mod init;
mod landlock_room;
mod language;
mod launcher;
mod line_width;
mod output_folder;
mod package_costs;
mod page;
mod policy;
mod process_reload;
mod process_stop;
mod python;
mod recorded_config_edit;
mod reload;
mod reloader;
mod result;
mod run;
mod runs;
mod sandbox;
mod sandbox_options;
mod serve;
mod server;
mod service_account;
mod service_start;
mod sessions;
mod setup;
mod shutdown;
mod skills;
mod startup_code;
mod status;
mod stop;
mod stop_signals;
mod stubs;
mod system_engine;
mod table;
mod terminal;
mod tls_signer;
mod token;
mod tools;
mod unavailable_servers;
mod user;
mod version;

use std::ops::ControlFlow;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use lockhouse_audit::AuditError;
use lockhouse_base::path_trust::trust_with_writing;
use lockhouse_base::telemetry::{log, traces};
use lockhouse_config::{self as config, ConfigError, Configuration, Files};
use lockhouse_engine::supervisor::{self, Supervisor};
use lockhouse_policies::Policy;
use lockhouse_protocol::Language;

/// The exit status for invalid command-line arguments or an unusable file. clap exits with the same status on a usage
/// error.
pub(crate) const USAGE: u8 = 2;
/// Exit status when this host cannot run code safely, or when a required file, server or service is not available.
pub(crate) const UNAVAILABLE: u8 = 7;
/// Exit status of a process that cannot meet the administrator's changed requirements without a restart.
pub(crate) const REQUIREMENTS: u8 = 8;

/// Part of the error message of a command with `--digest`, if what would be changed is not what was shown.
const DIGEST_IS_STALE: &str = "have changed since that digest was printed";

/// An MCP server that runs model-written code in sandboxed workers, where all your other MCP servers are libraries
#[derive(Debug, Parser)]
#[command(version, after_help = EXIT_CODES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    files: Files,
    /// Run the command as this account, with a process of root that writes the files of --config and --policy
    #[arg(long, value_name = "USER", global = true, hide = true)]
    account: Option<String>,
}

const EXIT_CODES: &str = "Exit status: 0 success, 1 the code failed, 2 invalid arguments or files, 3 timeout, 4 resource limit, \
    5 killed, 6 cancelled, 7 not available on this host, 8 stopped because the administrator's requirements changed. Set LOCKHOUSE_LOG=debug for more detail on stderr. \
    `lockhouse --version --verbose` describes the build and its files; --json prints that as JSON.";

impl Command {
    /// Whether the command reads or changes the configuration or the policy of this user.
    fn is_about_own_configuration(&self) -> bool {
        match self {
            Self::Policy(command) => !command.is_about_proposals(),
            Self::Server(command) => !command.is_about_engine(),
            Self::Setup(_)
            | Self::Import(_)
            | Self::Config(_)
            | Self::Python(_)
            | Self::Skills(_)
            | Self::Tools(_) => true,
            _ => false,
        }
    }
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the MCP server: for one AI client over standard input and output, or for many over HTTP
    Serve(serve::Arguments),
    /// Run a program in a sandboxed worker, as the run_code tool does
    Run(run::Arguments),
    /// Check a program without running it: its syntax, and the calls that it makes on every path
    Check(check::Arguments),
    /// Print how an agent uses these commands from a shell
    Guide,
    /// Print a result that was too long for the answer of `lockhouse run --json`
    Result(result::Arguments),
    /// Demonstrate Lockhouse with a built-in example server
    Demo,
    /// Answer the approval requests and questions of running code
    Approvals(approvals::Arguments),
    /// List, search and show the tools of the configured servers
    #[command(subcommand)]
    Tools(tools::Command),
    /// Write type stubs of the permitted tools, for type checkers and editors
    Stubs(stubs::Arguments),
    /// Add, remove, list and test upstream servers
    #[command(subcommand)]
    Server(server::Command),
    /// Set Lockhouse up for your AI clients: take over their servers, write a first policy, and add Lockhouse to them
    Setup(setup::Arguments),
    /// Install Python packages for programs, such as pandas
    #[command(subcommand)]
    Python(python::Command),
    /// Import the MCP servers of your AI clients into the configuration; plaintext secrets are moved to files
    Import(import::Arguments),
    /// Add Lockhouse to an AI client's own configuration file
    Init(init::Arguments),
    /// List, show, test, approve, remove and export the skills that code has saved
    Skills(skills::Arguments),
    /// Check the configuration
    #[command(subcommand)]
    Config(configuration::Command),
    /// Generate, change, check, explain and compare policies
    #[command(subcommand)]
    Policy(policy::Command),
    /// Show the status of your running Lockhouse processes: readiness, engines, servers and queue
    Status(status::Arguments),
    /// Reload the configuration and the policy in your running Lockhouse processes, and report the result of each
    Reload(reload::Arguments),
    /// End your running Lockhouse processes; running code ends with the reason
    Stop(stop::Arguments),
    /// Open a live page in the browser: runs, approvals, denials, servers and the audit log
    Page(page::Arguments),
    /// List and end running code
    #[command(subcommand)]
    Runs(runs::Command),
    /// List and end sessions, whose variables persist between runs
    #[command(subcommand)]
    Sessions(sessions::Command),
    /// List the hosts of a cluster, or make its account in NATS
    #[command(subcommand)]
    Cluster(cluster::Command),
    /// Create, list and revoke the tokens that authenticate AI clients over HTTP
    #[command(subcommand)]
    Token(token::Command),
    /// Remove what is stored about a user of a service
    #[command(subcommand)]
    User(user::Command),
    /// Search, verify and export the audit log
    #[command(subcommand)]
    Audit(audit::Command),
    /// Show how much each AI client has used: runs, calls, CPU time, tokens that stayed out of its context
    Usage(audit::UsageArguments),
    /// Test the sandbox on this host and report which protections work
    Doctor(doctor::Arguments),
    /// Run the engine that AI clients share; `lockhouse serve` starts it when it is needed
    #[command(hide = true)]
    Engine(engine::Arguments),
    /// Start upstream servers in the session of this person, for the engine of the system; `lockhouse serve` starts it
    #[command(hide = true)]
    Launcher(launcher::Arguments),
    /// Use files of this person for the engine of the system; `lockhouse launcher` starts it
    #[command(hide = true)]
    FileHelper,
    /// Sandbox this process, then execute a program in it: how upstream servers with `sandbox` are started
    #[command(hide = true)]
    Confine(confine::Arguments),
    /// Speak TLS, HTTP and MCP with AI clients, for the `lockhouse serve` that starts this process
    #[command(hide = true)]
    HttpFront(http_front::Arguments),
    /// Start the process that speaks HTTP with AI clients in this account, for the `lockhouse serve` that connects over standard input
    #[command(hide = true)]
    HttpFrontStarter,
    /// Sign TLS handshakes with the private key, for the `lockhouse serve` that starts this process
    #[command(hide = true)]
    TlsSigner(tls_signer::Arguments),
    /// End the upstream servers of the process with this mark when that process has ended; every process with servers
    /// starts one
    #[command(hide = true)]
    Guard { mark: String },
    /// Count the Landlock layers that this process can still get
    #[command(hide = true)]
    LandlockRoom,
    /// Carry out the action of the page on standard input, since the page has no secrets of the configuration
    #[command(hide = true)]
    PageAction,
    /// Run the example server of `lockhouse demo`
    #[command(hide = true)]
    DemoServer,
    /// Generate manual pages, shell completions, the configuration template, its schema or the Agent Skill
    #[command(hide = true)]
    Generate(generate::Arguments),
}

/// Parses the command line, runs the command and returns its exit status.
pub(crate) fn main() -> ExitCode {
    if let Ok(arguments) = version::Arguments::try_parse() {
        return version::version(&arguments);
    }
    if approve::is_named() {
        return approve();
    }
    let Arguments { command, files, account } =
        Arguments::try_parse().unwrap_or_else(|error| exit_with_usage_error(error));
    if let Some(owner) = files.trust_owner {
        trust_with_writing(owner);
    }
    let elsewhere = match &account {
        Some(account) => service_account::enter(account, &command, &files),
        None => service_account::delegate_to_service(&command, &files),
    };
    if let Some(status) = elsewhere {
        return status;
    }
    let command = match run_without_runtime(command) {
        ControlFlow::Break(status) => return status,
        ControlFlow::Continue(command) => command,
    };
    let detaches = match &command {
        Command::Engine(arguments) => arguments.detaches(),
        Command::Launcher(arguments) => arguments.detaches(),
        _ => false,
    };
    if detaches {
        return detached_process::detach();
    }
    let format = match &command {
        Command::Serve(_) | Command::Engine(_) => config::log_format(&files),
        _ => log::Format::Text,
    };
    limit_freed_memory();
    if let Err(error) = harden() {
        return print_error(&error, UNAVAILABLE);
    }
    log::install(format, default_log(&command));
    // A single-threaded runtime: zygotes die with the thread that started them, and no call pays for a change of
    // thread.
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return print_error(&error, UNAVAILABLE),
    };
    let status = runtime.block_on(run_command(command, &files));
    traces::flush();
    shutdown::shut_down(runtime);
    if output::has_failed() { ExitCode::from(UNAVAILABLE) } else { status }
}

/// Runs a command before the supervisor's own process settings, part of which an executed program would inherit, and before
/// the runtime, since some sandboxes need a process with one thread. Returns any other command.
fn run_without_runtime(command: Command) -> ControlFlow<ExitCode, Command> {
    ControlFlow::Break(match command {
        Command::Confine(arguments) => confine::confine(arguments),
        Command::Guard { mark } => {
            lockhouse_upstream::process_guard::guard(&mark);
            ExitCode::SUCCESS
        }
        Command::HttpFront(arguments) => http_front::http_front(&arguments),
        Command::TlsSigner(arguments) => tls_signer::tls_signer(arguments),
        Command::FileHelper => launcher::file_helper(),
        Command::LandlockRoom => landlock_room::landlock_room(),
        other => return ControlFlow::Continue(other),
    })
}

/// Runs `lockhouse approve`, which has none of the options of other commands.
fn approve() -> ExitCode {
    if let Err(error) = harden() {
        return print_error(&error, UNAVAILABLE);
    }
    log::install(log::Format::Text, "lockhouse=warn,off");
    match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(approve::approve()),
        Err(error) => print_error(&error, UNAVAILABLE),
    }
}

async fn run_command(command: Command, files: &Files) -> ExitCode {
    if command.is_about_own_configuration() {
        system_engine::explain_own_configuration();
    }
    match command {
        Command::Serve(arguments) => serve::serve(files, arguments).await,
        Command::Engine(arguments) => engine::engine(files, arguments).await,
        Command::Run(arguments) => run::run(files, arguments).await,
        Command::Check(arguments) => check::check(files, arguments).await,
        Command::Result(arguments) => result::result(files, &arguments).await,
        Command::Demo => demo::demo().await,
        Command::Approvals(arguments) => approvals::approvals(arguments).await,
        Command::Tools(command) => tools::tools(files, command).await,
        Command::Stubs(arguments) => stubs::stubs(files, &arguments).await,
        Command::Server(command) => server::server(files, command).await,
        Command::Setup(arguments) => setup::setup(files, &arguments).await,
        Command::Import(arguments) => import::import(files, &arguments).await,
        Command::Python(command) => python::python(files, command).await,
        Command::Init(arguments) => init::init(files, &arguments).await,
        Command::Skills(arguments) => skills::skills(files, arguments).await,
        Command::Config(command) => configuration::configuration(files, command),
        Command::Policy(command) => policy::policy(files, command).await,
        Command::Status(arguments) => status::status(&arguments).await,
        Command::Reload(arguments) => reload::reload(&arguments).await,
        Command::Stop(arguments) => stop::stop(files, &arguments).await,
        Command::Page(arguments) => page::page(files, &arguments).await,
        Command::PageAction => page::page_action(files).await,
        Command::Runs(command) => runs::runs(command).await,
        Command::Sessions(command) => sessions::sessions(command).await,
        Command::Cluster(command) => cluster::cluster(command).await,
        Command::Token(command) => token::token(files, command),
        Command::User(command) => user::user(files, command).await,
        Command::Audit(command) => audit::audit(files, command).await,
        Command::Usage(arguments) => audit::usage(files, &arguments),
        Command::Doctor(arguments) => doctor::doctor(files, &arguments).await,
        Command::HttpFrontStarter => front_starter::start_front().await,
        Command::Launcher(_) => launcher::launcher().await,
        // Carried out before the runtime.
        Command::Confine(_)
        | Command::FileHelper
        | Command::Guard { .. }
        | Command::HttpFront(_)
        | Command::LandlockRoom
        | Command::TlsSigner(_) => ExitCode::SUCCESS,
        Command::Generate(arguments) => generate::generate(&arguments),
        Command::Guide => guide::print(),
        Command::DemoServer => match demo::server::serve().await {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => print_error(error.as_ref(), UNAVAILABLE),
        },
    }
}

/// Prints a usage error and exits. Where clap's own hint would mislead, prints another hint instead.
fn exit_with_usage_error(mut error: clap::Error) -> ! {
    let words: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    let Some(hint) = server::hint(&error, &words) else { error.exit() };
    // clap's own tip suggests `--` before one argument instead of before the whole command.
    error.remove(clap::error::ContextKind::Suggested);
    eprint!("{error}\nhint: {hint}\n");
    std::process::exit(USAGE.into())
}

/// The minimum soft limit of open file descriptors (RLIMIT_NOFILE) of the supervisor. A lower hard limit prevails.
/// Bound: engines and fronts.
const DESCRIPTORS: u64 = 16 * 1024;

/// Hardens this process: disables core dumps and ptrace, since the supervisor holds every connection and secret. Also
/// makes the process a child subreaper, raises its file descriptor limit and ignores SIGXFSZ.
fn harden() -> Result<(), std::io::Error> {
    nix::sys::prctl::set_dumpable(false)?;
    nix::sys::prctl::set_child_subreaper(true)?;
    rlimit::Resource::CORE.set(0, 0)?;
    // Each worker takes a few descriptors, so the usual soft limit of 1,024 is too low for many workers.
    let (soft, hard) = rlimit::Resource::NOFILE.get()?;
    rlimit::Resource::NOFILE.set(soft.max(DESCRIPTORS).min(hard), hard)?;
    // A write beyond RLIMIT_FSIZE then fails with an error instead of killing the process.
    ignore_file_size_signal()
}

#[allow(unsafe_code, reason = "Signal dispositions")]
fn ignore_file_size_signal() -> Result<(), std::io::Error> {
    use nix::sys::signal::{SigHandler, Signal, signal};
    // SAFETY: ignoring a signal installs no code.
    unsafe { signal(Signal::SIGXFSZ, SigHandler::SigIgn) }?;
    Ok(())
}

/// glibc's mmap threshold in bytes: an allocation of this size or more gets its own memory mapping.
const MAPPED_FROM_BYTES: i32 = 256 * 1024;

/// Fixes glibc's mmap threshold, so that the memory of large messages returns to the system when it is freed. By
/// default glibc raises the threshold to the largest freed mapping, and hostile workers could make this process keep
/// the memory of what they sent.
#[allow(unsafe_code, reason = "mallopt is an unsafe call of the allocator")]
fn limit_freed_memory() {
    // SAFETY: sets an integer parameter while this process has a single thread.
    unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED_FROM_BYTES) };
}

/// Returns the log filter that applies when LOCKHOUSE_LOG is not set.
fn default_log(command: &Command) -> &'static str {
    match command {
        Command::Serve(_) | Command::Engine(_) => "lockhouse=info,rmcp=off,warn",
        // These commands print failed and omitted servers themselves; a log line would repeat that.
        Command::Tools(_) | Command::Stubs(_) | Command::Policy(_) => {
            "lockhouse=warn,lockhouse_upstream::connection_task=error,rmcp=off,error"
        }
        Command::Server(_)
        | Command::Setup(_)
        | Command::Python(_)
        | Command::Import(_)
        | Command::Config(_) => {
            "lockhouse=warn,lockhouse_upstream::connection_task=error,lockhouse_config::servers=error,rmcp=off,error"
        }
        _ => "lockhouse=warn,rmcp=off,error",
    }
}

/// Prints an error to stderr and returns `status` as the exit status.
pub(crate) fn print_error(error: &(impl std::error::Error + ?Sized), status: u8) -> ExitCode {
    eprintln!("lockhouse: {}", terminal::sanitize_lines(&error.to_string()));
    ExitCode::from(status)
}

/// Prints a configuration error to stderr, with excerpts of the faulty file, and in colour on a terminal.
fn print_config_error(error: &ConfigError) -> ExitCode {
    match error {
        ConfigError::Faults(faults) => {
            eprintln!("{}", faults.render(terminal::has_colour()));
            ExitCode::from(USAGE)
        }
        _ => print_error(error, USAGE),
    }
}

/// Loads the configuration and the policy for a process with an engine. Fails if either of them is invalid, or if only the
/// system's engine may run code.
fn load(files: &Files) -> Result<Configuration, ExitCode> {
    Configuration::load(files).and_then(Configuration::for_engine).map_err(|error| print_config_error(&error))
}

fn start(files: &Files, languages: &[Language]) -> Result<Supervisor, ExitCode> {
    let Configuration { settings, policy, .. } = load(files)?;
    start_with(settings.engine, policy, languages)
}

fn start_with(
    settings: supervisor::EngineSettings,
    policy: Policy,
    languages: &[Language],
) -> Result<Supervisor, ExitCode> {
    report_start_error(Supervisor::start(settings, policy, languages))
}

fn report_start_error(supervisor: Result<Supervisor, AuditError>) -> Result<Supervisor, ExitCode> {
    supervisor.map_err(|error| print_error(&error, UNAVAILABLE))
}
