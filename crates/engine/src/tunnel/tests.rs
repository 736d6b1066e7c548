//! What proxies answer, in any pieces: tunnels, refusals with their remedies, and answers of hostile ones.

use proptest::prelude::*;
use wirelab_contract::via::Credentials;

use super::*;
use crate::testing::{cases, client_spec, pieces};

const SECRET: &str = "s3cr3t";

fn spec(scheme: ProxyScheme, server: Option<&str>, has_credentials: bool) -> ClientSpec {
    let credentials = has_credentials.then(|| Credentials { user: "ann".to_owned(), password: SECRET.to_owned() });
    let server = server.map(|address| address.parse().unwrap());
    let proxy = Proxy { scheme, host: "gate".to_owned(), port: 3128, server, credentials };
    ClientSpec { via: Some(Via::Proxy(proxy)), ..client_spec("h1c") }
}

fn tunnel(scheme: ProxyScheme, has_credentials: bool) -> Tunnel {
    Tunnel::new(&Tunnels::of(&spec(scheme, None, has_credentials)).unwrap().unwrap())
}

/// Takes all output.
fn sent(tunnel: &mut Tunnel) -> Vec<u8> {
    let bytes = tunnel.output().to_vec();
    tunnel.sent(bytes.len());
    bytes
}

/// Answers in pieces of these sizes; the client sends what it has before each. Returns the unused bytes if the tunnel
/// stands.
fn answered(tunnel: &mut Tunnel, mut bytes: &[u8], sizes: &[usize]) -> Result<Option<Vec<u8>>, String> {
    for size in sizes.iter().cycle() {
        sent(tunnel);
        let (now, later) = bytes.split_at((*size).clamp(1, bytes.len()));
        let used = tunnel.receive(now).map_err(|failure| {
            assert_eq!(failure.kind, ErrorKind::Proxy);
            failure.message
        })?;
        if tunnel.is_open() {
            return Ok(Some([&now[used..], later].concat()));
        }
        assert_eq!(used, now.len());
        bytes = later;
        if bytes.is_empty() {
            return Ok(None);
        }
    }
    unreachable!("sizes repeat without end")
}

#[track_caller]
fn refused(tunnel: &mut Tunnel, bytes: &[u8], words: &[&str]) {
    let size = if bytes.len() < 1000 { 2 } else { 999 };
    let why = answered(tunnel, bytes, &[size]).unwrap_err();
    for word in ["gate:3128", "server.test:80"].iter().chain(words) {
        assert!(why.contains(word), "`{word}` in: {why}");
    }
    assert!(!why.contains(SECRET) && !format!("{tunnel:?}").contains(SECRET), "{why} {tunnel:?}");
}

#[test]
fn connect_names_the_server_and_leaves_what_follows_the_head_to_it() {
    let mut plain = tunnel(ProxyScheme::Http, false);
    assert_eq!(sent(&mut plain), b"CONNECT server.test:80 HTTP/1.1\r\nhost: server.test:80\r\n\r\n");
    let answer = b"HTTP/1.0 103 Hints\r\n\r\nHTTP/1.1 200 Connection established\r\ncontent-length: 9\r\n\r\nfirst";
    assert_eq!(answered(&mut plain, answer, &[7]), Ok(Some(b"first".to_vec())));
    assert!(plain.output().is_empty());
    let mut signed = tunnel(ProxyScheme::Http, true);
    let head = String::from_utf8(sent(&mut signed)).unwrap();
    assert!(head.contains("\r\nproxy-authorization: Basic YW5uOnMzY3IzdA==\r\n"), "{head}");
    for (server, host) in [("::1", "[::1]:80"), ("10.0.0.9", "10.0.0.9:80")] {
        let tunnels = Tunnels::of(&spec(ProxyScheme::Http, Some(server), false)).unwrap().unwrap();
        assert!(Tunnel::new(&tunnels).output().starts_with(format!("CONNECT {host} HTTP/1.1\r\n").as_bytes()));
    }
}

