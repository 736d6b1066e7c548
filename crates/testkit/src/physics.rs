//! The harness of tests that other work on the machine disturbs, or that play several processes. They run one at a time
//! and may declare retries. Each retry is printed with its reason, recorded, and counted at the end of `make test`.

use std::panic::{self, AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::Instant;

use libtest_mimic::{Arguments, Completion, Failed, Trial};

use crate::record::{self, Record};

/// A test that runs alone.
pub struct Test {
    name: String,
    run: Box<dyn Fn() + Send>,
    retries: u32,
    is_quiet: bool,
}

impl Test {
    /// A test by the path of its function; the macro [`test!`](crate::test) calls it.
    pub fn new(path: &str, run: impl Fn() + Send + 'static) -> Self {
        // Without the name of the program, as libtest prints names.
        let name = path.split_once("::").map_or(path, |(_, name)| name).to_owned();
        Self { name, run: Box::new(run), retries: 0, is_quiet: false }
    }

    /// The number of allowed retries. Other work on the machine causes some failures; a defect causes all of them.
    pub fn retries(self, retries: u32) -> Self {
        Self { retries, ..self }
    }

    /// The test needs a quiet machine: only `make test-quiet` runs it.
    pub fn quiet(self) -> Self {
        Self { is_quiet: true, ..self }
    }

    fn into_trial(self) -> Trial {
        let Self { name, run, retries, is_quiet } = self;
        let trial_name = name.clone();
        Trial::ignorable_test(trial_name, move || with_retries(&name, retries, &run)).with_ignored_flag(is_quiet)
    }
}

/// A [`Test`](crate::physics::Test) of a function of this module.
#[macro_export]
macro_rules! test {
    ($function:ident) => {
        $crate::physics::Test::new(concat!(module_path!(), "::", stringify!($function)), $function)
    };
}

/// Runs the selected tests, one after the other.
pub fn main(tests: impl IntoIterator<Item = Test>) -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1);
    panic::set_hook(Box::new(remember));
    libtest_mimic::run(&arguments, tests.into_iter().map(Test::into_trial).collect()).exit_code()
}

/// The message and the place of the last panic.
static PANIC: Mutex<String> = Mutex::new(String::new());

fn remember(info: &PanicHookInfo<'_>) {
    let text = info.to_string();
    eprintln!("{text}");
    if let Ok(mut last) = PANIC.lock() {
        *last = text;
    }
}

fn with_retries(name: &str, retries: u32, run: &dyn Fn()) -> Result<Completion, Failed> {
    let begun = Instant::now();
    let outcome = attempts(name, retries, run);
    record::add(&Record::Seconds { test: name.to_owned(), seconds: begun.elapsed().as_secs_f64() });
    outcome
}

fn attempts(name: &str, retries: u32, run: &dyn Fn()) -> Result<Completion, Failed> {
    for attempt in 1.. {
        record::begin(name);
        let result = catch_unwind(AssertUnwindSafe(run));
        let is_skipped = record::end();
        if result.is_ok() {
            return Ok(if is_skipped {
                Completion::ignored_with("skipped, as said above")
            } else {
                Completion::Completed
            });
        }
        let reason = PANIC.lock().expect("the hook does not panic").clone();
        if attempt > retries {
            return Err(reason.into());
        }
        record::add(&Record::Retry { test: name.to_owned(), attempt, of: retries + 1, reason });
    }
    unreachable!("the last attempt returns")
}
