//! `lockhouse page`: serves the live page, on which a person sees what Lockhouse does, and decides.
//!
//! The page is a process of its own, without connections to upstream servers. It does what operators' commands do:
//! it asks the Lockhouse processes of this user through their control sockets, and reads the audit log. What needs the
//! configuration with its secrets, or takes long, is done in a process that ends with its result (`command_actions.rs`).

mod action_process;
mod approval_questions;
mod browser;
mod code_login;
mod command_actions;
mod engine_tools;
mod kept_results;
mod operator;
mod page_records;
mod policy_proposals;
mod processes;
mod service_login;
mod stable_times;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use lockhouse_base::listen::ListenAddress;
use lockhouse_page::{
    Access, Activity, ListenError, Listener, PageAddress, PageRecord, PageServer, Sections, Viewer,
};
use nix::unistd::{User, geteuid};
use tokio::sync::{mpsc, watch};

use super::reloader::LOOK_INTERVAL;
use super::{REQUIREMENTS, UNAVAILABLE, print_config_error, print_error};
use approval_questions::ApprovalQuestions;
use browser::LinkPrinter;
use lockhouse_config::{self as config, Files, RequiredKeys};
use operator::PageOperator;

pub(super) use command_actions::page_action;

/// How long the page process stays connected to the Lockhouse processes after the last page was closed: a page that is
/// loaded again is the same person.
const AFTER_LAST_PAGE: Duration = Duration::from_secs(5);

/// The tables of the configuration that the page uses.
const TABLES: [&str; 4] = ["page", "http", "clients", "audit"];

/// Options of `lockhouse page`.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Print the link without opening it in a browser
    #[arg(long)]
    no_open: bool,
    /// Serve the people who use this service: each logs in with their access token, and sees their own runs. Uses the
    /// table [page] of the configuration
    #[arg(long, conflicts_with_all = ["listen", "unix"])]
    service: bool,
    /// Listen on this address of this machine instead of a random port: localhost:PORT, IP:PORT, or unix:/PATH. The page
    /// is then opened with its link alone, since a proxy may use the address
    #[arg(long, value_name = "ADDRESS", conflicts_with = "unix")]
    listen: Option<PageAddress>,
    /// Listen on a Unix domain socket, for example to forward it with ssh -L
    #[arg(long, value_name = "PATH")]
    unix: Option<PathBuf>,
    /// End after this time without an open page
    #[arg(long, value_name = "MINUTES", value_parser = clap::value_parser!(u32).range(1..=10_080))]
    idle: Option<u32>,
    /// How long a link can be used
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=3_600))]
    link_seconds: u32,
}

impl Arguments {
    /// Returns where this user's own page listens.
    fn address(&self) -> PageAddress {
        match (&self.unix, &self.listen) {
            (Some(path), _) => {
                let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
                PageAddress::Other(ListenAddress::Unix(path))
            }
            (None, Some(address)) => address.clone(),
            (None, None) => PageAddress::Localhost(0),
        }
    }

    /// Whether the page is opened in a browser of this host. A proxy may use an address that a person has chosen, and
    /// then the requests of everybody seem to come from this account.
    fn opens_browser(&self) -> bool {
        !(self.no_open || self.service || self.listen.is_some() || self.unix.is_some())
    }
}

