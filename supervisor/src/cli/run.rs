//! `lockhouse run`

use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use lockhouse_base::json;
use lockhouse_base::language::Language;
use lockhouse_base::principal::Owner;
use lockhouse_engine::control::ControlSocket;
use lockhouse_engine::execution::{self, Answer, Refusal, Showing};
use lockhouse_engine::supervisor::{CodeRequest, Supervisor};
use lockhouse_gate::{FromSupervisor, Seat, Watcher};
use lockhouse_protocol::CodeError;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::approvals::keyboard::Keyboard;
use super::approvals::screen::{Event, Reply, Screen};
use super::approvals::{ANSWERS_MAX, EVENTS_MAX};
use super::language::LanguageName;
use super::terminal::{for_stderr, for_stdout};
use super::{UNAVAILABLE, USAGE, complain, load, result, started};
use crate::config::Files;

/// Bytes that are read of a program: beyond any limit that can be configured for code.
const READ_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// What to run.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Program file; - reads standard input
    #[arg(conflicts_with = "code")]
    file: Option<PathBuf>,
    /// The program itself
    #[arg(short, value_name = "CODE")]
    code: Option<String>,
    /// Language [default: by the ending of FILE]
    #[arg(long)]
    language: Option<LanguageName>,
    /// Seconds until the program is stopped; at most what the configuration gives
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<f64>,
    /// Only this server, or of it only NAME.TOOL or NAME.BEGINNING*; may be given several times
    #[arg(long, value_name = "NAME[.TOOL]")]
    server: Vec<String>,
    /// Print the answer as JSON, as an AI client gets it
    #[arg(long)]
    json: bool,
}

/// Why the arguments name no program that can be run.
#[derive(Debug, thiserror::Error)]
enum NoProgram {
    #[error("give a program: a FILE, - for standard input, or -c CODE")]
    NotGiven,
    #[error("say which language: --language python or --language typescript")]
    NoLanguage,
    #[error("--timeout takes seconds above 0")]
    Timeout,
    #[error("cannot read {file}: {source}")]
    Unreadable { file: PathBuf, source: std::io::Error },
    #[error("{file} is not UTF-8: line {line} has an invalid byte; save it as UTF-8")]
    NotUtf8 { file: PathBuf, line: usize },
}

/// Runs it and prints what came of it.
pub(super) async fn run(files: &Files, arguments: Arguments) -> ExitCode {
    let json = arguments.json;
    let request = match request(arguments) {
        Ok(request) => request,
        Err(error) => return complain(&error, USAGE),
    };
    let supervisor = match start(files, request.language) {
        Ok(supervisor) => Arc::new(supervisor),
        Err(status) => return status,
    };
    let cancelled = CancellationToken::new();
    let interrupt = cancelled.clone();
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            interrupt.cancel();
        }
    });
    // Whoever sits at the terminal is asked there; without one, whoever runs `lockhouse approvals`.
    let desk = supervisor.approvers().desk();
    let _control = if std::io::stdin().is_terminal() && std::io::stderr().is_terminal() {
        tokio::spawn(ask_here(desk.watch(Seat::Terminal)));
        None
    } else {
        ControlSocket::open(&supervisor).map_err(|error| tracing::info!("{error}")).ok()
    };
    let answer = supervisor.run_code(request, &cancelled).await;
    supervisor.close().await;
    if json {
        let keep = |json: &str| supervisor.results().keep(Owner::LOCAL, json);
        let (limits, more) = (supervisor.settings().display, "lockhouse result HANDLE --offset N");
        let showing = Showing { limits, more, takes_files: false, keep: &keep };
        println!("{:#}", execution::shown(&answer, &showing).json)
    } else {
        print_for_people(&answer)
    }
    ExitCode::from(match answer.refusal {
        Some(Refusal::InvalidRequest) => USAGE,
        Some(_) => UNAVAILABLE,
        None => answer.status.exit_code(),
    })
}

fn start(files: &Files, language: Language) -> Result<Supervisor, ExitCode> {
    let (settings, policy) = load(files)?;
    let results = result::kept(settings.engine.results);
    started(Supervisor::start_with(settings.engine, policy, &[language], results))
}

