use wirelab_model::CONTRACT_VERSION;

use super::*;
use crate::{plan, resolve};

const STUDY: &str = r#"
    name = "mine"
    title = "t"
    question = "q"
    [factors]
    client = ["builtin", "installed"]
    server = ["builtin", "installed"]
    protocol = ["h2", "h3"]
    [compare]
    factor = "server"
    baseline = "builtin"
"#;

fn candidate(name: &str, client: &[Protocol], server: &[Protocol]) -> Candidate {
    let role = |protocols: &[Protocol]| {
        (!protocols.is_empty()).then(|| Role {
            protocols: protocols.into(),
            features: Vec::new(),
            exposition: false,
            own_requests: false,
            until_steady: false,
        })
    };
    let description = Description {
        contract: CONTRACT_VERSION,
        name: name.to_owned(),
        library: "l".to_owned(),
        version: "1".to_owned(),
        language: "x".to_owned(),
        server: role(server),
        client: role(client),
        sidecar: None,
        control_plane: None,
    };
    Candidate { name: name.to_owned(), description: Ok(description) }
}

/// `both` has every protocol, `web` serves HTTP/2 only, `raw` has neither, `gone` cannot be used.
fn found() -> Vec<Candidate> {
    use Protocol::{H2, H3, Tcp};
    let gone = Candidate { name: "gone".to_owned(), description: Err(Unusable("no gone here".to_owned())) };
    let hidden = Candidate { name: "web".to_owned(), description: Err(Unusable("another one is hidden".to_owned())) };
    vec![
        hidden,
        candidate("builtin", &[H2, H3], &[H2, H3]),
        candidate("both", &[H2, H3], &[H2, H3]),
        candidate("web", &[], &[H2]),
        candidate("raw", &[Tcp], &[Tcp]),
        gone,
    ]
}

fn expanded(text: &str, sets: &[&str], found: &[Candidate]) -> Result<(Study, Vec<Warning>), String> {
    let sets: Vec<_> = sets.iter().map(|set| (*set).to_owned()).collect();
    let study = resolve(crate::parse(text, "mine.toml").unwrap(), None, &sets).unwrap();
    with_installed(study, &mut || found.to_vec()).map_err(|error| error.to_string())
}

/// The endpoint pairs of a protocol, each as `client>server`.
fn pairs(study: &Study, protocol: &str) -> Vec<String> {
    let (plan, _) = plan(study).unwrap();
    let cells = plan.cells.iter().filter(|cell| cell.twin_of.is_none() && cell.job.protocol.token() == protocol);
    cells.map(|cell| format!("{}>{}", cell.job.client, cell.job.server().unwrap())).collect()
}

#[test]
fn every_client_meets_every_server_of_a_protocol_and_endpoints_without_it_are_excluded() {
    let (study, warnings) = expanded(STUDY, &[], &found()).unwrap();
    assert_eq!(
        pairs(&study, "h2"),
        ["builtin>builtin", "builtin>both", "builtin>web", "both>builtin", "both>both", "both>web"]
    );
    assert_eq!(pairs(&study, "h3"), ["builtin>builtin", "builtin>both", "both>builtin", "both>both"]);
    let expected = Warning::EndpointMissing {
        endpoint: "gone".to_owned(),
        levels: vec!["client=gone".to_owned(), "server=gone".to_owned()],
        why: "no gone here".to_owned(),
    };
    assert_eq!(warnings, [expected]);
}

#[test]
fn installed_matches_protocols_of_the_workload_and_of_named_levels() {
    let (study, _) = expanded(STUDY, &["protocol=h3"], &found()).unwrap();
    assert_eq!(factor::level_names(&study.factors["server"]), ["builtin", "both"]);
    let named = STUDY
        .replace("protocol = [\"h2\", \"h3\"]", "kind = { near = { protocol = \"h2\" }, far = { protocol = \"h3\" } }");
    let (study, _) = expanded(&named, &[], &found()).unwrap();
    assert_eq!((pairs(&study, "h2").len(), pairs(&study, "h3").len()), (6, 4));
    let fixed = STUDY
        .replace("protocol = [\"h2\", \"h3\"]", "")
        .replace("[factors]", "[workload]\nprotocol = \"h2\"\n[factors]");
    let (study, _) = expanded(&fixed, &[], &found()).unwrap();
    assert_eq!((pairs(&study, "h2").len(), study.exclude.len()), (6, 0));
}

#[test]
fn the_command_line_selects_pairs_or_installed() {
    let (study, _) = expanded(STUDY, &["server=builtin,web", "protocol=h2"], &found()).unwrap();
    assert_eq!(pairs(&study, "h2"), ["builtin>builtin", "builtin>web", "both>builtin", "both>web"]);
    let quick = crate::find("quick").unwrap().text;
    let (study, _) = expanded(quick, &["server=installed"], &found()).unwrap();
    assert_eq!(factor::level_names(&study.factors["server"]), ["builtin", "both", "web"]);
}

#[test]
fn endpoints_are_not_searched_if_no_factor_takes_all() {
    let study = crate::parse(crate::find("quick").unwrap().text, "quick").unwrap();
    let (same, warnings) = with_installed(study.clone(), &mut || panic!("asked")).unwrap();
    assert_eq!((same, warnings.len()), (study, 0));
}

#[test]
fn if_nothing_is_found_the_message_says_what_to_do_and_why_other_endpoints_are_unusable() {
    let mut few = found();
    few.retain(|one| one.name != "both" && one.name != "web");
    let why = expanded(STUDY, &[], &few).unwrap_err();
    for words in ["no further endpoint", "supports h2 or h3", "`wirelab endpoints`", "no gone here"] {
        assert!(why.contains(words), "`{words}` is not in: {why}");
    }
    let only = STUDY.replace("client = [\"builtin\", \"installed\"]", "client = [\"installed\"]");
    let why = expanded(&only, &[], &few[2..]).unwrap_err();
    assert!(why.contains("`factors.client`") && why.contains("no endpoint as client"), "{why}");
}

#[test]
fn exclusions_may_name_endpoints_that_only_installed_provides() {
    let text = format!("{STUDY}\n[[exclude]]\nclient = \"both\"\nserver = \"web\"\n");
    let (study, _) = expanded(&text, &[], &found()).unwrap();
    assert_eq!(pairs(&study, "h2").len(), 5);
    let typo = format!("{STUDY}\n[[exclude]]\nprotocol = \"h4\"\n");
    assert!(crate::parse(&typo, "mine.toml").is_err());
}
