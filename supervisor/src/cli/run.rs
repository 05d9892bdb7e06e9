//! `lockhouse run`: runs a program in a sandboxed worker and prints its result.

mod file_options;
mod live_output;
mod reduced_notice;

use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use lockhouse_approvals::{Watcher, WatcherKind};
use lockhouse_base::json;
use lockhouse_config::{Configuration, Files};
use lockhouse_engine::control_socket::ControlSocket;
use lockhouse_engine::execution::{
    self, DisplayOptions, ExecutionAnswer, FileStorage, Refusal, RunError, RunStatus,
};
use lockhouse_engine::supervisor::{CodeRequest, Supervisor};
use lockhouse_messages::{ApprovalEvent, ApprovalInput, CutValue, Owner, WatcherRole};
use lockhouse_protocol::Language;
use lockhouse_protocol::json_text::quote_large_integers;
use lockhouse_stores::result_files::ResultFiles;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::approvals::keyboard::Keyboard;
use super::approvals::terminal_prompt::{ApproverReply, SupervisorEvent, TerminalPrompt};
use super::approvals::{ANSWERS_MAX, EVENTS_MAX};
use super::audit_forwarding::AuditForwarding;
use super::language::LanguageName;
use super::reloader::Reloader;
use super::stop_signals::cancel_on_signal;
use super::terminal::{for_stderr, for_stdout};
use super::{UNAVAILABLE, USAGE, load, print_error, report_start_error, result};
pub(super) use file_options::FileOptions;
use file_options::GivenFileError;
use live_output::{LiveOutput, SharedTerminal};

/// The maximum size in bytes of a program file: more than any configurable limit for code. A larger file is an error.
const READ_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Options of `lockhouse run`.
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
    /// Time limit in seconds, up to the configured maximum
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<f64>,
    /// Permit only this server, or only NAME.TOOL or NAME.PREFIX* of it; may be given several times
    #[arg(long, value_name = "NAME[.TOOL]")]
    server: Vec<String>,
    /// Print the answer as JSON, as an AI client receives it
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    files: FileOptions,
}

/// Why the arguments of `lockhouse run` or `lockhouse check` cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum ProgramError {
    #[error(transparent)]
    GivenFile(#[from] GivenFileError),
    #[error("give a program: a FILE, - for standard input, or -c CODE")]
    NotGiven,
    #[error("give the language: --language python or --language typescript")]
    NoLanguage,
    #[error("--timeout takes a positive number of seconds")]
    Timeout,
    #[error("cannot read {file}: {source}")]
    Unreadable { file: PathBuf, source: std::io::Error },
    #[error("{file} is larger than {} MiB", READ_BYTES_MAX / (1024 * 1024))]
    TooLarge { file: PathBuf },
    #[error("{file} is not UTF-8: line {line} has an invalid byte; save it as UTF-8")]
    NotUtf8 { file: PathBuf, line: usize },
}

/// Runs the program that the options name. Prints its output while it runs, then its result and its error.
pub(super) async fn run(files: &Files, arguments: Arguments) -> ExitCode {
    let (json, file_options) = (arguments.json, arguments.files.clone());
    let request = match parse_request(arguments) {
        Ok(request) => request,
        Err(error) => return print_error(&error, USAGE),
    };
    run_program(files, request, json, &file_options).await
}

