//! An endpoint that the image does not have: it says so as the contract demands, without being started.

use std::time::Instant;

use wirelab_model::endpoint::UNSUPPORTED_STATUS;
use wirelab_model::event::{Command, Event};

use wirelab_lab::{Exit, ExitStatus, LabError, Process, Silence};

/// What is in place of it.
pub(crate) struct Unsupported {
    /// Why it is not there.
    pub(crate) why: String,
}

impl Unsupported {
    fn exit(&self) -> Exit {
        Exit { status: ExitStatus::Code(UNSUPPORTED_STATUS), usage: None, last_words: self.why.clone() }
    }
}

impl Process for Unsupported {
    fn next_event(&mut self, _: Instant) -> Result<Event, Silence> {
        Ok(Event::Unsupported { message: self.why.clone() })
    }

    fn send(&mut self, _: Command) -> Result<(), LabError> {
        Err(LabError(self.why.clone()))
    }

    fn pid(&self) -> Option<u32> {
        None
    }

    fn end(&mut self, _: Instant) -> Exit {
        self.exit()
    }
}