#[test]
fn a_refusal_of_connect_has_its_remedy() {
    let answer = |status: &str, field: &str| format!("HTTP/1.1 {status}\r\n{field}\r\nbody").into_bytes();
    let basic = "proxy-authenticate: Basic realm=\"a\"\r\n";
    for (answer, has_credentials, words) in [
        (answer("407 Proxy Authentication Required", basic), false, &["status 407", "{{env.PROXY_PASSWORD}}"][..]),
        (answer("407 Proxy Authentication Required", basic), true, &["does not accept this user"]),
        (answer("407 Proxy Authentication Required", "proxy-authenticate: NTLM\r\n"), true, &["`Basic`"]),
        (answer("403 Forbidden", ""), false, &["status 403", "443"]),
        (answer("405 Method Not Allowed", ""), false, &["does it allow CONNECT"]),
        (answer("502 Bad Gateway", ""), false, &["cannot reach the server"]),
        (answer("101 Switching Protocols", ""), false, &["status 101"]),
        (b"\x05\xff".to_vec(), false, &["socks5://"]),
        (b"SSH-2.0-OpenSSH\r\n".to_vec(), false, &["not HTTP"]),
    ] {
        refused(&mut tunnel(ProxyScheme::Http, has_credentials), &answer, words);
    }
}

#[test]
fn socks_asks_for_a_name_or_an_address_and_signs_in_if_asked() {
    let mut named = tunnel(ProxyScheme::Socks5h, false);
    assert_eq!(sent(&mut named), [5, 1, 0]);
    assert_eq!(named.receive(&[5, 0]).unwrap(), 2);
    assert_eq!(sent(&mut named), [b"\x05\x01\x00\x03\x0bserver.test".as_slice(), &[0, 80]].concat());
    let reply = [b"\x05\x00\x00\x03\x02ab\x00\x50".as_slice(), b"first"].concat();
    assert_eq!(answered(&mut named, &reply, &[3]), Ok(Some(b"first".to_vec())));

    let tunnels = Tunnels::of(&spec(ProxyScheme::Socks5, Some("10.0.0.9"), true)).unwrap().unwrap();
    let mut signed = Tunnel::new(&tunnels);
    assert_eq!(sent(&mut signed), [5, 2, 0, 2]);
    signed.receive(&[5, 2]).unwrap();
    assert_eq!(sent(&mut signed), b"\x01\x03ann\x06s3cr3t");
    signed.receive(&[1, 0]).unwrap();
    assert_eq!(sent(&mut signed), [5, 1, 0, 1, 10, 0, 0, 9, 0, 80]);
    let reply = [&[5, 0, 0, 4][..], &[0; 18]].concat();
    assert_eq!(answered(&mut signed, &reply, &[1]), Ok(Some(Vec::new())));
}

#[test]
fn a_refusal_of_socks_has_its_remedy() {
    for (answer, has_credentials, words) in [
        (&[5, 0xff][..], false, &["demands authentication", "{{env.PROXY_USER}}"][..]),
        (&[5, 0xff], true, &["neither"]),
        (&[5, 2], false, &["method 2", "not offered"]),
        (&[5, 1], true, &["method 1"]),
        (&[5, 2, 1, 1], true, &["does not accept this user", "status 1"]),
        (&[5, 2, 5, 0], true, &["byte 5, not 1"]),
        (&[5, 0, 5, 2], false, &["rules forbid", "reply 2"]),
        (&[5, 0, 5, 5], false, &["refused the connection", "reply 5", "seen from the proxy"]),
        (&[5, 0, 5, 8], false, &["looks up no names", "socks5://"]),
        (&[5, 0, 5, 99], false, &["reply 99"]),
        (&[5, 0, 5, 0, 0, 2], false, &["unknown kind 2"]),
        (&[4, 90], false, &["byte 4, not 5"]),
        (b"HTTP/1.1 400 Bad Request\r\n", false, &["http://"]),
    ] {
        refused(&mut tunnel(ProxyScheme::Socks5h, has_credentials), answer, words);
    }
}

