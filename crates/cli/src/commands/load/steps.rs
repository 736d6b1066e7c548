//! `wirelab load --steps`: one load after another, each with a rate of its own.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use wirelab_endpoint::load::Client;
use wirelab_model::spec::ClientSpec;

use super::judge;
use super::live::words;
use super::step::{self, Step, measure, per_second};
use crate::args::LoadArgs;
use crate::failure::{Failure, Result};
use crate::output::{print, print_json};
use crate::requests::Requests;

/// Measures a step at each rate of `--steps`, and prints their values. Fails as `--fail-on` says, after the last step.
pub fn steps(
    args: &LoadArgs,
    requests: &Requests,
    spec: &ClientSpec,
    client: Client,
    interrupted: &AtomicBool,
) -> Result {
    let mut steps: Vec<Step> = Vec::new();
    for rate in &args.steps {
        let step = measure(args, requests, (spec, client), (steps.len(), rate.0), interrupted)?;
        let Some(step) = step else { break };
        if !args.show.json {
            print(&line(&step))?;
        }
        steps.push(step);
    }
    if args.show.json {
        print_json(&json!({
            "url": requests.url(),
            "address": requests.target.socket(),
        "via": requests.target.via.as_ref().map(ToString::to_string),
            "protocol": spec.protocol,
            "client": client.name(),
            "step_ns": step::length(args).nanos(),
            "steps": steps,
        }))?;
    }
    if interrupted.load(Ordering::Relaxed) {
        return Err(Failure::interrupted("interrupted; the result covers the steps until then"));
    }
    if steps.iter().all(|step| step.requests == 0) {
        return Err(Failure::failed(format!("no request to {} succeeded", requests.url())));
    }
    steps.iter().try_for_each(|step| {
        judge(&args.fail_on, step.errors.values().sum(), step.requests, &step.values)
            .map_err(|failure| failure.within(&format!("the step at {}", per_second(step.rate_per_s))))
    })
}

/// A step for people.
fn line(step: &Step) -> String {
    let mut line = format!("{:>12}", per_second(step.rate_per_s));
    for (word, width) in words(&step.values).iter().zip([12, 17, 14, 14]) {
        line.push_str(&format!("  {word:>width$}"));
    }
    line.push_str(&format!("  {}\n", step.remarks()));
    line
}
