//! Who gets notices of calls that require approval: `notify` and `link` of `[approvals]`.

use std::path::Path;
use std::time::Duration;

use lockhouse_approvals::{NoticeChannel, NoticeReceiver, NoticeSettings, Webhook, WebhookError};
use lockhouse_base::url_protection::is_protected;
use url::Url;

use super::dialects::{PLACEHOLDER_FORMS, own_template, secret_template};
use super::error::ConfigError;
use super::notice_entry::NoticeEntry;
use super::placeholders::{Environment, PlaceholderError};
use super::tables::Approvals;

/// The minimum time between two notices of one question to one receiver, in seconds.
const REMIND_SECONDS_MIN: u32 = 10;

/// Why an entry of `notify` cannot be used.
#[derive(Debug, thiserror::Error)]
enum NoticeFault {
    #[error("expected url and secret, or command")]
    Kind,
    #[error("command: expected the absolute path of a program, and its arguments")]
    Command,
    #[error("secret: expected one of the placeholders {PLACEHOLDER_FORMS}")]
    PlainSecret,
    #[error("{key}: {fault}")]
    Placeholder { key: &'static str, fault: PlaceholderError },
    #[error("url: it has an invalid placeholder")]
    Template,
    #[error("remind_seconds: expected at least {REMIND_SECONDS_MIN}")]
    Interval,
    #[error(transparent)]
    Webhook(#[from] WebhookError),
}

/// Returns the receivers of notices. There are none for the system's engine of a managed host.
///
/// # Errors
/// [`ConfigError::Notify`] for the first entry that cannot be used.
pub(super) fn notice_settings(
    table: &Approvals,
    environment: &Environment,
) -> Result<NoticeSettings, ConfigError> {
    if environment.person.is_some() {
        // The account of the system's engine runs no program, and sends nothing, because a file of the person says so.
        return Ok(NoticeSettings::default());
    }
    let numbered = |(index, entry): (usize, &NoticeEntry)| {
        let reason = |fault: NoticeFault| ConfigError::Notify { entry: index + 1, reason: fault.to_string() };
        receiver(entry, environment).map_err(reason)
    };
    let receivers = table.notify.iter().enumerate().map(numbered).collect::<Result<_, _>>()?;
    let parse = |link: &str| Url::parse(link).ok().filter(is_protected).ok_or(ConfigError::NoticeLink);
    let link = table.link.as_deref().map(parse).transpose()?;
    Ok(NoticeSettings { receivers, link })
}

fn receiver(entry: &NoticeEntry, environment: &Environment) -> Result<NoticeReceiver, NoticeFault> {
    let channel = match (&entry.url, &entry.secret, &entry.command) {
        (Some(url), Some(secret), None) => {
            NoticeChannel::Webhook(Box::new(webhook(url, secret, environment)?))
        }
        (None, None, Some(command)) => {
            let program = command.first().ok_or(NoticeFault::Command)?;
            if !Path::new(program).is_absolute() {
                return Err(NoticeFault::Command);
            }
            NoticeChannel::Command(command.clone())
        }
        _ => return Err(NoticeFault::Kind),
    };
    if entry.remind_seconds.is_some_and(|seconds| seconds < REMIND_SECONDS_MIN) {
        return Err(NoticeFault::Interval);
    }
    let seconds = |seconds: u32| Duration::from_secs(seconds.into());
    Ok(NoticeReceiver {
        channel,
        after: seconds(entry.after_seconds),
        remind: entry.remind_seconds.map(seconds),
    })
}

fn webhook(url: &str, secret: &str, environment: &Environment) -> Result<Webhook, NoticeFault> {
    let url = own_template(url, environment).ok_or(NoticeFault::Template)?;
    let secret = secret_template(secret, environment).ok_or(NoticeFault::PlainSecret)?;
    let unresolved = |key| move |fault| NoticeFault::Placeholder { key, fault };
    let url = url.resolve(environment).map_err(unresolved("url"))?;
    let secret = secret.resolve(environment).map_err(unresolved("secret"))?;
    Ok(Webhook::new(&url, &secret)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(toml: &str) -> Result<NoticeSettings, String> {
        let table: Approvals = toml::from_str(toml).map_err(|error| error.to_string())?;
        let variables = [
            ("KEY".to_owned(), "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".to_owned()),
            ("SHORT".to_owned(), "whsec_SEKRET".to_owned()),
            ("PLACE".to_owned(), "T0/SEKRET".to_owned()),
        ];
        let environment = Environment { variables: variables.into(), ..Environment::default() };
        notice_settings(&table, &environment).map_err(|error| error.to_string())
    }

    #[test]
    fn a_receiver_is_a_webhook_or_a_command() {
        let both = "link = 'https://lockhouse.example.com/page'\n\
            notify = [{ url = 'https://example.com/${env:PLACE}', secret = '${env:KEY}', remind_seconds = 60 },\n\
            { command = ['/usr/bin/true', 'x'], after_seconds = 120 }]";
        let settings = settings(both).expect("valid");
        let [webhook, command] = &settings.receivers[..] else { panic!("{settings:?}") };
        assert!(matches!(&webhook.channel, NoticeChannel::Webhook(_)));
        assert_eq!((webhook.after, webhook.remind), (Duration::ZERO, Some(Duration::from_secs(60))));
        let NoticeChannel::Command(words) = &command.channel else { panic!("{command:?}") };
        assert_eq!((words.len(), command.after, command.remind), (2, Duration::from_secs(120), None));
        assert!(!format!("{settings:?}").contains("SEKRET"), "{settings:?}");
        assert_eq!(settings.link.expect("a link").as_str(), "https://lockhouse.example.com/page");
    }

    #[test]
    fn what_cannot_be_used_is_an_error_that_shows_no_secret() {
        let hook = |rest: &str| format!("notify = [{{ url = 'https://example.com/SEKRET', {rest} }}]");
        for (toml, words) in [
            ("notify = [{}]".to_owned(), "expected url and secret, or command"),
            (hook("after_seconds = 1"), "entry 1: expected url and secret"),
            (hook("secret = 'whsec_SEKRET'"), "secret: expected one of the placeholders"),
            (hook("secret = '${env:ABSENT}'"), "the environment variable ABSENT is not set"),
            (hook("secret = '${env:SHORT}'"), "secret: expected whsec_"),
            (hook("secret = '${env:KEY}', remind_seconds = 1"), "remind_seconds: expected at least 10"),
            (hook("secret = '${env:KEY}', command = ['/x']"), "expected url and secret, or command"),
            (
                "notify = [{ url = 'http://example.com/', secret = '${env:KEY}' }]".to_owned(),
                "expected an https URL",
            ),
            ("notify = [{ command = [] }]".to_owned(), "the absolute path of a program"),
            ("notify = [{ command = ['mail'] }]".to_owned(), "the absolute path of a program"),
            ("notify = [{ mail = 'x' }]".to_owned(), "unknown field"),
            ("link = 'http://example.com/'".to_owned(), "link of [approvals]"),
        ] {
            let error = settings(&toml).expect_err(&toml);
            assert!(error.contains(words), "{toml}: {error}");
            assert!(!error.contains("SEKRET") || words == "unknown field", "{toml}: {error}");
        }
    }
}
