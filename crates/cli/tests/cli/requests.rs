//! Requests of the user in `wirelab load` and `wirelab probe`: bodies, header fields, data, weights, expectations.

use std::fs;

use serde_json::Value;
use wirelab_model::protocol::Protocol;
use wirelab_testkit::servers::{Builtin, Conduct, Hostile, Place, Serve, serve};
use wirelab_testkit::{Said, run, said, wirelab};

use crate::nginx::Nginx;

const TOKEN: &str = "s3cr3t-token";

/// Runs `wirelab load` with these arguments, with a secret in its environment.
#[track_caller]
fn load(place: &Place, args: &[&str]) -> Said {
    let mut command = wirelab(place.folder(), &[&["load", "--timeout", "30s", "-q"], args].concat());
    command.env("WIRELAB_TEST_TOKEN", TOKEN);
    said(command.output().unwrap())
}

fn json(said: &Said) -> Value {
    serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("not JSON ({error}):\n{}", said.out))
}

#[test]
fn a_body_of_text_arrives_byte_for_byte_over_every_protocol() {
    let place = Place::new();
    fs::write(place.path("order.json"), r#"{"name": "{{name}}", "price": 3}"#).unwrap();
    fs::write(place.path("names.csv"), "name\nAnn\n\"O\"\"Hara\"\n").unwrap();
    for protocol in [Protocol::H1c, Protocol::H1, Protocol::H2c, Protocol::H2, Protocol::H3] {
        let server = Builtin::start(&place, serve(protocol));
        let scheme = if protocol.is_secure() { "https" } else { "http" };
        let url = format!("{scheme}://localhost:{}/echo", server.port);
        let send = |more: &[&str]| {
            let trust = if protocol.is_secure() { &["--ca", "ca.pem"][..] } else { &[] };
            load(&place, &[&["-p", protocol.token(), "-n", "6", &url], trust, more].concat())
        };
        let text = send(&["--body", r#"{"a": [1, 2]}"#, "--expect-json", "$.a[1]=2", "--expect-size", "13 B"]);
        assert!(text.with_status(0).out.contains("6 succeeded, 0 failed"), "{protocol}");
        let file = send(&["--body", "@order.json", "--data", "names.csv", "--expect-json", "$.price=3"]);
        assert!(file.with_status(0).out.contains("6 succeeded, 0 failed"), "{protocol}");
        let wrong = send(&["--body", "{}", "--expect-text", "created"]).with_status(1);
        wrong.complains(&["does not contain `created`", "`{}`"]);
    }
}

#[test]
fn requests_have_their_weights_their_data_and_their_own_results() {
    let place = Place::new();
    let server = Builtin::start(&place, serve(Protocol::H2c));
    let url = |path: &str| format!("http://localhost:{}{path}", server.port);
    fs::write(place.path("sizes.jsonl"), "{\"size\": 10}\n{\"size\": 20}\n").unwrap();
    let (first, second) = (url("/bytes/1"), url("/bytes/2"));
    let args = ["-p", "h2c", "-n", "80", "--weights", "3,1", "--json", "--samples", "samples.jsonl", &first, &second];
    let found = json(&load(&place, &args).with_status(0));
    let by_request = &found["by_request"];
    assert_eq!((&by_request[0]["requests"], &by_request[1]["requests"]), (&Value::from(60), &Value::from(20)));
    assert_eq!(by_request[1]["name"], "GET /bytes/2");
    assert!(by_request[1]["values"]["response_median"].as_f64().unwrap() > 0.0);
    let samples = fs::read_to_string(place.path("samples.jsonl")).unwrap();
    for line in samples.lines() {
        let sample: Value = serde_json::from_str(line).unwrap();
        assert_eq!(sample["bytes_in"], if sample["request"] == 0 { 1 } else { 2 }, "{line}");
    }
    let with_data = url("/bytes/{{size}}");
    let args = ["-p", "h2c", "-n", "10", "--data", "sizes.jsonl", "--samples", "samples.jsonl", &with_data];
    load(&place, &args).with_status(0);
    let samples = fs::read_to_string(place.path("samples.jsonl")).unwrap();
    let of_size = |size: u64| samples.lines().filter(|line| line.contains(&format!("\"bytes_in\":{size},"))).count();
    assert_eq!((of_size(10), of_size(20)), (5, 5), "{samples}");
}

#[test]
fn credentials_reach_the_server_and_nothing_else() {
    let place = Place::new();
    let server = Hostile::plain(Conduct::ok());
    let url = format!("http://localhost:{}/a", server.port);
    fs::write(place.path("key"), "from-a-file\n").unwrap();
    let args = [
        &url,
        "-n",
        "1",
        "-H",
        "Authorization: Bearer {{env.WIRELAB_TEST_TOKEN}}",
        "-H",
        "x-key: {{file.key}}",
        "-b",
        "id={{env.WIRELAB_TEST_TOKEN}}; theme=dark",
        "--json",
    ];
    let said = load(&place, &args).with_status(0);
    let head = server.heads().pop().unwrap();
    let cookie = format!("cookie: id={TOKEN}; theme=dark\r\n");
    for field in [&format!("authorization: bearer {TOKEN}\r\n"), "x-key: from-a-file\r\n", &cookie] {
        assert!(head.contains(field), "{field} in {head}");
    }
    assert!(!said.out.contains(TOKEN) && !said.err.contains(TOKEN), "{}{}", said.out, said.err);
    let unfit = load(&place, &[&url, "-H", "x: \u{7f}{{env.WIRELAB_TEST_TOKEN}}"]).with_status(2);
    assert!(!unfit.err.contains(TOKEN), "{}", unfit.err);
    load(&place, &[&url, "-H", "x: {{env.WIRELAB_NOT_SET}}"]).with_status(2).complains(&["WIRELAB_NOT_SET", "export"]);
}

#[test]
fn command_lines_of_curl_and_targets_of_vegeta_are_sent() {
    let place = Place::new();
    let server = Hostile::plain(Conduct::ok());
    let base = format!("http://localhost:{}", server.port);
    let curl = format!("curl -H 'X-A: 1' -b 'c=2' '{base}/from-curl?x=1' --compressed");
    load(&place, &["-n", "1", "--curl", &curl]).with_status(0);
    let head = server.heads().pop().unwrap();
    for part in ["get /from-curl?x=1 ", "x-a: 1\r\n", "cookie: c=2\r\n", "accept-encoding: gzip"] {
        assert!(head.contains(part), "{part} in {head}");
    }
    let har = format!(
        r#"{{"log": {{"entries": [{{"request": {{"method": "PUT", "url": "{base}/saved", "headers":
        [{{"name": "X-C", "value": "3"}}], "postData": {{"text": "abc"}}}}}}]}}}}"#
    );
    fs::write(place.path("saved.har"), har).unwrap();
    load(&place, &["-n", "1", "--har", "saved.har", "--expect-status", "200"]).with_status(0);
    let head = server.heads().pop().unwrap();
    for part in ["put /saved ", "x-c: 3\r\n", "content-length: 3\r\n"] {
        assert!(head.contains(part), "{part} in {head}");
    }
    load(&place, &["--har", "ca.pem"]).with_status(2).complains(&["ca.pem", "log.entries"]);
    fs::write(place.path("targets"), format!("GET {base}/one\nX-B: 2\n\nDELETE {base}/two\n")).unwrap();
    let found = json(&load(&place, &["-n", "10", "--targets", "targets", "--json"]).with_status(0));
    let names: Vec<_> = found["by_request"].as_array().unwrap().iter().map(|one| one["name"].clone()).collect();
    assert_eq!(names, ["GET /one", "DELETE /two"]);
    let file =
        "[[request]]\npath = '/x'\nweight = 4\n[[request]]\npath = '/y'\nmethod = 'PUT'\nexpect = { status = 200 }\n";
    fs::write(place.path("requests.toml"), file).unwrap();
    let found = json(&load(&place, &["-n", "10", "--request-file", "requests.toml", &base, "--json"]).with_status(0));
    assert_eq!(found["by_request"][0]["requests"], 8);
}

