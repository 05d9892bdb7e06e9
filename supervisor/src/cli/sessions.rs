//! `lockhouse sessions`: lists and ends the open sessions in all Lockhouse processes of this user.

use std::process::ExitCode;

use lockhouse_engine::sessions::SessionName;
use lockhouse_messages::{EndedSessions, OperatorRequest, OperatorResponse, SessionListing};
use lockhouse_policies::printable;

use super::control_client;
use super::id_prefix::{Match, find_by_prefix, find_exact};
use super::{USAGE, table};

#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// List the open sessions
    List {
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// End a session: its worker is killed, and its AI client gets an error at its next run
    #[command(arg_required_else_help = true)]
    End {
        /// The id of the session, or its name or a prefix of the name; several sessions of one name need the id
        #[arg(required_unless_present = "all")]
        session: Option<String>,
        /// End all sessions
        #[arg(long, conflicts_with = "session")]
        all: bool,
    },
}

/// The id of a Lockhouse process, and one of the open sessions in this process.
type OpenSession = (u32, SessionListing);

pub(super) async fn sessions(command: Command) -> ExitCode {
    match command {
        Command::List { json } => list(json).await,
        Command::End { session: Some(session), .. } => end(&session).await,
        Command::End { session: None, .. } => end_all().await,
    }
}

async fn open_sessions() -> Vec<OpenSession> {
    let mut sessions = Vec::new();
    for (pid, response) in control_client::request_all(&OperatorRequest::ListSessions).await {
        if let OperatorResponse::Sessions(listed) = response {
            sessions.extend(listed.into_iter().map(|session| (pid, session)));
        }
    }
    sessions
}

async fn list(as_json: bool) -> ExitCode {
    let sessions = open_sessions().await;
    let of_others = control_client::elsewhere(|activity| activity.sessions).await;
    if as_json {
        let mut all = control_client::to_json(&sessions);
        control_client::add_elsewhere(&mut all, of_others);
        println!("{all:#}");
    } else if sessions.is_empty() && of_others.is_empty() {
        println!("No session is open.");
    } else {
        println!("{}", render_table(&sessions, &of_others));
    }
    ExitCode::SUCCESS
}

/// Returns the table of the sessions of this host and of other hosts of the cluster.
fn render_table(own: &[OpenSession], of_others: &[(String, SessionListing)]) -> String {
    let own = own.iter().map(|of| row(&of.1, id(of), of.0.to_string()));
    let others = of_others.iter().map(|(host, session)| row(session, "-".to_owned(), format!("on {host}")));
    let head = ["id", "session", "owner", "language", "state", "runs", "unused", "age", "lockhouse"];
    table::render(&head, &own.chain(others).collect::<Vec<_>>())
}

/// Returns a row of the list. `process` says where the session is.
fn row(session: &SessionListing, id: String, process: String) -> Vec<String> {
    let SessionListing { name, owner, language, state, runs, unused_s, age_s, .. } = session;
    let seconds = |seconds: &u64| format!("{seconds} s");
    vec![
        id,
        printable(name),
        printable(owner),
        printable(language),
        printable(state),
        runs.to_string(),
        seconds(unused_s),
        seconds(age_s),
        process,
    ]
}

/// Returns an id of a session that is unique among all Lockhouse processes: PID/NUMBER.
fn id((pid, session): &OpenSession) -> String {
    format!("{pid}/{}", session.id)
}

async fn end(requested: &str) -> ExitCode {
    // An id contains a slash, which no session name does.
    let is_id = requested.contains('/');
    if !is_id && let Err(error) = SessionName::new(requested) {
        eprintln!("lockhouse: {error}");
        return ExitCode::from(USAGE);
    }
    let open = open_sessions().await;
    let found = match is_id {
        true => find_exact(&open, requested, id),
        false => find_by_prefix(&open, requested, |(_, session)| session.name.clone()),
    };
    let (pid, session) = match found {
        Match::One(one) => one,
        Match::None => {
            eprintln!(
                "lockhouse: no session {} is open; `lockhouse sessions list` lists the open sessions",
                printable(requested)
            );
            return ExitCode::FAILURE;
        }
        Match::Ambiguous(several) => {
            eprintln!("lockhouse: several sessions match, and none was ended; give the id of one:");
            eprintln!("{}", render_table(&several, &[]));
            return ExitCode::FAILURE;
        }
    };
    let request = OperatorRequest::EndSessions(EndedSessions::Numbered(session.id));
    match control_client::request_one(pid, &request).await {
        Ok(OperatorResponse::EndedSessions(ended)) if !ended.is_empty() => {
            control_client::print_ended(pid, &ended);
            ExitCode::SUCCESS
        }
        Ok(OperatorResponse::EndedSessions(_)) => {
            eprintln!("lockhouse: the session {} has already ended", printable(&session.name));
            ExitCode::FAILURE
        }
        _ => {
            eprintln!(
                "lockhouse: process {pid} did not end its session: it is busy, or another version of Lockhouse"
            );
            ExitCode::FAILURE
        }
    }
}

async fn end_all() -> ExitCode {
    for (pid, response) in
        control_client::request_all(&OperatorRequest::EndSessions(EndedSessions::All)).await
    {
        if let OperatorResponse::EndedSessions(ended) = response {
            control_client::print_ended(pid, &ended);
        }
    }
    ExitCode::SUCCESS
}
