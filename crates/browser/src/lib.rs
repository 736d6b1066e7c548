//! Page loads in real browsers: which version of HTTP shows a page sooner, as people see it.
//!
//! A browser is a program of its own that is driven from outside, over a WebSocket: Chromium by the Chrome DevTools Protocol,
//! Firefox by WebDriver BiDi. The protocol of every resource is forced and then checked, twice: by what the browser's network
//! reports, and by what the page's own timeline says. Browsers fall back to older versions silently, so a load with one
//! resource over another version is no sample.
//!
//! What a browser reports becomes [`Resource`]s in pure functions (`chromium/events.rs`, `firefox/events.rs`); checks, metrics
//! and HAR know no browser.

mod browser;
mod check;
mod chromium;
pub mod endpoint;
pub mod film;
mod firefox;
pub mod har;
mod load;
mod logs;
mod memory;
mod metrics;
mod order;
mod page;
mod quiet;
mod resource;
mod running;
mod session;
mod timeline;
mod trust;
mod wire;

pub use browser::{Browser, NotInstalled};
pub use load::{HostUse, Load};
pub use logs::Logs;
pub use metrics::METRICS;
pub use order::block;
pub use page::{Origin, Page, Setup, Viewport};
pub use resource::{Body, Moments, Resource};
pub use session::{Session, Trouble};
pub use timeline::Timeline;
