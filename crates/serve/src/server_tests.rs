use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use std::thread::{self, JoinHandle};

use super::*;
use crate::library::{Claim, Entry, Progress, State as RunState, StudyClaims};
use crate::workshop::{Checked, Draft, Order, Saved, Source, Sources, Started};

/// One run called `one`, whose progress a test sets, and a count of rendered reports.
#[derive(Default)]
struct One {
    progress: Mutex<Progress>,
    rendered: Mutex<u32>,
}

impl One {
    fn named(&self, run: &str) -> Result<(), LibraryError> {
        if run == "one" { Ok(()) } else { Err(LibraryError::NoRun(run.to_owned())) }
    }
}

impl Library for One {
    fn runs(&self) -> Result<Vec<Entry>, LibraryError> {
        let text = |text: &str| text.to_owned();
        Ok(vec![Entry {
            name: text("one"),
            study: text("shop"),
            title: text("A shop"),
            created: text("2026-11-25T08:00:00Z"),
            lab: text("loopback"),
            machine: text("AMD"),
            tags: vec![text("baseline")],
            progress: self.progress.lock().unwrap().clone(),
        }])
    }

    fn progress(&self, run: &str) -> Result<Progress, LibraryError> {
        self.named(run)?;
        Ok(self.progress.lock().unwrap().clone())
    }

    fn tags(&self, run: &str) -> Result<Vec<String>, LibraryError> {
        self.named(run)?;
        Ok(vec!["baseline".to_owned()])
    }

    fn claims(&self) -> Result<Vec<StudyClaims>, LibraryError> {
        let [id, text, verdict, effects] = ["A1", "It <is> so", "holds", "1 effect"].map(str::to_owned);
        let [study, lab, run] = ["quick", "fake", "one"].map(str::to_owned);
        Ok(vec![StudyClaims { study, lab, run, claims: vec![Claim { id, text, verdict, effects }] }])
    }

    fn report(&self, run: &str, format: Format) -> Result<String, LibraryError> {
        self.named(run)?;
        *self.rendered.lock().unwrap() += 1;
        Ok(format!("{format:?} of {run}"))
    }

    fn compare(&self, runs: [&str; 2]) -> Result<String, LibraryError> {
        Ok(format!("{} < {}", runs[0], runs[1]))
    }

    fn history(&self, study: &str, metric: Option<&str>) -> Result<String, LibraryError> {
        Ok(format!("{study} {metric:?}"))
    }
}

/// Remembers what it was asked to change.
#[derive(Default)]
struct Log(Mutex<Vec<String>>);

impl Log {
    fn note(&self, what: String) {
        self.0.lock().unwrap().push(what);
    }
}

impl Workshop for Log {
    fn sources(&self) -> Result<Sources, LibraryError> {
        let builtin = vec![("quick".to_owned(), "A <quick> one".to_owned())];
        Ok(Sources { builtin, files: vec!["my.toml".to_owned()], folder: "here".to_owned() })
    }

    fn open(&self, source: &Source) -> Result<Draft, LibraryError> {
        Ok(Draft { file: "my.toml".to_owned(), text: format!("\n</textarea>{source:?}"), ..Draft::default() })
    }

    fn completions(&self) -> String {
        "{}".to_owned()
    }

    fn check(&self, draft: &Draft) -> Checked {
        Checked { plan: Some(format!("{} of {}", draft.text, draft.file)), ..Checked::default() }
    }

    fn save(&self, draft: &Draft, replace: bool) -> Result<Saved, LibraryError> {
        self.note(format!("save {} {replace}", draft.file));
        Ok(if replace { Saved::Written } else { Saved::Exists })
    }

    fn start(&self, order: &Order) -> Result<String, LibraryError> {
        self.note(format!("{order:?}"));
        match order {
            Order::Study { .. } => Err(LibraryError::Refused("`a` runs".to_owned())),
            Order::Resume(_) => Ok("a/b".to_owned()),
        }
    }

    fn stop(&self) -> Result<(), LibraryError> {
        self.note("stop".to_owned());
        Ok(())
    }

