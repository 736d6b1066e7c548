//! `wirelab ab`: two builds of a server, interleaved in the blocks of one run.

mod bisect;
mod build;

use indexmap::IndexMap;
use wirelab_lab::{internet, loopback};
use wirelab_model::protocol::Protocol;
use wirelab_model::study::{Factor, Study};
use wirelab_model::units::{Share, Span};

use self::build::Build;
use crate::args::{AbArgs, FailOn, RunArgs};
use crate::commands::run;
use crate::commands::studies::Source;
use crate::failure::{Failure, Result};
use crate::requests;

/// The metrics that decide, unless the user requires something else.
const METRICS: [&str; 2] = ["response_median", "response_p99"];

/// Compares two builds in a new run folder, or finds the first bad one of several.
pub fn ab(args: &AbArgs) -> Result {
    if !args.bisect.is_empty() {
        return bisect::bisect(args);
    }
    let (Some(base), Some(head)) = (&args.base, &args.head) else {
        return Err(Failure::input("--base and --head name the two builds"));
    };
    let builds = [Build::read("--base", base)?, Build::read("--head", head)?];
    let (study, more) = prepared(args, &builds, &METRICS, args.margin)?;
    run::start(study, &args.sets, &RunArgs { max_duration: Some(args.max_duration), plan: args.plan, ..more })
}

/// Compares two builds in a new run folder, without a report.
fn measured(
    args: &AbArgs,
    builds: &[Build; 2],
    metrics: &[&str],
    margin: Share,
    max_duration: Span,
) -> Result<run::Measured> {
    let (study, more) = prepared(args, builds, metrics, margin)?;
    run::measure(study, &args.sets, &RunArgs { max_duration: Some(max_duration), ..more })
}

/// The study that compares two builds, and the options of its run.
fn prepared(args: &AbArgs, builds: &[Build; 2], metrics: &[&str], margin: Share) -> Result<(Study, RunArgs)> {
    let protocol = protocol(args, builds)?;
    let requests = requests::of_ab(args)?;
    let source = Source::generated("ab", study(args, protocol, builds, metrics, margin))?;
    let study = source.with(|study| change(study, builds, requests)).resolve(None, &args.sets)?;
    // A running server is in no lab that starts servers.
    let usual = if is_url(builds) { internet::INFO } else { loopback::INFO };
    let lab = args.lab.as_deref().unwrap_or(usual.name);
    let more = RunArgs {
        server: None,
        study: "ab".to_owned(),
        preset: None,
        sets: args.sets.clone(),
        clients: None,
        lab: Some(lab.to_owned()),
        hosts: None,
        placements: Vec::new(),
        observe: Vec::new(),
        keep: Vec::new(),
        metrics: None,
        out: args.out.clone(),
        fail_on: args.fail_on.clone(),
        max_duration: None,
        plan: false,
        i_may_load_these_hosts: args.i_may_load_these_hosts,
        show: args.show.clone(),
    };
    Ok((study, more))
}

/// Whether the builds run already.
const fn is_url(builds: &[Build; 2]) -> bool {
    matches!(builds, [Build::Url(_), Build::Url(_)])
}

/// The protocol of both builds.
///
/// # Errors
/// If the two builds cannot be compared.
fn protocol(args: &AbArgs, builds: &[Build; 2]) -> Result<Protocol> {
    let [base, head] = builds;
    if base.kind() != head.kind() {
        return Err(Failure::input(format!(
            "--base is {}, and --head is {}: they would differ in more than the build. Give two commands, two URLs or \
             two endpoints",
            base.kind(),
            head.kind()
        )));
    }
    if base.is_same(head) {
        return Err(Failure::input(format!(
            "--base {base} and --head {head} are the same build, so there is nothing to compare; the A/A pair of every run \
             shows the noise. Name two builds with different files or arguments"
        )));
    }
    match (args.protocol, base.protocol(), head.protocol()) {
        (Some(protocol), ..) => Ok(protocol),
        (None, base, head) if base == head => Ok(base),
        (None, base, head) => Err(Failure::input(format!(
            "--base would be measured over {base}, and --head over {head}: they would differ in more than the build. Give \
             both with TLS ({{certificate}}, https://) or both without, or choose with --protocol"
        ))),
    }
}

