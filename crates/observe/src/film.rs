//! The Speed Index of pages, from films of the page loads that the browser endpoint leaves beside the trial.
//!
//! Taking pictures costs a browser more time than the difference between HTTP versions. A filmed trial therefore gives
//! this metric only.

use std::fs;
use std::path::{Path, PathBuf};

use wirelab_model::film::{Films, INDEX};
use wirelab_model::metric::{Better, Metric, Side, Unit, Value, Values};
use wirelab_model::missing::Missing;

use crate::{About, Observer, Stage, Targets, Window};

/// Name, cost and metrics.
pub const ABOUT: About = About {
    name: "film",
    summary: "Pictures of a browser's window during page loads, and the Speed Index. Its trials give no other value.",
    cost: "Browsers take, encode and deliver up to sixty pictures of the window a second, so loads take longer, by \
           tens of percent and more.",
    needs: None,
    by_default: false,
    metrics: &[Metric {
        name: "page_speed_index",
        title: "Speed Index",
        unit: Unit::Nanoseconds,
        side: Side::Client,
        vantage: "pictures of the window that the browser takes, median of the trial's loads",
        better: Better::Lower,
        meaning: "The mean time until the window shows its final content, by histograms of colours (WebPageTest's \
                  method). Filmed loads take longer than others.",
    }],
};

/// The observer.
#[derive(Debug, Default)]
pub struct Film {
    folder: Option<PathBuf>,
}

impl Observer for Film {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn distorts(&self) -> Option<&'static str> {
        Some("had the window filmed, which takes the browser's time")
    }

    fn prepare(&mut self, stage: &Stage<'_>) {
        self.folder = stage.films.map(Path::to_owned);
    }

    fn begin(&mut self, _: &Targets) {}

    fn end(&mut self, _: &Targets) {}

    fn values(&mut self, _: &Window) -> Values {
        let read = self.folder.as_deref().map_or_else(|| Err(Missing::NotFilmed), index);
        let value = read.map_or_else(Value::missing, |films| median(&films.speed_index));
        ABOUT.metrics.iter().map(|metric| (metric.name.to_owned(), value.clone())).collect()
    }
}

fn index(folder: &Path) -> Result<Films, Missing> {
    let path = folder.join(INDEX);
    let read = fs::read_to_string(&path).and_then(|text| Ok(serde_json::from_str(&text)?));
    read.map_err(|error| Missing::unreadable(format!("the index of the client's films {}", path.display()), error))
}

/// The median over the loads. If a load has no value, the trial has none, for the same reason.
fn median(of_loads: &[Value]) -> Value {
    if let Some(missing) = of_loads.iter().find(|value| value.number().is_none()) {
        return missing.clone();
    }
    let mut numbers: Vec<f64> = of_loads.iter().filter_map(Value::number).collect();
    numbers.sort_by(f64::total_cmp);
    match (numbers.len(), numbers.len() / 2) {
        (0, _) => Value::missing(Missing::NoLoad),
        (count, middle) if count % 2 == 0 => Value::Measured(f64::midpoint(numbers[middle - 1], numbers[middle])),
        (_, middle) => Value::Measured(numbers[middle]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Witness;

    const WINDOW: Window = Window { ns: 1, requests: 1, bytes: 1 };

    fn value(folder: Option<&Path>) -> Value {
        let mut film = Film::default();
        let witness = Witness::default();
        film.prepare(&Stage { vantages: &[], witness: &witness, captures: None, films: folder });
        film.values(&WINDOW)["page_speed_index"].clone()
    }

    #[test]
    fn a_trial_has_the_median_of_its_films() {
        let folder = tempfile::tempdir().unwrap();
        let write = |speed_index: Vec<Value>| {
            let films = Films { speed_index, typical: None };
            fs::write(folder.path().join(INDEX), serde_json::to_string(&films).unwrap()).unwrap();
            value(Some(folder.path()))
        };
        assert_eq!(write(vec![Value::Measured(3e9), Value::Measured(1e9), Value::Measured(2e9)]), Value::Measured(2e9));
        assert_eq!(write(vec![Value::Measured(3e9), Value::Measured(1e9)]), Value::Measured(2e9));
        let missing = Value::missing(Missing::WhiteWindow);
        assert_eq!(write(vec![Value::Measured(3e9), missing.clone()]), missing);
        assert_eq!(write(vec![]), Value::missing(Missing::NoLoad));
    }

    #[test]
    fn a_client_that_leaves_no_films_gives_a_reason() {
        assert_eq!(value(None), Value::missing(Missing::NotFilmed));
        let folder = tempfile::tempdir().unwrap();
        let reason = value(Some(folder.path())).reason().unwrap();
        assert!(reason.contains(INDEX) && reason.contains("cannot be read"), "{reason}");
    }
}
