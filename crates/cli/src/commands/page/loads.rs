//! The loads of the command: one at a time, every cell once per block, in random order.

use std::collections::HashMap;
use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use indexmap::IndexMap;
use wirelab_browser::film::{Film, film};
use wirelab_browser::{Browser, Load, Page, Session, Setup, Trouble};
use wirelab_lab::Guard;
use wirelab_model::outcome::Outcome;
use wirelab_model::plan::Trial;
use wirelab_model::protocol::Protocol;
use wirelab_model::reason::Reason;
use wirelab_run::{Blocks, Counter, Pace, each_block};

use crate::args::PageArgs;
use crate::progress::Display;

/// Number of equal failures of a cell in a row after which it is given up, to spare its server and the user.
const GIVE_UP_AFTER: u32 = 2;

/// A page in a browser over a protocol.
pub struct Cell {
    pub page: Page,
    /// The browser, its protocol and its logs.
    pub setup: Setup,
    /// The loads, in the order of time.
    pub loads: Vec<Load>,
    /// The film, or the reason why it is missing; `None` without `--filmstrip`.
    pub film: Option<Result<Film, NoFilm>>,
}

/// Why a cell has no film.
#[derive(Debug)]
pub enum NoFilm {
    /// No load gave a sample, so none was filmed.
    NoSample,
    /// The filmed load failed.
    LoadFailed(Reason),
    /// The pictures make no film.
    NotDeveloped(String),
    /// The browser failed.
    Browser(String),
}

impl fmt::Display for NoFilm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSample => f.write_str("no load gave a sample"),
            Self::LoadFailed(reason) => write!(f, "the filmed load failed: {reason}"),
            Self::NotDeveloped(why) | Self::Browser(why) => f.write_str(why),
        }
    }
}

impl Cell {
    /// Number of loads that are samples.
    pub fn samples(&self) -> usize {
        self.loads.iter().filter(|load| load.outcome == Outcome::Ok).count()
    }

    fn key(&self) -> (Browser, Protocol) {
        (self.setup.browser, self.setup.protocol)
    }
}

/// The browsers that run.
pub type Running = HashMap<(Browser, Protocol), Session>;

/// Loads every cell `loads` times, and returns the versions of the browsers. Browsers that still run stay in `running`.
pub fn measure(
    args: &PageArgs,
    cells: &mut [Cell],
    running: &mut Running,
    pace: &mut Pace,
    guard: &Arc<Guard>,
    stop: &Arc<AtomicBool>,
) -> IndexMap<Browser, String> {
    let counter = Counter::new(args.loads, cells.len());
    let display = Display::new(args.show.quiet);
    let mut loads = Loads { args, cells, running, pace, guard, stop, versions: IndexMap::new(), counter, display };
    let Ok(_) = each_block(&mut loads, 0..args.loads, Some(GIVE_UP_AFTER), stop);
    loads.versions
}

/// The loads of all cells, one at a time.
struct Loads<'a> {
    args: &'a PageArgs,
    cells: &'a mut [Cell],
    running: &'a mut Running,
    pace: &'a mut Pace,
    guard: &'a Arc<Guard>,
    stop: &'a Arc<AtomicBool>,
    versions: IndexMap<Browser, String>,
    counter: Counter,
    display: Display,
}

