//! The built-in studies agree with their pages.

use wirelab_model::network::{Network, Servers};
use wirelab_model::plan::{Cell, Plan, Reach};
use wirelab_model::protocol::Protocol;
use wirelab_model::selector::Selector;
use wirelab_model::settings::Exchange;
use wirelab_model::spec::{ConnectionPolicy, Extent, Resumption, Transport};
use wirelab_model::units::Size;
use wirelab_model::warning::Warning;
use wirelab_plan::{Builtin, builtin, find, only_installed, parse, plan, polite, resolve};

fn planned(study: &Builtin, preset: Option<&str>) -> (Plan, Vec<Warning>) {
    let written = parse(study.text, study.name).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(written.name, study.name);
    plan(&resolve(written, preset, &[]).unwrap()).unwrap()
}

#[test]
fn every_study_and_every_preset_of_it_can_be_planned_without_a_warning() {
    for study in builtin() {
        let presets = parse(study.text, study.name).unwrap().presets;
        for preset in presets.keys().map(|name| Some(name.as_str())).chain([None]) {
            let (plan, warnings) = planned(study, preset);
            assert!(warnings.is_empty(), "{} {preset:?}: {warnings:?}", study.name);
            // These ask what works, and give no verdicts.
            let is_check = matches!(preset, Some("smoke" | "interop"));
            assert!(plan.min_blocks >= 10 || is_check, "{} {preset:?}", study.name);
        }
        for preset in presets.keys() {
            assert!(
                study.readme.contains(&format!("`{preset}`")) || study.readme.contains(&format!("--preset {preset}"))
            );
        }
        for heading in ["## Question", "## Prediction", "## Limits", "## How to run", "## Published numbers"] {
            assert!(study.readme.contains(heading), "{}: no {heading}", study.name);
        }
    }
}

#[test]
fn quick_has_sixteen_trials_a_block() {
    let (plan, _) = planned(find("quick").unwrap(), None);
    assert_eq!((plan.cells.len(), plan.comparisons.len(), plan.min_blocks, plan.max_blocks), (16, 12, 10, 12));
}

#[test]
fn grpc_asks_the_same_service_by_rest_and_by_grpc() {
    let (plan, _) = planned(find("grpc").unwrap(), None);
    assert_eq!((plan.cells.len(), plan.comparisons.len(), plan.min_blocks), (15, 12, 10));
    for Cell { job, .. } in &plan.cells {
        let requests = job.requests().unwrap();
        assert_eq!(requests.exchange, Exchange::Heron);
        assert_eq!(requests.response_size.bytes(), if job.protocol.is_grpc() { 9 } else { 14 });
    }
}

#[test]
fn null_compares_cells_that_are_the_same() {
    let (plan, _) = planned(find("null").unwrap(), None);
    assert_eq!(plan.comparisons.len(), 6);
    for comparison in &plan.comparisons {
        assert_eq!(plan.cells[comparison.cell].job, plan.cells[comparison.baseline].job);
    }
}

#[test]
fn cloud_quic_has_nine_protocols_three_kinds_of_client_and_five_sizes() {
    let study = find("cloud-quic").unwrap();
    let (plan, _) = planned(study, None);
    assert_eq!((plan.cells.len(), plan.comparisons.len(), plan.min_blocks), (150, 135, 13));
    let (smoke, _) = planned(study, Some("smoke"));
    assert_eq!((smoke.cells.len(), smoke.max_blocks), (60, 3));
    let (faithful, _) = planned(study, Some("faithful"));
    let requests = faithful.cells.iter().map(|cell| match cell.job.load.extent {
        Extent::Requests(requests) => requests * u64::from(faithful.min_blocks),
        Extent::DurationNs(_) => 0,
    });
    assert!(requests.into_iter().all(|requests| requests == 10_000));
}

#[test]
fn cloud_quic_has_the_papers_three_placements_two_of_them_with_links() {
    let study = find("cloud-quic").unwrap();
    for (preset, lab, round_trip) in
        [(None, "loopback", None), (Some("single-az"), "netns", Some(500)), (Some("multi-az"), "netns", Some(1500))]
    {
        let resolved = resolve(parse(study.text, study.name).unwrap(), preset, &[]).unwrap();
        assert_eq!(resolved.lab, lab);
        assert_eq!(resolved.limits.unwrap().starts_with("Placement `local`"), preset.is_none());
        let (plan, _) = planned(study, preset);
        for cell in &plan.cells {
            let micros = cell.job.topology.link.map(|link| link.round_trip.nanos() / 1000);
            assert_eq!((cell.job.topology.placement.as_str(), micros), (preset.unwrap_or("local"), round_trip));
        }
    }
}

