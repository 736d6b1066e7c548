use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use std::thread::{self, JoinHandle};

use super::*;
use crate::library::{Entry, Progress, State as RunState};

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

impl Library for Arc<One> {
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

/// A server that runs until it is dropped.
struct Served {
    address: String,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<()>>>,
    one: Arc<One>,
}

impl Served {
    fn start() -> Self {
        let server = Server::bind(0).unwrap();
        let (address, stop, one) = (server.address(), Arc::<AtomicBool>::default(), Arc::<One>::default());
        let (raised, library) = (Arc::clone(&stop), Arc::clone(&one));
        let thread = Some(thread::spawn(move || server.run(library, &raised)));
        Self { address, stop, thread, one }
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
        assert_status(&served.ask(method, "/", served.host(), &served.cookie()), 405);
    }
    for (path, status) in [
        ("/nothing", 404),
        ("/runs/two", 404),
        ("/runs/two/report", 404),
        ("/runs/two/events", 404),
        ("/runs/..%2F..%2Fone", 404),
        ("/runs/one/manifest.json", 400),
        ("/compare?first=one", 400),
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
        ("/compare?first=one&second=t%3Cwo", "one &#60; t&#60;wo"),
        ("/history?study=shop&metric=", "shop None"),
        ("/history?study=shop&metric=p99", "shop Some"),
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
    for expected in ["\"state\":\"ended\"", "\"is_running\":false", "\"trials\":7", "timed out"] {
        assert!(changed.contains(expected), "{expected}: {changed}");
    }
}
