//! Drives Firefox through WebDriver BiDi.

pub mod connections;
pub mod events;
mod preferences;
mod warm_up;

use std::collections::HashSet;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use serde_json::{Value, json};
use wirelab_lab::{Folder, Guard};
use wirelab_model::outcome::Blame;

use crate::film::{self, Frame};
use crate::load::Observed;
use crate::logs::take_qlog;
use crate::page::{Page, Setup};
use crate::quiet::Quiet;
use crate::running::{Listens, Running};
use crate::session::Trouble;
use crate::timeline::{PREPARE, READ};
use crate::trust;
use crate::wire::WireError;

use self::connections::Numbers;
use self::warm_up::Elsewhere;

/// The events to subscribe to, for every tab.
const EVENTS: [&str; 7] = [
    "browsingContext.contextCreated",
    "browsingContext.load",
    "browsingContext.userPromptOpened",
    "network.beforeRequestSent",
    "network.responseStarted",
    "network.responseCompleted",
    "network.fetchError",
];

/// A running Firefox.
#[derive(Debug)]
pub struct Firefox {
    running: Running,
    /// The window of Firefox' privileged scope; `None` if this Firefox does not allow access.
    own_scope: Option<Value>,
    numbers: Numbers,
    /// The browser's version.
    pub version: String,
}

impl Firefox {
    /// Starts Firefox with a temporary profile.
    pub fn start(setup: &Setup, guard: &Arc<Guard>, stop: &Arc<AtomicBool>) -> Result<Self, Trouble> {
        let folder = Folder::create(guard)?;
        let profile = folder.path().join("profile");
        std::fs::create_dir(&profile)
            .and_then(|()| std::fs::write(profile.join("user.js"), preferences::user_js(setup)))
            .map_err(|error| runner(format!("cannot write a profile for Firefox: {error}; is the disk full?")))?;
        if let Some(authority) = &setup.authority {
            trust::install(authority, &profile, guard, stop)?;
        }
        let mut program = Command::new(&setup.program);
        program.args(["--headless", "--no-remote", "--remote-debugging-port", "0", connections::FLAG, "--profile"]);
        program.arg(&profile);
        program.env("MOZ_CRASHREPORTER_DISABLE", "1");
        // Makes Firefox end if a page's process crashes: BiDi has no event for it, and the load would wait until its
        // deadline.
        program.env("MOZ_CRASHREPORTER_SHUTDOWN", "1");
        if let Some(keys) = &setup.logs.keys {
            program.env("SSLKEYLOGFILE", keys);
        }
        if setup.logs.qlog.is_some() {
            // Firefox writes qlog files below its temporary folder, where `close` collects them.
            program.env("TMPDIR", folder.path());
        }
        let file = profile.join("WebDriverBiDiServer.json");
        let running = Running::start("Firefox", program, folder, (&file, listens), guard, stop)?;
        let mut firefox = Self { running, own_scope: None, numbers: Numbers::default(), version: String::new() };
        let session = firefox.call("session.new", json!({ "capabilities": {} }))?;
        session["capabilities"]["browserVersion"]
            .as_str()
            .unwrap_or("an unknown version")
            .clone_into(&mut firefox.version);
        firefox.call("session.subscribe", json!({ "events": EVENTS }))?;
        firefox.call("script.addPreloadScript", json!({ "functionDeclaration": PREPARE }))?;
        firefox.warm_up()?;
        firefox.note_connections()?;
        firefox.running.is_ready();
        Ok(firefox)
    }

    /// Makes Firefox record the connection of each response, if it allows that.
    fn note_connections(&mut self) -> Result<(), Trouble> {
        let window = json!({ "maxDepth": 0, "moz:scope": "chrome" });
        let Some(mut tree) = self.ask("browsingContext.getTree", window)? else { return Ok(()) };
        let window = tree["contexts"][0]["context"].take();
        if self.ask("script.evaluate", evaluate(&window, connections::NOTE))?.is_some() {
            self.own_scope = Some(window);
        }
        Ok(())
    }

    /// The responses recorded since the last call; empty if Firefox does not allow recording.
    fn noted(&mut self) -> Result<String, Trouble> {
        let Some(window) = &self.own_scope else { return Ok(String::new()) };
        let answer = self.ask("script.evaluate", evaluate(window, connections::TAKE))?.unwrap_or_default();
        Ok(answer["result"]["value"].as_str().unwrap_or_default().to_owned())
    }