/// The study that compares two builds by these metrics, without their settings. Blocks continue until the interval is
/// narrower than half of the margin: a wider one could seldom show that the head is within it.
fn study(args: &AbArgs, protocol: Protocol, builds: &[Build; 2], metrics: &[&str], margin: Share) -> String {
    let has_own = args.fail_on.iter().any(|one| matches!(one, FailOn::Violated(_)));
    let require = metrics
        .iter()
        .filter(|_| !has_own)
        .map(|metric| format!("[[require]]\nthat = \"{metric} no more than {margin} worse than the baseline\"\n"));
    let precision = Share(margin.0 / 2.0);
    // The kernel has accounts only of servers on this machine.
    let of_server = ["cpu_server_per_request", "memory_server_peak"].into_iter().filter(|_| !is_url(builds));
    let more = METRICS.into_iter().filter(|metric| !metrics.contains(metric)).chain(["request_rate"]).chain(of_server);
    let all: Vec<&str> = metrics.iter().copied().chain(more).collect();
    format!(
        r#"name = "ab"
title = "ab"
question = "Is the head worse than the base?"
[workload]
protocol = "{protocol}"
duration = "2 s"
connections = 4
workers = 4
warm_up = 100
[factors.build]
base = {{}}
head = {{}}
[compare]
factor = "build"
baseline = "base"
metrics = {all:?}
primary = {metrics:?}
margin = "{margin}"
[blocks]
min = 10
max = 200
precision = "{precision}"
{require}"#,
        require = require.collect::<String>(),
    )
}

/// Puts the builds and the requests into the study. Both are texts of the user, which TOML might read as something
/// else.
fn change(study: &mut Study, builds: &[Build; 2], requests: Vec<wirelab_model::request::WrittenRequest>) {
    let [base, head] = builds;
    let title = format!("{head} (head) against {base} (base)");
    study.title = title.split_whitespace().collect::<Vec<_>>().join(" ");
    study.requests = requests;
    let levels: IndexMap<_, _> =
        [("base".to_owned(), base.settings()), ("head".to_owned(), head.settings())].into_iter().collect();
    study.factors.insert("build".to_owned(), Factor::Levels(levels));
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Command};

    fn args(base: &str, head: &str, words: &[&str]) -> AbArgs {
        let all = ["wirelab", "ab", "--base", base, "--head", head];
        match Cli::try_parse_from(all.iter().chain(words)).unwrap().command {
            Command::Ab(args) => args,
            other => panic!("{other:?}"),
        }
    }

    fn builds(args: &AbArgs) -> [Build; 2] {
        [&args.base, &args.head].map(|build| Build::read("--base", build.as_ref().unwrap()).unwrap())
    }

    fn plan(args: &AbArgs) -> Result<wirelab_model::plan::Plan> {
        let builds = builds(args);
        let text = study(args, protocol(args, &builds)?, &builds, &METRICS, args.margin);
        let mut study = wirelab_plan::parse(&text, "ab").unwrap();
        change(&mut study, &builds, requests::of_ab(args)?);
        Ok(wirelab_plan::plan(&study).map_err(Failure::input)?.0)
    }

    #[test]
    fn the_study_requires_the_margin_unless_the_user_requires_something() {
        let of = |words: &[&str]| {
            let args = args("sh a", "sh b", words);
            wirelab_plan::parse(&study(&args, Protocol::H1c, &builds(&args), &METRICS, args.margin), "ab").unwrap()
        };
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
    fn both_builds_get_the_same_requests_over_a_protocol_that_fits_them() {
        let paths = |plan: &wirelab_model::plan::Plan| -> Vec<String> {
            plan.cells.iter().map(|cell| cell.job.own_requests()[0].path().to_owned()).collect()
        };
        let commands = plan(&args("sh a", "sh b", &[])).unwrap();
        assert_eq!((paths(&commands), commands.cells[0].job.protocol), (vec!["/".to_owned(); 3], Protocol::H1c));
        let secure = plan(&args("sh a {certificate}", "sh b {certificate}", &["--path", "/x"])).unwrap();
        assert_eq!((paths(&secure), secure.cells[0].job.protocol), (vec!["/x".to_owned(); 3], Protocol::H2));
        let urls = ["http://localhost:1/a", "http://localhost:2/b"];
        let own = plan(&args(urls[0], urls[1], &["--method", "PUT"])).unwrap();
        assert_eq!(
            (paths(&own), own.cells[1].job.protocol),
            (["/a", "/b", "/a"].map(str::to_owned).into(), Protocol::H1c)
        );
        assert_eq!(own.cells[0].job.own_requests()[0].method(), "PUT");
        let curl = "curl http://elsewhere:3/c?d=1 -H 'x: y'";
        assert_eq!(paths(&plan(&args(urls[0], urls[1], &["--curl", curl])).unwrap()), vec!["/c?d=1"; 3]);
    }

    #[test]
    fn builds_that_differ_in_more_than_the_build_are_refused() {
        for (base, head, words) in [
            ("sh a", "http://localhost:1/", "--base is a command, and --head is a URL"),
            ("http://localhost:1/", "https://localhost:2/", "over h1c, and --head over h2"),
            ("sh a {certificate}", "sh b", "over h2, and --head over h1c"),
            ("sh a", "sh a", "same build"),
        ] {
            let why = format!("{:?}", plan(&args(base, head, &[])).unwrap_err());
            assert!(why.contains(words), "{why}");
        }
    }
}
