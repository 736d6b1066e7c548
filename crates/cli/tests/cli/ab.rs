//! `wirelab ab` with two programs, and with two services that run already.

use std::fs;

use serde_json::Value;
use wirelab_model::protocol::Protocol;
use wirelab_testkit::servers::{Builtin, Conduct, Hostile, Place, serve};
use wirelab_testkit::{Said, run};

/// A server whose answers take 2 ms, and longer by the milliseconds of its last argument. It answers 400 to anything
/// but a POST of `{"sku": 7}` to `/orders`.
const PYTHON: &str = r#"
import sys, time, http.server
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    def answer(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        time.sleep(0.002 + float(sys.argv[2]) / 1000)
        is_right = (self.command, self.path, body) == ("POST", "/orders", b'{"sku": 7}')
        self.send_response(200 if is_right else 400)
        self.send_header("content-length", "0")
        self.end_headers()
    do_GET = do_POST = answer
    def log_message(self, *_): pass
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"#;

/// The own requests, and trials that are as short as the assertions allow.
const SHORT: [&str; 14] = [
    "--path",
    "/orders",
    "--body",
    r#"{"sku": 7}"#,
    "--set",
    "requests=30",
    "--set",
    "warm_up=4",
    "--set",
    "blocks.max=10",
    "--set",
    "planted=0 %",
    "--fail-on",
    "p50 5 % worse",
];

#[track_caller]
fn ab(place: &Place, base: &str, head: &str, more: &[&str]) -> Said {
    run(place.folder(), &[&["ab", "--quiet", "--base", base, "--head", head], more].concat())
}

#[test]
fn a_planted_delay_in_one_of_two_programs_is_found_and_equal_programs_pass() {
    let place = Place::new();
    fs::write(place.path("old.py"), PYTHON).unwrap();
    fs::write(place.path("new.py"), format!("{PYTHON}# the new build\n")).unwrap();
    let (old, new) = ("python3 old.py {port} 0", "python3 new.py {port} 0");
    let elsewhere = [&SHORT[..], &["--out", "slow"]].concat();
    // 10 ms more than 2 ms, which other work on the machine does not hide.
    let slow = ab(&place, old, "python3 new.py {port} 10", &elsewhere).with_status(3);
    let slow = slow.complains(&["build=head"]);
    assert!(slow.out.contains("new.py {port} 10 (head) against python3 old.py {port} 0 (base)"), "{}", slow.out);
    // One of 20 comparisons of equal programs fails by chance, so three in a row prove a defect.
    let compare = |_| {
        let _ = fs::remove_dir_all(place.path("wirelab-runs"));
        ab(&place, old, new, &SHORT)
    };
    let null = (0..3).map(compare).find(|null| null.status != 3).expect("it never passes").with_status(0);
    assert!(!null.out.contains("✗"), "{}", null.out);
    for (_, trial) in wirelab_testkit::lab::trials(place.folder()) {
        assert_eq!(trial["outcome"], "ok", "{trial}");
        assert!(trial["values"]["cpu_server_per_request"].as_f64().unwrap() > 0.0, "{trial}");
    }
}

#[test]
fn two_services_that_run_already_get_the_same_requests() {
    let place = Place::new();
    let servers = [Hostile::plain(Conduct::ok()), Hostile::plain(Conduct::ok())];
    let [base, head] = servers.each_ref().map(|server| format!("http://localhost:{}/", server.port));
    let more = ["--set", "requests=4", "--set", "warm_up=0", "--set", "blocks.min=1", "--set", "blocks.max=1", "-H"];
    ab(&place, &base, &head, &[&more[..], &["x-own: 1", "--path", "/a", "--path", "/b"]].concat()).with_status(0);
    for (server, cells) in servers.iter().zip([2, 1]) {
        let heads = server.heads();
        let of = |path: &str| {
            let line = format!("get {path} ");
            heads.iter().filter(|head| head.starts_with(&line) && head.contains("x-own: 1\r\n")).count()
        };
        assert!(of("/a") >= 2 * cells && of("/b") >= 2 * cells, "{heads:?}");
    }
}

#[test]
fn builds_that_cannot_be_compared_start_nothing() {
    let place = Place::new();
    fs::write(place.path("old.py"), PYTHON).unwrap();
    fs::copy(place.path("old.py"), place.path("copy.py")).unwrap();
    let server = Builtin::start(&place, serve(Protocol::H1c));
    let url = format!("http://localhost:{}/bytes/10", server.port);
    let old = "python3 old.py {port} 0";
    for (base, head, words) in [
        (old, "python3 copy.py {port} 0", ["same build", "different files"]),
        (&url, &url, ["same build", "A/A"]),
        (old, &url, ["--base is a command, and --head is a URL", "two commands"]),
        (old, "./old.pyy {port}", ["--head", "did you mean `old.py`"]),
        (old, "./old.py {port}", ["--head", "chmod +x"]),
        (old, "no-such-program {port}", ["--head", "PATH"]),
        ("https://192.0.2.1/a", "https://192.0.2.1/b", ["not yours", "--i-may-load-these-hosts"]),
    ] {
        ab(&place, base, head, &[]).with_status(2).complains(&words);
    }
    ab(&place, old, "python3 old.py {port} 1", &["--path", "orders"]).with_status(2).complains(&["slash"]);
    assert!(!place.path("wirelab-runs").exists());
    server.stop();
}

#[test]
fn a_build_that_never_listens_ends_the_comparison_before_its_first_trial() {
    let place = Place::new();
    fs::write(place.path("old.py"), PYTHON).unwrap();
    let limit = ["--set", "start_timeout=10 s"];
    let said = ab(&place, "python3 old.py {port} 0", "sleep 61.5 {port}", &limit).with_status(2);
    said.complains(&[
        "`sleep 61.5 ",
        "does not listen on TCP port",
        "after 10s",
        "`start_timeout`",
        "No trial was started",
    ]);
    assert_eq!(wirelab_testkit::lab::all_trials(place.folder()).len(), 0);
    assert!(wirelab_testkit::processes("sleep\x0061.5").is_empty());
}

#[test]
fn the_plan_of_two_programs_names_their_requests() {
    let place = Place::new();
    let plan = ab(&place, "sh one {port}", "sh two {port}", &["--path", "/x?y=1", "--plan", "--json"]).with_status(0);
    let plan: Value = serde_json::from_str(&plan.out).unwrap();
    assert!(plan["cells"][0].to_string().contains("/x?y=1"), "{plan}");
}
