//! A page of `wirelab serve` in a browser that a test controls, whichever browser it is.

use serde_json::Value;
use wirelab_browser::Browser;

use crate::bidi::FirefoxPage;
use crate::browsers::browsers;
use crate::devtools::Page;
use crate::eventually;

/// A key that no text has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    Tab,
    Enter,
    Escape,
    ArrowDown,
    Backspace,
}

/// A page in a browser.
pub trait Tab {
    /// Opens another address in the same page.
    fn go(&mut self, address: &str);

    /// The value of a JavaScript expression, or what its promise gives.
    fn eval(&mut self, expression: &str) -> Value;

    /// Presses a key.
    fn press(&mut self, key: Key);

    /// Types a text into the element that has the focus.
    fn write(&mut self, text: &str);

    /// Drags the mouse between two points of the viewport, in CSS pixels.
    fn drag(&mut self, from: [i32; 2], to: [i32; 2]);

    /// Waits until a JavaScript expression is true.
    #[track_caller]
    fn until(&mut self, expression: &str) {
        eventually(expression, || self.eval(expression) == true);
    }
}

/// The page at an address, in each browser that can be tested. Each browser starts when its turn comes.
#[track_caller]
pub fn in_each_browser(address: &str) -> impl Iterator<Item = (Browser, Box<dyn Tab>)> {
    let here = browsers();
    Browser::ALL.into_iter().filter(move |browser| here.contains(&browser.token())).map(move |browser| {
        let tab: Box<dyn Tab> = match browser {
            Browser::Chromium => Box::new(Page::open(address)),
            Browser::Firefox => Box::new(FirefoxPage::open(address)),
        };
        (browser, tab)
    })
}
