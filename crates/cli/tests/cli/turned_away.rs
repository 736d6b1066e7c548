//! Requests that a server turns away in an orderly way are sent again by every client, and are no failures.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};

use serde_json::{Value, json};
use wirelab_testkit::servers::Place;
use wirelab_testkit::{Said, run};

use crate::nginx::Nginx;

/// The clients, with which every case runs.
const CLIENTS: [&str; 2] = ["engine", "builtin"];

#[track_caller]
fn load(place: &Place, client: &str, port: u16, args: &[&str]) -> Said {
    let url = format!("http://localhost:{port}/");
    run(place.folder(), &[&["load", &url, "--client", client, "--timeout", "20s", "--json"], args].concat())
}

#[track_caller]
fn found(said: &Said) -> Value {
    serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("not JSON ({error}):\n{}", said.out))
}

#[test]
fn no_request_fails_when_nginx_ends_a_connection_after_twenty() {
    let lines = "keepalive_requests 20;\nlocation / { return 200 ok; }";
    for (listen, protocol, more) in [("http2", "h2c", &["-m", "8"][..]), ("", "h1c", &[])] {
        let place = Place::new();
        let Some((_nginx, port)) = Nginx::start(&place, listen, lines) else { return };
        for client in CLIENTS {
            let args = [&["-p", protocol, "-c", "2", "-n", "4000"], more].concat();
            let found = found(&load(&place, client, port, &args).with_status(0));
            assert_eq!((&found["requests"], &found["errors"]), (&Value::from(4000), &json!({})), "{client}: {found}");
            // Of 16 requests in flight, some are on their way when nginx announces the end of a connection. HTTP/1.1
            // announces it with the last response.
            assert_eq!(found["sent_again"].as_u64().unwrap() > 0, protocol == "h2c", "{client}: {found}");
        }
    }
}

const SETTINGS: u8 = 4;
const HEADERS: u8 = 1;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// An empty response with the status 200.
fn response(stream: u32) -> Vec<u8> {
    frame(HEADERS, 5, stream, &[0x88])
}

/// RST_STREAM with REFUSED_STREAM.
fn refusal(stream: u32) -> Vec<u8> {
    frame(3, 0, stream, &7_u32.to_be_bytes())
}

/// GOAWAY without an error, which names the last stream.
fn goodbye(last: u32) -> Vec<u8> {
    frame(7, 0, 0, &[last.to_be_bytes(), [0; 4]].concat())
}

/// A server of HTTP/2 in clear text. `serve` gets each request with the number of its connection; the first connection
/// is that of the request before the load.
fn http2_server(serve: impl Fn(u32, u32, &TcpStream) -> std::io::Result<()> + Send + Sync + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let serve = Arc::new(serve);
    std::thread::spawn(move || {
        for (number, stream) in (0..).zip(listener.incoming()) {
            let (stream, serve) = (stream.unwrap(), Arc::clone(&serve));
            // The connection ends with an error when the client is gone.
            std::thread::spawn(move || talk(&stream, |id| serve(number, id, &stream)).is_ok());
        }
    });
    port
}

fn talk(mut stream: &TcpStream, serve: impl Fn(u32) -> std::io::Result<()>) -> std::io::Result<()> {
    stream.read_exact(&mut [0; 24])?;
    stream.write_all(&frame(SETTINGS, 0, 0, &[]))?;
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head)?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        stream.read_exact(&mut vec![0; length as usize])?;
        match (head[3], head[4]) {
            (SETTINGS, 0) => stream.write_all(&frame(SETTINGS, 1, 0, &[]))?,
            (HEADERS, _) => serve(u32::from_be_bytes([head[5], head[6], head[7], head[8]]))?,
            _ => {}
        }
    }
}

#[test]
fn a_new_connection_takes_what_a_goodbye_turned_away_while_the_old_one_completes_the_rest() {
    for client in CLIENTS {
        // The first stream is answered only after twenty requests on the next connection.
        let others = Arc::new((Mutex::new(0), Condvar::new()));
        let port = http2_server(move |connection, id, mut stream| match (connection, id) {
            (0, _) => stream.write_all(&response(id)),
            (1, 1) => {
                let (mut stream, others) = (stream.try_clone()?, Arc::clone(&others));
                std::thread::spawn(move || {
                    let _enough = others.1.wait_while(others.0.lock().unwrap(), |count| *count < 20).unwrap();
                    stream.write_all(&response(1))
                });
                Ok(())
            }
            (1, 3) => stream.write_all(&goodbye(1)),
            (1, _) => Ok(()),
            _ => {
                *others.0.lock().unwrap() += 1;
                others.1.notify_all();
                stream.write_all(&response(id))
            }
        });
        let place = Place::new();
        let args = ["-p", "h2c", "-m", "4", "-n", "200", "--samples", "samples.jsonl"];
        let found = found(&load(&place, client, port, &args).with_status(0));
        assert_eq!((&found["requests"], &found["errors"]), (&Value::from(200), &json!({})), "{client}: {found}");
        assert_eq!(found["sent_again"], 3, "{client}: {found}");
        let samples = fs::read_to_string(place.path("samples.jsonl")).unwrap();
        let of = |number| {
            let samples = samples.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
            samples.filter(|sample| sample["connection"] == number).count()
        };
        assert_eq!((of(0), of(1)), (1, 199), "{client}");
    }
}

#[test]
fn a_refused_stream_is_sent_again_on_its_connection_but_not_for_ever() {
    for client in CLIENTS {
        let place = Place::new();
        let port = http2_server(|connection, id, mut stream| match (connection, id) {
            (1, 3 | 9) => stream.write_all(&refusal(id)),
            (0 | 1, _) => stream.write_all(&response(id)),
            _ => panic!("another connection"),
        });
        let args = ["-p", "h2c", "-m", "4", "-n", "50"];
        let once = found(&load(&place, client, port, &args).with_status(0));
        assert_eq!((&once["requests"], &once["errors"]), (&Value::from(50), &json!({})), "{client}: {once}");
        assert_eq!(once["sent_again"], 2, "{client}: {once}");
        let port = http2_server(|connection, id, mut stream| {
            stream.write_all(&if connection == 0 { response(id) } else { refusal(id) })
        });
        let always = found(&load(&place, client, port, &["-p", "h2c", "-n", "3"]).with_status(1));
        assert_eq!(always["errors"], json!({"reset": 3}), "{client}: {always}");
        assert_eq!(always["sent_again"], 15, "{client}: {always}");
    }
}
