//! The default congestion control on a kernel that forbids it.

use wirelab_model::plan::Plan;
use wirelab_model::settings::Settings;
use wirelab_model::spec::Congestion;
use wirelab_model::study::{Factor, Study};
use wirelab_model::warning::Warning;

/// The congestion control that every kernel permits to every user.
const FALLBACK: Congestion = Congestion::Reno;

/// Replaces the default congestion control in all cells if the kernel forbids it to this user, so that cells stay
/// comparable and none is unsupported. A study that names an algorithm gets it, or its cells are unsupported.
pub(super) fn permit(study: &Study, plan: &mut Plan, is_permitted: impl Fn(Congestion) -> bool) -> Option<Warning> {
    let wanted = Settings::default().congestion();
    if is_named(study) || is_permitted(wanted) {
        return None;
    }
    let all = plan.cells.iter_mut().map(|cell| &mut cell.job.transport.congestion);
    let mut replaced = 0;
    for congestion in all.filter(|congestion| **congestion == Some(wanted)) {
        *congestion = Some(FALLBACK);
        replaced += 1;
    }
    (replaced > 0).then_some(Warning::CongestionReplaced { wanted, used: FALLBACK })
}

/// Whether the study chooses a congestion control anywhere.
fn is_named(study: &Study) -> bool {
    let of_levels = study.factors.iter().any(|(name, factor)| match factor {
        Factor::Values(_) => name == "congestion",
        Factor::Levels(levels) => levels.values().any(|settings| settings.congestion.is_some()),
    });
    let of_adjustments = study.adjust.iter().any(|adjustment| adjustment.set.congestion.is_some());
    study.workload.congestion.is_some() || of_levels || of_adjustments
}

#[cfg(test)]
mod tests {
    use super::*;

    fn study(workload: &str, factors: &str) -> (Study, Plan) {
        let text = format!(
            "name = \"s\"\ntitle = \"t\"\nquestion = \"q\"\n[workload]\n{workload}\n[factors]\nprotocol = [\"h1\", \"h3\"]\n\
             {factors}\n[compare]\nfactor = \"protocol\"\nbaseline = \"h1\"\n"
        );
        let study = wirelab_plan::parse(&text, "s.toml").unwrap();
        let plan = wirelab_plan::plan(&study).unwrap().0;
        (study, plan)
    }

    fn used(plan: &Plan) -> Vec<Option<Congestion>> {
        let mut used: Vec<_> = plan.cells.iter().map(|cell| cell.job.transport.congestion).collect();
        used.dedup();
        used
    }

    #[test]
    fn the_default_is_replaced_in_every_cell_where_it_is_forbidden() {
        let (study, plan) = study("", "");
        let mut permitted = plan.clone();
        assert_eq!(permit(&study, &mut permitted, |_| true), None);
        assert_eq!(used(&permitted), [Some(Congestion::Cubic)]);
        let mut forbidden = plan;
        let warning = permit(&study, &mut forbidden, |_| false);
        let expected = Warning::CongestionReplaced { wanted: Congestion::Cubic, used: Congestion::Reno };
        assert_eq!((warning, used(&forbidden)), (Some(expected), vec![Some(Congestion::Reno)]));
    }

    #[test]
    fn a_choice_of_the_study_stays() {
        for (workload, factors) in [
            ("congestion = \"cubic\"", ""),
            ("transport_defaults = \"library\"", ""),
            ("", "congestion = [\"cubic\", \"bbr\"]"),
            ("", "[factors.kind]\na = { congestion = \"cubic\" }\nb = {}"),
        ] {
            let (study, plan) = study(workload, factors);
            let mut same = plan.clone();
            assert_eq!(permit(&study, &mut same, |_| false), None, "{workload}{factors}");
            assert_eq!(same, plan);
        }
    }
}
