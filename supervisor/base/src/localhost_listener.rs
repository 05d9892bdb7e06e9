//! A TCP listener at the name `localhost`, for browsers of this host.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr};

use tokio::net::{TcpListener, TcpStream};

/// How often another free port is tried if a port is free at one of the two loopback addresses only.
const PORTS_TRIED_MAX: u32 = 16;

/// Listens on one port of both loopback addresses, 127.0.0.1 and ::1. Browsers resolve `localhost` to either: if only
/// one were in use, another user of this host could listen on the other, and would receive requests for this process.
#[derive(Debug)]
pub struct LocalhostListener {
    v4: TcpListener,
    /// `None` if the host has no IPv6.
    v6: Option<TcpListener>,
    port: u16,
}

impl LocalhostListener {
    /// Listens on this port, or on any free port if it is 0.
    ///
    /// # Errors
    /// If the port is in use at one of the addresses.
    pub async fn bind(port: u16) -> io::Result<Self> {
        let mut tries = if port == 0 { PORTS_TRIED_MAX } else { 1 };
        loop {
            tries -= 1;
            match Self::bind_both(port).await {
                Err(error) if error.kind() == ErrorKind::AddrInUse && tries > 0 => {}
                bound => return bound,
            }
        }
    }

    async fn bind_both(port: u16) -> io::Result<Self> {
        let v4 = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let port = v4.local_addr()?.port();
        let v6 = match TcpListener::bind((Ipv6Addr::LOCALHOST, port)).await {
            Ok(listener) => Some(listener),
            Err(error) if has_no_ipv6(&error) => None,
            Err(error) => return Err(error),
        };
        Ok(Self { v4, v6, port })
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Waits for the next connection. Cancel-safe.
    ///
    /// # Errors
    /// If no connection can be accepted, for example because too many files are open.
    pub async fn accept(&self) -> io::Result<TcpStream> {
        let v6 = async {
            match &self.v6 {
                Some(listener) => listener.accept().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            accepted = self.v4.accept() => accepted,
            accepted = v6 => accepted,
        }
        .map(|(stream, _)| stream)
    }
}

/// Whether the host has no IPv6, or no address ::1.
fn has_no_ipv6(error: &io::Error) -> bool {
    error.kind() == ErrorKind::AddrNotAvailable || error.raw_os_error() == Some(libc::EAFNOSUPPORT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_port_that_is_in_use_at_one_address_is_not_used() {
        let listener = LocalhostListener::bind(0).await.expect("a free port");
        for address in [Ipv4Addr::LOCALHOST.into(), std::net::IpAddr::from(Ipv6Addr::LOCALHOST)] {
            if address.is_ipv6() && listener.v6.is_none() {
                continue;
            }
            let (connected, accepted) =
                tokio::join!(TcpStream::connect((address, listener.port())), listener.accept());
            let accepted = accepted.expect("a connection").peer_addr().expect("an address");
            assert_eq!(accepted, connected.expect("a connection").local_addr().expect("an address"));
        }
        let second = LocalhostListener::bind(listener.port()).await;
        assert_eq!(second.expect_err("in use").kind(), ErrorKind::AddrInUse);
        drop(listener);
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(other) = TcpListener::bind(address).await else { continue };
            let port = other.local_addr().expect("an address").port();
            let error = LocalhostListener::bind(port).await.expect_err("in use at one address");
            assert_eq!(error.kind(), ErrorKind::AddrInUse, "{address}");
        }
    }
}