    /// Loads another page first. Firefox reads its table of alternative services during its first request, too late for
    /// that request itself, so a first document would always come over HTTP/2.
    fn warm_up(&mut self) -> Result<(), Trouble> {
        let elsewhere = Elsewhere::open().map_err(|error| runner(format!("cannot listen at 127.0.0.1: {error}")))?;
        let tree = self.call("browsingContext.getTree", json!({ "maxDepth": 0 }))?;
        let tab = &tree["contexts"][0]["context"];
        self.call("browsingContext.navigate", json!({ "context": tab, "url": elsewhere.url(), "wait": "complete" }))?;
        Ok(())
    }

    /// Loads a page in a new user context (container).
    pub fn load(&mut self, page: &Page) -> Result<Observed, Trouble> {
        self.running.wire.forget();
        self.noted()?;
        let made = self.call("browser.createUserContext", json!({}))?;
        let context = &made["userContext"];
        let seen = self.load_in(context, page)?;
        self.call("browser.removeUserContext", json!({ "userContext": context }))?;
        Ok(seen)
    }

    /// Ends Firefox and keeps its qlog files, if they are wanted.
    pub fn close(mut self, qlog: Option<&Path>) -> Result<(), Trouble> {
        self.running.end(command("browser.close", json!({})))?;
        let Some(folder) = qlog else { return Ok(()) };
        take_qlog(self.running.folder(), folder)
            .map_err(|error| runner(format!("cannot keep Firefox' qlog in {}: {error}", folder.display())))
    }

    fn load_in(&mut self, context: &Value, page: &Page) -> Result<Observed, Trouble> {
        let made = self.call("browsingContext.create", json!({ "type": "tab", "userContext": context }))?;
        let tab = made["context"].as_str().unwrap_or_default().to_owned();
        let viewport = json!({ "width": page.viewport.width, "height": page.viewport.height });
        let set = json!({ "context": tab, "viewport": viewport, "devicePixelRatio": 1.0 });
        self.call("browsingContext.setViewport", set)?;
        let deadline = Instant::now() + page.timeout;
        let mut watch = Watch::new(tab.clone(), Quiet::new(deadline));
        // A film starts before anything is visible.
        let until = if page.film { "none" } else { "interactive" };
        let go = json!({ "context": tab, "url": page.url.as_str(), "wait": until });
        let refused = match self.running.wire.call(command("browsingContext.navigate", go), deadline) {
            Ok(_) => None,
            // The events show which requests had no response.
            Err(WireError::Deadline) => None,
            Err(WireError::Refused(words)) => Some(words),
            Err(error) => return Err(self.running.trouble("navigating", error)),
        };
        if refused.is_none() {
            if page.film {
                self.film(&mut watch)?;
            } else {
                self.follow(&mut watch)?;
            }
        } else {
            // Events before the refusal, such as redirects, have already arrived.
            while let Ok(event) = self.running.wire.event(Instant::now()) {
                watch.take(event);
            }
        }
        let loaded = watch.quiet.loaded;
        let timeline = match loaded {
            true => self.timeline(&tab)?,
            false => None,
        };
        let noted = self.noted()?;
        let mut connections = self.numbers.of(&noted);
        let resources = events::resources(&watch.events, &mut connections);
        Ok(Observed { resources, timeline, refused, loaded, crashed: false, frames: watch.frames })
    }

    /// Reads events until the load is over.
    fn follow(&mut self, watch: &mut Watch) -> Result<(), Trouble> {
        loop {
            match self.running.wire.event(watch.quiet.until()) {
                Ok(event) => watch.take(event),
                Err(WireError::Deadline) => return Ok(()),
                Err(error) => return Err(self.running.trouble("loading", error)),
            }
        }
    }

    /// Reads events until the load is over, and takes pictures meanwhile, because Firefox sends none by itself. A
    /// picture gets the time of its arrival, so that its content was visible by then.
    fn film(&mut self, watch: &mut Watch) -> Result<(), Trouble> {
        loop {
            let asked = command("browsingContext.captureScreenshot", json!({ "context": watch.tab }));
            let next = Instant::now() + film::INTERVAL;
            match self.running.wire.call(asked, watch.quiet.deadline()) {
                Ok(answer) => watch.frames.extend(Frame::of(film::now(), &answer["data"])),
                // Between two documents there is no window.
                Err(WireError::Refused(_)) => {}
                Err(WireError::Deadline) => return Ok(()),
                Err(error) => return Err(self.running.trouble("taking a picture", error)),
            }
            loop {
                match self.running.wire.event(next.min(watch.quiet.until())) {
                    Ok(event) => watch.take(event),
                    Err(WireError::Deadline) if watch.quiet.is_over() => return Ok(()),
                    Err(WireError::Deadline) => break,
                    Err(error) => return Err(self.running.trouble("loading", error)),
                }
            }
        }
    }

