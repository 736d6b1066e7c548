//! Pictures of the window during a page load, and how soon it looks complete.
//!
//! Taking pictures costs the browser time, so filmed loads are never measured otherwise.

mod image;
mod progress;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::timeline::Timeline;

pub use image::small;
pub use progress::{Film, Shot, film};

/// The interval of pictures in browsers that are asked for each.
pub(crate) const INTERVAL: Duration = Duration::from_millis(100);

/// A picture of the window.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    /// When the window looked like this, in milliseconds: of the Unix epoch, or since the start of the navigation.
    pub at: f64,
    /// The picture as PNG.
    pub png: Vec<u8>,
}

impl Frame {
    /// Decodes a picture from a browser's message, in base64.
    pub(crate) fn of(at: f64, data: &Value) -> Option<Self> {
        Some(Self { at, png: STANDARD.decode(data.as_str()?).ok()? })
    }
}

/// The current time in milliseconds of the Unix epoch, as browsers report times.
pub(crate) fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64() * 1000.0)
}

/// The pictures with times since the start of the navigation; none without a timeline, because the start is then
/// unknown. Older pictures show another page, or a window without its final size, and are dropped.
pub(crate) fn since_navigation(frames: Vec<Frame>, timeline: Option<&Timeline>) -> Vec<Frame> {
    let Some(timeline) = timeline else { return Vec::new() };
    let since = frames.into_iter().map(|frame| Frame { at: frame.at - timeline.origin, ..frame });
    let mut frames: Vec<_> = since.filter(|frame| frame.at >= 0.0).collect();
    frames.sort_by(|one, other| one.at.total_cmp(&other.at));
    frames
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn times_count_from_the_navigation() {
        let frame = |at| Frame { at, png: vec![1] };
        let timeline = Timeline { origin: 1000.0, ..Timeline::default() };
        let found = since_navigation(vec![frame(1250.5), frame(990.0), frame(1000.0)], Some(&timeline));
        assert_eq!(found, [frame(0.0), frame(250.5)]);
        assert!(since_navigation(vec![frame(1250.5)], None).is_empty(), "the start of the navigation is unknown");
    }

    #[test]
    fn what_is_no_picture_is_none() {
        assert_eq!(Frame::of(1.0, &json!("AQ==")), Some(Frame { at: 1.0, png: vec![1] }));
        assert_eq!(Frame::of(1.0, &json!(null)), None);
        assert_eq!(Frame::of(1.0, &json!("?")), None);
    }
}
