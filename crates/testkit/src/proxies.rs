//! Proxies of tests: real ones, and one on threads of the test whose conduct is chosen.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::servers::closed_port;
use crate::{Running, Skip, eventually, skip};

/// A real proxy in a process of its own.
pub struct RealProxy {
    _running: Running,
    /// The port at 127.0.0.1.
    pub port: u16,
}

impl RealProxy {
    /// tinyproxy, which opens tunnels by CONNECT, with these lines in its configuration; `None` if it is not installed.
    #[track_caller]
    pub fn tinyproxy(folder: &Path, lines: &str) -> Option<Self> {
        let program = installed("tinyproxy", "tinyproxy-bin")?;
        let (port, file) = (closed_port(), folder.join("tinyproxy.conf"));
        fs::write(
            &file,
            format!("Port {port}\nListen 127.0.0.1\nMaxClients 100\nTimeout 60\nLogLevel Error\n{lines}\n"),
        )
        .unwrap();
        Some(Self::start(Command::new(program).arg("-d").arg("-c").arg(file), port))
    }

    /// microsocks, which speaks SOCKS 5, with these arguments; `None` if it is not installed.
    #[track_caller]
    pub fn microsocks(arguments: &[&str]) -> Option<Self> {
        let (program, port) = (installed("microsocks", "microsocks")?, closed_port());
        let mut command = Command::new(program);
        Some(Self::start(command.args(["-i", "127.0.0.1", "-p", &port.to_string()]).args(arguments), port))
    }

    #[track_caller]
    fn start(command: &mut Command, port: u16) -> Self {
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let running = Running(child);
        eventually("the proxy listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        Self { _running: running, port }
    }
}

#[track_caller]
fn installed(program: &str, package: &str) -> Option<PathBuf> {
    let found =
        ["/usr/bin", "/usr/sbin"].iter().map(|folder| Path::new(folder).join(program)).find(|path| path.exists());
    if found.is_none() {
        let remedy = format!("apt-get install {package}");
        skip(Skip::MissingProgram { program: program.to_owned(), remedy });
    }
    found
}

/// What a scripted proxy does with a connection.
#[derive(Debug, Clone, Copy)]
pub enum Manner {
    /// Opens the tunnel that CONNECT asks for.
    Connect,
    /// Answers the messages of the client with these bytes in turn, and then is silent.
    Answers(&'static [&'static [u8]]),
    /// Closes the connection after the first message.
    Close,
}

/// A proxy on threads of the test, which end with its process.
pub struct ScriptedProxy {
    /// The port at 127.0.0.1.
    pub port: u16,
    heads: Arc<Mutex<Vec<String>>>,
}

impl ScriptedProxy {
    /// A proxy with a manner for each connection in turn; the last one is that of all others.
    pub fn start(manners: &'static [Manner]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let heads = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&heads);
        thread::spawn(move || {
            let turns = manners.iter().chain(std::iter::repeat(manners.last().unwrap()));
            for (client, manner) in listener.incoming().flatten().zip(turns) {
                let heard = Arc::clone(&heard);
                // A client that goes away is no failure of the proxy.
                thread::spawn(move || drop(attend(client, *manner, &heard)));
            }
        });
        Self { port, heads }
    }

    /// The heads of the tunnels that it opened.
    pub fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

fn attend(mut client: TcpStream, manner: Manner, heard: &Mutex<Vec<String>>) -> io::Result<()> {
    let mut bytes = [0; 4096];
    match manner {
        Manner::Close => client.read(&mut bytes).map(drop),
        Manner::Answers(answers) => {
            for answer in answers {
                if client.read(&mut bytes)? == 0 {
                    return Ok(());
                }
                client.write_all(answer)?;
            }
            // Until the client closes the connection.
            while client.read(&mut bytes)? > 0 {}
            Ok(())
        }
        Manner::Connect => {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let count = client.read(&mut bytes[..1])?;
                if count == 0 {
                    return Ok(());
                }
                head.push(bytes[0]);
            }
            let head = String::from_utf8_lossy(&head).into_owned();
            let place = head.split(' ').nth(1).unwrap_or_default().to_owned();
            heard.lock().unwrap().push(head);
            let server = TcpStream::connect(place)?;
            client.write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;
            let (from, to) = (client.try_clone()?, server.try_clone()?);
            let up = thread::spawn(move || pass(from, to));
            pass(server, client);
            let _ = up.join();
            Ok(())
        }
    }
}

/// Passes all bytes on in one direction, and then its end.
pub fn pass(mut from: TcpStream, mut to: TcpStream) {
    let _ = io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Write);
}
