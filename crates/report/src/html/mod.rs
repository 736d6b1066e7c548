//! The report as one self-contained HTML page: no network, no other files, readable without scripts.

mod detail;
mod heatmap;
mod matrix;
mod method;
mod pairs;
mod results;
mod table;

use askama::Template;
use indexmap::{IndexMap, IndexSet};
use wirelab_model::study::Study;
use wirelab_stats::analysis::ClaimVerdict;

use crate::Input;
use crate::charts::{self, Chart};
use crate::failures::failures;
use crate::headline::{Headline, headline};
use crate::html::detail::{ComparisonRow, Force, MetricTable};
use crate::html::heatmap::HeatMap;
use crate::html::matrix::Matrix;
use crate::html::method::{Fact, Step};
use crate::html::pairs::Pairs;
use crate::html::results::ResultTable;
use crate::html::table::TableView;
use crate::layout::{Group, Layout, level_title};
use crate::published::{self, Pair};
use crate::shares::{self, Shares};
use crate::summary::{self, Sentence};
use crate::{by_request, claims, limits, links, overhead, paths, planted, warnings, words};

/// With more groups than this, the page folds their tables and shows a matrix as overview.
const MANY: usize = 6;

/// The report as a self-contained page.
///
/// # Panics
/// Never: writing to memory cannot fail.
#[must_use]
pub fn html(input: &Input) -> String {
    let layout = Layout::new(input);
    let failures = failures(input);
    let manifest = input.manifest;
    let page = Page {
        study: &manifest.study,
        style: include_str!("../../templates/report.css"),
        script: include_str!("../../templates/report.js"),
        created: &manifest.created,
        lab: &manifest.lab,
        factor: &manifest.study.compare.factor,
        first_metric: input
            .metric(input.first_metric())
            .map_or_else(|| input.first_metric().to_owned(), |metric| words::phrase(metric.title)),
        headline: headline(input, &layout),
        overview: charts::overview(input, &layout),
        badges: badges(input, failures.len()),
        filters: filters(&layout),
        levels: layout.groups.iter().map(|group| (group.title(), levels(group))).collect(),
        verdicts: summary::verdicts(input, &layout),
        ground: summary::ground(input, &layout),
        maps: heatmap::maps(input, &layout),
        hues: heatmap::hues(&layout),
        pairs: pairs::pairs(input, &failures),
        matrix: matrix::matrix(input, &layout),
        many: layout.groups.len() > MANY,
        tables: results::tables(input, &layout, &failures),
        table: table::view(input, &layout),
        counted: input.design().counted(),
        failures: failures
            .iter()
            .map(|failure| FailureRow {
                cell: manifest.plan.cells[failure.cell].label(),
                trials: format!("{} of {}", failure.trials, failure.of),
                outcome: failure.outcome,
                blame: &failure.blame,
                reason: &failure.reason,
            })
            .collect(),
        charts: charts::main(input, &layout),
        more_charts: charts::more(input, &layout),
        shares: shares::shares(input),
        claims: claim_rows(input, false),
        untested_claims: claim_rows(input, true),
        published: published::pairs(input),
        limits: limits::section(input),
        limits_heading: limits::HEADING,
        limits_header: limits::HEADER,
        planted: planted::section(input),
        planted_heading: planted::HEADING,
        planted_header: planted::HEADER,
        warnings: warnings::grouped(input),
        comparisons: detail::comparisons(input),
        metrics: detail::metric_tables(input, &layout),
        definitions: detail::definitions(input),
        force: detail::force(input, &layout),
        method: method::steps(input),
        request_header: by_request::HEADER,
        requests: by_request::rows(input),
        request_note: by_request::NOTE,
        overhead_header: overhead::HEADER,
        overhead: overhead::rows(input),
        overhead_note: overhead::NOTE,
        link_header: links::HEADER,
        links: links::rows(input.links),
        link_note: links::NOTE,
        path_header: paths::HEADER,
        paths: paths::rows(input.links),
        path_note: paths::NOTE,
        environment: method::environment(input),
        sysctls: method::sysctls(input),
        endpoints: method::endpoints(input),
        command: method::command(input),
        seed: manifest.plan.seed,
        wirelab: &manifest.environment.wirelab,
    };
    page.render().expect("writing to memory cannot fail")
}

