//! The null server alone, for measurements of it: `/bytes/N` has N bytes, one thread, until standard input ends.
//!
//!     null PROTOCOL PORT

use std::io::{self, Read};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::Arc;

use wirelab_contract::protocol::Protocol;
use wirelab_contract::spec::Transport;
use wirelab_engine::accounts::Accounts;
use wirelab_engine::http2::windows::Windows;
use wirelab_engine::null::{Answer, Body, Content, NullServer, Speaks};
use wirelab_engine::payload::Payload;
use wirelab_engine::socket::TcpOptions;

struct Bytes;

impl Content for Bytes {
    fn answer(&self, _: &str, path: &str) -> Answer {
        match path.strip_prefix("/bytes/").and_then(|size| size.parse().ok()) {
            Some(size) => Answer { body: Body::Known(Payload::Pattern(size)), ..Answer::empty(200) },
            None => Answer::empty(404),
        }
    }

    fn count(&self) {}
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let result = match &words[..] {
        [protocol, port] => run(protocol, port),
        _ => Err("usage: null PROTOCOL PORT".to_owned()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

fn run(protocol: &str, port: &str) -> Result<(), String> {
    let (protocol, speaks) = match protocol {
        "h1c" => (Protocol::H1c, Speaks::Http1),
        "h2c" => (Protocol::H2c, Speaks::Http2(Windows { stream: 1 << 20, connection: 1 << 20 })),
        other => return Err(format!("the null server has no `{other}` without a certificate")),
    };
    let port = port.parse().map_err(|error| format!("the port {port}: {error}"))?;
    let options = TcpOptions::server(protocol, &Transport::default(), false).map_err(|why| why.to_string())?;
    let listener = options.listening(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).map_err(|why| why.to_string())?;
    let server = NullServer::start(listener, None, (speaks, Arc::new(Bytes)), Accounts::default(), 1)
        .map_err(|error| format!("starting the server: {error}"))?;
    let _ = io::stdin().read_to_end(&mut Vec::new());
    drop(server);
    Ok(())
}
