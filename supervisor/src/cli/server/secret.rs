//! `lockhouse server secret`: gives a secret of a server to the engine of the system for a person.

use std::process::ExitCode;

use lockhouse_config::SystemEngine;
use lockhouse_link::OperatorError;
use lockhouse_messages::{InvalidSecret, OperatorRequest, OperatorResponse, SecretName, SecretValue};
use nix::unistd::Uid;

use super::typed_value;
use crate::cli::control_client::{engine_id, request_one};
use crate::cli::terminal::{sanitize, sanitize_lines};
use crate::cli::{UNAVAILABLE, USAGE};

/// Options of `lockhouse server secret`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Arguments {
    /// The name of the secret: that of its file in the folder `secrets` of the engine's configuration
    #[arg(value_parser = parse_name)]
    name: SecretName,
    /// The person whom the engine serves
    #[arg(long, value_name = "UID")]
    person: u32,
}

fn parse_name(name: &str) -> Result<SecretName, InvalidSecret> {
    SecretName::try_from(name.to_owned())
}

/// Reads a secret from standard input, and sets it.
pub(super) async fn secret(arguments: Arguments) -> ExitCode {
    let Arguments { name, person } = arguments;
    let value = typed_value::read(name.as_str())
        .and_then(|value| SecretValue::try_from(value).map_err(std::io::Error::other));
    let value = match value {
        Ok(value) => value,
        Err(error) => {
            eprintln!("lockhouse: no secret on standard input: {error}");
            return ExitCode::from(USAGE);
        }
    };
    let engine = SystemEngine::of_person(Uid::from_raw(person));
    let request = OperatorRequest::SetSecret { name: name.clone(), value };
    match request_one(engine_id(engine), &request).await {
        Ok(OperatorResponse::Reloaded(report)) => match report.error {
            None => {
                println!(
                    "set {}; the configuration is in force (generation {})",
                    name.as_str(),
                    report.generation
                );
                ExitCode::SUCCESS
            }
            Some(error) => {
                eprintln!(
                    "lockhouse: set {}, but the configuration is not valid: {}",
                    name.as_str(),
                    sanitize_lines(&error)
                );
                ExitCode::from(UNAVAILABLE)
            }
        },
        Ok(OperatorResponse::Refused { reason }) => {
            eprintln!("lockhouse: {}", sanitize(&reason));
            ExitCode::from(USAGE)
        }
        Err(OperatorError::Refused(_)) => {
            eprintln!(
                "lockhouse: only root sets secrets of the engine of the system: sudo lockhouse server secret {} --person {person}",
                name.as_str()
            );
            ExitCode::from(USAGE)
        }
        Ok(_) | Err(OperatorError::OtherVersion | OperatorError::NoAnswer) => {
            eprintln!("lockhouse: no engine of user {person} answers this request");
            ExitCode::from(UNAVAILABLE)
        }
    }
}
