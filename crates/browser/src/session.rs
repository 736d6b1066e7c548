//! A browser that loads pages one after the other, each in a clean context.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use wirelab_lab::{Guard, LabError};
use wirelab_model::outcome::{Blame, Outcome};

use crate::Browser;
use crate::chromium::Chromium;
use crate::firefox::Firefox;
use crate::load::Load;
use crate::memory::Memory;
use crate::page::{Page, Setup};

/// A running browser with one protocol forced. Dropping it ends the browser.
///
/// Start it from a thread that outlives it ([`wirelab_lab::LocalProcess`]).
#[derive(Debug)]
pub struct Session {
    setup: Setup,
    driver: Driver,
}

#[derive(Debug)]
enum Driver {
    Chromium(Box<Chromium>),
    Firefox(Box<Firefox>),
}

/// Why a browser cannot be used further.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    /// The user interrupted wirelab.
    Stopped,
    /// The browser could not be started, ended, or does not answer.
    Failed {
        /// The party to blame.
        blame: Blame,
        /// The failure in words.
        reason: String,
    },
}

impl Trouble {
    fn seen_with(self, memory: Memory) -> Self {
        match self {
            Self::Stopped => Self::Stopped,
            Self::Failed { blame, reason } => {
                let (blame, reason) = memory.blame(blame, reason);
                Self::Failed { blame, reason }
            }
        }
    }
}

impl From<LabError> for Trouble {
    fn from(error: LabError) -> Self {
        Self::Failed { blame: Blame::Runner, reason: error.to_string() }
    }
}

impl Session {
    /// Starts a browser. `stop` ends all waiting.
    ///
    /// # Errors
    /// If the browser does not start, or the certificate authority cannot be installed.
    pub fn start(setup: Setup, guard: &Arc<Guard>, stop: &Arc<AtomicBool>) -> Result<Self, Trouble> {
        let driver = match setup.browser {
            Browser::Chromium => Driver::Chromium(Box::new(Chromium::start(&setup, guard, stop)?)),
            Browser::Firefox => Driver::Firefox(Box::new(Firefox::start(&setup, guard, stop)?)),
        };
        Ok(Self { setup, driver })
    }

    /// The version that the browser reports.
    #[must_use]
    pub fn version(&self) -> &str {
        match &self.driver {
            Driver::Chromium(chromium) => &chromium.version,
            Driver::Firefox(firefox) => &firefox.version,
        }
    }

    /// Loads a page in an isolated context, without cache, cookies, connections or TLS sessions from earlier loads.
    ///
    /// # Errors
    /// If the browser cannot be used further. A page that fails is no error: the load has the reason.
    pub fn load(&mut self, page: &Page) -> Result<Load, Trouble> {
        let memory = Memory::watch();
        let seen = match &mut self.driver {
            Driver::Chromium(chromium) => chromium.load(page),
            Driver::Firefox(firefox) => firefox.load(page),
        };
        let seen = seen.map_err(|trouble| trouble.seen_with(memory))?;
        let mut load = Load::of(&self.setup, page, seen);
        if let Outcome::Failed { blame, reason } = load.outcome {
            let (blame, reason) = memory.blame(blame, reason.to_string());
            load.outcome = Outcome::failed(blame, reason);
        }
        Ok(load)
    }

    /// Ends the browser as a user would, so that its logs are complete.
    ///
    /// # Errors
    /// If the browser does not end, or a log cannot be kept.
    pub fn close(self) -> Result<(), Trouble> {
        if !self.setup.logs.need_an_end() {
            return Ok(());
        }
        match self.driver {
            Driver::Chromium(chromium) => chromium.close(),
            Driver::Firefox(firefox) => firefox.close(self.setup.logs.qlog.as_deref()),
        }
    }
}
