//! The harness of tests that other work on the machine disturbs, or that play several processes. They may declare
//! retries. Each retry is printed with its reason, recorded, and counted at the end of `make test`.
//!
//! A test runs alone unless it declares that it can run beside others. Those run first, several at a time, because they
//! mostly wait: for a browser, a window, or the end of a process.

use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::process::ExitCode;
use std::sync::{Condvar, Mutex};
use std::thread;
use std::time::Instant;

use libtest_mimic::{Arguments, Completion, Failed, Trial};

use crate::record::{self, Record};

/// A test that runs alone, unless it is declared otherwise.
pub struct Test {
    name: String,
    run: Box<dyn Fn() + Send + Sync>,
    retries: u32,
    is_quiet: bool,
    company: Company,
}

/// How many other tests may run at the same time. Tests run in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Company {
    Many,
    Few,
    None,
}

impl Test {
    /// A test by the path of its function; the macro [`test!`](crate::test) calls it.
    pub fn new(path: &str, run: impl Fn() + Send + Sync + 'static) -> Self {
        // Without the name of the program, as libtest prints names.
        let name = path.split_once("::").map_or(path, |(_, name)| name).to_owned();
        Self { name, run: Box::new(run), retries: 0, is_quiet: false, company: Company::None }
    }

    /// The number of allowed retries. Other work on the machine causes some failures; a defect causes all of them.
    pub fn retries(self, retries: u32) -> Self {
        Self { retries, ..self }
    }

    /// The test needs a quiet machine: only `make test-quiet` runs it.
    pub fn quiet(self) -> Self {
        Self { is_quiet: true, ..self }
    }

    /// The test can run at the same time as many others that declare this. It must not count what the whole machine
    /// does, and no assertion may depend on the speed of the machine.
    pub fn side_by_side(self) -> Self {
        Self { company: Company::Many, ..self }
    }

    /// The test can run at the same time as one or two others that declare this, because browsers or many processes
    /// need processor time now and then.
    pub fn beside_few(self) -> Self {
        Self { company: Company::Few, ..self }
    }

    fn into_trial(self, places: &'static Places) -> Trial {
        let Self { name, run, retries, is_quiet, company } = self;
        let trial_name = name.clone();
        let run = move || places.within(company, || with_retries(&name, retries, &run));
        Trial::ignorable_test(trial_name, run).with_ignored_flag(is_quiet)
    }
}

/// Places for tests. A test waits until enough of them are free.
struct Places {
    all: usize,
    free: Mutex<usize>,
    changed: Condvar,
}

impl Places {
    fn new(all: usize) -> Self {
        Self { all, free: Mutex::new(all), changed: Condvar::new() }
    }

    /// Calls a function while it has the places that its company requires.
    fn within<T>(&self, company: Company, run: impl FnOnce() -> T) -> T {
        let needed = match company {
            Company::Many => 1,
            Company::Few => 2,
            Company::None => self.all,
        };
        let free = self.free.lock().expect("no test panics here");
        let mut free = self.changed.wait_while(free, |free| *free < needed).expect("no test panics here");
        *free -= needed;
        drop(free);
        let result = run();
        *self.free.lock().expect("no test panics here") += needed;
        self.changed.notify_all();
        result
    }
}

/// A [`Test`](crate::physics::Test) of a function of this module.
#[macro_export]
macro_rules! test {
    ($function:ident) => {
        $crate::physics::Test::new(concat!(module_path!(), "::", stringify!($function)), $function)
    };
}

/// Runs the selected tests: first the tests that can run beside others, then the others one after the other.
pub fn main(tests: impl IntoIterator<Item = Test>) -> ExitCode {
    let mut arguments = Arguments::from_args();
    let mut tests: Vec<_> = tests.into_iter().collect();
    tests.sort_by_key(|test| test.company);
    // Such tests mostly wait: three for each processor keep the machine busy.
    let most = 3 * thread::available_parallelism().map_or(1, usize::from);
    let have_company = tests.iter().any(|test| test.company != Company::None);
    let threads = arguments.test_threads.filter(|threads| *threads > 0).unwrap_or(most);
    arguments.test_threads = Some(if have_company { threads } else { 1 });
    panic::set_hook(Box::new(remember));
    let places: &'static Places = Box::leak(Box::new(Places::new(most)));
    let trials = tests.into_iter().map(|test| test.into_trial(places)).collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}

thread_local! {
    /// The message and the place of this thread's last panic.
    static PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

fn remember(info: &PanicHookInfo<'_>) {
    let text = info.to_string();
    eprintln!("{text}");
    // A panic while another one is stored is only printed.
    PANIC.with(|last| last.try_borrow_mut().map(|mut last| *last = text).unwrap_or_default());
}

fn with_retries(name: &str, retries: u32, run: &(dyn Fn() + Sync)) -> Result<Completion, Failed> {
    let begun = Instant::now();
    let outcome = attempts(name, retries, run);
    record::add(&Record::Seconds { test: name.to_owned(), seconds: begun.elapsed().as_secs_f64() });
    outcome
}

fn attempts(name: &str, retries: u32, run: &(dyn Fn() + Sync)) -> Result<Completion, Failed> {
    for attempt in 1.. {
        let reason = match in_a_thread(name, run) {
            Ok(is_skipped) if is_skipped => return Ok(Completion::ignored_with("skipped, as said above")),
            Ok(_) => return Ok(Completion::Completed),
            Err(reason) => reason,
        };
        if attempt > retries {
            return Err(reason.into());
        }
        record::add(&Record::Retry { test: name.to_owned(), attempt, of: retries + 1, reason });
    }
    unreachable!("the last attempt returns")
}

/// Whether a run was skipped as a whole, or the reason of its failure. Each run has a thread of its own, because some
/// tests move their thread into another network, and libtest_mimic uses its threads again.
fn in_a_thread(name: &str, run: &(dyn Fn() + Sync)) -> Result<bool, String> {
    let run = || {
        record::begin(name);
        let result = catch_unwind(AssertUnwindSafe(run));
        let is_skipped = record::end();
        result.map(|()| is_skipped).map_err(|_| PANIC.with(|last| last.borrow().clone()))
    };
    let ended = thread::scope(|scope| {
        let started = thread::Builder::new().name(name.to_owned()).spawn_scoped(scope, run);
        started.expect("a thread for the test").join()
    });
    ended.expect("panics are caught")
}