#[test]
fn cluster_http3_has_the_papers_scenarios_over_a_wire_and_asks_the_first_one_at_a_distance() {
    let study = find("cluster-http3").unwrap();
    let (plan, _) = planned(study, None);
    assert_eq!((plan.cells.len(), plan.comparisons.len(), plan.min_blocks), (170, 158, 13));
    for cell in &plan.cells {
        let job = &cell.job;
        let servers = job.servers().unwrap();
        assert_eq!((job.topology.network, &servers.reach), (Network::Overlay, &Reach::Service));
        let (near, far, distance) = match (cell.levels["scenario"].as_str(), cell.levels["round_trip"].as_str()) {
            ("1", "0 ms") => (0, 1, false),
            ("1", "2 ms") => (0, 1, true),
            ("2", "0 ms") => (0, 2, false),
            ("3", "0 ms") => (1, 1, false),
            other => panic!("{other:?}"),
        };
        assert_eq!((servers.places, job.topology.link.unwrap().is_wire()), (Servers { near, far }, !distance));
        let window = match cell.levels["implementation"].as_str() {
            // These servers refuse any other value.
            "nginx-h2" | "httpd-h2" => Some(2_147_483_647),
            // These endpoints refuse all values.
            "kwik" | "picoquic" | "dotnet" => None,
            _ => job.protocol.multiplexes().then_some(16 << 20),
        };
        assert_eq!(job.transport.connection_window, window, "{:?}", cell.levels);
        // Client and server use the same library, except for servers without a client.
        assert!(job.client == servers.endpoint || job.client == "builtin" && !job.protocol.uses_udp());
    }
    let of = |selector: serde_json::Value| {
        let selector: Selector = serde_json::from_value(selector).unwrap();
        plan.cells.iter().filter(|cell| cell.twin_of.is_none() && selector.matches(cell)).count()
    };
    // All implementations, without Jetty and kwik at 10 MB.
    assert_eq!(of(serde_json::json!({ "scenario": "1", "round_trip": "0 ms" })), 22 * 3 - 2);
    assert_eq!(of(serde_json::json!({ "scenario": "1", "round_trip": "2 ms", "payload": "100 KB" })), 22);
}

#[test]
fn cluster_http3_as_published_has_ten_trials_of_ten_requests() {
    let study = find("cluster-http3").unwrap();
    let (plan, _) = planned(study, Some("faithful"));
    assert_eq!((plan.cells.len(), plan.min_blocks, plan.max_blocks), (162, 10, 10));
    for Cell { job, .. } in &plan.cells {
        assert_eq!(
            (job.load.extent, job.load.connections, job.load.warm_up),
            (Extent::Requests(10), ConnectionPolicy::PerRequest, None)
        );
        assert!(job.topology.link.unwrap().is_wire());
        let early = match job.server().unwrap().as_str() {
            "apache-httpd" | "java-kwik" | "c-msquic" => Resumption::Resume,
            "c-picoquic" | "dotnet" => Resumption::None,
            _ => Resumption::ZeroRtt,
        };
        assert_eq!((job.load.resumption, job.transport.fast_open), (early, (!job.protocol.uses_udp()).then_some(true)));
    }
}

#[test]
fn cluster_http3_takes_what_is_installed() {
    let study = find("cluster-http3").unwrap();
    let resolved = resolve(parse(study.text, study.name).unwrap(), None, &[]).unwrap();
    let mut missing = |name: &str| (name != "builtin").then(|| "not there".to_owned());
    let (study, warnings) = only_installed(resolved, &mut missing).unwrap();
    assert_eq!(warnings.len(), 2 + 13);
    let (plan, _) = plan(&study).unwrap();
    assert!(plan.cells.iter().all(|cell| cell.job.server().unwrap() == "builtin"));
    assert_eq!(plan.cells.len(), 6 * 12);
}

#[test]
fn public_sites_asks_failing_sites_once_and_each_stack_by_its_own_endpoints() {
    let (plan, _) = planned(find("public-sites").unwrap(), None);
    for Cell { levels, job, .. } in &plan.cells {
        let level = |factor: &str| levels[factor].as_str();
        let fails = ["without-h3", "redirect-loop", "times-out"].contains(&level("site"));
        assert_eq!(level("load") == "once", fails, "{levels:?}");
        let h3 = job.protocol == Protocol::H3;
        let client = match (level("client"), h3) {
            ("go", false) => "go-net-http",
            ("go", true) => "go-quic-go",
            ("python", false) => "python-httpx",
            ("python", true) => "python-aioquic",
            ("java", false) => "java-jetty",
            ("java", true) => "java-netty",
            _ => "builtin",
        };
        assert_eq!((job.client.as_str(), job.server().unwrap().as_str()), (client, "builtin"));
        let resumption = match (level("load"), h3) {
            ("reconnect", true) => Resumption::ZeroRtt,
            ("reconnect", false) => Resumption::Resume,
            _ => Resumption::None,
        };
        assert_eq!(job.load.resumption, resumption, "{levels:?}");
        let lacks = level("site") == "without-h3" && h3;
        assert_eq!(job.servers().unwrap().protocol, lacks.then_some(Protocol::H2), "{levels:?}");
        assert!(!job.topology.link.unwrap().is_wire());
    }
}

