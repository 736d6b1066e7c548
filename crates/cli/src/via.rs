//! The way to a server that `--unix-socket` and `--proxy` set.

use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use wirelab_model::proxy::ProxyUrl;
use wirelab_model::via::{Proxy, ProxyScheme, Via, unfit_for_socket};

use crate::failure::{Failure, Result};
use crate::target::look_up;

/// The address that connections go to, and the way. The address of a Unix socket stands for none.
pub type Way = (IpAddr, Via);

/// The way by a Unix socket, which must exist.
pub fn unix_socket(path: &Path) -> Result<Way> {
    if let Some(why) = unfit_for_socket(path) {
        return Err(Failure::input(format!("--unix-socket is {why}")));
    }
    let shown = path.display();
    let file = std::fs::metadata(path).map_err(|error| {
        Failure::input(format!("--unix-socket {shown}: {error}. Start the server first, or give its path"))
    })?;
    if !file.file_type().is_socket() {
        return Err(Failure::input(format!(
            "--unix-socket {shown} is a file of another kind. Give the path of the socket at which the server listens"
        )));
    }
    Ok((Ipv4Addr::LOCALHOST.into(), Via::UnixSocket(path.to_owned())))
}

/// The way through a proxy to a host. `given` is the address that other options set for the host.
pub fn proxy(url: &str, (host, port): (&str, u16), given: Option<IpAddr>) -> Result<Way> {
    let url: ProxyUrl = url.parse().map_err(|error| Failure::input(format!("--proxy: {error}")))?;
    let credentials = wirelab_run::requests::credentials(&url)
        .map_err(|error| Failure::input(format!("--proxy {}: {error}", url.shown())))?;
    let address = match url.host.parse() {
        Ok(address) => address,
        Err(_) => look_up(&url.host, url.port, "write its address in --proxy")?,
    };
    let server = match (given, url.scheme) {
        (None, ProxyScheme::Socks5) if host.parse::<IpAddr>().is_err() => {
            Some(look_up(host, port, "socks5h:// has the proxy look it up")?)
        }
        (given, _) => given,
    };
    Ok((address, Via::Proxy(Proxy { scheme: url.scheme, host: url.host, port: url.port, server, credentials })))
}
