//! Films of page loads: the files that a browser records in a filmed trial.

use serde::{Deserialize, Serialize};

use crate::metric::Value;

/// Name of the file with [`Films`], in the folder of a trial's films.
pub const INDEX: &str = "film.json";

/// The films of a trial.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Films {
    /// Speed Index of each load of the window in nanoseconds, or the reason why it is missing.
    pub speed_index: Vec<Value>,
    /// The film of the load with the median Speed Index; of an even number of loads, the faster of the middle two.
    /// Absent if no load has a Speed Index.
    pub typical: Option<Film>,
}

/// The film of one load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Film {
    /// Speed Index in nanoseconds.
    pub speed_index_ns: f64,
    /// Time in nanoseconds from which the window looked as at the end.
    pub complete_ns: f64,
    /// Pictures in order; each differs from its predecessor.
    pub pictures: Vec<Picture>,
}

/// A film with the data of its pictures (JPEG), in order.
pub type Developed = (Film, Vec<Vec<u8>>);

/// A picture of the window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Picture {
    /// Time in nanoseconds since the start of the navigation at which this picture appeared.
    pub at_ns: f64,
    /// Visual progress of the page, from 0 to 1.
    pub progress: f64,
    /// Name of the JPEG file, in the folder of the index.
    pub file: String,
}
