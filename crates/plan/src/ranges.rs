//! Values of settings that are out of range, and values that contradict each other.

use wirelab_model::settings::Settings;

/// The first key whose value is out of range or contradicts another one, with the message.
pub(crate) fn out_of_range(settings: &Settings) -> Option<(&'static str, String)> {
    let declared = Settings::declared();
    let mut refused = declared.iter().filter_map(|setting| Some((setting.key(), setting.out_of_range(settings)?)));
    refused.next().or_else(|| contradiction(settings))
}

/// The first combination of settings that contradict each other.
fn contradiction(s: &Settings) -> Option<(&'static str, String)> {
    if s.requests.is_some() && s.duration.is_some() {
        let message =
            "both `requests` and `duration` are set, but a measured window has one length; remove one of them";
        return Some(("duration", message.to_owned()));
    }
    if s.rate.is_some() && (s.pause.is_some() || s.pause_max.is_some()) {
        let message =
            "both `rate` and a pause are set, but in an open loop requests start at their time; remove one of them";
        return Some(("rate", message.to_owned()));
    }
    match (s.pause, s.pause_max) {
        (Some(pause), Some(max)) if max < pause => {
            Some(("pause_max", format!("`pause_max` is {max}, below `pause`, which is {pause}")))
        }
        _ => None,
    }
}
