//! A server on this machine for Firefox' first page load: plain HTTP, a page of two bytes.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Read and write time-out of a connection.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The maximum size of a request in bytes.
const LARGEST: usize = 16 * 1024;

const PAGE: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok";

/// A server on a thread of its own, until it is dropped.
#[derive(Debug)]
pub struct Elsewhere {
    address: SocketAddr,
    closing: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Elsewhere {
    /// Listens at a free port of 127.0.0.1.
    pub fn open() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let closing = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&closing);
        let serve = move || {
            for visitor in listener.incoming() {
                if asked.load(Ordering::SeqCst) {
                    return;
                }
                // Errors of one connection do not matter.
                let _ = visitor.and_then(answer);
            }
        };
        Ok(Self { address, closing, thread: Some(std::thread::spawn(serve)) })
    }

    /// The address of its page.
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        self.closing.store(true, Ordering::SeqCst);
        // A last connection wakes the thread.
        if TcpStream::connect(self.address).is_ok()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
    }
}

fn answer(mut visitor: TcpStream) -> io::Result<()> {
    visitor.set_read_timeout(Some(TIMEOUT))?;
    visitor.set_write_timeout(Some(TIMEOUT))?;
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") && request.len() < LARGEST {
        let mut piece = [0; 1024];
        match visitor.read(&mut piece)? {
            0 => return Ok(()),
            count => request.extend(&piece[..count]),
        }
    }
    visitor.write_all(PAGE.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_answers_until_it_is_closed() {
        let elsewhere = Elsewhere::open().unwrap();
        let address = elsewhere.address;
        for _ in 0..2 {
            let mut visitor = TcpStream::connect(address).unwrap();
            visitor.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
            let mut answer = String::new();
            visitor.read_to_string(&mut answer).unwrap();
            assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("\r\n\r\nok"), "{answer}");
        }
        drop(elsewhere);
        assert!(TcpStream::connect(address).is_err());
    }
}
