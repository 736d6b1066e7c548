//! The case of a page's server: content types by file name extension, and lengths.
//!
//! Clients of trials ignore response fields, so the case reads them itself, over HTTP/1.1: the type of a file does not
//! depend on the protocol. Over other protocols the files must exist.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use wirelab_lab::Role;
use wirelab_model::page::CONTENT_TYPES;
use wirelab_model::pattern;
use wirelab_model::protocol::Protocol;
use wirelab_model::spec::Feature;

use crate::case::Case;
use crate::cases::exchange::{answers, sentence};
use crate::finding::{Finding, Stop, demand};
use crate::material::{Material, PAGE_FILE, SERVER_NAME};
use crate::pair::{LOCALHOST, Pair};
use crate::stage::Stage;

/// Time limit of an answer.
const STEP_LIMIT: Duration = Duration::from_secs(10);

/// The case of a server with a protocol.
pub fn case(protocol: Protocol) -> Case {
    let tried = move |stage: &Stage| match protocol {
        Protocol::H1c | Protocol::H1 => types(stage, protocol),
        _ => CONTENT_TYPES.iter().try_for_each(|(ending, _)| {
            let path = format!("/page.{ending}");
            answers(stage, protocol, (Feature::Pages, &path), 200)
        }),
    };
    Case::new(Role::Server, protocol, sentence(Feature::Pages), tried).about(Feature::Pages)
}

fn types(stage: &Stage, protocol: Protocol) -> Finding {
    let pair = Pair::new(stage, Role::Server, protocol, Feature::Pages, 0);
    let server = pair.serve(stage)?;
    for (ending, kind) in CONTENT_TYPES {
        let path = format!("/page.{ending}");
        let asked = ask(&stage.material, protocol, server.port, &path);
        let answer = asked.map_err(|error| Stop::broken(format!("expected an answer to GET {path}; {error}")))?;
        judge(&answer, kind).map_err(|stop| Stop::broken(format!("GET {path}: {stop}")))?;
    }
    server.stop(true)?;
    Ok(())
}

/// Sends a request on a connection of its own, and reads until the server closes it.
fn ask(material: &Material, protocol: Protocol, port: u16, path: &str) -> io::Result<Vec<u8>> {
    let mut tcp = TcpStream::connect((LOCALHOST, port))?;
    tcp.set_read_timeout(Some(STEP_LIMIT))?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: {SERVER_NAME}:{port}\r\nconnection: close\r\n\r\n");
    match protocol.is_secure() {
        true => exchange(&mut StreamOwned::new(secure(material)?, tcp), &request),
        false => exchange(&mut tcp, &request),
    }
}

fn secure(material: &Material) -> io::Result<ClientConnection> {
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_file(&material.authority).map_err(io::Error::other)?)
        .map_err(io::Error::other)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(io::Error::other)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let name = ServerName::try_from(SERVER_NAME).map_err(io::Error::other)?;
    ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)
}

fn exchange(stream: &mut (impl Read + Write), request: &str) -> io::Result<Vec<u8>> {
    stream.write_all(request.as_bytes())?;
    stream.flush()?;
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        // Not every server sends a TLS close_notify; the length of the body is checked instead.
        Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => Err(error),
        _ => Ok(answer),
    }
}

/// Demands status, content type, length and body.
fn judge(answer: &[u8], kind: &str) -> Finding {
    let end =
        answer.windows(4).position(|four| four == b"\r\n\r\n").ok_or_else(|| Stop::broken("expected a whole head"))?;
    let head = String::from_utf8_lossy(&answer[..end]).into_owned();
    let (status, fields) = head.split_once("\r\n").unwrap_or((&head, ""));
    let field = |name: &str| {
        let mut fields = fields.lines().filter_map(|line| line.split_once(':'));
        fields.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    };
    let is = |what: &str, found: Option<&str>, wanted: &str| {
        demand(found == Some(wanted), || format!("expected {what} {wanted}; it is {}", found.unwrap_or("absent")))
    };
    is("status", status.split(' ').nth(1), "200")?;
    // Parameters may follow, as `; charset=utf-8` does.
    let found = field("content-type").and_then(|value| value.split(';').next()).map(str::trim);
    is("content-type", found, kind)?;
    is("content-length", field("content-length"), &PAGE_FILE.to_string())?;
    demand(answer[end + 4..] == pattern::body(PAGE_FILE), || "the body is not that of the file".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(head: &str) -> Vec<u8> {
        [head.as_bytes(), b"\r\n\r\n", &pattern::body(PAGE_FILE)].concat()
    }

    #[test]
    fn content_types_may_have_parameters_and_must_be_right() {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/css; charset=utf-8\r\ncontent-length: 500";
        assert_eq!(judge(&answer(head), "text/css"), Ok(()));
        for (changed, words) in [
            (head.replace("text/css", "text/plain"), "expected content-type text/css; it is text/plain"),
            (head.replace("Content-Type", "x"), "it is absent"),
            (head.replace("content-length", "x"), "expected content-length 500"),
            (head.replace("200 OK", "404 Not Found"), "expected status 200; it is 404"),
        ] {
            let message = judge(&answer(&changed), "text/css").unwrap_err().to_string();
            assert!(message.contains(words), "{message}");
        }
        assert!(judge(&answer(head)[..300], "text/css").is_err());
        assert!(judge(b"HTTP/1.1 200 OK", "text/css").is_err());
    }
}
