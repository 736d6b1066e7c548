//! The hosts of a trial, and the network between them.

use wirelab_model::link::Link;
use wirelab_model::network::{Address, Network, Servers};
use wirelab_model::placement::Distance;
use wirelab_model::settings::Settings;

use crate::error::StudyError;

/// Topology of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hosts {
    pub network: Network,
    pub servers: Servers,
    pub address: Address,
}

/// Resolves the defaults.
///
/// # Errors
/// If the settings contradict each other; says what to change.
pub(crate) fn hosts(settings: &Settings, placement: &str, has_link: bool) -> Result<Hosts, StudyError> {
    let network = settings.network();
    let near = Servers { near: 1, far: 0 };
    let servers = settings.servers.unwrap_or(match network {
        Network::Overlay if placement == "same-node" => near,
        _ => Servers::ONE,
    });
    let several = servers.count() > 1;
    // Sidecars and a control plane resolve a service even if it has one server.
    let is_service = several || settings.mesh.is_some() || settings.control_plane.is_some();
    let address = settings.address.unwrap_or(if is_service { Address::Service } else { Address::Server });
    if network == Network::Direct && (servers != Servers::ONE || address != Address::Server) {
        let key = if servers == Servers::ONE { "address" } else { "servers" };
        return Err(StudyError::new(format!("`{key}` needs nodes and pods; set `network = \"overlay\"` as well")));
    }
    if several && address == Address::Server {
        return Err(StudyError::new(format!(
            "`address` is `server`, but there are {}; set it to `service` or `headless`",
            servers.count()
        )));
    }
    if network == Network::Overlay && !has_link && Distance::of(placement).is_none() {
        return Err(StudyError::new(format!(
            "`network = \"overlay\"` needs a link between the nodes, but the placement `{placement}` has none; set \
             `placement` to `same-node` or `lan`, for example"
        )));
    }
    Ok(Hosts { network, servers, address })
}

/// Whether the hosts' interfaces use offloads. `None`: not set.
///
/// # Errors
/// If the topology has no interfaces of its own, or the emulated link rules offloads out.
pub(crate) fn offloads(settings: &Settings, network: Network, link: Option<&Link>) -> Result<Option<bool>, StudyError> {
    let Some(on) = settings.offloads else { return Ok(None) };
    let Some(link) = link else {
        return Err(StudyError::new(
            "`offloads` needs emulated hosts; set `placement` to one with a link, for example `same-node`",
        ));
    };
    if on && network == Network::Direct && !link.is_wire() {
        return Err(StudyError::new(
            "`offloads` is true, but the link emulator takes packets only as a wire carries them; leave it out, or \
             use `network = \"overlay\"`, whose pods have interfaces of their own",
        ));
    }
    Ok(Some(on))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(toml: &str) -> Result<Hosts, StudyError> {
        let settings: Settings = toml::from_str(toml).unwrap();
        let placement = settings.placement.as_deref().unwrap_or("local");
        hosts(&settings, placement, wirelab_model::link::preset(placement).is_some())
    }

    #[test]
    fn one_server_far_away_is_the_default_and_several_are_a_service() {
        let direct = Hosts { network: Network::Direct, servers: Servers::ONE, address: Address::Server };
        assert_eq!(of(""), Ok(direct));
        let overlay = Hosts { network: Network::Overlay, ..direct };
        assert_eq!(of("network = 'overlay'\nplacement = 'lan'"), Ok(overlay));
        let near = Servers { near: 1, far: 0 };
        assert_eq!(of("network = 'overlay'\nplacement = 'same-node'"), Ok(Hosts { servers: near, ..overlay }));
        let headless = Hosts { servers: Servers { near: 0, far: 2 }, address: Address::Headless, ..overlay };
        let named = "network = 'overlay'\nplacement = 'lan'\nservers = '2 far'\naddress = 'headless'";
        assert_eq!(of(named), Ok(headless));
        // Placements of a real cluster have no configured link.
        assert_eq!(of("network = 'overlay'\nplacement = 'other-zone'"), Ok(overlay));
        let both = Hosts { servers: Servers { near: 1, far: 1 }, address: Address::Service, ..overlay };
        assert_eq!(of("network = 'overlay'\nplacement = 'lan'\nservers = 'near + far'"), Ok(both));
    }

    #[test]
    fn offloads_are_refused_without_suitable_interfaces() {
        let wire = Link::wire();
        let emulated = Link { mtu: 1280, round_trip: wirelab_model::units::Span::from_millis(1), ..wire };
        let of = |on, network, link| {
            let settings = Settings { offloads: Some(on), ..Settings::default() };
            offloads(&settings, network, link)
        };
        assert_eq!(of(true, Network::Direct, Some(&wire)), Ok(Some(true)));
        assert_eq!(of(true, Network::Overlay, Some(&emulated)), Ok(Some(true)));
        assert_eq!(of(false, Network::Direct, Some(&emulated)), Ok(Some(false)));
        assert!(
            of(true, Network::Direct, Some(&emulated)).unwrap_err().to_string().contains("`network = \"overlay\"`")
        );
        assert!(of(false, Network::Direct, None).unwrap_err().to_string().contains("`same-node`"));
        assert_eq!(offloads(&Settings::default(), Network::Direct, None), Ok(None));
    }

    #[test]
    fn contradictory_settings_are_refused_with_the_remedy() {
        for (toml, remedy) in [
            ("servers = '2 far'\nplacement = 'lan'", "`network = \"overlay\"`"),
            ("address = 'service'\nplacement = 'lan'", "`network = \"overlay\"`"),
            ("network = 'overlay'\nplacement = 'lan'\nservers = '2 far'\naddress = 'server'", "`service`"),
            ("network = 'overlay'", "`lan`"),
        ] {
            let why = of(toml).unwrap_err().to_string();
            assert!(why.contains(remedy), "{toml}: {why}");
        }
    }
}
