//! A browser as the client of trials. It follows the endpoint contract (`contract/README.md`), and each request of a
//! trial is a page load.
//!
//! It makes no check request: every load of the window is checked in full, and a load that is no sample fails its
//! trial. Loads of the warm-up are not checked, because their faults show in the window, too.

mod archive;
mod films;
mod order;
mod record;

use std::fs::File;
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use thiserror::Error;
use wirelab_lab::Guard;
use wirelab_model::CONTRACT_VERSION;
use wirelab_model::endpoint::{Description, Role, UNSUPPORTED_STATUS};
use wirelab_model::event::{Command, Configured, Event};
use wirelab_model::outcome::{ErrorKind, Outcome};
use wirelab_model::page::PageLoad;
use wirelab_model::protocol::Protocol;
use wirelab_model::spec::{Extent, Feature};

use crate::Browser;
use crate::browser::NotInstalled;
use crate::load::Load;
use crate::page::Viewport;
use crate::session::{Session, Trouble};

use self::films::Reel;
use self::order::Order;

/// Why a browser cannot be described.
#[derive(Debug, Error)]
pub enum Undescribed {
    #[error(transparent)]
    NotInstalled(#[from] NotInstalled),
    /// It cannot be started.
    #[error("cannot ask {program} for its version: {cause}")]
    NotAsked {
        /// The browser's program.
        program: PathBuf,
        /// The error.
        #[source]
        cause: io::Error,
    },
    /// It prints no version.
    #[error("{program} does not say its version")]
    NoVersion {
        /// The browser's program.
        program: PathBuf,
    },
}

/// The capabilities of a browser as the client of a trial.
///
/// # Errors
/// If the browser is not installed, or does not print its version.
pub fn describe(browser: Browser) -> Result<Description, Undescribed> {
    let program = browser.find()?;
    let said = std::process::Command::new(&program).arg("--version").output();
    let said = said.map_err(|cause| Undescribed::NotAsked { program: program.clone(), cause })?;
    let text = String::from_utf8_lossy(&said.stdout);
    // `Chromium 156.0.8078.79 built on Debian`, `Mozilla Firefox 153.7.0esr`
    let version = text.split_whitespace().find(|word| word.starts_with(|letter: char| letter.is_ascii_digit()));
    let version = version.ok_or_else(|| Undescribed::NoVersion { program: program.clone() })?;
    Ok(Description {
        contract: CONTRACT_VERSION,
        name: browser.token().to_owned(),
        library: browser.title().to_owned(),
        version: version.to_owned(),
        language: "a browser".to_owned(),
        server: None,
        client: Some(Role {
            protocols: vec![Protocol::H1, Protocol::H2, Protocol::H3],
            features: vec![Feature::Pages],
            exposition: false,
            own_requests: false,
            until_steady: false,
        }),
        sidecar: None,
        control_plane: None,
    })
}

/// Runs the client of a trial and returns its exit status. `program` is wirelab's executable, for the guard. Call it
/// from a thread that lives as long as the process.
pub fn request(
    browser: Browser,
    spec: &str,
    program: &Path,
    input: impl BufRead + Send + 'static,
    output: impl Write,
) -> i32 {
    let mut output = Output(output);
    match play(browser, spec, program, input, &mut output) {
        Ok(()) => 0,
        Err(Refusal::Unsupported(message)) => {
            output.say(&Event::Unsupported { message });
            UNSUPPORTED_STATUS
        }
        Err(Refusal::Failed(message)) => {
            output.say(&Event::Error { kind: ErrorKind::Other, message });
            1
        }
    }
}

/// Why a trial has no results.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Refusal {
    /// The browser does not support a setting of the spec.
    Unsupported(String),
    /// An error occurred.
    Failed(String),
}

impl From<Trouble> for Refusal {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Stopped => Self::Failed("the client received `stop` before it had finished".to_owned()),
            Trouble::Failed { reason, .. } => Self::Failed(reason),
        }
    }
}

fn play(
    browser: Browser,
    spec: &str,
    program: &Path,
    input: impl BufRead + Send + 'static,
    output: &mut Output<impl Write>,
) -> Result<(), Refusal> {
    let order = Order::read(browser, spec)?;
    // Created now, because a failure after the measurement would be too late.
    let mut results = File::create(&order.results).map_err(|error| writing(&order.results, &error))?;
    let words = Words::listen(input);
    let guard = Arc::new(Guard::start(program).map_err(Trouble::from)?);
    let mut session = Session::start(order.setup.clone(), &guard, &words.stop)?;
    let Viewport { width, height } = order.page.viewport;
    let mut configured: Configured = [
        ("browser".to_owned(), format!("{} {}", browser.title(), session.version()).into()),
        ("viewport".to_owned(), format!("{width} x {height}").into()),
    ]
    .into_iter()
    .collect();
    output.say(&Event::Ready { port: None, socket: None, configured: configured.clone() });

    words.wait(Command::Go)?;
    for _ in 0..order.warm_up {
        session.load(&order.page)?;
    }
    output.say(&Event::Warm { until_steady: None });

    let zero = words.wait(Command::Go)?;
    let mut reel = order.expected.film.as_deref().map(Reel::new);
    let loads = measure(&order, &mut session, zero, reel.as_mut())?;
    output.say(&Event::End { window_ns: zero.elapsed().as_nanos() as u64 });

    words.wait(Command::Finish)?;
    for (_, record) in &loads {
        let written = serde_json::to_writer(&mut results, record).map_err(io::Error::from);
        written.and_then(|()| results.write_all(b"\n")).map_err(|error| writing(&order.results, &error))?;
    }
    if let Some(path) = &order.expected.har {
        archive::write(path, &order, loads.iter().map(|(load, _)| load))?;
    }
    if let Some(reel) = &reel {
        reel.write()?;
    }
    if loads.iter().all(|(load, _)| load.outcome == Outcome::Ok)
        && let Some(alpn) = order.setup.protocol.alpn()
    {
        // The check of each load has verified this for every resource.
        configured.insert("alpn".to_owned(), alpn.into());
    }
    session.close()?;
    output.say(&Event::Done {
        requests: Some(loads.len() as u64),
        errors: Default::default(),
        configured,
        transport: None,
    });
    Ok(())
}

