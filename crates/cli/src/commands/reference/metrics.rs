//! Metrics, observers and labs, from their declarations.

use wirelab_model::link::PRESETS;
use wirelab_model::metric::{Better, Metric, Side, Unit};
use wirelab_observe::OBSERVERS;

use crate::commands::labs::described;
use crate::commands::reference::page::{Page, code};

/// The page of the metrics.
pub fn metrics() -> String {
    let mut page = Page::new(
        "Metrics",
        "Every metric that a study can compare, by its source. A [timeline](../studies.md#timelines) adds metrics for its windows.",
    );
    section(&mut page, "Client records", wirelab_stats::METRICS);
    section(&mut page, "Transport reports of endpoints", wirelab_stats::TRANSPORT_METRICS);
    section(&mut page, "Page loads", wirelab_stats::PAGE_METRICS);
    section(&mut page, "Several clients", wirelab_stats::CLIENTS_METRICS);
    section(&mut page, "Preparation", &wirelab_run::PREPARATION_METRICS);
    section(&mut page, "Emulated link", &wirelab_lab::METRICS);
    for observer in OBSERVERS {
        section(&mut page, &format!("Observer {}", observer.name), observer.metrics);
    }
    page.finish()
}

fn section(page: &mut Page, title: &str, metrics: &[Metric]) {
    if metrics.is_empty() {
        return;
    }
    page.section(title);
    let rows: Vec<_> = metrics.iter().map(row).collect();
    page.table(["metric", "unit", "side", "better", "read from", "meaning"], &rows);
}

fn row(metric: &Metric) -> [String; 6] {
    let unit = match metric.unit {
        Unit::Nanoseconds => "ns",
        Unit::Bytes => "bytes",
        Unit::BitsPerSecond => "bit/s",
        Unit::PerSecond => "1/s",
        Unit::Count => "number",
        Unit::Share => "share",
    };
    let side = match metric.side {
        Side::Client => "client",
        Side::Server => "server",
        Side::Link => "link",
        Side::Unknown => "",
    };
    let better = match metric.better {
        Better::Lower => "lower",
        Better::Higher => "higher",
    };
    [code(metric.name), unit.into(), side.into(), better.into(), metric.vantage.into(), metric.meaning.into()]
}

/// The page of the observers.
pub fn observers() -> String {
    let mut page = Page::new(
        "Observers",
        "Every observer that a study can name in `observers`. [Metrics](metrics.md) describes their metrics.",
    );
    for observer in OBSERVERS {
        page.section(observer.name);
        page.text(observer.summary);
        let metrics: Vec<_> = observer.metrics.iter().map(|metric| code(metric.name)).collect();
        page.table(
            ["", ""],
            &[
                ["cost".to_owned(), observer.cost.to_owned()],
                ["needs".to_owned(), observer.needs.unwrap_or("nothing").to_owned()],
                ["by default".to_owned(), if observer.by_default { "yes" } else { "no" }.to_owned()],
                ["metrics".to_owned(), metrics.join(", ")],
            ],
        );
    }
    page.finish()
}

/// The page of the labs and of the links with names.
pub fn labs() -> String {
    let mut page = Page::new("Labs and links", "[Labs](../labs.md) explains them.");
    page.section("Labs");
    let rows: Vec<_> = crate::labs::LABS
        .iter()
        .map(|lab| [code(lab.name), lab.summary.to_owned(), lab.needs.unwrap_or("nothing").to_owned()])
        .collect();
    page.table(["lab", "summary", "needs"], &rows);
    page.section("Links");
    page.text("The values of `placement` in the lab `netns`.");
    let rows: Vec<_> =
        PRESETS.iter().map(|preset| [code(preset.name), described(&preset.link), preset.source.to_owned()]).collect();
    page.table(["placement", "link", "source"], &rows);
    page.finish()
}
