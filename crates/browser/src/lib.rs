//! Page loads in real browsers, to measure which version of HTTP shows a page sooner.
//!
//! Browsers are separate programs, driven over a WebSocket: Chromium by the Chrome DevTools Protocol, Firefox by
//! WebDriver BiDi. The protocol of every resource is forced and then checked twice: against the browser's network
//! events and against the page's own timeline. Browsers fall back to older versions silently, so a load with a resource
//! over another version is no sample.
//!
//! Pure functions (`chromium/events.rs`, `firefox/events.rs`) convert browser events to [`Resource`]s. Checks, metrics
//! and HAR are the same for all browsers.

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
mod refusal;
mod resource;
mod running;
mod session;
mod timeline;
mod trust;
pub mod wire;

/// Browsers' reports of network events, as [`Resource`]s.
pub mod reports {
    pub use crate::chromium::events as chromium;
    pub use crate::firefox::connections;
    pub use crate::firefox::events as firefox;
}

pub use browser::{Browser, NotInstalled};
pub use load::{HostUse, Load};
pub use logs::Logs;
pub use metrics::METRICS;
pub use order::block;
pub use page::{Origin, Page, Setup, Viewport};
pub use resource::{Body, Moments, Resource};
pub use session::{Session, Trouble};
pub use timeline::Timeline;
