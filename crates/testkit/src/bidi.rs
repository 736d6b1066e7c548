//! A page in a headless Firefox that a test controls by WebDriver BiDi (W3C).

use std::fs;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;
use wirelab_browser::Browser;
use wirelab_browser::wire::{Wire, WireError};

use crate::eventually;
use crate::tab::{Key, Tab};

/// Time-out of a command. A busy machine may take long to start a page.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The browser finds no host by name, so that it reaches 127.0.0.1 only.
const PREFERENCES: &str = "user_pref('network.dns.disabled', true);\n";

/// A page; its browser is killed when the page is dropped.
#[derive(Debug)]
pub struct FirefoxPage {
    browser: Child,
    wire: Wire,
    context: Value,
    _profile: TempDir,
}

impl FirefoxPage {
    /// Starts a browser and opens an address. Use [`crate::browsers::is_here`] before.
    pub fn open(address: &str) -> Self {
        let profile = tempfile::tempdir().unwrap();
        fs::write(profile.path().join("user.js"), PREFERENCES).unwrap();
        let browser = Command::new(Browser::Firefox.find().unwrap())
            .args(["--headless", "--no-remote", "--remote-debugging-port", "0", "--profile"])
            .arg(profile.path())
            .env("HOME", profile.path())
            .env("MOZ_CRASHREPORTER_DISABLE", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let file = profile.path().join("WebDriverBiDiServer.json");
        let mut port = None;
        eventually("the browser listens", || {
            let said: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap_or_default()).unwrap_or_default();
            port = said["ws_port"].as_u64();
            port.is_some()
        });
        let port = u16::try_from(port.unwrap()).unwrap();
        let wire = Wire::connect("127.0.0.1", port, "/session", Arc::default()).unwrap();
        let mut page = Self { browser, wire, context: Value::Null, _profile: profile };
        page.call("session.new", &json!({ "capabilities": {} }));
        let tree = page.call("browsingContext.getTree", &json!({ "maxDepth": 0 }));
        page.context = tree["contexts"][0]["context"].clone();
        page.go(address);
        page
    }

    fn ask(&mut self, method: &str, params: &Value) -> Result<Value, WireError> {
        self.wire.call(json!({ "method": method, "params": params }), Instant::now() + TIMEOUT)
    }

    fn call(&mut self, method: &str, params: &Value) -> Value {
        self.ask(method, params).unwrap_or_else(|error| panic!("{method}: {error:?}"))
    }

    /// Presses the keys with these values of WebDriver (section 17.4.2 of W3C WebDriver), one after the other.
    fn keys(&mut self, values: impl Iterator<Item = char>) {
        let pressed = |value| ["keyDown", "keyUp"].map(|kind| json!({ "type": kind, "value": value }));
        let actions: Vec<_> = values.map(String::from).flat_map(pressed).collect();
        let source = json!({ "type": "key", "id": "keyboard", "actions": actions });
        let perform = json!({ "context": self.context, "actions": [source] });
        self.call("input.performActions", &perform);
    }
}

impl Tab for FirefoxPage {
    fn go(&mut self, address: &str) {
        self.call("browsingContext.navigate", &json!({ "context": self.context, "url": address, "wait": "none" }));
    }

    fn eval(&mut self, expression: &str) -> Value {
        // BiDi has its own form for values; a text has the same one in JSON.
        let expression = format!("Promise.resolve({expression}).then((value) => JSON.stringify(value) ?? 'null')");
        let target = json!({ "context": self.context });
        let wanted = json!({ "expression": expression, "target": target, "awaitPromise": true });
        // While a page is loaded, an expression may fail, and the document that it was sent to may go away.
        let answer = match self.ask("script.evaluate", &wanted) {
            Err(WireError::Refused(_)) => Value::Null,
            answer => answer.unwrap_or_else(|error| panic!("{expression}: {error:?}")),
        };
        answer["result"]["value"].as_str().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    }

    fn press(&mut self, key: Key) {
        self.keys(std::iter::once(match key {
            Key::Tab => '\u{E004}',
            Key::Enter => '\u{E007}',
            Key::Escape => '\u{E00C}',
            Key::ArrowDown => '\u{E015}',
            Key::Backspace => '\u{E003}',
        }));
    }

    fn write(&mut self, text: &str) {
        self.keys(text.chars());
    }

    fn drag(&mut self, from: [i32; 2], to: [i32; 2]) {
        let go_to = |[x, y]: [i32; 2]| json!({ "type": "pointerMove", "x": x, "y": y });
        let button = |kind: &str| json!({ "type": kind, "button": 0 });
        let actions = json!([go_to(from), button("pointerDown"), go_to(to), button("pointerUp")]);
        let mouse = json!({ "pointerType": "mouse" });
        let source = json!({ "type": "pointer", "id": "mouse", "parameters": mouse, "actions": actions });
        self.call("input.performActions", &json!({ "context": self.context, "actions": [source] }));
    }
}

impl Drop for FirefoxPage {
    fn drop(&mut self) {
        let _ = self.browser.kill();
        let _ = self.browser.wait();
    }
}