/// Runs `lockhouse page` until Ctrl-C, or until no page was open for the time of `--idle`.
pub(super) async fn page(files: &Files, arguments: &Arguments) -> ExitCode {
    let requirements = match RequiredKeys::load() {
        Ok(requirements) => requirements,
        Err(error) => return print_config_error(&error),
    };
    let (listener, access, logins) = match open(files, arguments).await {
        Ok(opened) => opened,
        Err(status) => return status,
    };
    let links = LinkPrinter::new(access.clone(), administrator(), &listener);
    if arguments.service {
        eprintln!(
            "The page of this service listens at {}. People log in with their access tokens.",
            listener.address()
        );
    } else if let Err(error) = links.print() {
        eprintln!("lockhouse: no link can be created: {error}");
        return ExitCode::from(UNAVAILABLE);
    }
    if arguments.opens_browser() {
        links.open_browser();
    }
    let sections = Sections::default();
    // An invalid configuration must not hide the page: a person may need it to find the error.
    let audit = config::load_audit_settings(files).map(|settings| settings.directory);
    let activity = Activity::new(audit.map_err(|error| error.to_string()));
    let questions = ApprovalQuestions::default();
    let operator = match PageOperator::new(files, questions.clone(), listener.port()) {
        Ok(operator) => Arc::new(operator),
        Err(error) => return print_error(&error, UNAVAILABLE),
    };
    let server = PageServer {
        access,
        sections: sections.clone(),
        activity: activity.clone(),
        operator: operator.clone(),
    };
    let processes = processes::poll(&sections, &activity, operator.kept_results());
    tokio::select! {
        () = lockhouse_page::serve(listener, server) => {}
        () = activity.follow_audit_log(&sections) => {}
        () = while_pages_are_open(&sections, processes) => {}
        () = questions.follow(&sections) => {}
        () = operator.records().follow(logins) => {}
        () = links.print_on_enter(), if !arguments.service => {}
        reason = other_requirements(requirements) => {
            eprintln!("lockhouse: {reason}");
            return ExitCode::from(REQUIREMENTS);
        }
        () = no_page_for(&sections, arguments.idle) => eprintln!("lockhouse: no page was open for a while"),
        _ = tokio::signal::ctrl_c() => {}
    }
    operator.records().write_or_log(PageRecord::Stopped {}).await;
    ExitCode::SUCCESS
}

/// Waits until the administrator's requirements set other keys for the page, or cannot be used. Returns what to say about it.
async fn other_requirements(mut requirements: RequiredKeys) -> String {
    loop {
        tokio::time::sleep(LOOK_INTERVAL).await;
        match requirements.have_changed(&TABLES) {
            Ok(false) => {}
            Ok(true) => {
                return "the page ends, because the administrator's requirements for it changed: open it again".into();
            }
            Err(error) => {
                let reason = error.without_excerpts();
                return format!(
                    "the page ends, because the administrator's requirements cannot be used: {reason}"
                );
            }
        }
    }
}

/// The logins at the page: who has logged in, or `None` for one that was refused.
type Logins = mpsc::Receiver<Option<String>>;

/// Opens the socket, and decides who may use the page.
async fn open(files: &Files, arguments: &Arguments) -> Result<(Listener, Arc<Access>, Logins), ExitCode> {
    let unavailable = |error: ListenError| print_error(&error, UNAVAILABLE);
    let link_lifetime = Duration::from_secs(arguments.link_seconds.into());
    if !arguments.service {
        let listener = Listener::open(&arguments.address(), Vec::new()).await.map_err(unavailable)?;
        let mut access = Access::new(listener.port(), link_lifetime, None);
        let logins = access.logins();
        return Ok((listener, Arc::new(access), logins));
    }
    let service = service_login::load(files)?;
    let listener = Listener::open(&service.listen, service.hosts).await.map_err(unavailable)?;
    let access = Access::new(listener.port(), link_lifetime, Some(service.token_check));
    let mut access = access.with_browser_login(service.browser_login);
    let logins = access.logins();
    Ok((listener, Arc::new(access), logins))
}

/// Returns the viewer of this user's own page.
fn administrator() -> Viewer {
    let user = User::from_uid(geteuid()).ok().flatten();
    Viewer::administrator(user.map_or_else(|| geteuid().to_string(), |user| user.name))
}

/// Waits until no page was open for this number of minutes. Without a number, waits forever.
async fn no_page_for(sections: &Sections, minutes: Option<u32>) {
    let Some(minutes) = minutes else { return std::future::pending().await };
    let idle = Duration::from_secs(60 * u64::from(minutes));
    wait_for_no_page(&mut sections.open_pages(), idle).await;
}

/// Waits until no page was open for this time.
async fn wait_for_no_page(open_pages: &mut watch::Receiver<usize>, time: Duration) {
    loop {
        let _ = open_pages.wait_for(|count| *count == 0).await;
        if tokio::time::timeout(time, open_pages.wait_for(|count| *count > 0)).await.is_err() {
            return;
        }
    }
}

/// Runs `work`, which never ends, while pages are open, and pauses it otherwise.
async fn while_pages_are_open(sections: &Sections, work: impl Future<Output = ()>) {
    let mut work = std::pin::pin!(work);
    let mut open_pages = sections.open_pages();
    loop {
        if open_pages.wait_for(|count| *count > 0).await.is_err() {
            return;
        }
        tokio::select! {
            () = &mut work => return,
            () = wait_for_no_page(&mut open_pages, AFTER_LAST_PAGE) => {}
        }
    }
}
