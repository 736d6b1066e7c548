//! `wirelab labs`: the labs and the observers that there are.

use std::fmt::Write;

use serde_json::json;

use crate::args::LabsArgs;
use crate::failure::Result;
use crate::output::{print, print_json};

/// Lists labs and observers.
pub fn labs(args: &LabsArgs) -> Result {
    let labs = wirelab_lab::LABS;
    let observers = wirelab_observe::OBSERVERS;
    if args.json {
        return print_json(&json!({
            "labs": labs.iter().map(|lab| json!({ "name": lab.name, "summary": lab.summary, "needs": lab.needs })).collect::<Vec<_>>(),
            "observers": observers.iter().map(|o| json!({
                "name": o.name, "summary": o.summary, "cost": o.cost, "needs": o.needs,
                "metrics": o.metrics.iter().map(|m| json!({ "name": m.name, "title": m.title, "meaning": m.meaning, "vantage": m.vantage })).collect::<Vec<_>>(),
            })).collect::<Vec<_>>(),
        }));
    }
    let mut text = String::from("Labs\n");
    for lab in labs {
        let _ = writeln!(text, "  {:<12} {} Needs: {}.", lab.name, lab.summary, lab.needs.unwrap_or("nothing"));
    }
    text.push_str("\nObservers\n");
    for observer in observers {
        let needs = observer.needs.unwrap_or("nothing");
        let _ = writeln!(text, "  {:<12} {} Cost: {} Needs: {needs}.", observer.name, observer.summary, observer.cost);
        for metric in observer.metrics {
            let _ = writeln!(text, "    {:<36} {}", metric.name, metric.meaning);
        }
    }
    text.push_str("\nFrom the client's own records\n");
    for metric in wirelab_stats::METRICS {
        let _ = writeln!(text, "    {:<36} {}", metric.name, metric.meaning);
    }
    print(&text)
}