#[test]
fn a_refusal_of_the_server_is_explained() {
    let place = Place::new();
    let said = |status: &str, fields: &str, more: &[&str]| {
        let server = Hostile::plain(Conduct::Answer(Conduct::response(status, fields)));
        let url = format!("http://localhost:{}/api", server.port);
        load(&place, &[&["-n", "2", &url], more].concat())
    };
    said("405 Method Not Allowed", "", &[]).with_status(1).complains(&["405", "try --method POST", "/api"]);
    said("405 Method Not Allowed", "allow: PUT\r\n", &[]).with_status(1).complains(&["only PUT"]);
    said("401 Unauthorized", "", &[]).with_status(1).complains(&["{{env.TOKEN}}"]);
    said("415 Unsupported Media Type", "", &["--body", "x"]).with_status(1).complains(&["content-type"]);
    let right = said("404 Not Found", "", &["--expect-status", "404"]).with_status(0);
    assert!(right.out.contains("2 succeeded, 0 failed"), "{}", right.out);
    said("200 OK", "", &["--expect-status", "201"]).with_status(1).complains(&["200 instead of 201"]);
}

#[test]
fn requests_that_cannot_be_sent_are_refused() {
    let place = Place::new();
    fs::write(place.path("users.csv"), "user,id\nann,1\n").unwrap();
    fs::write(place.path("wrong.toml"), "[[request]]\npth = '/x'\n").unwrap();
    let check = |args: &[&str], words: &[&str]| {
        load(&place, args).with_status(2).complains(words);
    };
    let url = "http://localhost:1/";
    check(&[url, "--body", "100 KiB"], &["--body-size '100 KiB'"]);
    check(&[url, "-H", "nonsense"], &["NAME: VALUE"]);
    check(&[url, "--method", "post"], &["did you mean `POST`"]);
    check(&["http://localhost:1/{{usr}}", "--data", "users.csv"], &["did you mean `{{user}}`"]);
    check(&[url, "--data", "users.csv"], &["no placeholder uses", "{{user}}"]);
    check(&[url, "--body", "@missing.json"], &["missing.json"]);
    check(&[url, "http://localhost:2/"], &["different servers"]);
    check(&[url, "--weights", "1,2"], &["2 numbers for 1 URLs"]);
    check(&[url, "--request-file", "wrong.toml"], &["wrong.toml:2:1", "did you mean `path`"]);
    check(&["--curl", "curl -k https://localhost:1/"], &["--insecure"]);
    check(&["--curl", "curl -x gate:3128 https://localhost:1/"], &["give wirelab --proxy"]);
    check(&[url, "--expect-json", "items"], &["JSON path"]);
    check(&["http://{{host}}/"], &["cannot be measured"]);
}

