//! Small studies for tests.

use serde_json::{Value as Json, json};
use wirelab_model::journal::TrialRecord;
use wirelab_model::metric::{Value, Values};
use wirelab_model::outcome::Outcome;
use wirelab_model::plan::{Cell, Comparison, Plan, Trial};
use wirelab_model::study::Study;

use crate::analysis::{Analysis, Moment};

/// A study with the factors `colour` (baseline red) and `size`, and the further keys of `more`.
pub fn study(more: &Json) -> Study {
    let mut study = json!({
        "name": "test", "title": "Test", "question": "?",
        "factors": { "colour": { "red": {}, "blue": {} }, "size": { "small": {}, "large": {} } },
        "compare": { "factor": "colour", "baseline": "red" },
    });
    study.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    serde_json::from_value(study).unwrap()
}

/// Cells 0 to 3: red small, blue small, red large, blue large; 4 and 5 repeat 0 and 2.
pub fn plan() -> Plan {
    let cells = vec![
        cell("red", "small", None),
        cell("blue", "small", None),
        cell("red", "large", None),
        cell("blue", "large", None),
        cell("red", "small", Some(0)),
        cell("red", "large", Some(2)),
    ];
    let comparison = |cell, baseline, aa| Comparison { cell, baseline, aa };
    let comparisons =
        vec![comparison(1, 0, false), comparison(3, 2, false), comparison(4, 0, true), comparison(5, 2, true)];
    Plan { cells, comparisons, seed: 1, min_blocks: 10, max_blocks: 30, budget: None, precision: 0.05 }
}

fn cell(colour: &str, size: &str, twin_of: Option<usize>) -> Cell {
    let job = json!({
        "protocol": "udp", "server": "a", "client": "a", "placement": "local", "exchange": "echo",
        "request_size": "0 B", "response_size": "1 KiB", "delay": "0 ns", "connections": { "policy": "per_request" },
        "schedule": { "loop": "closed", "workers": 1 }, "extent": { "requests": 100 }, "warm_up": null,
        "resumption": "none", "timeouts": { "connect_ns": 1, "request_ns": 1 }, "recording": "samples",
        "transport": {}, "server_threads": null, "client_threads": null,
    });
    let levels = [("colour", colour), ("size", size)].map(|(f, l)| (f.to_owned(), l.to_owned())).into();
    Cell { levels, twin_of, job: serde_json::from_value(job).unwrap() }
}

/// A successful trial of a cell, with values by metric.
pub fn record(cell: usize, block: u32, values: &[(&str, f64)]) -> TrialRecord {
    let values: Values = values.iter().map(|(name, value)| ((*name).to_owned(), Value::Measured(*value))).collect();
    let number = block * 6 + cell as u32;
    TrialRecord {
        trial: Trial { number, block, position: cell as u32, cell, seed: 1 },
        at: String::new(),
        took_ns: 1,
        outcome: Outcome::Ok,
        window_ns: 1,
        values,
        results: None,
        results_sha256: None,
        server: [].into(),
        client: [].into(),
        timeline: None,
        clients: Vec::new(),
        profile: Vec::new(),
        lives: None,
        warmed_up: None,
        processors: None,
        warnings: Vec::new(),
    }
}

/// Reproducible noise of a few per cent that differs between cells and blocks.
pub fn wobble(cell: usize, block: u32) -> f64 {
    let step = (block * 7 + cell as u32 * 5 + block * block * 3) % 13;
    1.0 + (f64::from(step) - 6.0) / 300.0
}

/// A trial of every cell in each of `blocks` blocks; `levels` are the median response times of cells 0 to 3, which 4
/// and 5 repeat.
pub fn records(blocks: u32, levels: [f64; 4]) -> Vec<TrialRecord> {
    let mut records = Vec::new();
    for block in 0..blocks {
        for cell in 0..6 {
            let level = levels[[0, 1, 2, 3, 0, 2][cell]];
            records.push(record(cell, block, &[("response_median", level * wobble(cell, block))]));
        }
    }
    records
}

/// The analysis of records under the plain study.
pub fn analyse(records: &[TrialRecord]) -> Analysis {
    crate::analyse(&study(&json!({})), &plan(), records, &[], Moment::Ended)
}
