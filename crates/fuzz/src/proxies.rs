//! What proxies answer before a tunnel stands: CONNECT and SOCKS 5.

use std::rc::Rc;

use serde_json::json;
use wirelab_contract::error_kind::ErrorKind;
use wirelab_engine::tunnel::{Tunnel, Tunnels};

use crate::Target;
use crate::bytes::{part, pieces, with_part};
use crate::machine::spec;

pub const TARGETS: &[Target] = &[
    Target { name: "connect", seeds: connect_seeds, read: connect },
    Target { name: "socks5", seeds: socks5_seeds, read: socks5 },
];

const SECRET: &str = "s3cr3t";

fn tunnels(scheme: &str, server: Option<&str>, signs_in: bool) -> Rc<Tunnels> {
    let credentials = signs_in.then(|| json!({"user": "ann", "password": SECRET}));
    let mut proxy = json!({"scheme": scheme, "host": "gate", "port": 3128});
    for (name, value) in [("server", server.map(|server| json!(server))), ("credentials", credentials)] {
        if let Some(value) = value {
            proxy[name] = value;
        }
    }
    let tunnels = Tunnels::of(&spec("h1c", &json!({"via": {"proxy": proxy}})));
    tunnels.expect("the proxy can be asked").expect("there is a proxy")
}

/// Answers a tunnel in pieces. Returns the number of bytes before those of the server, or the failure.
fn answered(all: &Rc<Tunnels>, bytes: &[u8], sizes: &[u8]) -> Result<Option<usize>, String> {
    let (mut tunnel, mut taken) = (Tunnel::new(all), 0);
    for piece in pieces(bytes, sizes) {
        tunnel.sent(tunnel.output().len());
        let used = tunnel.receive(piece).map_err(|failure| {
            assert_eq!(failure.kind, ErrorKind::Proxy);
            assert!(!failure.message.contains(SECRET), "the message has the password");
            failure.message
        })?;
        assert!(used <= piece.len(), "more bytes were used than came");
        taken += used;
        if tunnel.is_open() {
            assert!(tunnel.output().is_empty());
            return Ok(Some(taken));
        }
        assert_eq!(used, piece.len(), "the rest of a piece is lost");
    }
    let _ = (tunnel.ended(), tunnel.awaits());
    Ok(None)
}

fn connect_seeds() -> Vec<Vec<u8>> {
    let answers: [&[u8]; 3] = [
        b"HTTP/1.0 103 Hints\r\n\r\nHTTP/1.1 200 Connection established\r\ncontent-length: 9\r\n\r\nfirst",
        b"HTTP/1.1 407 Proxy Authentication Required\r\nproxy-authenticate: NTLM\r\n\r\n",
        b"\x05\xff",
    ];
    answers.map(|answer| with_part(&[0, 7], answer)).to_vec()
}

/// The tunnel stands after the same byte, wherever pieces end.
fn connect(input: &[u8]) {
    thread_local!(static ALL: [Rc<Tunnels>; 2] = [false, true].map(|signs_in| tunnels("http", None, signs_in)));
    let Some((steps, bytes)) = part(input) else { return };
    let Some((first, sizes)) = steps.split_first() else { return };
    let all = ALL.with(|all| Rc::clone(&all[usize::from(first & 1)]));
    assert_eq!(
        answered(&all, bytes, &[0]).map_err(drop),
        answered(&all, bytes, sizes).map_err(drop),
        "the result depends on the pieces of the input"
    );
}

fn socks5_seeds() -> Vec<Vec<u8>> {
    let name = [&[5, 0, 5, 0, 0, 3, 2][..], b"ab", &[0, 80], b"first"].concat();
    let signed = [5, 2, 1, 0, 5, 0, 0, 1, 10, 0, 0, 9, 0, 80];
    let refused = [5, 0, 5, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 80];
    vec![with_part(&[0, 2, 11], &name), with_part(&[1, 2, 2, 10], &signed), with_part(&[2, 2, 22], &refused)]
}

fn socks5(input: &[u8]) {
    thread_local!(static ALL: [Rc<Tunnels>; 3] = [
        tunnels("socks5h", None, false),
        tunnels("socks5", Some("10.0.0.9"), true),
        tunnels("socks5", Some("::1"), false),
    ]);
    let Some((steps, bytes)) = part(input) else { return };
    let Some((first, sizes)) = steps.split_first() else { return };
    let all = ALL.with(|all| Rc::clone(&all[usize::from(*first) % all.len()]));
    let _ = answered(&all, bytes, sizes);
}