    fn started(&self) -> Option<Started> {
        Some(Started { what: "my.toml".to_owned(), run: Some("one".to_owned()), end: None })
    }

    fn tag(&self, run: &str, tag: &str, remove: bool) -> Result<(), LibraryError> {
        self.note(format!("tag {run} {tag} {remove}"));
        Ok(())
    }
}

/// A server that runs until it is dropped.
struct Served {
    address: String,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<()>>>,
    one: Arc<One>,
    log: Arc<Log>,
}

impl Served {
    fn start() -> Self {
        Self::start_with(false)
    }

    /// A server whose pages may write.
    fn writing() -> Self {
        Self::start_with(true)
    }

    fn start_with(may_write: bool) -> Self {
        let log = Arc::<Log>::default();
        let workshop = may_write.then(|| Arc::clone(&log) as Arc<dyn Workshop>);
        let server = Server::bind(0).unwrap();
        let (address, stop, one) = (server.address(), Arc::<AtomicBool>::default(), Arc::<One>::default());
        let (raised, library) = (Arc::clone(&stop), Arc::clone(&one));
        let thread = Some(thread::spawn(move || server.run(library, workshop, &raised)));
        Self { address, stop, thread, one, log }
    }

    /// `127.0.0.1:PORT`
    fn host(&self) -> &str {
        self.address.trim_start_matches("http://").split('/').next().unwrap()
    }

    fn token(&self) -> &str {
        self.address.split("token=").nth(1).unwrap()
    }

    fn cookie(&self) -> String {
        format!("wirelab-{}={}", self.host().split(':').nth(1).unwrap(), self.token())
    }

