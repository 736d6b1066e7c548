//! Method, environment, and the command that reproduces the run.

use indexmap::IndexMap;
use wirelab_model::table::{Design, Table};

use crate::numbers::{share, significant};
use crate::{Input, words};

/// A name and its value.
pub(super) struct Fact {
    pub name: String,
    pub value: String,
}

/// A part of the method, with its source.
pub(super) struct Step {
    pub name: &'static str,
    pub text: String,
    pub source: &'static str,
}

/// The method in short.
pub(super) fn steps(input: &Input) -> Vec<Step> {
    let study = &input.manifest.study;
    let plan = &input.manifest.plan;
    let confidence = input
        .analysis
        .cells
        .iter()
        .flat_map(|cell| cell.estimates.values())
        .find_map(|estimate| estimate.interval)
        .map_or_else(String::new, |interval| format!("{} ", share(interval.confidence)));
    let is_primary = |metric: &&String| study.compare.is_primary(metric);
    let primary: Vec<_> =
        study.compare.metrics.iter().filter(is_primary).map(|name| words::title(input, name)).collect();
    let step = |name, text: String, source| Step { name, text, source };
    if let Some(table) = input.table {
        return of_table(table, &confidence, &share(study.compare.margin.0));
    }
    let mut steps = vec![
        step(
            "Design",
            format!(
                "Randomised complete blocks: each block runs every cell once, in an order drawn from seed {}. A trial has fresh processes and is the unit of analysis; requests are not. At least {} blocks, at most {}.",
                plan.seed, plan.min_blocks, plan.max_blocks
            ),
            "R. A. Fisher, The Design of Experiments, 1935",
        ),
        step(
            "Noise floor",
            "Every block has the baseline twice (A/A). The interval of their ratio is the noise floor: a difference inside it may be noise, and one that the A/A pair reaches itself is not called a difference.".to_owned(),
            "",
        ),
        step(
            "Estimates",
            format!(
                "Medians over trials with {confidence}bootstrap intervals. A percentile is computed from the requests of each trial; the estimate is the median of these percentiles over trials, never their average."
            ),
            "B. Efron and R. J. Tibshirani, An Introduction to the Bootstrap, 1993",
        ),
        step(
            "Comparison",
            "Ratio of medians, with a bootstrap interval that resamples blocks, and a two-sided signed-rank test on the pairs of each block. A difference is reported where P after correction is at most 4.5 %, the 95 % interval of the ratio lies on one side of 1, and the A/A pair differs by less. The remaining 0.5 % is for reports before the end of the run, whose tests and intervals hold at every look.".to_owned(),
            "F. Wilcoxon, Individual comparisons by ranking methods, Biometrics Bulletin 1(6), 1945",
        ),
        step(
            "Multiple comparisons",
            format!(
                "P values are corrected over all comparisons of the study in all primary metrics together: {}. Each other metric is exploratory, and corrected by itself. A/A pairs are not in the family.",
                primary.join(", ")
            ),
            "S. Holm, A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics 6(2), 1979",
        ),
        step(
            "Equivalence",
            format!(
                "Cells are equivalent if the 90 % interval of their ratio lies within the margin of ±{} (two one-sided tests at 5 %), even if a smaller difference is significant. Otherwise the comparison is inconclusive, or preliminary with too few blocks.",
                share(study.compare.margin.0)
            ),
            "D. J. Schuirmann, A comparison of the two one-sided tests procedure and the power approach, Journal of Pharmacokinetics and Biopharmaceutics 15(6), 1987",
        ),
        step(
            "Outliers",
            "Values beyond 1.5 times the interquartile range are marked. None is removed from any estimate.".to_owned(),
            "J. W. Tukey, Exploratory Data Analysis, 1977",
        ),
        step(
            "Time",
            "A response time starts at the intended start of the request, not at the actual one, so that a slow server cannot hide delayed requests.".to_owned(),
            "G. Tene, How NOT to Measure Latency, 2013 (coordinated omission)",
        ),
    ];
    if input.analysis.contests.iter().any(|contest| contest.rivals.len() > 1) {
        let pairs = "Under each condition, all pairs of levels are compared, not only each level with the baseline. Their P values are corrected over all pairs under all conditions in all primary metrics. The choice of the apparently best level therefore does not create false winners.".to_owned();
        let source = "J. C. Hsu, Multiple Comparisons: Theory and Methods, 1996";
        let place = steps.iter().position(|step| step.name == "Equivalence").unwrap_or(steps.len());
        steps.insert(place, step("Winners by condition", pairs, source));
    }
    if !input.analysis.requirements.is_empty() {
        let rule = "A requirement is met if tests at 5 % show it for every cell, and not met if one test shows the opposite after Holm's correction over all requirements and cells. Otherwise it is inconclusive. A bound on a median is tested by the sign test over trials, a comparison by the signed-rank test and the interval of the medians, failures by Student's and the binomial test.".to_owned();
        let source =
            "R. L. Berger, Multiparameter hypothesis testing and acceptance sampling, Technometrics 24(4), 1982";
        let place = steps.iter().position(|step| step.name == "Outliers").unwrap_or(steps.len());
        steps.insert(place, step("Requirements", rule, source));
    }
    if !input.analysis.pairs.is_empty() {
        let predicted = "The prediction for the logarithm of a pair's value is an effect of its client plus an effect of its server, fitted by least squares to all other pairs. A pair that deviates beyond chance is omitted from the predictions of the others. Test, interval and correction are as above, over blocks and over all pairs.".to_owned();
        let source = "G. F. Sprague and L. A. Tatum, General vs. specific combining ability in single crosses of corn, Journal of the American Society of Agronomy 34(10), 1942";
        let place = steps.iter().position(|step| step.name == "Equivalence").unwrap_or(steps.len());
        steps.insert(place, step("Clients and servers", predicted, source));
    }
    steps
}