#[test]
fn a_probe_sends_the_request_of_the_user() {
    let place = Place::new();
    let server = Builtin::start(&place, serve(Protocol::H2));
    let url = format!("https://localhost:{}/echo", server.port);
    let args = ["probe", &url, "--ca", "ca.pem", "--protocols", "h2", "--blocks", "1", "--body", "{\"a\":1}", "-q"];
    run(place.folder(), &[&args[..], &["--expect-json", "$.a=1"]].concat()).with_status(0);
    run(place.folder(), &[&args[..], &["--expect-json", "$.a=2"]].concat())
        .with_status(1)
        .complains(&["no protocol could be measured"]);
    server.stop();
}

const STUDY: &str = r#"
name = "own"
title = "Own"
question = "Which?"
[[request]]
path = "/orders?user={{user}}"
body = '{"user": "{{user}}"}'
headers = { authorization = "Bearer {{env.WIRELAB_TEST_TOKEN}}" }
data = "users.csv"
weight = 3
expect = { status = 200 }
[[request]]
path = "/items"
[workload]
requests = 8
WORKLOAD
[factors]
protocol = ["h1c"]
[compare]
factor = "protocol"
baseline = "h1c"
[blocks]
min = 1
max = 1
"#;

/// Runs the study of own requests with these settings in its workload, and a secret in the environment.
#[track_caller]
fn run_study(place: &Place, workload: &str, more: &[&str]) -> Said {
    fs::write(place.path("study.toml"), STUDY.replace("WORKLOAD", workload)).unwrap();
    fs::write(place.path("users.csv"), "user\nann\nbob\n").unwrap();
    let mut command = wirelab(place.folder(), &[&["run", "study.toml", "-q"], more].concat());
    command.env("WIRELAB_TEST_TOKEN", TOKEN);
    said(command.output().unwrap())
}

/// Panics if a file below the folder has the secret.
pub(crate) fn assert_no_secret(folder: &std::path::Path, secret: &str) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            assert_no_secret(&path, secret);
        } else {
            let bytes = fs::read(&path).unwrap();
            let holds = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
            assert!(!holds, "{} has the secret", path.display());
        }
    }
}