#[derive(Template)]
#[template(path = "report.html")]
struct Page<'a> {
    study: &'a Study,
    style: &'static str,
    script: &'static str,
    created: &'a str,
    lab: &'a str,
    factor: &'a str,
    first_metric: String,
    headline: Headline,
    overview: Option<Chart>,
    badges: Vec<Badge>,
    filters: IndexMap<String, IndexSet<String>>,
    /// The levels of each group in JSON, by the group's title.
    levels: IndexMap<String, String>,
    verdicts: Vec<Sentence>,
    ground: Vec<String>,
    maps: Vec<HeatMap>,
    hues: Vec<(usize, String)>,
    pairs: Option<Pairs>,
    matrix: Option<Matrix>,
    many: bool,
    tables: Vec<ResultTable>,
    table: Option<TableView>,
    counted: &'static str,
    failures: Vec<FailureRow<'a>>,
    charts: Vec<Chart>,
    more_charts: Vec<Chart>,
    shares: Vec<Shares>,
    claims: Vec<ClaimRow<'a>>,
    untested_claims: Vec<ClaimRow<'a>>,
    published: Vec<Pair>,
    limits: Option<limits::Section>,
    limits_heading: &'static str,
    limits_header: [&'static str; 5],
    planted: Option<planted::Section>,
    planted_heading: &'static str,
    planted_header: [&'static str; 6],
    warnings: Vec<warnings::Group>,
    comparisons: Vec<ComparisonRow>,
    metrics: Vec<MetricTable>,
    definitions: Vec<Fact>,
    force: Option<Force>,
    method: Vec<Step>,
    request_header: [&'static str; 8],
    requests: Vec<[String; 8]>,
    request_note: &'static str,
    overhead_header: [&'static str; 8],
    overhead: Vec<[String; 8]>,
    overhead_note: &'static str,
    link_header: [&'static str; 8],
    links: Vec<[String; 8]>,
    link_note: &'static str,
    path_header: [&'static str; 9],
    paths: Vec<[String; 9]>,
    path_note: &'static str,
    environment: Vec<Fact>,
    sysctls: Vec<Fact>,
    endpoints: Vec<method::EndpointRow>,
    command: String,
    seed: u64,
    wirelab: &'a str,
}

struct FailureRow<'a> {
    cell: String,
    trials: String,
    outcome: &'static str,
    blame: &'a str,
    reason: &'a str,
}

struct ClaimRow<'a> {
    id: &'a str,
    text: &'a str,
    class: &'static str,
    symbol: &'static str,
    verdict: &'static str,
    tally: String,
    has_cases: bool,
    untested: Option<&'a str>,
    effects: Vec<EffectRow>,
}

impl ClaimRow<'_> {
    /// Whether the page folds the effects, which would bury the other claims.
    fn is_long(&self) -> bool {
        self.effects.len() > 12
    }
}

struct EffectRow {
    at: String,
    of: String,
    size: String,
    expect: String,
    class: &'static str,
    symbol: &'static str,
    verdict: &'static str,
}

/// The claims with a tested effect, or those without.
fn claim_rows<'a>(input: &Input<'a>, untested: bool) -> Vec<ClaimRow<'a>> {
    let claims = input.analysis.claims.iter();
    let claims = claims.filter(|claim| (claim.verdict == ClaimVerdict::NotTested) == untested);
    let rows = claims.map(|claim| ClaimRow {
        id: &claim.id,
        text: &claim.text,
        class: words::claim_class(claim.verdict),
        symbol: words::claim_symbol(claim.verdict),
        verdict: words::claim(claim.verdict),
        tally: claims::tally(claim),
        has_cases: claim.cases.is_some(),
        untested: claim.untested.as_deref(),
        effects: claims::effects(input, claim)
            .into_iter()
            .map(|effect| EffectRow {
                at: if effect.at.is_empty() { "everywhere".to_owned() } else { effect.at },
                of: effect.of,
                size: effect.size,
                expect: effect.expect,
                class: words::claim_class(effect.verdict),
                symbol: words::claim_symbol(effect.verdict),
                verdict: words::claim(effect.verdict),
            })
            .collect(),
    });
    rows.collect()
}

/// A number that leads to its section.
struct Badge {
    class: &'static str,
    href: &'static str,
    text: String,
}

fn badges(input: &Input, failures: usize) -> Vec<Badge> {
    let warnings: usize = warnings::grouped(input).iter().map(|group| group.meanings.len()).sum();
    let mut badges = Vec::new();
    if warnings > 0 {
        let text = format!("! {}", summary::count(warnings, "warning"));
        badges.push(Badge { class: "caution", href: "#warnings", text });
    }
    if failures > 0 {
        let text = format!("✗ {} with failed or unsupported trials", summary::count(failures, "cell"));
        badges.push(Badge { class: "caution", href: "#failures", text });
    }
    if let Some(tally) = claims::tally_of_all(input) {
        badges.push(Badge { class: "plain", href: "#claims", text: format!("Claims: {tally}") });
    }
    badges
}

/// The factors with several levels, which the page can filter by.
fn filters(layout: &Layout) -> IndexMap<String, IndexSet<String>> {
    let mut factors: IndexMap<String, IndexSet<String>> = IndexMap::new();
    for (factor, level) in layout.groups.iter().flat_map(|group| &group.levels) {
        factors.entry(factor.clone()).or_default().insert(level_title(factor, level));
    }
    factors.retain(|_, levels| levels.len() > 1);
    factors
}

/// The levels of a group in JSON: `{"payload":"1 KiB"}`.
fn levels(group: &Group) -> String {
    let levels: IndexMap<_, _> =
        group.levels.iter().map(|(factor, level)| (factor, level_title(factor, level))).collect();
    serde_json::to_string(&levels).expect("strings are JSON")
}

impl Page<'_> {
    /// The levels of the group with this title in JSON; `{}` for other titles.
    fn levels_of(&self, title: &str) -> &str {
        self.levels.get(title).map_or("{}", String::as_str)
    }

    fn claims_have_cases(&self) -> bool {
        self.claims.iter().any(|claim| claim.has_cases)
    }

    /// A text as HTML with words between backticks as code.
    fn rich(&self, text: &str) -> String {
        let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let mut html = String::new();
        let parts: Vec<_> = escaped.split('`').collect();
        for (number, part) in parts.iter().enumerate() {
            match (number % 2 == 1, number + 1 == parts.len()) {
                (true, false) => html.extend(["<code>", part, "</code>"]),
                // An unpaired backtick stays a backtick.
                (true, true) => html.extend(["`", part]),
                (false, _) => html.push_str(part),
            }
        }
        html
    }
}