/// The loads of the window with their records. A load that is no sample ends the window: the trial has failed.
fn measure(
    order: &Order,
    session: &mut Session,
    zero: Instant,
    mut reel: Option<&mut Reel<'_>>,
) -> Result<Vec<(Load, PageLoad)>, Refusal> {
    let mut loads: Vec<(Load, PageLoad)> = Vec::new();
    loop {
        let goes_on = match order.extent {
            Extent::Requests(wanted) => (loads.len() as u64) < wanted,
            Extent::DurationNs(ns) => zero.elapsed().as_nanos() < u128::from(ns),
        };
        let has_failed = loads.last().is_some_and(|(load, _)| load.outcome != Outcome::Ok);
        if !goes_on || has_failed {
            return Ok(loads);
        }
        let mut load = session.load(&order.page)?;
        let record = record::record(&order.expected, &load);
        if let Some(reel) = &mut reel {
            reel.take(std::mem::take(&mut load.frames));
        }
        load.outcome = record.outcome.clone();
        loads.push((load, record));
    }
}

fn writing(path: &Path, error: &io::Error) -> Refusal {
    Refusal::Failed(format!("writing the results to {}: {error}", path.display()))
}

/// The commands on standard input, read by a thread of their own.
struct Words {
    inbox: Receiver<(Command, Instant)>,
    /// Set by the end of input or an unknown line; ends all waiting for the browser.
    stop: Arc<AtomicBool>,
}

impl Words {
    /// Starts reading. An unknown line and the end of input mean `stop`.
    fn listen(input: impl BufRead + Send + 'static) -> Self {
        let (sender, inbox) = channel();
        let stop = Arc::new(AtomicBool::new(false));
        let raised = Arc::clone(&stop);
        std::thread::spawn(move || {
            for line in input.lines() {
                let at = Instant::now();
                let word = match line.as_deref().map(str::trim) {
                    Ok("go") => Command::Go,
                    Ok("finish") => Command::Finish,
                    Ok("") => continue,
                    Ok(_) | Err(_) => break,
                };
                if sender.send((word, at)).is_err() {
                    return;
                }
            }
            raised.store(true, Ordering::SeqCst);
        });
        Self { inbox, stop }
    }

    /// Waits for a command and returns the time of its arrival.
    fn wait(&self, wanted: Command) -> Result<Instant, Refusal> {
        match self.inbox.recv() {
            Ok((word, at)) if word == wanted => Ok(at),
            Ok((word, _)) => {
                let (word, wanted) = (word.word(), wanted.word());
                Err(Refusal::Failed(format!("the word `{word}` came where `{wanted}` was expected")))
            }
            Err(_) => Err(Trouble::Stopped.into()),
        }
    }
}

/// The stream of events. Write errors are ignored, because the end of input then ends this process.
struct Output<W>(W);

impl<W: Write> Output<W> {
    fn say(&mut self, event: &Event) {
        let mut line = serde_json::to_vec(event).unwrap_or_default();
        line.push(b'\n');
        let _ = self.0.write_all(&line).and_then(|()| self.0.flush());
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    #[test]
    fn what_is_no_spec_for_a_browser_is_refused_before_anything_starts() {
        let play = |spec: &str| {
            let mut said = Vec::new();
            let status =
                request(Browser::Firefox, spec, Path::new("/nonexistent"), BufReader::new(io::empty()), &mut said);
            (status, String::from_utf8(said).unwrap())
        };
        let (status, said) = play("{");
        assert_eq!(status, 1, "{said}");
        assert!(said.starts_with("{\"event\":\"error\""), "{said}");
        let (status, said) = play("{\"contract\":1,\"protocol\":\"zzz\"}");
        assert_eq!(status, UNSUPPORTED_STATUS, "{said}");
        assert!(said.starts_with("{\"event\":\"unsupported\""), "{said}");
    }

    #[test]
    fn words_come_in_their_order_and_the_end_of_input_stops() {
        let words = Words::listen(BufReader::new(&b"go\n\nfinish\n"[..]));
        assert!(words.wait(Command::Go).is_ok());
        let error = words.wait(Command::Go).unwrap_err();
        assert_eq!(error, Refusal::Failed("the word `finish` came where `go` was expected".to_owned()));
        assert_eq!(words.wait(Command::Go).unwrap_err(), Trouble::Stopped.into());
        assert!(words.stop.load(Ordering::SeqCst));
    }
}
