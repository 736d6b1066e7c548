//! The link of a cell: the preset of its placement with the cell's settings applied.

use wirelab_model::link::{Link, PRESETS, preset};
use wirelab_model::nearest::did_you_mean;
use wirelab_model::settings::{Part, Settings};

use crate::error::StudyError;

/// The link between client and server, or `None` if the placement has no emulated link.
///
/// # Errors
/// If a setting shapes the link of a placement without one.
pub(crate) fn link(settings: &Settings, placement: &str) -> Result<Option<Link>, StudyError> {
    let Some(preset) = preset(placement) else {
        let Some(key) = settings.first_that_needs(Part::Link) else { return Ok(None) };
        let names = PRESETS.map(|preset| preset.name);
        let meant = did_you_mean(placement, names);
        return Err(StudyError::new(format!(
            "`{key}` shapes a link, but the placement `{placement}` has none{meant}; set `placement` to one of {}",
            names.join(", ")
        )));
    };
    let base = preset.link;
    Ok(Some(Link {
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
    }))
}

#[cfg(test)]
mod tests {
    use wirelab_model::units::{BitRate, Share, Span};

    use super::*;

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
}
