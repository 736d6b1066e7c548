//! Compiles study files to plans. Pure: text in; data or a located error out; randomness comes from the study's seed.
//!
//! The pipeline has three steps, each a function: [`parse`] reads a study file, [`resolve`] applies a preset and the
//! command line's `--set`, and [`plan`] makes cells and comparisons. [`block`] then returns the trials of any block,
//! in an order that depends only on the seed and the block number.
//!
//! ```
//! let text = r#"
//!     name = "mine"
//!     title = "HTTP/1.1 or HTTP/2"
//!     question = "Which answers small requests faster?"
//!     [factors]
//!     protocol = ["h1", "h2"]
//!     payload = ["1 KiB", "64 KiB"]
//!     [compare]
//!     factor = "protocol"
//!     baseline = "h1"
//! "#;
//! let study = wirelab_plan::parse(text, "mine.toml")?;
//! let study = wirelab_plan::resolve(study, None, &["payload=1 KiB".to_owned()])?;
//! let (plan, _warnings) = wirelab_plan::plan(&study)?;
//! let labels: Vec<_> = plan.cells.iter().map(|cell| cell.label()).collect();
//! assert_eq!(labels, [
//!     "protocol=h1 payload=1 KiB",
//!     "protocol=h2 payload=1 KiB",
//!     "protocol=h1 payload=1 KiB (A/A)",
//! ]);
//! assert_eq!(wirelab_plan::block(&plan, 0).len(), plan.cells.len());
//! # Ok::<(), wirelab_plan::StudyError>(())
//! ```

mod bounds;
mod builtin;
mod check;
mod clients;
mod control_plane;
mod duration;
mod error;
mod every;
mod exclude;
mod factor;
mod hosts;
mod installed;
mod job;
mod limits;
mod link;
mod locate;
mod matrix;
mod mesh;
mod mistakes;
mod order;
pub mod own;
mod own_client;
mod page;
mod parse;
mod placed;
mod planted;
pub mod polite;
mod preset;
mod ranges;
mod reference;
mod resolve;
mod sample_size;
mod selectors;
mod site;
pub mod table;
mod timeline;
mod window;
mod words;

pub use bounds::{BareBound, check_bounds, known_statement, require};
pub use builtin::{Builtin, builtin, find};
pub use duration::{EarlierTrial, Expected, expected};
pub use error::StudyError;
pub use every::{Candidate, INSTALLED, Unusable, takes_installed, with_installed};
pub use installed::only_installed;
pub use job::job;
pub use limits::{MAX_CELLS, MAX_TEXT};
pub use matrix::{plan, plan_in};
pub use order::block;
pub use parse::{parse, parse_and, read};
pub use placed::placed;
pub use planted::{PlantedTrial, planted_trials, planting, with_work};
pub use preset::DEFAULT_PRESET;
pub use reference::{ReferenceTrial, reference_trials, references, with_null_server};
pub use resolve::{move_to, resolve};
pub use sample_size::blocks_for_significance;
pub use selectors::{Names, check_names};
pub use window::{ShortWindow, short_windows};
