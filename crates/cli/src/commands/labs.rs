//! `wirelab labs`: the labs, links and observers that there are.

use std::fmt::Write;

use serde_json::json;
use wirelab_model::link::{Link, PRESETS};

use crate::args::LabsArgs;
use crate::failure::Result;
use crate::output::{print, print_json};

/// A link in a few words.
fn described(link: &Link) -> String {
    if link.is_wire() {
        return format!("a wire, MTU {}", link.mtu);
    }
    let mut words = vec![format!("round trip {}", link.round_trip)];
    words.extend(link.rate.map(|rate| match link.rate_up {
        Some(up) => format!("{rate} down, {up} up"),
        None => format!("{rate}"),
    }));
    if link.loss.0 > 0.0 {
        words.push(format!("loss {} in runs of {}", link.loss, link.loss_burst));
    }
    if link.jitter.nanos() > 0 {
        words.push(format!("jitter {}", link.jitter));
    }
    words.join(", ")
}

/// Lists labs, links and observers.
pub fn labs(args: &LabsArgs) -> Result {
    let labs = wirelab_lab::LABS;
    let observers = wirelab_observe::OBSERVERS;
    if args.json {
        return print_json(&json!({
            "labs": labs.iter().map(|lab| json!({ "name": lab.name, "summary": lab.summary, "needs": lab.needs })).collect::<Vec<_>>(),
            "links": PRESETS.iter().map(|preset| json!({ "name": preset.name, "link": preset.link, "source": preset.source })).collect::<Vec<_>>(),
            "observers": observers.iter().map(|o| json!({
                "name": o.name, "summary": o.summary, "cost": o.cost, "needs": o.needs,
                "metrics": o.metrics.iter().map(|m| json!({ "name": m.name, "title": m.title, "meaning": m.meaning, "vantage": m.vantage })).collect::<Vec<_>>(),
            })).collect::<Vec<_>>(),
        }));
    }
    let mut text = String::from("Labs\n");
    for lab in labs {
        let _ = writeln!(text, "  {:<16} {} Needs: {}.", lab.name, lab.summary, lab.needs.unwrap_or("nothing"));
    }
    text.push_str("\nLinks of the lab netns, as `placement`\n");
    for preset in &PRESETS {
        let _ = writeln!(text, "  {:<16} {}. Source: {}.", preset.name, described(&preset.link), preset.source);
    }
    text.push_str("\nObservers\n");
    for observer in observers {
        let needs = observer.needs.unwrap_or("nothing");
        let _ = writeln!(text, "  {:<16} {} Cost: {} Needs: {needs}.", observer.name, observer.summary, observer.cost);
        // One meaning may be that of many metrics, but every name has to be there: studies compare by it.
        for alike in observer.metrics.chunk_by(|a, b| a.meaning == b.meaning) {
            for both_sides in alike.chunks(2) {
                let names: Vec<_> = both_sides.iter().map(|metric| metric.name).collect();
                let _ = writeln!(text, "    {}", names.join(", "));
            }
            let _ = writeln!(text, "        {}", alike[0].meaning);
        }
    }
    text.push_str("\nFrom the client's own records\n");
    for metric in wirelab_stats::METRICS {
        let _ = writeln!(text, "    {:<36} {}", metric.name, metric.meaning);
    }
    print(&text)
}
