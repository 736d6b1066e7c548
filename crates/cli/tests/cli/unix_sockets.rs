//! `wirelab load`, `wirelab probe` and studies with servers that listen at Unix sockets.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::time::Duration;

use serde_json::{Value, json};
use socket2::{Domain, SockAddr, Socket, Type};
use wirelab_testkit::servers::Place;
use wirelab_testkit::{Said, run};

use crate::nginx::Nginx;

#[track_caller]
fn json(said: &Said) -> Value {
    serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("not JSON ({error}):\n{}", said.out))
}

/// nginx that answers at the Unix socket `plain.sock`, and with TLS at `secure.sock`.
#[track_caller]
fn nginx(place: &Place) -> Option<Nginx> {
    let folder = place.folder().display();
    let lines = format!(
        "listen unix:{folder}/plain.sock http2;\nlisten unix:{folder}/secure.sock ssl http2;\n\
         ssl_certificate {folder}/good.pem;\nssl_certificate_key {folder}/good.key;\nssl_protocols TLSv1.3;\n\
         location / {{ return 200 \"$host\"; }}"
    );
    // HTTP/1.1 and HTTP/2 in clear text are two servers of nginx.
    let lines =
        format!("{lines}\n}}\nserver {{\nlisten unix:{folder}/h1c.sock;\nlocation / {{ return 200 \"$host\"; }}");
    Nginx::start(place, "", &lines).map(|(nginx, _)| nginx)
}

#[test]
fn nginx_answers_at_its_socket_over_every_protocol_of_streams() {
    let place = Place::new();
    let Some(_nginx) = nginx(&place) else { return };
    for (protocol, socket, url) in [
        ("h1c", "h1c.sock", "http://shop.example/"),
        ("h2c", "plain.sock", "http://shop.example/"),
        ("h1", "secure.sock", "https://localhost/"),
        ("h2", "secure.sock", "https://localhost/"),
    ] {
        let host = if url.contains("shop") { "shop.example" } else { "localhost" };
        for client in ["engine", "builtin"] {
            for more in [&["-c", "3"][..], &["--new-connections"]] {
                let base =
                    ["load", url, "-p", protocol, "--client", client, "-n", "30", "--unix-socket", socket, "--json"];
                let checks = ["--ca", "ca.pem", "--expect-text", host];
                let found = json(&run(place.folder(), &[&base[..], &checks, more].concat()).with_status(0));
                let case = format!("{protocol} {client} {more:?}: {found}");
                assert_eq!((&found["requests"], &found["errors"]), (&json!(30), &json!({})), "{case}");
                assert_eq!(
                    (&found["configured"]["unix_socket"], &found["address"]),
                    (&json!(socket), &json!(null)),
                    "{case}"
                );
                assert_eq!(found["configured"].get("congestion"), None, "{case}");
            }
        }
    }
    let args =
        ["probe", "https://localhost/", "--unix-socket", "secure.sock", "--ca", "ca.pem", "--blocks", "1", "--json"];
    let found = json(&run(place.folder(), &args).with_status(0));
    assert_eq!((&found["failed"], &found["baseline"]), (&json!({}), &json!("h1")), "{found}");
    assert_eq!(found["via"], "the Unix socket secure.sock");
    let resumed = ["--resumption", "resume", "--new-connections", "-n", "10", "--ca", "ca.pem", "--json"];
    let args = [&["load", "https://localhost/", "--unix-socket", "secure.sock"], &resumed[..]].concat();
    assert_eq!(json(&run(place.folder(), &args).with_status(0))["values"]["resumed_share"], 1.0);
}

#[test]
fn connections_wait_for_room_in_the_queue_of_the_socket() {
    let place = Place::new();
    let listener = Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
    listener.bind(&SockAddr::unix(place.path("slow.sock")).unwrap()).unwrap();
    listener.listen(1).unwrap();
    let listener = UnixListener::from(listener);
    std::thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            std::thread::sleep(Duration::from_millis(5));
            std::thread::spawn(move || {
                let mut bytes = [0; 4096];
                while client.read(&mut bytes).is_ok_and(|count| count > 0) {
                    let _ = client.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
                }
            });
        }
    });
    for client in ["engine", "builtin"] {
        let args =
            ["load", "http://a/", "--unix-socket", "slow.sock", "-c", "10", "-n", "30", "--new-connections", "--json"];
        let found = json(&run(place.folder(), &[&args[..], &["--client", client]].concat()).with_status(0));
        assert_eq!((&found["requests"], &found["errors"]), (&json!(30), &json!({})), "{client}: {found}");
    }
}