/// The method for an imported table.
fn of_table(table: &Table, confidence: &str, margin: &str) -> Vec<Step> {
    let step = |name, text: String, source| Step { name, text, source };
    let (test, source) = match table.design {
        Design::Blocks => (
            "a bootstrap interval that resamples blocks, and a two-sided signed-rank test on the pairs of each block",
            "F. Wilcoxon, Individual comparisons by ranking methods, Biometrics Bulletin 1(6), 1945",
        ),
        Design::Independent => (
            "a bootstrap interval that resamples either side by itself, and the two-sided test of Brunner and Munzel, which assumes no equal shapes",
            "E. Brunner and U. Munzel, The nonparametric Behrens-Fisher problem: asymptotic theory and a small-sample approximation, Biometrical Journal 42(1), 2000",
        ),
    };
    vec![
        step(
            "Estimates",
            format!("Medians over observations with {confidence}bootstrap intervals."),
            "B. Efron and R. J. Tibshirani, An Introduction to the Bootstrap, 1993",
        ),
        step(
            "Comparison",
            format!(
                "Ratio of medians, with {test}. A difference is reported where P after correction is at most 5 % and the 95 % interval of the ratio lies on one side of 1."
            ),
            source,
        ),
        step(
            "Multiple comparisons",
            "P values are corrected over all comparisons of the table in the same metric.".to_owned(),
            "S. Holm, A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics 6(2), 1979",
        ),
        step(
            "Equivalence",
            format!(
                "Cells are equivalent if the 90 % interval of their ratio lies within the margin of ±{margin} (two one-sided tests at 5 %). Otherwise the comparison is inconclusive, or preliminary with too few values."
            ),
            "D. J. Schuirmann, A comparison of the two one-sided tests procedure and the power approach, Journal of Pharmacokinetics and Biopharmaceutics 15(6), 1987",
        ),
        step(
            "Outliers",
            "Values beyond 1.5 times the interquartile range are marked. None is removed from any estimate.".to_owned(),
            "J. W. Tukey, Exploratory Data Analysis, 1977",
        ),
    ]
}