    fn send(&self, method: &str, path: &str, host: &str, cookie: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.host()).unwrap();
        write!(stream, "{method} {path} HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie}\r\nConnection: close\r\n\r\n")
            .unwrap();
        stream
    }

    /// The whole answer, with status line and header.
    fn ask(&self, method: &str, path: &str, host: &str, cookie: &str) -> String {
        let mut answer = String::new();
        self.send(method, path, host, cookie).read_to_string(&mut answer).unwrap();
        answer
    }

    /// The answer to a page of this origin that has the cookie.
    fn post(&self, path: &str, origin: &str, cookie: &str, kind: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(self.host()).unwrap();
        let origin = if origin.is_empty() { String::new() } else { format!("Origin: {origin}\r\n") };
        write!(
            stream,
            "POST {path} HTTP/1.1\r\nHost: {}\r\nCookie: {cookie}\r\n{origin}Content-Type: {kind}\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            self.host(),
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// The answer to a form or a script of this server's pages.
    fn change(&self, path: &str, body: &str) -> String {
        let kind = if body.starts_with('{') { "text/plain" } else { "application/x-www-form-urlencoded" };
        self.post(path, &format!("http://{}", self.host()), &self.cookie(), kind, body)
    }

    /// The answer to a browser that has the cookie.
    fn get(&self, path: &str) -> String {
        self.ask("GET", path, self.host(), &format!("other=1; {}", self.cookie()))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let ended = self.thread.take().unwrap().join();
        if !thread::panicking() {
            ended.unwrap().unwrap();
        }
    }
}

#[track_caller]
fn assert_status(answer: &str, status: u16) {
    assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{status}: {answer}");
}

#[test]
fn only_the_token_opens_the_pages_and_becomes_a_cookie() {
    let served = Served::start();
    let host = served.host();
    let wrong = "0".repeat(32);
    for (path, cookie) in [
        ("/".to_owned(), String::new()),
        ("/style.css".to_owned(), String::new()),
        ("/runs/one/report".to_owned(), String::new()),
        (format!("/?token={wrong}"), String::new()),
        ("/?token=".to_owned(), String::new()),
        ("/".to_owned(), format!("wirelab-1={}", served.token())),
        ("/".to_owned(), served.cookie() + "0"),
    ] {
        assert_status(&served.ask("GET", &path, host, &cookie), 401);
    }
    let opened = served.ask("GET", &format!("/?token={}", served.token()), host, "");
    assert_status(&opened, 303);
    assert!(opened.contains("location: /\r\n"), "the new address has no token: {opened}");
    assert!(opened.contains(&format!("set-cookie: {}; HttpOnly; SameSite=Lax", served.cookie())), "{opened}");
    let list = served.get("/");
    assert_status(&list, 200);
    assert!(list.contains("href=\"/runs/one\""), "{list}");
    assert!(list.contains("content-security-policy: default-src 'none'"), "{list}");
}

#[test]
fn other_hosts_other_methods_and_other_pages_are_refused() {
    let served = Served::start();
    let port = served.host().split(':').nth(1).unwrap();
    for host in ["evil.example", "127.0.0.1", &format!("evil.example:{port}"), "127.0.0.1:1"] {
        assert_status(&served.ask("GET", "/", host, &served.cookie()), 421);
    }
    assert_status(&served.ask("GET", "/", &format!("localhost:{port}"), &served.cookie()), 200);
    for method in ["POST", "PUT", "DELETE"] {
        assert_status(&served.ask(method, "/", served.host(), &served.cookie()), 403);
    }
    assert_status(&served.change("/", "q=1"), 405);
    for (path, status) in [
        ("/nothing", 404),
        ("/runs/two", 404),
        ("/runs/two/report", 404),
        ("/runs/two/events", 404),
        ("/runs/..%2F..%2Fone", 404),
        ("/runs/one/manifest.json", 400),
        ("/compare?first=one", 400),
        ("/compare?first=one&first=two&second=three", 400),
        (&format!("/compare?first=one{}", "&second=two".repeat(11)), 400),
    ] {
        assert_status(&served.get(path), status);
    }
}

#[test]
fn each_page_shows_what_the_library_answers() {
    let served = Served::start();
    for (path, expected) in [
        ("/runs/one", "src=\"/runs/one/report\""),
        ("/runs/one/report", "Html of one"),
        ("/runs/one/report.csv", "Csv of one"),
        ("/runs/one/report.json", "Json of one"),
        ("/runs/one/report.md", "Markdown of one"),
        ("/compare?first=one&second=t%3Cwo", "src=\"/compare/report?first=one&amp;second=t%3Cwo\""),
        ("/compare/report?first=one&second=t%3Cwo", "one < t<wo"),
        ("/compare?first=one&second=two&second=three", "<h1>one and three</h1>"),
        ("/claims", "It &#60;is&#62; so"),
        ("/history?study=sh%3Cop", "src=\"/history/report?study=sh%3Cop&amp;metric=\""),
        ("/history/report?study=shop&metric=", "shop None"),
        ("/history/report?study=shop&metric=p99", "shop Some"),
        ("/?q=shop", "1 of 1 runs"),
        ("/?q=other", "0 of 1 runs"),
        ("/?q=tag%3Abaseline", "href=\"/?q=tag%3Abaseline\""),
    ] {
        let answer = served.get(path);
        assert_status(&answer, 200);
        assert!(answer.contains(expected), "{path}: {answer}");
    }
}

#[test]
fn a_report_is_rendered_again_only_after_progress() {
    let served = Served::start();
    let rendered = || *served.one.rendered.lock().unwrap();
    served.get("/runs/one/report");
    served.get("/runs/one/report");
    assert_eq!(rendered(), 1);
    served.one.progress.lock().unwrap().revision = 1;
    served.get("/runs/one/report");
    assert_eq!(rendered(), 2);
}

#[test]
fn progress_is_sent_at_once_and_after_each_change() {
    let served = Served::start();
    let stream = served.send("GET", "/runs/one/events", served.host(), &served.cookie());
    let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
    let mut next = || lines.find_map(|line| line.strip_prefix("data: ").map(str::to_owned)).expect("an event comes");
    assert!(next().contains("\"trials\":0"));
    *served.one.progress.lock().unwrap() = Progress {
        state: RunState::Ended,
        trials: 7,
        failures: vec!["trial 7: timed out".to_owned()],
        ..Progress::default()
    };
    let changed = next();
    for expected in ["\"state\":\"ended\"", "\"trials\":7", "timed out"] {
        assert!(changed.contains(expected), "{expected}: {changed}");
    }
}

#[test]
fn without_a_workshop_the_pages_say_that_they_only_read_and_nothing_can_be_changed() {
    let served = Served::start();
    assert!(served.get("/").contains("These pages only read."));
    assert!(!served.get("/runs/one").contains("<form"));
    for path in ["/new", "/edit?builtin=quick", "/editor.js", "/completions.json"] {
        assert_status(&served.get(path), 404);
    }
    for path in ["/check", "/save", "/start", "/resume", "/stop", "/runs/one/tags"] {
        let answer = served.change(path, "{}");
        assert!(
            ["404", "405", "400"].iter().any(|status| answer.starts_with(&format!("HTTP/1.1 {status} "))),
            "{answer}"
        );
    }
    assert!(served.log.0.lock().unwrap().is_empty());
}

#[test]
fn a_change_needs_the_token_and_a_page_of_this_server() {
    let served = Served::writing();
    let own = format!("http://{}", served.host());
    let form = "application/x-www-form-urlencoded";
    for origin in
        ["", "null", "http://127.0.0.1:1", "http://evil.example", &format!("{own}0"), &own.replace("http", "https")]
    {
        assert_status(&served.post("/stop", origin, &served.cookie(), form, "run=one"), 403);
    }
    assert_status(&served.post("/stop", &own, "", form, "run=one"), 401);
    let with_token = format!("/stop?token={}", served.token());
    assert_status(&served.post(&with_token, &own, "", form, "run=one"), 303);
    assert_status(&served.ask("GET", "/stop", served.host(), &served.cookie()), 405);
    assert!(served.log.0.lock().unwrap().is_empty(), "nothing was changed");
    let stopped = served.post("/stop", &own, &served.cookie(), form, "run=one");
    assert_status(&stopped, 303);
    assert!(stopped.contains("location: /runs/one\r\n"), "{stopped}");
    assert_eq!(*served.log.0.lock().unwrap(), ["stop"]);
}

#[test]
fn a_page_with_a_workshop_changes_what_it_is_asked_to_and_shows_refusals() {
    let served = Served::writing();
    for (path, expected) in [
        ("/", "<a href=\"/new\">New study</a>"),
        ("/", "Stop it"),
        ("/runs/one", "Stop the run"),
        ("/runs/one", "Remove baseline"),
        ("/new", "A &#60;quick&#62; one"),
        ("/edit?run=one", "\n\n&#60;/textarea&#62;Run"),
        ("/compare?first=one&second=two", "New study"),
    ] {
        let answer = served.get(path);
        assert_status(&answer, 200);
        assert!(answer.contains(expected), "{path}: {answer}");
    }
    assert_status(&served.get("/edit"), 400);
    for (path, body, status, expected) in [
        ("/check", r#"{"file": "a.toml", "text": "x"}"#, 200, r#""plan":"x of a.toml""#),
        ("/save", r#"{"file": "a.toml", "text": "x"}"#, 200, r#""exists":true"#),
        ("/save", r#"{"file": "a.toml", "text": "x", "replace": true}"#, 200, r#""exists":false"#),
        ("/save", "{}", 400, "the request is not understood"),
        ("/start", r#"{"file": "a.toml", "preset": ""}"#, 400, r#"{"error":"`a` runs"}"#),
        ("/resume", "run=one", 303, "location: /runs/a%2Fb"),
        ("/runs/one/tags", "tag=+new+", 303, "location: /runs/one"),
        ("/runs/one/tags", "tag=new&remove=true", 303, "location: /runs/one"),
    ] {
        let answer = served.change(path, body);
        assert_status(&answer, status);
        assert!(answer.contains(expected), "{path}: {answer}");
    }
    let log = served.log.0.lock().unwrap();
    assert_eq!(
        *log,
        [
            "save a.toml false",
            "save a.toml true",
            "Study { file: \"a.toml\", preset: None }",
            "Resume(\"one\")",
            "tag one new false",
            "tag one new true",
        ]
    );
}
