//! Drives Chromium through the Chrome DevTools Protocol.

pub mod events;
mod flags;

use std::collections::HashSet;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use serde_json::{Value, json};
use wirelab_lab::{Folder, Guard};

use crate::film::Frame;
use crate::load::Observed;
use crate::page::{Page, Setup};
use crate::quiet::Quiet;
use crate::resource::{Body, Resource};
use crate::running::{Listens, Running};
use crate::session::Trouble;
use crate::timeline::{PREPARE, READ};
use crate::trust;
use crate::wire::WireError;

/// The bytes of bodies that Chromium keeps: of one response, which must fit into a message, and of a whole load.
const KEPT_BODIES: [u64; 2] = [10 << 20, 500 << 20];

/// A running Chromium.
#[derive(Debug)]
pub struct Chromium {
    running: Running,
    /// The browser's version.
    pub version: String,
}

impl Chromium {
    /// Starts Chromium with a temporary profile.
    pub fn start(setup: &Setup, guard: &Arc<Guard>, stop: &Arc<AtomicBool>) -> Result<Self, Trouble> {
        let folder = Folder::create(guard)?;
        if let Some(authority) = &setup.authority {
            trust::install(authority, &folder.path().join(".pki/nssdb"), guard, stop)?;
        }
        let profile = folder.path().join("profile");
        let mut program = Command::new(&setup.program);
        program.args(flags::flags(setup, &profile, is_root()));
        if let Some(keys) = &setup.logs.keys {
            program.env("SSLKEYLOGFILE", keys);
        }
        let file = profile.join("DevToolsActivePort");
        let mut running = Running::start("Chromium", program, folder, (&file, listens), guard, stop)?;
        let version = running.call("asking for its version", json!({ "method": "Browser.getVersion" }))?;
        running.is_ready();
        let product = version["product"].as_str().unwrap_or("an unknown version");
        let version = product.rsplit('/').next().unwrap_or(product).to_owned();
        Ok(Self { running, version })
    }

    /// Loads a page in a new browser context.
    pub fn load(&mut self, page: &Page) -> Result<Observed, Trouble> {
        self.running.wire.forget();
        let made = self.browser("Target.createBrowserContext", json!({ "disposeOnDetach": true }))?;
        let context = &made["browserContextId"];
        let seen = self.load_in(context, page)?;
        self.browser("Target.disposeBrowserContext", json!({ "browserContextId": context }))?;
        Ok(seen)
    }

    /// Ends Chromium.
    pub fn close(mut self) -> Result<(), Trouble> {
        self.running.end(command(None, "Browser.close", json!({})))
    }

    fn load_in(&mut self, context: &Value, page: &Page) -> Result<Observed, Trouble> {
        let tab = self.browser("Target.createTarget", json!({ "url": "about:blank", "browserContextId": context }))?;
        let attach = json!({ "targetId": tab["targetId"], "flatten": true });
        let attached = self.browser("Target.attachToTarget", attach)?;
        let mut watch = Watch::new(text(&attached["sessionId"]), Quiet::new(Instant::now() + page.timeout));
        let session = watch.tab.clone();
        let viewport = page.viewport;
        for (method, params) in [
            ("Page.enable", json!({})),
            ("Network.enable", network(page)),
            ("Target.setAutoAttach", auto_attach()),
            ("Page.addScriptToEvaluateOnNewDocument", json!({ "source": format!("({PREPARE})()") })),
            (
                "Emulation.setDeviceMetricsOverride",
                json!({
                    "width": viewport.width, "height": viewport.height, "deviceScaleFactor": 1, "mobile": false
                }),
            ),
        ] {
            self.tab(&session, method, params)?;
        }
        if page.film {
            self.tab(&session, "Page.startScreencast", screencast(page))?;
        }
        let deadline = Instant::now() + page.timeout;
        watch.quiet = Quiet::new(deadline);
        let go = command(Some(&session), "Page.navigate", json!({ "url": page.url.as_str() }));
        let refused = match self.running.wire.call(go, deadline) {
            Ok(answer) => answer["errorText"].as_str().filter(|words| !words.is_empty()).map(str::to_owned),
            // The events show which requests had no response.
            Err(WireError::Deadline) => None,
            Err(error) => return Err(self.running.trouble("navigating", error)),
        };
        if refused.is_none() {
            self.follow(&mut watch)?;
        } else {
            // Events before the refusal, such as redirects, have already arrived.
            while let Ok(event) = self.running.wire.event(Instant::now()) {
                drop(watch.take(event));
            }
        }
        let loaded = watch.quiet.loaded;
        let timeline = match loaded && !watch.crashed {
            true => self.timeline(&session)?,
            false => None,
        };
        let resources = match page.bodies {
            true => self.bodies(&watch.events)?,
            false => events::resources(&watch.events),
        };
        Ok(Observed { resources, timeline, refused, loaded, crashed: watch.crashed, frames: watch.frames })
    }

