//! Removes levels whose endpoint is not available.

use std::collections::HashMap;

use indexmap::{IndexMap, IndexSet};
use wirelab_model::network::LINKERD;
use wirelab_model::selector::Selector;
use wirelab_model::settings::Settings;
use wirelab_model::study::{Factor, MissingEndpoints, Study};
use wirelab_model::warning::Warning;

use crate::error::StudyError;
use crate::factor;
use crate::locate::steps;

/// Removes the levels and cells whose endpoint cannot be used, and returns one warning for each such endpoint. Cells
/// are also removed if an adjustment would give them such an endpoint. `study` must have its preset and command line
/// applied ([`resolve`](crate::resolve())). `missing` returns the reason why an endpoint cannot be used, or `None`.
/// It is called once per endpoint, and only if the study says `missing_endpoints = "skip"`.
///
/// # Errors
/// If a factor keeps no level, or the comparison loses its baseline.
pub fn only_installed(
    mut study: Study,
    missing: &mut dyn FnMut(&str) -> Option<String>,
) -> Result<(Study, Vec<Warning>), StudyError> {
    if study.missing_endpoints == MissingEndpoints::Refuse {
        return Ok((study, Vec::new()));
    }
    let mut known: HashMap<String, Option<String>> = HashMap::new();
    let mut lost: IndexMap<String, (IndexSet<String>, String)> = IndexMap::new();
    for (name, factor) in &mut study.factors {
        let levels = factor::levels(name, factor).map_err(|error| error.at(steps!["factors", name]))?;
        let mut gone = Vec::new();
        for (level, settings) in levels {
            for endpoint in named(&settings) {
                let why = known.entry(endpoint.clone()).or_insert_with(|| missing(endpoint));
                if let Some(why) = why {
                    let (levels, _) = lost.entry(endpoint.clone()).or_insert_with(|| (IndexSet::new(), why.clone()));
                    levels.insert(format!("{name}={level}"));
                    if *name == study.compare.factor && level == study.compare.baseline {
                        return Err(StudyError::new(format!(
                            "the baseline `{level}` needs the endpoint `{endpoint}`, which cannot be used: {why}; install it, \
                             or name another baseline with `--set compare.baseline=LEVEL`"
                        )));
                    }
                    gone.push(level.clone());
                }
            }
        }
        match factor {
            Factor::Values(values) => values.retain(|value| !gone.contains(&factor::level_name(value))),
            Factor::Levels(levels) => levels.retain(|level, _| !gone.contains(level)),
        }
        if factor::level_names(factor).is_empty() {
            let why: Vec<_> = lost.values().map(|(_, why)| why.as_str()).collect();
            return Err(StudyError::new(format!(
                "no level of the factor `{name}` can be run, because their endpoints cannot be used: {}",
                why.join("; ")
            )));
        }
    }
    for adjustment in study.adjust.clone() {
        if !has_cells(&study, &adjustment.cells) {
            continue;
        }
        let mut is_lost = false;
        for endpoint in named(&adjustment.set) {
            let why = known.entry(endpoint.clone()).or_insert_with(|| missing(endpoint));
            if let Some(why) = why {
                let (levels, _) = lost.entry(endpoint.clone()).or_insert_with(|| (IndexSet::new(), why.clone()));
                levels.insert(adjustment.cells.to_string());
                is_lost = true;
            }
        }
        if is_lost {
            study.exclude.push(adjustment.cells);
        }
    }
    let warnings = lost.into_iter().map(|(endpoint, (levels, why))| {
        let levels = levels.into_iter().collect();
        Warning::EndpointMissing { endpoint, levels, why }
    });
    Ok((study, warnings.collect()))
}

/// Whether the study has levels for every factor in the selector.
fn has_cells(study: &Study, selector: &Selector) -> bool {
    selector.0.iter().all(|(name, wanted)| {
        let levels = study.factors.get(name).map(factor::level_names).unwrap_or_default();
        levels.into_iter().any(|level| {
            let one = Selector([(name.clone(), wanted.clone())].into());
            one.matches_levels(&[(name.clone(), level)].into())
        })
    })
}