impl Blocks for Loads<'_> {
    type Error = Infallible;

    fn begin(&mut self, block: u32) -> Result<Vec<Trial>, Infallible> {
        let cells = self.cells.len();
        let first = block * cells as u32;
        let order = (0..).zip(wirelab_browser::block(self.args.seed, block, cells));
        let trial = |(position, cell)| Trial { number: first + position, block, position, cell, seed: self.args.seed };
        Ok(order.map(trial).collect())
    }

    fn label(&self, cell: usize) -> String {
        let setup = &self.cells[cell].setup;
        format!("{} {}", setup.browser, setup.protocol)
    }

    fn outcomes(&self, cell: usize) -> Vec<&Outcome> {
        self.cells[cell].loads.iter().rev().map(|load| &load.outcome).collect()
    }

    fn show(&mut self, trial: &Trial) {
        self.display.show(&self.counter.progress(trial.block, self.label(trial.cell)));
    }

    fn pace(&mut self) -> Option<&mut Pace> {
        Some(self.pace)
    }

    fn perform(&mut self, trial: &Trial) -> Result<bool, Infallible> {
        let cell = &mut self.cells[trial.cell];
        let loaded = session(cell, self.running, self.guard, self.stop).and_then(|mut session| {
            self.versions.entry(cell.setup.browser).or_insert_with(|| session.version().to_owned());
            session.load(&cell.page).map(|load| (session, load))
        });
        match loaded {
            Ok((session, load)) => {
                cell.loads.push(load);
                if self.args.fresh {
                    end(session, cell);
                } else {
                    self.running.insert(cell.key(), session);
                }
            }
            // An interrupted load has no result.
            Err(Trouble::Stopped) => return Ok(false),
            // The browser has ended; the next load starts a new one.
            Err(Trouble::Failed { blame, reason }) => {
                cell.loads.push(Load::not_begun(Outcome::failed(blame, reason)));
            }
        }
        self.counter.count();
        Ok(true)
    }

    /// The result has no load that was not begun.
    fn give_up(&mut self, _: &Trial, _: Outcome) -> Result<(), Infallible> {
        self.counter.count();
        Ok(())
    }
}

/// Ends a browser that is no longer needed. An error is a warning, because the load itself succeeded.
fn end(session: Session, cell: &mut Cell) {
    if let (Err(Trouble::Failed { reason, .. }), Some(load)) = (session.close(), cell.loads.last_mut()) {
        load.warnings.push(format!("what the browser wrote of it may be incomplete: {reason}"));
    }
}

/// The running browser of a cell, or a new one.
fn session(cell: &Cell, running: &mut Running, guard: &Arc<Guard>, stop: &Arc<AtomicBool>) -> Result<Session, Trouble> {
    match running.remove(&cell.key()) {
        Some(session) => Ok(session),
        None => Session::start(cell.setup.clone(), guard, stop),
    }
}

/// Loads the page of a cell once more, and keeps the bodies of its responses.
pub fn save(
    cell: &Cell,
    running: &mut Running,
    pace: &mut Pace,
    guard: &Arc<Guard>,
    stop: &Arc<AtomicBool>,
) -> Result<Load, Trouble> {
    pace.wait(stop);
    if stop.load(Ordering::Relaxed) {
        return Err(Trouble::Stopped);
    }
    let mut session = session(cell, running, guard, stop)?;
    let load = session.load(&Page { bodies: true, ..cell.page.clone() })?;
    running.insert(cell.key(), session);
    Ok(load)
}

/// Films one more load of every cell with a sample, in the running browser or a new one.
pub fn films(cells: &mut [Cell], running: &mut Running, pace: &mut Pace, guard: &Arc<Guard>, stop: &Arc<AtomicBool>) {
    for cell in cells {
        if cell.samples() == 0 {
            cell.film = Some(Err(NoFilm::NoSample));
            continue;
        }
        pace.wait(stop);
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let page = Page { film: true, ..cell.page.clone() };
        let session = session(cell, running, guard, stop);
        let loaded = session.and_then(|mut session| session.load(&page).map(|load| (session, load)));
        pace.rest();
        cell.film = match loaded {
            Ok((session, load)) => {
                running.insert(cell.key(), session);
                Some(match &load.outcome {
                    Outcome::Ok => film(&load.frames).map_err(|error| NoFilm::NotDeveloped(error.to_string())),
                    Outcome::Failed { reason, .. } | Outcome::Unsupported { reason } => {
                        Err(NoFilm::LoadFailed(reason.clone()))
                    }
                })
            }
            Err(Trouble::Stopped) => return,
            Err(Trouble::Failed { reason, .. }) => Some(Err(NoFilm::Browser(reason.to_string()))),
        };
    }
}
