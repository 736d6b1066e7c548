//! Films of pages: what a browser leaves of the loads of a trial that were filmed.

use serde::{Deserialize, Serialize};

use crate::metric::Value;

/// The file in the folder of a trial's films that holds [`Films`].
pub const INDEX: &str = "film.json";

/// The films of a trial.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Films {
    /// The Speed Index of each load of the window in nanoseconds, or the reason why it has none.
    pub speed_index: Vec<Value>,
    /// The film of the load whose Speed Index is the median: of an even number the faster of the two in the middle. Absent where no
    /// load has one.
    pub typical: Option<Film>,
}

/// A film of one load, as it is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Film {
    /// Its Speed Index.
    pub speed_index_ns: f64,
    /// When the window looked as it does at the end for the first time and for good.
    pub complete_ns: f64,
    /// Its pictures, each of which differs from the one before.
    pub pictures: Vec<Picture>,
}

/// A film with its pictures, each a JPEG, in their order.
pub type Developed = (Film, Vec<Vec<u8>>);

/// A picture of the window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Picture {
    /// When the window began to look so, counted from the start of the navigation.
    pub at_ns: f64,
    /// How much of the page is there, from 0 to 1.
    pub progress: f64,
    /// Its file beside the index, a JPEG.
    pub file: String,
}