#[test]
fn a_study_sends_the_requests_of_the_user_to_a_running_service_and_keeps_no_secret() {
    for client in ["builtin", "engine"] {
        let place = Place::new();
        let server = Hostile::plain(Conduct::ok());
        let site = format!("site = \"http://localhost:{}/\"\nclient = \"{client}\"", server.port);
        let said = run_study(&place, &site, &["--lab", "internet"]).with_status(0);
        let heads = server.heads();
        let orders: Vec<_> = heads.iter().filter(|head| head.starts_with("post /orders?user=")).collect();
        let items = heads.iter().filter(|head| head.starts_with("get /items ")).count();
        // The cell and its A/A twin, with 8 requests each, and a check request for the one with an expectation.
        assert_eq!((orders.len(), items), (2 * (6 + 1), 2 * 2), "{client}: {heads:?}");
        assert!(orders.iter().all(|head| head.contains(&format!("authorization: bearer {TOKEN}\r\n"))));
        for user in ["user=ann", "user=bob"] {
            assert!(orders.iter().any(|head| head.contains(user)), "{client}: {user}");
        }
        assert!(!said.out.contains(TOKEN) && !said.err.contains(TOKEN));
        let full = run(place.folder(), &["report", "--full"]).with_status(0).out;
        assert!(full.contains("GET /items: 2 succeeded, 0 failed; median"), "{full}");
        assert!(!full.contains(TOKEN));
        let report = json(&run(place.folder(), &["report", "--format", "json"]));
        let of_cell = &report["cells"][0]["by_request"];
        assert_eq!((&of_cell[0]["requests"], &of_cell[1]["requests"]), (&6.into(), &2.into()), "{of_cell}");
        assert!(of_cell[0]["values"]["response_median"].as_f64().unwrap() > 0.0, "{of_cell}");
        assert_no_secret(&place.path("wirelab-runs"), TOKEN);
    }
}

#[test]
fn a_study_with_requests_that_cannot_be_sent_is_refused_with_the_place() {
    let place = Place::new();
    let site = "site = \"http://localhost:1/\"";
    let internet = ["--lab", "internet"];
    run_study(&place, "", &[]).with_status(2).complains(&["`/orders", "set `site`", "server_command"]);
    run_study(&place, &format!("{site}\npayload = \"1 KiB\""), &internet).with_status(2).complains(&["`payload`"]);
    fs::write(
        place.path("wrong.toml"),
        STUDY.replace("WORKLOAD", site).replace("path = \"/items\"", "path = \"items\""),
    )
    .unwrap();
    let args = ["run", "wrong.toml", "-q"];
    run(place.folder(), &args).with_status(2).complains(&["wrong.toml:13:8", "slash"]);
    fs::write(place.path("study.toml"), STUDY.replace("WORKLOAD", site)).unwrap();
    let args = ["run", "study.toml", "-q", "--lab", "internet"];
    run(place.folder(), &args).with_status(2).complains(&["WIRELAB_TEST_TOKEN", "export"]);
}

/// A server of the user in Python, which Debian's minimal installations have.
const PYTHON: &str = r#"
import sys, http.server
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def answer(self):
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.send_response(200)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"ok")
    do_GET = do_POST = answer
    def log_message(self, *_): pass
if len(sys.argv) < 2: sys.exit("no port was given")
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"#;

#[test]
fn a_program_of_the_user_is_started_measured_and_ended() {
    let place = Place::new();
    fs::write(place.path("server.py"), PYTHON).unwrap();
    let command = r#"server_command = ["python3", "server.py", "{port}"]"#;
    run_study(&place, "", &["--server", "python3 server.py {port}", "--plan"]).with_status(0);
    run_study(&place, command, &["--server", "'open"]).with_status(2).complains(&["not closed"]);
    run_study(&place, command, &[]).with_status(0);
    let trials = wirelab_testkit::lab::trials(place.folder());
    assert_eq!(trials.len(), 2);
    for (_, trial) in trials {
        assert_eq!(trial["outcome"], "ok", "{trial}");
        assert!(trial["values"]["cpu_server_per_request"].as_f64().unwrap() > 0.0, "{trial}");
        assert!(trial["values"]["memory_server_peak"].as_f64().unwrap() > 1e6, "{trial}");
    }
    assert_no_secret(&place.path("wirelab-runs"), TOKEN);
}