/// Puts questions to whoever sits at this terminal.
async fn ask_here(mut watcher: Watcher) {
    let supervisor = std::process::id();
    let (events, shown) = mpsc::channel(EVENTS_MAX);
    let (replies, mut answers) = mpsc::channel::<Reply>(ANSWERS_MAX);
    let relaying = async {
        loop {
            let message = tokio::select! {
                message = watcher.next() => match message {
                    Some(message) => (*message).clone(),
                    None => return,
                },
                Some(Reply { answer, .. }) = answers.recv() => match watcher.answer(&answer) {
                    Ok(()) => FromSupervisor::Taken(answer.id),
                    Err(why) => FromSupervisor::Refused { id: Some(answer.id), reason: why.to_string() },
                },
            };
            if events.send(Event { supervisor, message: Some(message) }).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = relaying => {}
        () = Screen::new(Keyboard::new()).converse(shown, replies) => {}
    }
}

fn request(arguments: Arguments) -> Result<CodeRequest, NoProgram> {
    let by_ending =
        arguments.file.as_deref().and_then(Path::extension).and_then(|ending| match ending.to_str() {
            Some("py") => Some(Language::Python),
            Some("ts" | "js" | "mts" | "mjs") => Some(Language::Typescript),
            _ => None,
        });
    let code = match (arguments.code, arguments.file) {
        (Some(code), _) => code,
        (None, Some(file)) => read(&file)?,
        (None, None) => return Err(NoProgram::NotGiven),
    };
    let language = arguments.language.map(Language::from).or(by_ending).ok_or(NoProgram::NoLanguage)?;
    let timeout = match arguments.timeout.map(Duration::try_from_secs_f64) {
        None => None,
        Some(Ok(timeout)) if !timeout.is_zero() => Some(timeout),
        Some(_) => return Err(NoProgram::Timeout),
    };
    let servers = (!arguments.server.is_empty()).then_some(arguments.server);
    Ok(CodeRequest { language, code, timeout, servers, session: None })
}

fn read(file: &Path) -> Result<String, NoProgram> {
    let mut bytes = Vec::new();
    let result = match file.as_os_str() == "-" {
        true => std::io::stdin().take(READ_BYTES_MAX).read_to_end(&mut bytes),
        false => {
            std::fs::File::open(file).and_then(|opened| opened.take(READ_BYTES_MAX).read_to_end(&mut bytes))
        }
    };
    result.map_err(|source| NoProgram::Unreadable { file: file.to_owned(), source })?;
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let line = 1 + error.as_bytes()[..valid].iter().filter(|byte| **byte == b'\n').count();
        NoProgram::NotUtf8 { file: file.to_owned(), line }
    })
}

fn print_for_people(answer: &Answer) {
    print!("{}", for_stdout(&answer.stdout));
    eprint!("{}", for_stderr(&answer.stderr));
    if let Some(value) = &answer.value {
        let json = execution::without_files(value.get());
        match json::tree(json.as_bytes(), usize::MAX) {
            Ok(Value::String(text)) => println!("{}", for_stdout(&text)),
            Ok(value) => println!("{}", for_stdout(&format!("{value:#}"))),
            Err(_) => println!("{}", for_stdout(&json)),
        }
    }
    for missing in answer.sandbox.iter().flat_map(|sandbox| &sandbox.reduced) {
        eprintln!("lockhouse: reduced sandbox: {missing}");
    }
    if let Some(error) = &answer.error {
        eprintln!("{}", for_stderr(&told(answer, error)));
    }
}

fn told(answer: &Answer, error: &CodeError) -> String {
    let traceback = error.traceback.as_ref().map(|text| format!("{}\n", frames(text, error)));
    let traceback = traceback.unwrap_or_default();
    let place = error.line.map(|line| format!(" (line {line})")).unwrap_or_default();
    let hint = error.hint.as_ref().map(|hint| format!("\n  hint: {hint}")).unwrap_or_default();
    let changed =
        answer.changed.as_ref().map(|changed| format!("\n  changed: {changed}")).unwrap_or_default();
    format!(
        "{traceback}lockhouse: {}: {}{place}: {}{hint}{changed}",
        answer.status.as_str(),
        error.kind,
        error.message
    )
}

/// A traceback without its last line, where that says what is told right after it: in Python it is the error itself.
fn frames<'t>(traceback: &'t str, error: &CodeError) -> &'t str {
    let traceback = traceback.trim_end();
    let message = error.message.trim_end();
    // Without the message where that is long.
    let last = format!("{}: {message}", error.kind);
    let told = traceback.strip_suffix(&last).or_else(|| traceback.strip_suffix(&error.kind));
    let Some(before) = told else { return traceback };
    // The module of the error's class, if it has one.
    let before = before.trim_end_matches(|c: char| c.is_alphanumeric() || c == '_' || c == '.');
    match before.strip_suffix('\n') {
        Some(frames) => frames.trim_end(),
        None => traceback,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_told_once() {
        let error = |kind: &str, message: &str| CodeError {
            kind: kind.into(),
            message: message.into(),
            ..CodeError::default()
        };
        let above = "Traceback (most recent call last):\n  File \"<code>\", line 1, in <module>\n    f()";
        for (kind, message, last) in [
            ("ValueError", "no", "ValueError: no"),
            ("ValueError", "", "ValueError"),
            ("JSONDecodeError", "no: 1", "json.decoder.JSONDecodeError: no: 1"),
            ("ValueError", "two\nlines", "ValueError: two\nlines"),
        ] {
            assert_eq!(frames(&format!("{above}\n{last}\n"), &error(kind, message)), above);
        }
        // What says more, or something else, stays.
        for last in ["ValueError: no\n  + KeyError: 1", "TypeError: no", "xValueError; ValueError: no"] {
            let whole = format!("{above}\n{last}");
            assert_eq!(frames(&whole, &error("ValueError", "no")), whole);
        }
        assert_eq!(frames("ValueError: no", &error("ValueError", "no")), "ValueError: no");
    }
}