    /// The resources with their bodies, as far as Chromium kept them.
    fn bodies(&mut self, events: &[Value]) -> Result<Vec<Resource>, Trouble> {
        let mut resources = Vec::new();
        for (mut resource, (session, request)) in events::exchanges(events) {
            // A redirect shares its request id with the request that follows it.
            if resource.redirect.is_none() {
                let ask = command(Some(&session), "Network.getResponseBody", json!({ "requestId": request }));
                resource.body = match self.running.ask(ask) {
                    Ok(answer) => {
                        Some(Body { text: text(&answer["body"]), is_base64: answer["base64Encoded"] == true })
                    }
                    // The body was too large, or the response has none.
                    Err(WireError::Refused(_)) => None,
                    Err(error) => return Err(self.running.trouble("asking for a body", error)),
                };
            }
            resources.push(resource);
        }
        Ok(resources)
    }

    /// Reads events until the load is over.
    fn follow(&mut self, watch: &mut Watch) -> Result<(), Trouble> {
        while !watch.crashed {
            let event = match self.running.wire.event(watch.quiet.until()) {
                Ok(event) => event,
                Err(WireError::Deadline) => return Ok(()),
                Err(error) => return Err(self.running.trouble("loading", error)),
            };
            for command in watch.take(event) {
                let sent = self.running.wire.post(command);
                sent.map_err(|error| self.running.trouble("loading", error))?;
            }
        }
        Ok(())
    }

    fn timeline(&mut self, session: &str) -> Result<Option<crate::Timeline>, Trouble> {
        let answer = self.tab(session, "Runtime.evaluate", json!({ "expression": READ, "returnByValue": true }))?;
        Ok(answer["result"]["value"].as_str().and_then(|text| serde_json::from_str(text).ok()))
    }

    fn browser(&mut self, method: &str, params: Value) -> Result<Value, Trouble> {
        self.running.call(method, command(None, method, params))
    }

    fn tab(&mut self, session: &str, method: &str, params: Value) -> Result<Value, Trouble> {
        self.running.call(method, command(Some(session), method, params))
    }
}

/// The state of a load in progress.
struct Watch {
    /// The session of the tab.
    tab: String,
    /// The sessions of the tab, its cross-site frames and its workers, which run in processes of their own.
    sessions: HashSet<String>,
    events: Vec<Value>,
    frames: Vec<Frame>,
    quiet: Quiet,
    /// Whether a process of the page crashed.
    crashed: bool,
}

impl Watch {
    fn new(tab: String, quiet: Quiet) -> Self {
        let sessions = HashSet::from([tab.clone()]);
        Self { tab, sessions, events: Vec::new(), frames: Vec::new(), quiet, crashed: false }
    }