/// Runs a program, and returns the exit status. Prints the output while the program runs, and the result and the error
/// at its end. With `json`, prints only the answer as JSON, at the end. Writes the returned files into the folder of
/// `file_options`, if there is one.
pub(super) async fn run_program(
    files: &Files,
    request: CodeRequest,
    json: bool,
    file_options: &FileOptions,
) -> ExitCode {
    let (configuration, supervisor, forwarding) = match start(files, request.language) {
        Ok((configuration, supervisor, forwarding)) => (configuration, Arc::new(supervisor), forwarding),
        Err(status) => return status,
    };
    let cancelled = CancellationToken::new();
    cancel_on_signal(&cancelled);
    let terminal = SharedTerminal::default();
    let is_json = json;
    let (output, live_output) = (!json).then(|| LiveOutput::start(terminal.clone())).unzip();
    let request = CodeRequest { output, ..request };
    // Questions are shown on this terminal. Without a terminal, `lockhouse approvals` can answer them.
    let queue = supervisor.approvers().queue();
    let has_terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    if has_terminal {
        tokio::spawn(prompt_on_terminal(queue.watch(WatcherKind::Terminal, WatcherRole::Approver), terminal));
    }
    // A proof of presence comes from another process.
    let is_operated = !has_terminal || !supervisor.approvers().presence().level().is_none();
    let _control = is_operated
        .then(|| ControlSocket::open(&supervisor).map_err(|error| tracing::info!("{error}")).ok())
        .flatten();
    let requirements = Reloader::of_requirements(&supervisor, configuration, files);
    let running = supervisor.run_code(request, &cancelled);
    tokio::pin!(running);
    let answer = tokio::select! {
        answer = &mut running => answer,
        // The run has ended with the reason, so its answer is there at once.
        _ = requirements.run() => running.await,
    };
    supervisor.close().await;
    forwarding.close().await;
    // Only the JSON names the handles of what was cut.
    let keep = |json: &str| if is_json { supervisor.results().store(Owner::LOCAL, json) } else { None };
    let (limits, more) = (supervisor.settings().display, "lockhouse result HANDLE --offset N");
    let storage = FileStorage { files: supervisor.result_files(), owner: Owner::LOCAL };
    // The JSON has the bytes of files in its value, unless they are written into a folder.
    let extract_files = live_output.is_some() || file_options.writes_files();
    let showing = DisplayOptions { limits, next_part_hint: more, extract_files, storage, keep: &keep };
    let rendered = execution::render_answer(&answer, &showing);
    match live_output {
        Some(live_output) => {
            live_output.finish().await;
            print_end_for_people(&answer);
        }
        None => println!("{:#}", rendered.answer.members(CutValue::Value).to_json()),
    }
    let is_complete = file_options.deliver(&supervisor, &rendered.files);
    exit_code(&answer, is_complete)
}

/// Returns the exit status for an answer. A file that could not be written is a failure.
fn exit_code(answer: &ExecutionAnswer, has_all_files: bool) -> ExitCode {
    ExitCode::from(match answer.refusal {
        Some(Refusal::InvalidRequest) => USAGE,
        Some(_) => UNAVAILABLE,
        None if !has_all_files && answer.status == RunStatus::Ok => return ExitCode::FAILURE,
        None => answer.status.exit_code(),
    })
}

/// Starts the supervisor of a run, and the forwarding of its audit log.
fn start(
    files: &Files,
    language: Language,
) -> Result<(Configuration, Supervisor, AuditForwarding), ExitCode> {
    let configuration = load(files)?;
    let Configuration { settings, policy, .. } = configuration.clone();
    let results = result::open_results(settings.engine.results);
    let returned =
        ResultFiles::of_commands(settings.engine.state_directory.clone(), settings.engine.result_files);
    let started =
        Supervisor::start_with_results(settings.engine.clone(), policy, &[language], results, returned);
    let supervisor = report_start_error(started)?;
    let forwarding = AuditForwarding::start(&settings, &supervisor)?;
    Ok((configuration, supervisor, forwarding))
}