    fn timeline(&mut self, tab: &str) -> Result<Option<crate::Timeline>, Trouble> {
        let answer = self.call("script.evaluate", evaluate(&tab.into(), READ))?;
        Ok(answer["result"]["value"].as_str().and_then(|text| serde_json::from_str(text).ok()))
    }

    fn call(&mut self, method: &str, params: Value) -> Result<Value, Trouble> {
        self.running.call(method, command(method, params))
    }

    /// As [`Firefox::call`]; `None` if this Firefox refuses the command.
    fn ask(&mut self, method: &str, params: Value) -> Result<Option<Value>, Trouble> {
        match self.running.ask(command(method, params)) {
            Ok(answer) => Ok(Some(answer)),
            Err(WireError::Refused(_)) => Ok(None),
            Err(error) => Err(self.running.trouble(method, error)),
        }
    }
}

/// The state of a load in progress.
struct Watch {
    tab: String,
    /// The tab and its frames.
    contexts: HashSet<String>,
    events: Vec<Value>,
    frames: Vec<Frame>,
    quiet: Quiet,
}

impl Watch {
    fn new(tab: String, quiet: Quiet) -> Self {
        Self { contexts: HashSet::from([tab.clone()]), tab, events: Vec::new(), frames: Vec::new(), quiet }
    }

    fn take(&mut self, event: Value) {
        let params = &event["params"];
        let context = params["context"].as_str().unwrap_or_default();
        let method = event["method"].as_str().unwrap_or_default();
        if method == "browsingContext.contextCreated" {
            if params["parent"].as_str().is_some_and(|parent| self.contexts.contains(parent)) {
                self.contexts.insert(context.to_owned());
            }
            return;
        }
        if !self.contexts.contains(context) {
            return;
        }
        match method {
            "browsingContext.load" if context == self.tab => {
                self.quiet.loaded = true;
                self.quiet.stirred();
            }
            "network.beforeRequestSent" if events::leaves(params) => self.quiet.asked(&events::key(params)),
            "network.responseStarted" | "network.responseCompleted" | "network.fetchError" => {
                self.quiet.answered(&events::key(params));
            }
            _ => {}
        }
        self.events.push(event);
    }
}

/// The parameters to evaluate an expression in a context.
fn evaluate(context: &Value, expression: &str) -> Value {
    json!({ "expression": expression, "target": { "context": context }, "awaitPromise": false })
}

fn command(method: &str, params: Value) -> Value {
    json!({ "method": method, "params": params })
}

fn runner(reason: String) -> Trouble {
    Trouble::Failed { blame: Blame::Runner, reason }
}

/// Parses the file `WebDriverBiDiServer.json`.
fn listens(file: &str) -> Option<Listens> {
    let said: Value = serde_json::from_str(file).ok()?;
    let port = said["ws_port"].as_u64()?.try_into().ok()?;
    Some(Listens { host: said["ws_host"].as_str()?.to_owned(), port, path: "/session".to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_counts_once_it_is_complete() {
        let whole = Listens { host: "127.0.0.1".to_owned(), port: 40123, path: "/session".to_owned() };
        assert_eq!(listens(r#"{"ws_host":"127.0.0.1","ws_port":40123}"#), Some(whole));
        for partial in ["", "{", r#"{"ws_host":"127.0.0.1","#, "{}"] {
            assert_eq!(listens(partial), None, "{partial}");
        }
    }

    #[test]
    fn only_the_tab_and_its_frames_are_followed() {
        let mut watch = Watch::new("tab".to_owned(), Quiet::new(Instant::now()));
        let event = |method: &str, context: &str, parent: Value| json!({ "method": method, "params": { "context": context, "parent": parent } });
        watch.take(event("browsingContext.contextCreated", "frame", json!("tab")));
        watch.take(event("browsingContext.contextCreated", "stranger", json!(null)));
        for context in ["frame", "stranger"] {
            watch.take(event("network.responseCompleted", context, json!(null)));
            watch.take(event("browsingContext.load", context, json!(null)));
        }
        assert_eq!((watch.events.len(), watch.quiet.loaded), (2, false));
        watch.take(event("browsingContext.load", "tab", json!(null)));
        assert!(watch.quiet.loaded);
    }
}
