//! TLS 1.3 of the hostile servers, by rustls: the handshake is correct, the data after it is not.

use std::io::{self, Write};
use std::net::TcpStream;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::Stream;
use crate::material::Material;

/// The configuration that all connections of a server share.
pub type Config = Arc<ServerConfig>;

/// Creates the configuration, with or without an ALPN identifier.
pub fn config(material: &Material, alpn: Option<&str>) -> Result<Config, Box<dyn std::error::Error + Send + Sync>> {
    let chain: Vec<_> = CertificateDer::pem_file_iter(&material.certificate)?.collect::<Result<_, _>>()?;
    let key = PrivateKeyDer::from_pem_file(&material.key)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = alpn.map(|name| name.as_bytes().to_vec()).into_iter().collect();
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}

/// Accepts a connection; the handshake happens with the first read.
pub fn accept(config: Config, tcp: TcpStream) -> io::Result<StreamOwned<ServerConnection, TcpStream>> {
    let connection = ServerConnection::new(config).map_err(io::Error::other)?;
    Ok(StreamOwned::new(connection, tcp))
}

impl Stream for StreamOwned<ServerConnection, TcpStream> {
    fn close(&mut self) -> io::Result<()> {
        self.conn.send_close_notify();
        self.flush()?;
        self.sock.shutdown(std::net::Shutdown::Write)
    }
}
