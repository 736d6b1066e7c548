//! The loads of the command: one at a time, every cell once per block, in random order.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use indexmap::IndexMap;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use wirelab_browser::film::{Film, film};
use wirelab_browser::{Browser, Load, Page, Session, Setup, Trouble};
use wirelab_lab::Guard;
use wirelab_model::outcome::Outcome;
use wirelab_model::protocol::Protocol;
use wirelab_model::reason::Reason;
use wirelab_run::Pace;

use crate::args::PageArgs;

/// Number of failed loads after which a cell without a sample is given up, to spare its server and the user.
const GIVE_UP: usize = 2;

/// A page in a browser over a protocol.
pub struct Cell {
    /// The page.
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

    fn is_given_up(&self) -> bool {
        self.loads.len() >= GIVE_UP && self.samples() == 0
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
    let bar = progress(args, cells.len());
    let mut versions = IndexMap::new();
    for number in 0..args.loads {
        for position in wirelab_browser::block(args.seed, number, cells.len()) {
            let cell = &mut cells[position];
            bar.inc(1);
            if cell.is_given_up() {
                continue;
            }
            bar.set_message(format!("{} {}", cell.setup.browser, cell.setup.protocol));
            pace.wait(stop);
            if stop.load(Ordering::Relaxed) {
                break;
            }
            let loaded = session(cell, running, guard, stop).and_then(|mut session| {
                versions.entry(cell.setup.browser).or_insert_with(|| session.version().to_owned());
                session.load(&cell.page).map(|load| (session, load))
            });
            pace.rest();
            match loaded {
                Ok((session, load)) => {
                    cell.loads.push(load);
                    if args.fresh {
                        end(session, cell);
                    } else {
                        running.insert(cell.key(), session);
                    }
                }
                // An interrupted load has no result.
                Err(Trouble::Stopped) => break,
                // The browser has ended; the next load starts a new one.
                Err(Trouble::Failed { blame, reason }) => {
                    cell.loads.push(Load::not_begun(Outcome::failed(blame, reason)));
                }
            }
        }
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
    bar.finish_and_clear();
    versions
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

fn progress(args: &PageArgs, cells: usize) -> ProgressBar {
    let target = if args.show.quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
    let bar = ProgressBar::with_draw_target(Some(u64::from(args.loads) * cells as u64), target);
    let style = ProgressStyle::with_template("{elapsed_precise} {wide_bar:.cyan/dim} {eta} left {msg}");
    bar.with_style(style.expect("the template is right").progress_chars("━━─"))
}
