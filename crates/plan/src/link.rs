//! The link of a cell: the preset of its placement with the cell's settings applied.

use indexmap::IndexMap;
use wirelab_model::link::{Link, PRESETS, preset};
use wirelab_model::nearest::did_you_mean;
use wirelab_model::placement::Distance;
use wirelab_model::settings::{Part, Settings};

use crate::check::label;
use crate::error::StudyError;
use crate::factor::keys;
use crate::locate::steps;
use crate::ranges::out_of_range;

/// Placements of a study's own, with the settings of their links.
pub(crate) type OwnPlacements = IndexMap<String, Settings>;

/// The link of a placement before the settings of a cell change it; `None` if the placement has no emulated link.
pub(crate) fn base(placement: &str, own: &OwnPlacements) -> Option<Link> {
    let of_study = || own.get(placement).map(|settings| shaped(Link::wire(), settings));
    preset(placement).map(|preset| preset.link).or_else(of_study)
}

/// The link between client and server, or `None` if the placement has no emulated link.
///
/// # Errors
/// If a setting shapes the link of a placement without one.
pub(crate) fn link(settings: &Settings, placement: &str, own: &OwnPlacements) -> Result<Option<Link>, StudyError> {
    if let Some(base) = base(placement, own) {
        return Ok(Some(shaped(base, settings)));
    }
    let Some(key) = settings.first_that_needs(Part::Link) else { return Ok(None) };
    let names: Vec<_> = PRESETS.iter().map(|preset| preset.name).chain(own.keys().map(String::as_str)).collect();
    let meant = did_you_mean(placement, names.iter().copied());
    Err(StudyError::new(format!(
        "`{key}` shapes a link, but the placement `{placement}` has none{meant}; set `placement` to one of {}",
        names.join(", ")
    )))
}

fn shaped(base: Link, settings: &Settings) -> Link {
    Link {
        round_trip: settings.round_trip.unwrap_or(base.round_trip),
        jitter: settings.jitter.unwrap_or(base.jitter),
        rate: settings.bandwidth.or(base.rate),
        // `bandwidth` sets the rate of both directions, unless `bandwidth_up` is set as well.
        rate_up: settings.bandwidth_up.or(if settings.bandwidth.is_some() { None } else { base.rate_up }),
        queue: settings.queue.unwrap_or(base.queue),
        loss: settings.loss.unwrap_or(base.loss),
        loss_burst: settings.loss_burst.unwrap_or(base.loss_burst),
        reorder: settings.reorder.unwrap_or(base.reorder),
        duplicate: settings.duplicate.unwrap_or(base.duplicate),
        mtu: settings.mtu.unwrap_or(base.mtu),
    }
}

/// Checks the placements of a study's own.
///
/// # Errors
/// If a name is taken or unusable, or a key does not belong to a link or is out of range; with its place.
pub(crate) fn check(own: &OwnPlacements) -> Result<(), StudyError> {
    for (name, settings) in own {
        let place = steps!["placements", name];
        label("placement", name).map_err(|error| error.at_key(place.clone()))?;
        // Commands separate values by commas.
        if name.contains(',') || preset(name).is_some() || Distance::of(name).is_some() || name == "local" {
            let message =
                format!("`{name}` cannot be a placement of the study's own: wirelab has it already, or it has a comma");
            return Err(StudyError::new(message).at_key(place));
        }
        if let Some((key, message)) = out_of_range(settings) {
            return Err(StudyError::new(message).at([&place[..], &steps![key]].concat()));
        }
        let of_links: Vec<_> = Settings::declared()
            .iter()
            .filter(|setting| setting.needed_part() == Some(Part::Link))
            .map(|setting| setting.key())
            .collect();
        if let Some(key) = keys(settings).into_iter().find(|key| !of_links.contains(&key.as_str())) {
            let message = format!("`{key}` does not belong to a link; a placement has {}", of_links.join(", "));
            return Err(StudyError::new(message).at_key([&place[..], &steps![&key]].concat()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use wirelab_model::units::{BitRate, Share, Span};

    use super::*;

    fn link(settings: &Settings, placement: &str) -> Result<Option<Link>, StudyError> {
        super::link(settings, placement, &OwnPlacements::new())
    }

    #[test]
    fn a_placement_gives_the_link_and_settings_change_it() {
        let mut settings = Settings::default();
        assert_eq!(link(&settings, "local"), Ok(None));
        let threeg = link(&settings, "3g").unwrap().unwrap();
        assert_eq!((threeg.rate, threeg.rate_up), (Some(BitRate(1_600_000)), Some(BitRate(768_000))));
        settings.loss = Some(Share(0.01));
        settings.bandwidth = Some(BitRate(5_000_000));
        let changed = link(&settings, "3g").unwrap().unwrap();
        assert_eq!((changed.loss, changed.rate, changed.rate_up), (Share(0.01), settings.bandwidth, None));
        assert_eq!(changed.round_trip, Span::from_millis(300));
    }

    #[test]
    fn a_placement_without_a_link_rejects_link_settings() {
        let settings = Settings { loss: Some(Share(0.01)), ..Settings::default() };
        let why = link(&settings, "multi-a").unwrap_err().to_string();
        assert!(
            why.starts_with("`loss` shapes a link, but the placement `multi-a` has none, did you mean `multi-az`;"),
            "{why}"
        );
    }

    #[test]
    fn a_placement_of_the_study_has_its_link_and_settings_change_it() {
        let own: OwnPlacements =
            toml::from_str("my-cloud = { round_trip = '12 ms', loss = '1 %', mtu = 1400 }").unwrap();
        check(&own).unwrap();
        let settings = Settings { loss: Some(Share(0.0)), ..Settings::default() };
        let link = super::link(&settings, "my-cloud", &own).unwrap().unwrap();
        assert_eq!(link, Link { round_trip: Span::from_millis(12), mtu: 1400, ..Link::wire() });
        let why = super::link(&settings, "my-clout", &own).unwrap_err().to_string();
        assert!(why.contains("did you mean `my-cloud`"), "{why}");
    }

    #[test]
    fn placements_that_a_study_cannot_have_are_refused() {
        for (text, expected) in [
            ("lan = { round_trip = '12 ms' }", "`lan` cannot be a placement of the study's own"),
            ("other-node = {}", "`other-node` cannot be"),
            ("'a,b' = {}", "comma"),
            ("my-cloud = { payload = '1 KiB' }", "`payload` does not belong to a link"),
            ("my-cloud = { mtu = 12 }", "`mtu` is 12"),
        ] {
            let why = check(&toml::from_str(text).unwrap()).unwrap_err().to_string();
            assert!(why.contains(expected), "{text}: {why}");
        }
    }
}