    /// Records an event; returns the commands that must follow it.
    fn take(&mut self, event: Value) -> Vec<Value> {
        let session = text(&event["sessionId"]);
        if !self.sessions.contains(&session) {
            return Vec::new();
        }
        let params = &event["params"];
        let mut commands = Vec::new();
        match event["method"].as_str().unwrap_or_default() {
            "Target.attachedToTarget" => {
                let child = text(&params["sessionId"]);
                for (method, params) in [
                    ("Network.enable", json!({})),
                    ("Target.setAutoAttach", auto_attach()),
                    ("Runtime.runIfWaitingForDebugger", json!({})),
                ] {
                    commands.push(command(Some(&child), method, params));
                }
                self.sessions.insert(child);
            }
            // A dialog would block the page for ever.
            "Page.javascriptDialogOpening" => {
                commands.push(command(Some(&session), "Page.handleJavaScriptDialog", json!({ "accept": false })));
            }
            "Inspector.targetCrashed" => self.crashed = true,
            "Page.loadEventFired" if session == self.tab => {
                self.quiet.loaded = true;
                self.quiet.stirred();
            }
            "Network.requestWillBeSent" if events::leaves(params) => self.quiet.asked(&text(&params["requestId"])),
            "Network.responseReceived"
            | "Network.loadingFinished"
            | "Network.loadingFailed"
            | "Network.requestServedFromCache" => self.quiet.answered(&text(&params["requestId"])),
            "Network.dataReceived" => self.quiet.stirred(),
            "Page.screencastFrame" => {
                // Chromium sends the next picture only after this acknowledgement.
                let number = json!({ "sessionId": params["sessionId"] });
                commands.push(command(Some(&session), "Page.screencastFrameAck", number));
                let at = params["metadata"]["timestamp"].as_f64().map(|seconds| seconds * 1000.0);
                self.frames.extend(at.and_then(|at| Frame::of(at, &params["data"])));
                return commands;
            }
            _ => {}
        }
        self.events.push(event);
        commands
    }
}

/// Attaches to frames and workers in other processes before they run, so that none of their requests is missed.
fn auto_attach() -> Value {
    json!({ "autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true })
}

/// The sizes of the buffers for bodies.
fn network(page: &Page) -> Value {
    let [each, all] = KEPT_BODIES;
    match page.bodies {
        true => json!({ "maxResourceBufferSize": each, "maxTotalBufferSize": all }),
        false => json!({}),
    }
}

/// Requests every picture that Chromium draws, at half the size: encoding the full size would take longer than drawing.
fn screencast(page: &Page) -> Value {
    json!({
        "format": "png", "everyNthFrame": 1, "maxWidth": page.viewport.width / 2, "maxHeight": page.viewport.height / 2
    })
}

fn command(session: Option<&str>, method: &str, params: Value) -> Value {
    let mut command = json!({ "method": method, "params": params });
    if let Some(session) = session {
        command["sessionId"] = json!(session);
    }
    command
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Parses the file `DevToolsActivePort`: the port and the path, a line each.
fn listens(file: &str) -> Option<Listens> {
    let (port, path) = file.trim_end().split_once('\n')?;
    let path = path.trim();
    // Chromium writes the file in two steps, so it may be incomplete.
    let complete = path.starts_with("/devtools/browser/") && path.len() > 40;
    Some(Listens {
        host: "127.0.0.1".to_owned(),
        port: port.trim().parse().ok().filter(|_| complete)?,
        path: path.to_owned(),
    })
}

/// Chromium has no sandbox for root, and does not start without a flag that disables it.
fn is_root() -> bool {
    std::fs::metadata(Path::new("/proc/self")).is_ok_and(|facts| std::os::unix::fs::MetadataExt::uid(&facts) == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_counts_once_it_is_complete() {
        let path = "/devtools/browser/0a1b2c3d-0000-4000-8000-000000000000";
        let whole = Listens { host: "127.0.0.1".to_owned(), port: 40123, path: path.to_owned() };
        assert_eq!(listens(&format!("40123\n{path}")), Some(whole));
        for partial in ["", "40123", "40123\n", "40123\n/devtools/bro", "40123\n/devtools/browser/0a1b"] {
            assert_eq!(listens(partial), None, "{partial}");
        }
    }
}
