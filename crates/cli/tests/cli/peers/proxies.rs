//! Each `[[proxy]]` of `tests/peers/proxies.toml` is a proxy that opens tunnels in an unusual way, or none. Both
//! clients of `wirelab load` meet it, and `wirelab probe`.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use serde::Deserialize;
use socket2::SockRef;
use wirelab_model::protocol::Protocol;
use wirelab_testkit::proxies::pass;
use wirelab_testkit::servers::{Builtin, Place, serve};
use wirelab_testkit::{Said, said};

use super::script::{End, PACE, parsed, unescape};
use super::{CLIENTS, limited};

/// The limit of an attempt to connect, where a proxy makes use of it.
const SHORT: &str = "400ms";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    proxy: Vec<Proxy>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Proxy {
    name: String,
    rule: String,
    scheme: String,
    /// What it says after each message of the client.
    answers: Vec<String>,
    /// What it then repeats until the client is gone.
    #[serde(default)]
    endless: Option<String>,
    /// Whether it waits long between the repetitions.
    #[serde(default)]
    drips: bool,
    /// The largest number of bytes that it writes at once.
    #[serde(default)]
    pieces: Option<usize>,
    #[serde(default)]
    end: End,
    /// Whether it then passes bytes on to a server, so that requests succeed.
    #[serde(default)]
    passes: bool,
    /// Words of the failure.
    #[serde(default)]
    says: Vec<String>,
}

#[test]
fn proxies_pass_requests_on_or_are_named_with_the_cause() {
    let File { proxy: proxies } = parsed("proxies.toml");
    let place = Place::new();
    let server = Builtin::start(&place, serve(Protocol::H1));
    let count = proxies.len();
    let mut wrong = Vec::new();
    for proxy in proxies.into_iter().map(Arc::new) {
        let port = start(Arc::clone(&proxy), server.port);
        let gate = format!("{}://localhost:{port}", proxy.scheme);
        for client in CLIENTS {
            let args = ["load", "-n", "2", "--new-connections", "--json", "--client", client, "-p", "h1"];
            wrong.extend(fault(&proxy, client, &meet(&place, &proxy, &args, server.port, &gate)));
        }
        let args = ["probe", "--blocks", "1", "--requests", "2", "--protocols", "h1"];
        wrong.extend(fault(&proxy, "probe", &meet(&place, &proxy, &args, server.port, &gate)));
    }
    assert!(wrong.is_empty(), "{} faults with {count} proxies:\n{}", wrong.len(), wrong.join("\n"));
}

fn meet(place: &Place, proxy: &Proxy, args: &[&str], server: u16, gate: &str) -> Said {
    let limit = if proxy.says.iter().any(|words| words.contains(SHORT)) { SHORT } else { "60s" };
    let mut command = limited(place.folder());
    command.args(args).arg(format!("https://localhost:{server}/bytes/10")).args(["--proxy", gate, "--ca", "ca.pem"]);
    if args[0] == "load" {
        command.args(["--connect-timeout", limit]);
    } else {
        command.args(["--timeout", limit]);
    }
    said(command.output().unwrap())
}

/// The deviation from the script.
fn fault(proxy: &Proxy, who: &str, said: &Said) -> Option<String> {
    let all = format!("{}{}", said.err, said.out);
    let is_right = match proxy.passes {
        true => said.status == 0,
        false => said.status == 1 && proxy.says.iter().all(|words| all.contains(words)),
    };
    let Proxy { name, rule, says, .. } = proxy;
    (!is_right).then(|| format!("{name} ({rule}), {who}: status {}, {says:?} expected in: {all}", said.status))
}

/// Starts a proxy in front of a server, on threads that end with the test's process.
fn start(proxy: Arc<Proxy>, server: u16) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let proxy = Arc::clone(&proxy);
            // A client that goes away is no failure of the proxy.
            thread::spawn(move || drop(attend(&proxy, client, server)));
        }
    });
    port
}

fn attend(proxy: &Proxy, mut client: TcpStream, server: u16) -> io::Result<()> {
    client.set_nodelay(true)?;
    let mut message = [0; 4096];
    for answer in &proxy.answers {
        if client.read(&mut message)? == 0 {
            return Ok(());
        }
        write(proxy, &unescape(answer), &mut client)?;
    }
    if proxy.answers.is_empty() {
        let _ = client.read(&mut message)?;
    }
    if let Some(endless) = &proxy.endless {
        let endless = unescape(endless);
        loop {
            write(proxy, &endless, &mut client)?;
            if proxy.drips {
                thread::sleep(Duration::from_millis(50));
            }
        }
    }
    if proxy.passes {
        let onward = TcpStream::connect(("127.0.0.1", server))?;
        let (from, to) = (client.try_clone()?, onward.try_clone()?);
        thread::spawn(move || pass(from, to));
        pass(onward, client);
        return Ok(());
    }
    match proxy.end {
        End::Reset => return SockRef::from(&client).set_linger(Some(Duration::ZERO)),
        End::Close | End::Cut => client.shutdown(Shutdown::Write)?,
        End::Keep => {}
    }
    io::copy(&mut client, &mut io::sink()).map(drop)
}

fn write(proxy: &Proxy, bytes: &[u8], client: &mut TcpStream) -> io::Result<()> {
    for piece in bytes.chunks(proxy.pieces.unwrap_or(usize::MAX)) {
        client.write_all(piece)?;
        if proxy.pieces.is_some() {
            thread::sleep(PACE);
        }
    }
    Ok(())
}
