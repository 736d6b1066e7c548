//! A page in a headless Chromium that a test controls by the Chrome DevTools Protocol.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;
use wirelab_browser::Browser;
use wirelab_browser::wire::{Wire, WireError};

use crate::tab::{Key, Tab};
use crate::{Skip, eventually, skip};

/// Runs axe-core on the whole page, by the rules of WCAG 2.2 at level AA, and returns a line for each violation.
const AXE: &str = "axe.run(document, {
    runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'], resultTypes: ['violations'],
}).then((found) => found.violations.map((rule) =>
    `${rule.id} (${rule.nodes.length}): ${rule.nodes.slice(0, 3).map((node) => node.html.slice(0, 200)).join(' | ')}`))";

/// Time-out of a command. A busy machine may take long to start a page.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A page; its browser is killed when the page is dropped.
#[derive(Debug)]
pub struct Page {
    browser: Child,
    wire: Wire,
    session: Value,
    _profile: TempDir,
}

impl Page {
    /// Starts a browser and opens an address. Use [`crate::browsers::is_here`] before.
    pub fn open(address: &str) -> Self {
        let profile = tempfile::tempdir().unwrap();
        let browser = Command::new(Browser::Chromium.find().unwrap())
            .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0"])
            .args(["--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1", "--window-size=1280,800"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .env("HOME", profile.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let file = profile.path().join("DevToolsActivePort");
        let mut found = None;
        eventually("the browser listens", || {
            let text = fs::read_to_string(&file).unwrap_or_default();
            found = text.split_once('\n').map(|(port, path)| (port.parse().unwrap(), path.trim().to_owned()));
            found.is_some()
        });
        let (port, path) = found.unwrap();
        let wire = Wire::connect("127.0.0.1", port, &path, Arc::default()).unwrap();
        let mut page = Self { browser, wire, session: Value::Null, _profile: profile };
        let target = page.call("Target.createTarget", &json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        page.session = page.call("Target.attachToTarget", &attach)["sessionId"].take();
        page.go(address);
        page
    }

    /// Names of the roles of controls that a screen reader could not name.
    pub fn controls_without_name(&mut self) -> Vec<String> {
        let tree = self.call("Accessibility.getFullAXTree", &json!({}));
        let is_control =
            |role: &str| ["link", "button", "radio", "checkbox", "searchbox", "textbox", "combobox"].contains(&role);
        let nodes = tree["nodes"].as_array().unwrap().iter().filter(|node| node["ignored"] != true);
        let controls = nodes.filter(|node| node["role"]["value"].as_str().is_some_and(is_control));
        let nameless = controls.filter(|node| node["name"]["value"].as_str().unwrap_or_default().is_empty());
        nameless.map(|node| node["role"]["value"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// Shows the page in a window of this size, in light or dark colours.
    pub fn look(&mut self, [width, height]: [u32; 2], is_dark: bool) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", &size);
        let scheme = if is_dark { "dark" } else { "light" };
        let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.call("Emulation.setEmulatedMedia", &media);
    }

    /// Lays the page out as on paper with this space, in CSS pixels.
    pub fn lay_out_on_paper(&mut self, [width, height]: [u32; 2]) {
        self.look([width, height], false);
        self.call("Emulation.setEmulatedMedia", &json!({ "media": "print" }));
        self.eval("dispatchEvent(new Event('beforeprint'))");
    }

    /// What the page prints: a PDF in base64.
    pub fn print(&mut self) -> String {
        let mut printed = self.call("Page.printToPDF", &json!({ "printBackground": true }));
        serde_json::from_value(printed["data"].take()).unwrap()
    }

    /// Violations of accessibility rules that axe-core finds, one line each. `axe` is its script, from [`axe_core`].
    pub fn violations(&mut self, axe: &str) -> Vec<String> {
        self.eval(axe);
        let found = self.eval(AXE);
        found.as_array().expect("axe-core answers").iter().map(|line| line.as_str().unwrap().to_owned()).collect()
    }

    fn call(&mut self, method: &str, params: &Value) -> Value {
        self.ask(method, params).unwrap_or_else(|error| panic!("{method}: {error:?}"))
    }

    fn ask(&mut self, method: &str, params: &Value) -> Result<Value, WireError> {
        let mut command = json!({ "method": method, "params": params });
        if self.session.is_string() {
            command["sessionId"] = self.session.clone();
        }
        self.wire.call(command, Instant::now() + TIMEOUT)
    }
}

/// The script of axe-core that `tests/axe.sh` installed; without it, the test is skipped.
#[track_caller]
pub fn axe_core() -> Option<String> {
    let cache = env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cache")));
    let script = cache.and_then(|cache| fs::read_to_string(cache.join("wirelab/tools/axe-4.12.1.js")).ok());
    if script.is_none() {
        skip(Skip::MissingProgram { program: "axe-core".to_owned(), remedy: "tests/axe.sh".to_owned() });
    }
    script
}

impl Tab for Page {
    fn go(&mut self, address: &str) {
        self.call("Page.navigate", &json!({ "url": address }));
    }

    fn eval(&mut self, expression: &str) -> Value {
        let wanted = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        // While a page is loaded, the document that the expression was sent to may go away.
        match self.ask("Runtime.evaluate", &wanted) {
            Err(WireError::Refused(_)) => Value::Null,
            answer => answer.unwrap_or_else(|error| panic!("{expression}: {error:?}"))["result"]["value"].take(),
        }
    }

    fn press(&mut self, key: Key) {
        let (name, text, code) = match key {
            Key::Tab => ("Tab", "", 9),
            Key::Enter => ("Enter", "\r", 13),
            Key::Escape => ("Escape", "", 27),
            Key::ArrowDown => ("ArrowDown", "", 40),
            Key::Backspace => ("Backspace", "", 8),
        };
        for kind in ["keyDown", "keyUp"] {
            let event = json!({ "type": kind, "key": name, "code": name, "text": text, "windowsVirtualKeyCode": code });
            self.call("Input.dispatchKeyEvent", &event);
        }
    }

    fn write(&mut self, text: &str) {
        for letter in text.chars() {
            for kind in ["keyDown", "keyUp"] {
                self.call("Input.dispatchKeyEvent", &json!({ "type": kind, "key": letter, "text": letter }));
            }
        }
    }

    fn drag(&mut self, from: [i32; 2], to: [i32; 2]) {
        for (kind, [x, y]) in [("mousePressed", from), ("mouseMoved", to), ("mouseReleased", to)] {
            let event = json!({ "type": kind, "x": x, "y": y, "button": "left", "buttons": 1, "clickCount": 1 });
            self.call("Input.dispatchMouseEvent", &event);
        }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let _ = self.browser.kill();
        let _ = self.browser.wait();
    }
}
