//! `lockhouse tls-signer`: the process that has the private key of TLS. The engine's process starts it, and passes it one socket
//! for each front over its standard input. It reads the key, is sealed, and signs handshakes.

use std::ffi::OsString;
use std::io::Write;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::ExitCode;

use lockhouse_base::telemetry::log;
use lockhouse_front::http::{ServedCertificate, Signer, TlsFiles, TlsSettings, TlsVersion};
use lockhouse_sandbox::{MappedMemory, SandboxError, ServiceKind, ServiceLimits};
use serde::{Deserialize, Serialize};

use super::service_start;
use super::{UNAVAILABLE, USAGE, print_error};

/// The name of the command.
pub(super) const COMMAND: &str = "tls-signer";
/// What the signer may use.
const LIMITS: ServiceLimits = ServiceLimits { memory_bytes: 16 * 1024 * 1024, descriptors: 32 };

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The user as whom this process runs
    #[arg(long)]
    account_id: Option<u32>,
    #[arg(long)]
    certificate: PathBuf,
    #[arg(long)]
    key: PathBuf,
    /// Sign messages of TLS 1.2 too, whose form cannot be checked
    #[arg(long)]
    any_message: bool,
}

/// What the signer reports to the engine's process, as JSON on standard output.
#[derive(Serialize, Deserialize)]
pub(super) enum SignerReport {
    /// The files can be used. The process is sealed when its standard output is at its end.
    Sealed(ServedCertificate),
    /// They cannot. The text says what to change.
    Unusable(String),
}

/// Returns the options with the settings of TLS.
pub(super) fn options(tls: &TlsSettings) -> Vec<OsString> {
    let TlsFiles { certificate, key } = &tls.files;
    let files = ["--certificate".into(), certificate.into(), "--key".into(), key.into()];
    let any = (tls.minimum == TlsVersion::Tls12).then(|| "--any-message".into());
    files.into_iter().chain(any).collect()
}

/// Runs the signer until the engine has ended and no front uses it any more.
pub(super) fn tls_signer(arguments: Arguments) -> ExitCode {
    let Arguments { account_id, certificate, key, any_message } = arguments;
    log::install(log::Format::Json, "lockhouse=info,warn");
    let minimum = if any_message { TlsVersion::Tls12 } else { TlsVersion::Tls13 };
    let signer = match Signer::load(&TlsSettings { files: TlsFiles { certificate, key }, minimum }) {
        Ok(signer) => signer,
        Err(error) => {
            let _ = report(&SignerReport::Unusable(error.to_string()));
            return ExitCode::from(USAGE);
        }
    };
    signer.warm_up();
    if let Err(error) = seal(account_id) {
        return print_error(&error, UNAVAILABLE);
    }
    // Standard input stays open until the process ends.
    let control = std::io::stdin();
    let served =
        report(&SignerReport::Sealed(signer.certificate())).and_then(|()| signer.serve(control.as_fd()));
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => print_error(&error, UNAVAILABLE),
    }
}

fn seal(account: Option<u32>) -> Result<(), SandboxError> {
    let mapped = MappedMemory::of_this_process()?;
    let sandbox = service_start::prepare(ServiceKind::Signer, "lockhouse-signer", account)?;
    sandbox.restrict_files()?;
    sandbox.seal(&LIMITS, mapped).map(drop)
}

/// Writes the report and closes standard output, so that the engine's process reads its end.
fn report(report: &SignerReport) -> std::io::Result<()> {
    let mut output = std::io::stdout();
    output.write_all(&serde_json::to_vec(report)?)?;
    output.flush()?;
    nix::unistd::close(1).map_err(Into::into)
}