/// Shows the pending questions of the run on this terminal, and relays the answers to the supervisor in this process.
/// Holds back the output of the run while a question is open.
async fn prompt_on_terminal(mut watcher: Watcher, terminal: SharedTerminal) {
    let supervisor = std::process::id();
    let (events, received_events) = mpsc::channel(EVENTS_MAX);
    let (replies, mut answers) = mpsc::channel::<ApproverReply>(ANSWERS_MAX);
    let relaying = async {
        loop {
            let message = tokio::select! {
                message = watcher.next() => match message {
                    Some(message) => (*message).clone(),
                    None => return,
                },
                Some(ApproverReply { input: ApprovalInput::Answer(answer), .. }) = answers.recv() => match watcher.answer(&answer, watcher.approver()) {
                    Ok(()) => ApprovalEvent::Taken(answer.id),
                    Err(why) => ApprovalEvent::Refused { id: Some(answer.id), reason: why.to_string() },
                },
            };
            match &message {
                ApprovalEvent::Ask(_) => terminal.open_question(),
                ApprovalEvent::Gone(_) => terminal.close_question(),
                ApprovalEvent::Watching
                | ApprovalEvent::Taken(_)
                | ApprovalEvent::Challenge { .. }
                | ApprovalEvent::Refused { .. } => {}
            }
            if events.send(SupervisorEvent { supervisor, message: Some(message) }).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = relaying => {}
        () = TerminalPrompt::new(Keyboard::new()).converse(received_events, replies) => {}
    }
    terminal.end_questions();
}

/// The program that a command runs or checks: a file or the text of the program, and the language.
pub(super) struct ProgramSource {
    /// The path of the file with the program; `-` for standard input. Ignored if [`Self::code`] is given.
    pub(super) file: Option<PathBuf>,
    /// The text of the program. If `None`, the program is read from [`Self::file`].
    pub(super) code: Option<String>,
    /// The language of the program. If `None`, the extension of the file determines the language.
    pub(super) language: Option<LanguageName>,
}

impl ProgramSource {
    /// Reads the program and returns the request to run it. If `servers` is not empty, the run may use only the
    /// servers and tools in it.
    pub(super) fn into_request(self, servers: Vec<String>) -> Result<CodeRequest, ProgramError> {
        let by_ending =
            self.file.as_deref().and_then(Path::extension).and_then(|ending| match ending.to_str() {
                Some("py") => Some(Language::Python),
                Some("ts" | "js" | "mts" | "mjs") => Some(Language::Typescript),
                _ => None,
            });
        let code = match (self.code, self.file) {
            (Some(code), _) => code,
            (None, Some(file)) => read_program(&file)?,
            (None, None) => return Err(ProgramError::NotGiven),
        };
        let language = self.language.map(Language::from).or(by_ending).ok_or(ProgramError::NoLanguage)?;
        let servers = (!servers.is_empty()).then_some(servers);
        Ok(CodeRequest { servers, ..CodeRequest::new(language, code) })
    }
}

fn parse_request(arguments: Arguments) -> Result<CodeRequest, ProgramError> {
    let Arguments { file, code, language, timeout, server, files, .. } = arguments;
    let timeout = match timeout.map(Duration::try_from_secs_f64) {
        None => None,
        Some(Ok(timeout)) if !timeout.is_zero() => Some(timeout),
        Some(_) => return Err(ProgramError::Timeout),
    };
    let given_files = files.open_given()?;
    let request = ProgramSource { file, code, language }.into_request(server)?;
    Ok(CodeRequest { timeout, given_files, ..request })
}

fn read_program(file: &Path) -> Result<String, ProgramError> {
    let (mut bytes, most) = (Vec::new(), READ_BYTES_MAX + 1);
    let result = match file.as_os_str() == "-" {
        true => std::io::stdin().take(most).read_to_end(&mut bytes),
        false => std::fs::File::open(file).and_then(|opened| opened.take(most).read_to_end(&mut bytes)),
    };
    result.map_err(|source| ProgramError::Unreadable { file: file.to_owned(), source })?;
    if bytes.len() as u64 > READ_BYTES_MAX {
        return Err(ProgramError::TooLarge { file: file.to_owned() });
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let line = 1 + error.as_bytes()[..valid].iter().filter(|byte| **byte == b'\n').count();
        ProgramError::NotUtf8 { file: file.to_owned(), line }
    })
}

/// Prints the end of an answer: what follows the output of the program.
fn print_end_for_people(answer: &ExecutionAnswer) {
    if let Some(value) = &answer.value {
        let value = quote_large_integers(value.get());
        let json = execution::omit_files(&value);
        match json::parse_bounded(json.as_bytes(), usize::MAX) {
            Ok(Value::String(text)) => println!("{}", for_stdout(&text)),
            Ok(value) => println!("{}", for_stdout(&format!("{value:#}"))),
            Err(_) => println!("{}", for_stdout(&json)),
        }
    }
    if let Some(advice) = &answer.missing_value_advice {
        eprintln!("lockhouse: no value: {}", for_stderr(advice));
    }
    if let Some(sandbox) = &answer.sandbox {
        reduced_notice::print(&sandbox.reduced);
    }
    if let Some(error) = &answer.error {
        eprintln!("{}", for_stderr(&format_error(answer, error)));
    }
}

fn format_error(answer: &ExecutionAnswer, error: &RunError) -> String {
    let traceback = error.traceback.as_ref().map(|text| format!("{}\n", text.trim_end())).unwrap_or_default();
    let place = error.line.map(|line| format!(" (line {line})")).unwrap_or_default();
    let hint = error.hint.as_ref().map(|hint| format!("\n  hint: {hint}")).unwrap_or_default();
    let changed = error.changed.as_ref().map(|changed| format!("\n  changed: {changed}")).unwrap_or_default();
    format!(
        "{traceback}lockhouse: {}: {}{place}: {}{hint}{changed}",
        answer.status.as_str(),
        error.kind,
        error.message
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_file_that_is_too_large_is_not_truncated() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("program.py");
        let file = std::fs::File::create(&path).expect("a file");
        file.set_len(READ_BYTES_MAX).expect("a longer file");
        assert_eq!(read_program(&path).expect("a program").len() as u64, READ_BYTES_MAX);
        file.set_len(READ_BYTES_MAX + 1).expect("a longer file");
        let error = read_program(&path).expect_err("too large").to_string();
        assert_eq!(error, format!("{} is larger than 16 MiB", path.display()));
    }
}