/// The machine and its system.
pub(super) fn environment(input: &Input) -> Vec<Fact> {
    let machine = &input.manifest.environment;
    let optional = |value: Option<String>, name: &str| {
        value.unwrap_or_else(|| {
            let why = machine.unknown.get(name).map_or("it could not be read", String::as_str);
            format!("unknown: {why}")
        })
    };
    let memory = significant(machine.memory as f64 / 1_073_741_824.0);
    let mut facts: Vec<(&str, String)> = vec![
        ("Lab", input.manifest.lab.clone()),
        ("Observers", input.manifest.observers.join(", ")),
        ("System", machine.system.clone()),
        ("Kernel", machine.kernel.clone()),
        ("Processor", format!("{}, {} in use", machine.cpu, machine.cores)),
        ("Frequency governor", optional(machine.governor.clone(), "governor")),
        ("Hypervisor", machine.hypervisor.clone().unwrap_or_else(|| "none reported".to_owned())),
        ("Memory", format!("{memory} GiB")),
        ("Clock source", optional(machine.clock_source.clone(), "clock_source")),
        ("Smallest clock step seen", format!("{} ns", machine.clock_step_ns)),
        ("Load average at the start", optional(machine.load_average.map(|load| format!("{load:.2}")), "load_average")),
        ("Congestion controls of the kernel", machine.congestion_controls.join(", ")),
        ("wirelab", machine.wirelab.clone()),
        ("Created", input.manifest.created.clone()),
    ];
    for (_, value) in &mut facts {
        if value.is_empty() {
            "unknown: not recorded".clone_into(value);
        }
    }
    let known = ["governor", "clock_source", "load_average"];
    let listed = |entries: &IndexMap<String, String>| {
        entries.iter().map(|(name, value)| format!("{name}: {value}")).collect::<Vec<_>>().join("; ")
    };
    // Older manifests do not have them.
    let more = [
        ("Commit of wirelab", machine.commit.clone().unwrap_or_default()),
        ("Processor model", machine.cpu_model.clone().unwrap_or_default()),
        ("Caches of a processor", listed(&machine.caches)),
        ("Weaknesses of the processor", listed(&machine.mitigations)),
    ];
    facts.extend(more.into_iter().filter(|(_, value)| !value.is_empty()));
    let mut facts: Vec<_> = facts.into_iter().map(|(name, value)| Fact { name: name.to_owned(), value }).collect();
    let unknown = machine.unknown.iter().filter(|(name, _)| !known.contains(&name.as_str()));
    facts.extend(unknown.map(|(name, why)| Fact { name: name.clone(), value: format!("unknown: {why}") }));
    facts
}

/// The kernel's parameters.
pub(super) fn sysctls(input: &Input) -> Vec<Fact> {
    let sysctls = input.manifest.environment.sysctls.iter();
    sysctls.map(|(name, value)| Fact { name: name.clone(), value: value.clone() }).collect()
}

/// An endpoint of the run.
pub(super) struct EndpointRow {
    pub name: String,
    pub library: String,
    pub version: String,
    pub language: String,
    pub digest: String,
}

/// The endpoints of the run.
pub(super) fn endpoints(input: &Input) -> Vec<EndpointRow> {
    let endpoints = input.manifest.endpoints.iter();
    endpoints
        .map(|(name, record)| EndpointRow {
            name: name.clone(),
            library: record.description.library.clone(),
            version: record.description.version.clone(),
            language: record.description.language.clone(),
            digest: record.digest.clone(),
        })
        .collect()
}

/// The command that reproduces the run.
pub(super) fn command(input: &Input) -> String {
    let manifest = input.manifest;
    let mut words = vec!["wirelab".to_owned(), "run".to_owned(), quoted(&manifest.study.name)];
    if let Some(preset) = &manifest.preset {
        words.extend(["--preset".to_owned(), quoted(preset)]);
    }
    for set in &manifest.set {
        words.extend(["--set".to_owned(), quoted(set)]);
    }
    words.extend(["--lab".to_owned(), quoted(&manifest.lab)]);
    if manifest.may_load {
        words.push("--i-may-load-these-hosts".to_owned());
    }
    words.join(" ")
}

/// A word, quoted for a shell if necessary.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=,./:".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}