#[test]
fn a_program_that_does_not_listen_is_found_once_before_the_run() {
    let place = Place::new();
    fs::write(place.path("server.py"), PYTHON).unwrap();
    for (limit, command, words) in [
        (
            "9 s",
            r#"["python3", "server.py"]"#,
            &["ended with exit status: 1 before it listened", "no port was given"][..],
        ),
        ("9 s", r#"["./missing"]"#, &["cannot start `./missing`", "is it installed"]),
        ("9 s", r#"["true"]"#, &["ended with exit status: 0 before it listened", "in the foreground"]),
        ("1 s", r#"["sh", "-c", "echo I wait; sleep 60"]"#, &["TCP port", "write {port}", "no other TCP", "I wait"]),
        ("4 s", r#"["python3", "server.py", "0", "{port}"]"#, &["TCP port", "listens at 127.0.0.1:", "instead"]),
    ] {
        let workload = format!("server_command = {command}\nstart_timeout = \"{limit}\"");
        let said = run_study(&place, &workload, &[]).with_status(2).complains(words);
        said.complains(&["No trial was started", "-server.log"]);
        assert_eq!(wirelab_testkit::lab::all_trials(place.folder()).len(), 0);
        fs::remove_dir_all(place.path("wirelab-runs")).unwrap();
    }
    run_study(&place, "server_command = []", &[]).with_status(2).complains(&["has no word", "{port}"]);
}

#[test]
fn a_server_gets_the_certificate_of_the_client_and_its_version_of_tls() {
    let place = Place::new();
    place.certificate("client", "client", 2099);
    let folder = place.folder().display();
    let lines = format!(
        "ssl_certificate {folder}/good.pem;\nssl_certificate_key {folder}/good.key;\nssl_protocols TLSv1.2;\n\
         ssl_client_certificate {folder}/ca.pem;\nssl_verify_client on;\n\
         location / {{ return 200 \"$ssl_protocol $ssl_client_verify\"; }}"
    );
    let Some((_nginx, port)) = Nginx::start(&place, "ssl http2", &lines) else { return };
    let url = format!("https://localhost:{port}/");
    let mutual = ["--cert", "client.pem", "--key", "client.key"];
    for (client, protocol) in [("engine", "h1"), ("builtin", "h1"), ("builtin", "h2")] {
        let send = |more: &[&str]| {
            let base = ["-n", "20", "-p", protocol, "--client", client, "--ca", "ca.pem", &url];
            load(&place, &[&base[..], more].concat())
        };
        let found = send(&[&mutual[..], &["--tls", "1.2", "--json"]].concat()).with_status(0);
        let found = json(&found);
        assert_eq!((&found["requests"], &found["configured"]["tls"]), (&20.into(), &"1.2".into()), "{found}");
        // nginx answers 400 to a client without a certificate.
        send(&["--tls", "1.2"]).with_status(1).complains(&["400"]);
        send(&mutual).with_status(1).complains(&["--tls", "--cert"]);
    }
    let base = ["-n", "2", "--ca", "ca.pem", &url, "--tls", "1.2"];
    let text = ["--expect-text", "TLSv1.2 SUCCESS"];
    load(&place, &[&base[..], &mutual, &text].concat()).with_status(0);
}

#[test]
fn an_address_is_given_for_a_host_and_port_as_with_curl() {
    let place = Place::new();
    let server = Hostile::plain(Conduct::ok());
    let url = format!("http://shop.example:{}/", server.port);
    let resolve = format!("shop.example:{}:127.0.0.1", server.port);
    load(&place, &["-n", "1", &url, "--resolve", &resolve]).with_status(0);
    assert!(server.heads().pop().unwrap().contains(&format!("host: shop.example:{}\r\n", server.port)));
    let check = |args: &[&str], words: &[&str]| {
        load(&place, args).with_status(2).complains(words);
    };
    check(&[&url, "--resolve", "shop.example:1:127.0.0.1"], &["--resolve is about shop.example:1"]);
    check(&[&url, "--resolve", "shop.example"], &["HOST:PORT:ADDRESS"]);
    check(&["http://localhost:1/", "--tls", "1.2"], &["--tls needs a URL that begins with https://"]);
    let secure = "https://localhost:1/";
    check(&[secure, "-p", "h3", "--tls", "1.2"], &["QUIC has TLS 1.3 only"]);
    check(&[secure, "--cert", "none.pem", "--key", "none.key"], &["cannot read none.pem"]);
    check(&[secure, "--cert", "none.pem"], &["--key"]);
    check(&[secure, "--tls", "1.2", "--new-connections", "--resumption", "resume"], &["needs TLS 1.3"]);
}

#[test]
fn the_certificate_of_openssl_is_trusted_if_it_is_named() {
    let place = Place::new();
    let mut openssl = std::process::Command::new("openssl");
    openssl.args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-days", "2"]);
    openssl.args(["-addext", "subjectAltName=DNS:localhost", "-keyout", "own.key", "-out", "own.pem"]);
    assert!(openssl.current_dir(place.folder()).output().unwrap().status.success());
    let server = Builtin::start(&place, Serve { certificate: "own", ..serve(Protocol::H2) });
    let url = format!("https://localhost:{}/bytes/1", server.port);
    load(&place, &["-n", "2", "--ca", "own.pem", &url]).with_status(0);
    let unknown = load(&place, &["-n", "2", "--ca", "ca.pem", &url]).with_status(1);
    unknown.complains(&["certificate is not accepted", "--ca"]);
    let by_address = format!("https://127.0.0.1:{}/bytes/1", server.port);
    load(&place, &["-n", "2", "--ca", "own.pem", &by_address]).with_status(1).complains(&["another name"]);
}