#[test]
fn an_answer_before_its_question_and_one_without_end_are_failures() {
    let mut hasty = tunnel(ProxyScheme::Socks5h, false);
    sent(&mut hasty);
    let all_at_once = [5, 0, 5, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    assert!(hasty.receive(&all_at_once).unwrap_err().message.contains("before it was asked"));
    let endless = [b"HTTP/1.1 200 OK\r\na: ".to_vec(), vec![b'b'; 2 * LONGEST]].concat();
    refused(&mut tunnel(ProxyScheme::Http, false), &endless, &["16384 bytes"]);
    let interim = b"HTTP/1.1 102 Processing\r\n\r\n".repeat(LONGEST / 20);
    refused(&mut tunnel(ProxyScheme::Http, false), &interim, &["16384 bytes"]);
}

#[test]
fn a_proxy_that_closes_is_named_with_the_step() {
    let mut silent = tunnel(ProxyScheme::Http, false);
    assert!(silent.ended().message.contains("without an answer"));
    sent(&mut silent);
    silent.receive(b"HTTP/1.1 2").unwrap();
    assert!(silent.ended().message.contains("within its answer"));
    let mut strict = tunnel(ProxyScheme::Socks5, true);
    sent(&mut strict);
    strict.receive(&[5, 2]).unwrap();
    assert!(strict.ended().message.contains("after user and password"));
}

#[test]
fn names_and_credentials_that_do_not_fit_are_refused() {
    let refusal = |spec: &ClientSpec| Tunnels::of(spec).unwrap_err().to_string();
    let long = ClientSpec { server_name: "a".repeat(256), ..spec(ProxyScheme::Socks5h, None, false) };
    assert!(refusal(&long).contains("256 bytes"));
    let split = ClientSpec { server_name: "a\r\nb".to_owned(), ..spec(ProxyScheme::Http, None, false) };
    assert!(refusal(&split).contains("characters"));
    for (scheme, user, password, word) in [
        (ProxyScheme::Socks5, "", "x", "the user has 0 bytes"),
        (ProxyScheme::Socks5, "x", &"y".repeat(256)[..], "the password has 256 bytes"),
        (ProxyScheme::Http, "a:b", "x", "colon"),
    ] {
        let mut spec = spec(scheme, None, true);
        let Some(Via::Proxy(proxy)) = &mut spec.via else { unreachable!() };
        proxy.credentials = Some(Credentials { user: user.to_owned(), password: password.to_owned() });
        assert!(refusal(&spec).contains(word), "{}", refusal(&spec));
    }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn pieces_do_not_change_the_outcome(which in 0_usize..4, sizes in pieces(), rest in prop::collection::vec(any::<u8>(), 0..20)) {
        const ANSWERS: [(ProxyScheme, &[&[u8]]); 4] = [
            (ProxyScheme::Http, &[b"HTTP/1.1 200 OK\r\nvia: a\r\n\r\n"]),
            (ProxyScheme::Http, &[b"HTTP/1.1 102 Wait\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n"]),
            (ProxyScheme::Socks5h, &[&[5, 0], &[5, 0, 0, 1, 1, 2, 3, 4, 5, 6]]),
            (ProxyScheme::Socks5h, &[&[5, 0], &[5, 0, 0, 3, 1, 9, 0, 0]]),
        ];
        let (scheme, answers) = ANSWERS[which];
        let mut one = tunnel(scheme, false);
        let (last, first) = answers.split_last().unwrap();
        for answer in first {
            prop_assert_eq!(answered(&mut one, answer, &sizes), Ok(None));
        }
        prop_assert_eq!(answered(&mut one, &[last, &rest[..]].concat(), &sizes), Ok(Some(rest)));
    }

    #[test]
    fn no_answer_panics_or_opens_a_tunnel_by_chance(bytes in prop::collection::vec(any::<u8>(), 1..200), sizes in pieces()) {
        let scheme = if bytes.len() % 2 == 0 { ProxyScheme::Http } else { ProxyScheme::Socks5 };
        let mut one = tunnel(scheme, bytes.len() % 3 == 0);
        if let Ok(Some(_)) = answered(&mut one, &bytes, &sizes) {
            prop_assert!(bytes.starts_with(&[5]) || bytes.starts_with(b"HTTP/1."));
        }
    }
}
