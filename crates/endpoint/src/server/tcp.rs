//! Servers over TCP: accepts connections, adds TLS if the protocol has it, and starts the protocol.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Buf, BytesMut};
use rustls::ServerConfig;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use wirelab_contract::page::Priorities;
use wirelab_contract::protocol::Protocol;
use wirelab_contract::spec::ServerSpec;

use crate::http2::Windows;
use crate::metered::Metered;
use crate::payload;
use crate::raw::{HEADER, Header};
use crate::refusal::Refusal;
use crate::server::early::EarlyStream;
use crate::server::http::HttpServer;
use crate::server::{Bound, Site, Stop, http2_pages};
use crate::socket::TcpOptions;
use crate::stderr::write_line;
use crate::transport_accounts::Accounts;
use crate::{tls, wait};

/// hyper's defaults for servers, which it does not export (hyper 1, `proto/h2/server.rs`).
const DEFAULT_WINDOWS: Windows = Windows { stream: 1 << 20, connection: 1 << 20 };

/// Maximum bytes per read of a raw request.
const READ: usize = 64 * 1024;

/// Pause after a failed accept, usually because no file descriptor was left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// Reason for refusing two settings together.
const AGING_PAGES: &str =
    "`max_connection_age_ns` is set beside `page`; over HTTP/2 this server supports only one of them";

/// The protocol on a connection.
#[derive(Clone)]
enum Application {
    Raw,
    Http(HttpServer),
    /// A page over HTTP/2, with interim responses.
    Pages(Windows),
}

/// The security layer of connections.
#[derive(Clone)]
enum Security {
    None,
    Tls(TlsAcceptor),
    /// TLS that reads 0-RTT data before the handshake ends.
    EarlyTls(Arc<ServerConfig>),
}

/// Binds a server over TCP.
pub async fn bind(spec: &ServerSpec, site: Arc<Site>, stop: Stop) -> Result<Bound, Refusal> {
    if spec.page.as_ref().and_then(|page| page.priorities) == Some(Priorities::Obeyed) {
        return Err(Refusal::unsupported(match spec.protocol.is_http2() {
            true => {
                "`priorities` is `obeyed`; the library for HTTP/2, h2, sends responses in turns and ignores priorities"
            }
            false => {
                "`priorities` is `obeyed`; over HTTP/1.1 each response has a connection of its own, so there is no order"
            }
        }));
    }
    let options = TcpOptions::server(spec.protocol, &spec.transport, spec.qlog_dir.is_some())?;
    let mut configured = options.configured();
    let security = match &spec.tls {
        None => Security::None,
        Some(tls) if tls.early_data => Security::EarlyTls(tls::server(spec)?),
        Some(_) => Security::Tls(TlsAcceptor::from(tls::server(spec)?)),
    };
    let application = match spec.protocol {
        Protocol::H1c | Protocol::H1 => Application::Http(HttpServer::http1(Arc::clone(&site)).aging(spec)),
        protocol if protocol.is_http2() => {
            let windows = Windows::of(&spec.transport, DEFAULT_WINDOWS)?;
            configured.insert("stream_window".to_owned(), json!(windows.stream));
            configured.insert("connection_window".to_owned(), json!(windows.connection));
            let serve = if protocol.is_grpc() { HttpServer::grpc } else { HttpServer::http2 };
            match site.attends_to_a_page() {
                true if spec.max_connection_age_ns.is_some() => return Err(Refusal::unsupported(AGING_PAGES)),
                true => Application::Pages(windows),
                false => Application::Http(serve(Arc::clone(&site), windows).aging(spec)),
            }
        }
        _ => Application::Raw,
    };
    let address = SocketAddr::new(spec.address, spec.port);
    let listener = TcpListener::from_std(options.listening(address)?)
        .map_err(|error| Refusal::failed(format!("listening on {address}: {error}")))?;
    let port = listener
        .local_addr()
        .map_err(|error| Refusal::failed(format!("reading the bound port of {address}: {error}")))?
        .port();
    let accounts = Accounts::default();
    let run = Box::pin(accept(listener, accounts.clone(), security, application, site, stop));
    Ok(Bound { port, configured, accounts: Some(accounts), run })
}

async fn accept(
    listener: TcpListener,
    accounts: Accounts,
    security: Security,
    application: Application,
    site: Arc<Site>,
    mut stop: Stop,
) {
    let accepting = async {
        loop {
            match listener.accept().await {
                Ok((connection, _)) => {
                    let connection = Metered::new(&accounts, connection);
                    tokio::spawn(serve(connection, security.clone(), application.clone(), Arc::clone(&site)));
                }
                Err(error) => {
                    write_line(format_args!("accepting a connection: {error}"));
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    };
    tokio::select! {
        () = stop.asked() => {}
        () = accepting => {}
    }
}

/// Serves one connection. Ignores errors, which the client detects and counts.
async fn serve(connection: Metered, security: Security, application: Application, site: Arc<Site>) {
    match security {
        Security::None => run_application(connection, application, site).await,
        Security::Tls(acceptor) => {
            if let Ok(stream) = acceptor.accept(connection).await {
                run_application(stream, application, site).await;
            }
        }
        Security::EarlyTls(config) => {
            if let Ok(stream) = EarlyStream::new(connection, config) {
                run_application(stream, application, site).await;
            }
        }
    }
}

async fn run_application<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    application: Application,
    site: Arc<Site>,
) {
    match application {
        Application::Raw => {
            let _ = raw(stream, &site).await;
        }
        Application::Http(server) => server.serve(stream).await,
        Application::Pages(windows) => http2_pages::serve(stream, site, windows).await,
    }
}

/// Answers raw requests in sequence until the client closes.
async fn raw<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S, site: &Site) -> io::Result<()> {
    let mut buffer = BytesMut::with_capacity(READ);
    loop {
        while buffer.len() < HEADER {
            if fill(&mut stream, &mut buffer).await? == 0 {
                return stream.shutdown().await;
            }
        }
        let arrival = Instant::now();
        let mut bytes = [0; HEADER];
        buffer.copy_to_slice(&mut bytes);
        let header = Header::decode(&bytes);
        let mut body = header.body;
        while body > 0 {
            if buffer.is_empty() && fill(&mut stream, &mut buffer).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let here = body.min(buffer.len() as u64);
            buffer.advance(here as usize);
            body -= here;
        }
        if header.delay_us > 0 {
            if !site.offers_delay() {
                return Ok(());
            }
            wait::until(arrival + Duration::from_micros(header.delay_us)).await;
        }
        site.work();
        let mut sent = 0;
        while sent < header.wanted {
            let piece = payload::piece_slice(sent, header.wanted - sent);
            stream.write_all(piece).await?;
            sent += piece.len() as u64;
        }
        stream.flush().await?;
        site.count();
    }
}

async fn fill<S: AsyncRead + Unpin>(stream: &mut S, buffer: &mut BytesMut) -> io::Result<usize> {
    if buffer.capacity() - buffer.len() < HEADER {
        // Only an incomplete header is left in the buffer here, so this moves a few bytes.
        buffer.reserve(READ);
    }
    stream.read_buf(buffer).await
}
