//! `wirelab ab`: two builds of a server, interleaved in the blocks of one run.

use wirelab_lab::endpoints;
use wirelab_model::endpoint::Endpoint;

use crate::args::{AbArgs, FailOn, RunArgs};
use crate::commands::run;
use crate::commands::studies::Source;
use crate::failure::{Failure, Result};
use crate::place::program;

/// Compares two builds in a new run folder.
pub fn ab(args: &AbArgs) -> Result {
    let [base, head] = [&args.base, &args.head].map(|name| endpoints::find(&program()?, name).map_err(Failure::input));
    let (base, head) = (base?, head?);
    if args.base == args.head || is_same_build(&base, &head) {
        return Err(Failure::input(format!(
            "--base {} and --head {} are the same build, so there is nothing to compare; the A/A pair of every run shows \
             the noise. Name endpoints with different programs",
            args.base, args.head
        )));
    }
    let study = Source::generated("ab", study(args))?.resolve(None, &args.sets)?;
    run::start(
        study,
        &args.sets,
        &RunArgs {
            server: None,
            study: "ab".to_owned(),
            preset: None,
            sets: args.sets.clone(),
            clients: None,
            lab: Some(args.lab.clone()),
            observe: Vec::new(),
            keep: Vec::new(),
            metrics: None,
            out: args.out.clone(),
            fail_on: args.fail_on.clone(),
            max_duration: Some(args.max_duration),
            plan: args.plan,
            i_may_load_these_hosts: false,
            show: args.show.clone(),
        },
    )
}

/// The study that compares the two endpoints. Blocks continue until the interval is narrower than half of the margin:
/// a wider one could seldom show that the head is within it.
fn study(args: &AbArgs) -> String {
    let AbArgs { base, head, protocol, margin, .. } = args;
    let has_own = args.fail_on.iter().any(|one| matches!(one, FailOn::Violated(_)));
    let required = ["response_median", "response_p99"].into_iter().filter(|_| !has_own);
    let require = required
        .map(|metric| format!("[[require]]\nthat = \"{metric} no more than {margin} worse than the baseline\"\n"));
    let precision = wirelab_model::units::Share(margin.0 / 2.0);
    format!(
        r#"name = "ab"
title = {title:?}
question = "Is the head worse than the base?"
[workload]
protocol = "{protocol}"
duration = "2 s"
connections = 4
workers = 4
warm_up = 100
[factors.build]
base = {{ server = {base:?} }}
head = {{ server = {head:?} }}
[compare]
factor = "build"
baseline = "base"
metrics = ["response_median", "response_p99", "request_rate", "cpu_server_per_request", "memory_server_peak"]
primary = ["response_median", "response_p99"]
margin = "{margin}"
[blocks]
min = 10
max = 200
precision = "{precision}"
{require}"#,
        title = format!("{head} (head) against {base} (base)"),
        require = require.collect::<String>(),
    )
}

/// Whether two endpoints start the same program with the same arguments. Files are compared by content.
fn is_same_build(base: &Endpoint, head: &Endpoint) -> bool {
    let parts = |endpoint: &Endpoint| -> Vec<Vec<u8>> {
        let file = |word: &String| endpoint.folder.clone().unwrap_or_default().join(word);
        endpoint
            .command
            .iter()
            .map(|word| std::fs::read(file(word)).unwrap_or_else(|_| word.clone().into_bytes()))
            .collect()
    };
    base.environment == head.environment && parts(base) == parts(head)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Command};

    fn args(words: &[&str]) -> AbArgs {
        let all = ["wirelab", "ab", "--base", "one", "--head", "two"].iter().chain(words);
        match Cli::try_parse_from(all).unwrap().command {
            Command::Ab(args) => args,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_study_requires_the_margin_unless_the_user_requires_something() {
        let of = |words: &[&str]| wirelab_plan::parse(&study(&args(words)), "ab").unwrap();
        let plain = of(&["--margin", "8 %"]);
        let required: Vec<_> = plain.require.iter().map(|one| one.that.to_string()).collect();
        assert_eq!(
            required,
            [
                "response_median no more than 8 % worse than the baseline",
                "response_p99 no more than 8 % worse than the baseline"
            ]
        );
        assert_eq!((plain.blocks.precision.0, plain.compare.margin.0), (0.04, 0.08));
        assert!(of(&["--fail-on", "p99 > 50 ms"]).require.is_empty());
        assert_eq!(of(&["--fail-on", "inconclusive"]).require.len(), 2);
    }

    #[test]
    fn builds_are_the_same_if_their_files_are() {
        let folder = tempfile::tempdir().unwrap();
        let endpoint = |name: &str, text: &str| {
            let own = folder.path().join(name);
            std::fs::create_dir_all(&own).unwrap();
            std::fs::write(own.join("server.py"), text).unwrap();
            Endpoint {
                name: name.to_owned(),
                command: vec!["python3".to_owned(), "server.py".to_owned()],
                environment: Default::default(),
                folder: Some(own),
                installation: None,
            }
        };
        assert!(is_same_build(&endpoint("a", "print(1)"), &endpoint("b", "print(1)")));
        assert!(!is_same_build(&endpoint("a", "print(1)"), &endpoint("b", "print(2)")));
    }
}