/// Endpoints in the settings of a level.
fn named(settings: &Settings) -> impl Iterator<Item = &String> {
    let Settings { endpoint, server, client, mesh, control_plane, .. } = settings;
    let mesh = mesh.as_ref().filter(|name| *name != LINKERD);
    [endpoint.as_ref(), server.as_ref(), client.as_ref(), mesh, control_plane.as_ref()].into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STUDY: &str = r#"
        name = "mine"
        title = "t"
        question = "q"
        missing_endpoints = "skip"
        [factors]
        payload = ["1 KiB"]
        [factors.implementation]
        own = { protocol = "h1" }
        one = { protocol = "h1", server = "left", client = "right" }
        other = { protocol = "h2", server = "left" }
        [compare]
        factor = "implementation"
        baseline = "own"
    "#;

    /// Remaining levels, warnings, and the endpoints passed to `missing`.
    type Reduced = (Vec<String>, Vec<Warning>, Vec<String>);

    fn reduced(text: &str, missing: &[&str]) -> Result<Reduced, String> {
        let mut asked = Vec::new();
        let result = only_installed(crate::parse(text, "mine.toml").unwrap(), &mut |name| {
            asked.push(name.to_owned());
            missing.contains(&name).then(|| format!("no {name}"))
        });
        let (study, warnings) = result.map_err(|error| error.to_string())?;
        crate::plan(&study).unwrap();
        Ok((factor::level_names(&study.factors["implementation"]), warnings, asked))
    }

    #[test]
    fn levels_without_their_endpoint_are_omitted_with_one_warning_per_endpoint() {
        let (levels, warnings, asked) = reduced(STUDY, &["left"]).unwrap();
        assert_eq!(levels, ["own"]);
        let expected = Warning::EndpointMissing {
            endpoint: "left".to_owned(),
            levels: vec!["implementation=one".to_owned(), "implementation=other".to_owned()],
            why: "no left".to_owned(),
        };
        assert_eq!((warnings, asked), (vec![expected], vec!["left".to_owned(), "right".to_owned()]));
        assert_eq!(reduced(STUDY, &["right"]).unwrap().0, ["own", "other"]);
        let (levels, warnings, _) = reduced(STUDY, &[]).unwrap();
        assert_eq!((levels.len(), warnings.len()), (3, 0));
    }

    #[test]
    fn a_level_is_named_once_if_both_of_its_sides_are_missing() {
        let (_, warnings, _) = reduced(&STUDY.replace("\"right\"", "\"left\""), &["left"]).unwrap();
        let [Warning::EndpointMissing { levels, .. }] = &warnings[..] else { panic!("{warnings:?}") };
        assert_eq!(levels[..], ["implementation=one", "implementation=other"]);
    }

    #[test]
    fn the_mesh_of_a_cluster_is_not_an_endpoint() {
        let meshed = "protocol = \"h2c\", network = \"overlay\", placement = \"lan\", mesh";
        let study = STUDY
            .replace("protocol = \"h2\", server", meshed)
            .replace("\"left\" }\n        [compare]", "\"linkerd\" }\n        [compare]");
        let (levels, _, asked) = reduced(&study, &["linkerd"]).unwrap();
        assert_eq!((levels.len(), asked), (3, vec!["left".to_owned(), "right".to_owned()]));
    }

    #[test]
    fn a_study_without_skip_keeps_every_level_and_looks_up_no_endpoint() {
        let (levels, warnings, asked) = reduced(&STUDY.replace("\"skip\"", "\"refuse\""), &["left"]).unwrap();
        assert_eq!((levels.len(), warnings.len(), asked.len()), (3, 0, 0));
    }

    #[test]
    fn cells_whose_adjustment_sets_a_missing_endpoint_are_omitted() {
        let study = format!(
            "{STUDY}\n[[adjust]]\ncells = {{ implementation = \"one\", payload = \"1 KiB\" }}\nset = {{ client = \"third\" }}\n"
        );
        let (levels, warnings, _) = reduced(&study, &["third"]).unwrap();
        assert_eq!(levels, ["own", "one", "other"]);
        let expected = Warning::EndpointMissing {
            endpoint: "third".to_owned(),
            levels: vec!["implementation=one payload=1 KiB".to_owned()],
            why: "no third".to_owned(),
        };
        assert_eq!(warnings, [expected]);
        let resolved = crate::parse(&study, "mine.toml").unwrap();
        let (left, _) = only_installed(resolved, &mut |name| (name == "third").then(|| "no".to_owned())).unwrap();
        let cells = crate::plan(&left).unwrap().0.cells;
        assert!(cells.iter().all(|cell| cell.levels["implementation"] != "one"));
        // A level that is already removed needs no adjustment, so its endpoint is not looked up.
        let (_, warnings, asked) = reduced(&study, &["left", "third"]).unwrap();
        assert_eq!((warnings.len(), asked.contains(&"third".to_owned())), (1, false));
    }

    #[test]
    fn a_missing_baseline_or_factor_is_an_error_that_names_it() {
        let other = STUDY.replace("baseline = \"own\"", "baseline = \"other\"");
        let why = reduced(&other, &["left"]).unwrap_err();
        assert!(why.contains("the baseline `other` needs the endpoint `left`") && why.contains("no left"), "{why}");
        let only = STUDY.replace("payload = [\"1 KiB\"]", "server = [\"gone\"]");
        let only = only.replace("server = \"left\", ", "").replace(", server = \"left\"", "");
        let why = reduced(&only, &["gone"]).unwrap_err();
        assert!(why.contains("no level of the factor `server`"), "{why}");
    }
}