#[test]
fn public_sites_takes_what_is_installed() {
    let study = find("public-sites").unwrap();
    let resolved = resolve(parse(study.text, study.name).unwrap(), None, &[]).unwrap();
    let mut missing = |name: &str| (!["builtin", "go-net-http"].contains(&name)).then(|| "not there".to_owned());
    let (study, warnings) = only_installed(resolved, &mut missing).unwrap();
    // Half a stack exists for Go: only its HTTP/3 is left out. Further requirements of a missing stack are not checked.
    assert_eq!(warnings.len(), 3, "{warnings:?}");
    let (plan, _) = plan(&study).unwrap();
    let of_go: Vec<_> = plan.cells.iter().filter(|cell| cell.levels["client"] == "go").collect();
    assert!(!of_go.is_empty() && of_go.iter().all(|cell| cell.job.protocol != Protocol::H3));
    assert!(plan.cells.iter().any(|cell| cell.job.protocol == Protocol::H3));
}

#[test]
fn public_sites_is_polite_to_real_ones_unless_it_may_load_them() {
    let study = find("public-sites").unwrap();
    let (mut polite, _) = planned(study, Some("internet"));
    polite::remove_twins(&mut polite);
    assert_eq!(polite::excess(&polite), None);
    assert!(polite.cells.iter().all(|cell| cell.job.site().is_some() && cell.twin_of.is_none()));
    assert!(polite.comparisons.iter().all(|comparison| !comparison.aa));
    let all = parse(study.text, study.name).unwrap();
    let site = ["site=https://example.org/".to_owned()];
    let (all, _) = plan(&resolve(all, Some("internet-all"), &site).unwrap()).unwrap();
    assert!(polite::excess(&all).is_some());
}

#[test]
fn pairs_leaves_libraries_their_defaults_and_waits_for_no_pair_for_long() {
    let study = find("pairs").unwrap();
    let (plan, _) = planned(study, None);
    for Cell { job, .. } in &plan.cells {
        assert_eq!(job.transport, Transport::default());
        let seconds = |ns: u64| ns / 1_000_000_000;
        let waits = (
            seconds(job.load.timeouts.connect_ns),
            seconds(job.load.timeouts.request_ns),
            seconds(job.load.stall_timeout.nanos()),
        );
        assert_eq!(waits, (3, 5, 10));
    }
    let (smoke, _) = planned(study, Some("smoke"));
    assert!(smoke.cells.iter().all(|cell| cell.job.protocol == Protocol::H3));
    assert_eq!((smoke.max_blocks, plan.min_blocks, plan.max_blocks), (1, 12, 16));
}

#[test]
fn every_cell_of_cloud_quic_sends_what_it_receives() {
    let (plan, _) = planned(find("cloud-quic").unwrap(), None);
    let is_even = |[request, response]: [Size; 2]| request == response;
    assert!(plan.cells.iter().all(|cell| is_even(cell.job.work.body_sizes())));
}

#[test]
fn every_selector_of_a_claim_or_a_published_number_means_a_cell_of_the_study() {
    for study in builtin() {
        let written = parse(study.text, study.name).unwrap();
        // A preset may have levels that the study itself lacks.
        let presets = written.presets.keys().map(|name| Some(name.as_str())).chain([None]);
        let plans: Vec<Plan> = presets.map(|preset| planned(study, preset).0).collect();
        let originals =
            |plan: &Plan| -> Vec<Cell> { plan.cells.iter().filter(|cell| cell.twin_of.is_none()).cloned().collect() };
        for claim in &written.claims {
            // The levels of this claim for selectors that do not name its factor.
            let factor = claim.each.0.keys().next();
            let each = factor.map_or_else(Vec::new, |factor| claim.each.levels(factor));
            let with = |of: &Selector| -> Vec<Selector> {
                let levels = factor.into_iter().flat_map(|factor| each.iter().map(move |level| (factor, level)));
                let selectors = levels.map(|(factor, level)| of.and(factor, std::slice::from_ref(level)));
                if each.is_empty() { vec![of.clone()] } else { selectors.collect() }
            };
            for test in &claim.tests {
                for of in test.of.iter().flat_map(with) {
                    let mut cells = plans.iter().flat_map(originals);
                    assert!(cells.any(|cell| of.matches(&cell) && test.given.matches(&cell)), "{}: {of}", study.name);
                }
            }
        }
        for published in &written.published {
            let cells = |plan| originals(plan).iter().filter(|cell| published.cell.matches(cell)).count();
            assert_eq!(plans.iter().map(cells).max(), Some(1), "{}: {}", study.name, published.cell);
        }
    }
}