#[test]
fn sockets_that_cannot_be_used_are_refused_with_the_remedy() {
    let place = Place::new();
    fs::write(place.path("file"), "").unwrap();
    drop(UnixListener::bind(place.path("left")).unwrap());
    let url = "http://localhost/";
    let check = |args: &[&str], status: i32, words: &[&str]| {
        run(place.folder(), args).with_status(status).complains(words);
    };
    let long = "a".repeat(108);
    for (path, words) in [
        ("missing.sock", &["--unix-socket missing.sock", "Start the server first"][..]),
        ("file", &["a file of another kind"]),
        (&long, &["108 bytes", "Linux allows 107"]),
    ] {
        check(&["load", url, "--unix-socket", path], 2, words);
        check(&["probe", url, "--protocols", "h1c", "--unix-socket", path], 2, words);
    }
    check(
        &["load", "https://localhost/", "-p", "h3", "--unix-socket", "left"],
        2,
        &["HTTP/3 uses UDP", "use h1 or h2"],
    );
    check(&["load", url, "--unix-socket", "left", "--connect-to", "::1"], 2, &["cannot be used with"]);
    check(&["load", url, "--unix-socket", "left"], 1, &["the Unix socket left", "does a server listen there?"]);
}

const STUDY: &str = r#"
name = "socket"
title = "Socket"
question = "Which?"
[workload]
site = "http://localhost:PORT/"
requests = 10
[factors]
protocol = ["h1c"]
[factors.way]
tcp = {}
socket = { site_unix_socket = "h1c.sock" }
[compare]
factor = "way"
baseline = "tcp"
[blocks]
min = 1
max = 1
"#;

/// A server of the user that listens at a Unix socket.
const PYTHON: &str = r#"
import sys, http.server, socketserver
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def address_string(self): return "a client"
    def do_GET(self):
        self.send_response(200)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"ok")
    def log_message(self, *_): pass
class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
Server(sys.argv[1], Handler).serve_forever()
"#;

#[test]
fn a_program_of_the_user_listens_at_a_socket_and_is_measured() {
    let place = Place::new();
    fs::write(place.path("server.py"), PYTHON).unwrap();
    let study = STUDY
        .replace("site = \"http://localhost:PORT/\"", "server_command = ['python3', 'server.py', '{socket}']")
        .replace("[factors.way]\ntcp = {}\nsocket = { site_unix_socket = \"h1c.sock\" }\n", "")
        .replace("factor = \"way\"\nbaseline = \"tcp\"", "factor = \"protocol\"\nbaseline = \"h1c\"");
    fs::write(place.path("study.toml"), &study).unwrap();
    let run_it = |more: &[&str]| run(place.folder(), &[&["run", "study.toml", "-q"], more].concat());
    fs::write(place.path("wrong.toml"), study.replace("h1c", "h3")).unwrap();
    run(place.folder(), &["run", "wrong.toml", "-q"]).with_status(2).complains(&["{socket}", "UDP"]);
    run_it(&["--set", "no_delay=true"]).with_status(2).complains(&["`no_delay`"]);
    run_it(&["--lab", "loopback"]).with_status(0);
    for (_, trial) in wirelab_testkit::lab::trials(place.folder()) {
        assert!(trial["client"]["unix_socket"].as_str().unwrap().ends_with("server0.sock"), "{trial}");
        assert!(trial["values"]["cpu_server_per_request"].as_f64().unwrap() > 0.0, "{trial}");
    }
    let left = std::fs::read_to_string("/proc/net/unix").unwrap();
    assert!(!left.contains(place.folder().to_str().unwrap()), "{left}");
}

#[test]
fn a_study_compares_tcp_with_the_unix_socket_of_the_same_server() {
    let place = Place::new();
    let folder = place.folder().display();
    let lines = format!("listen unix:{folder}/h1c.sock;\nlocation / {{ return 200 \"ok\"; }}");
    let Some((_nginx, port)) = Nginx::start(&place, "", &lines) else { return };
    fs::write(place.path("study.toml"), STUDY.replace("PORT", &port.to_string())).unwrap();
    let args = ["run", "study.toml", "-q", "--lab", "internet"];
    run(place.folder(), &[&args[..], &["--set", "site_unix_socket=none.sock"]].concat()).with_status(2);
    let missing = STUDY.replace("h1c.sock", "none.sock");
    fs::write(place.path("missing.toml"), missing.replace("PORT", &port.to_string())).unwrap();
    let said = run(place.folder(), &["run", "missing.toml", "-q", "--lab", "internet"]).with_status(2);
    said.complains(&["none.sock", "start your server first"]);
    for client in ["builtin", "engine"] {
        run(place.folder(), &[&args[..], &["--set", &format!("client={client}")]].concat()).with_status(0);
        let trials = wirelab_testkit::lab::trials(place.folder());
        for (cell, trial) in &trials {
            let is_socket = cell["levels"]["way"] == "socket";
            assert_eq!(trial["client"].get("unix_socket").is_some(), is_socket, "{trial}");
            assert_eq!(trial["client"].get("congestion").is_some(), !is_socket, "{trial}");
            assert_eq!(trial["server"].get("unix_socket").is_some(), is_socket, "{trial}");
        }
        assert!(trials.iter().any(|(cell, _)| cell["levels"]["way"] == "socket"));
        fs::remove_dir_all(place.path("wirelab-runs")).unwrap();
    }
}
