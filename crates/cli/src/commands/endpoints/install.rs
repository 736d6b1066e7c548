//! `wirelab endpoints install` and `remove`.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Value, json};
use wirelab_lab::Guard;
use wirelab_lab::endpoints::Installation;

use crate::args::Chosen;
use crate::commands::endpoints::chosen;
use crate::failure::{Failure, Result};
use crate::interrupt::stop_flag;
use crate::output::{print, print_json};
use crate::place::program;

/// Installs the chosen endpoints. A failure does not stop the others.
pub fn install(wanted: &Chosen, jobs: Option<u32>, as_json: bool) -> Result {
    let mut todo = VecDeque::new();
    for found in chosen(wanted)? {
        match (found.installation, found.endpoint) {
            (Some(installation), _) => todo.push_back(installation),
            (None, Err(error)) => return Err(Failure::input(error)),
            (None, Ok(_)) if wanted.which.names.is_empty() => {}
            (None, Ok(_)) => return Err(Failure::input(format!("`{}` needs no installation", found.name))),
        }
    }
    let guard = Arc::new(Guard::start(&program()?).map_err(Failure::failed)?);
    let stop = stop_flag()?;
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let at_a_time = jobs.map_or((processors / 2).max(1), |jobs| jobs as usize);
    let shown = MultiProgress::with_draw_target(if as_json {
        ProgressDrawTarget::hidden()
    } else {
        ProgressDrawTarget::stderr()
    });
    let (todo, done) = (Mutex::new(todo), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..at_a_time {
            scope.spawn(|| {
                while let Some(next) = { todo.lock().expect("no holder of the lock panics").pop_front() } {
                    let result = if stop.load(Ordering::SeqCst) {
                        json!({ "name": next.name, "installed": false, "reason": "not begun: given up on request" })
                    } else {
                        one(&next, &guard, &stop, &shown)
                    };
                    if !as_json {
                        shown.suspend(|| print(&line(&result))).unwrap_or_default();
                    }
                    done.lock().expect("no holder of the lock panics").push(result);
                }
            });
        }
    });
    let done = done.into_inner().expect("no holder of the lock panicked");
    if as_json {
        print_json(&done)?;
    }
    let failed: Vec<_> = done
        .iter()
        .filter(|result| result["installed"] == false)
        .filter_map(|result| result["name"].as_str())
        .collect();
    if stop.load(Ordering::SeqCst) {
        return Err(Failure::interrupted("given up; the next `wirelab endpoints install` goes on from there"));
    }
    match failed.len() {
        0 => Ok(()),
        count => {
            Err(Failure::failed(format!("{count} of {} could not be installed: {}", done.len(), failed.join(", "))))
        }
    }
}

/// Installs one endpoint and shows its progress.
fn one(installation: &Installation, guard: &Arc<Guard>, stop: &AtomicBool, shown: &MultiProgress) -> Value {
    let name = &installation.name;
    let was_there = installation.record().is_some();
    let bar = shown.add(ProgressBar::new_spinner());
    bar.set_style(ProgressStyle::with_template("{elapsed_precise} {wide_msg}").expect("the template is right"));
    bar.enable_steady_tick(Duration::from_millis(200));
    let result = installation.install(guard, stop, wirelab_run::store::journal::timestamp, &mut |doing| {
        bar.set_message(format!("{name}: step {} of {}: {}: {}", doing.step, doing.steps, doing.command, doing.says));
    });
    bar.finish_and_clear();
    match result {
        Ok(record) => json!({ "name": name, "installed": true, "was_there": was_there, "record": record }),
        Err(error) => {
            json!({ "name": name, "installed": false, "reason": error.to_string(), "log": installation.log() })
        }
    }
}

fn line(result: &Value) -> String {
    let name = result["name"].as_str().unwrap_or_default();
    if let Some(reason) = result["reason"].as_str() {
        return format!("{name}  FAILED: {reason}\n");
    }
    let record = &result["record"];
    if record.is_null() {
        return format!("{name}  has nothing to build\n");
    }
    let (seconds, megabytes) = (record["seconds"].as_f64(), record["bytes"].as_f64().map(|bytes| bytes / 1e6));
    let what = format!("{:.0} s, {:.1} MB", seconds.unwrap_or_default(), megabytes.unwrap_or_default());
    let how = if result["was_there"] == true { "is installed already (it took" } else { "installed (" };
    format!("{name}  {how}{}{what})\n", if how.ends_with('(') { "" } else { " " })
}

/// Removes the installed files of the chosen endpoints.
pub fn remove(wanted: &Chosen, as_json: bool) -> Result {
    let mut rows = Vec::new();
    for installation in chosen(wanted)?.into_iter().filter_map(|found| found.installation) {
        let bytes = installation.remove().map_err(Failure::failed)?;
        if !as_json && bytes > 0 {
            print(&format!("{}  removed, {:.1} MB freed\n", installation.name, bytes as f64 / 1e6))?;
        }
        rows.push(json!({ "name": installation.name, "bytes": bytes }));
    }
    if as_json { print_json(&rows) } else { Ok(()) }
}
