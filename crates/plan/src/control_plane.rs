//! Compatibility of the setting `control_plane` with other settings.

use wirelab_model::network::{Address, Network};
use wirelab_model::protocol::Protocol;
use wirelab_model::settings::{Connections, Settings};
use wirelab_model::spec::Resumption;

use crate::error::StudyError;

/// Name of the control-plane endpoint, or `None` if the setting is absent.
///
/// # Errors
/// If another setting contradicts it; the message says what to change.
pub(crate) fn control_plane(settings: &Settings, protocol: Protocol) -> Result<Option<String>, StudyError> {
    let Some(name) = &settings.control_plane else { return Ok(None) };
    if !protocol.is_grpc() {
        return Err(StudyError::new(format!(
            "`control_plane` is `{name}`, but the protocol is {protocol}; only gRPC clients (grpc, grpcc) use it"
        )));
    }
    if settings.mesh.is_some() {
        return Err(StudyError::new(format!(
            "`control_plane` is `{name}`, but `mesh` is set too, and sidecars choose the servers themselves; remove one"
        )));
    }
    if settings.network != Some(Network::Overlay) {
        return Err(StudyError::new(format!(
            "`control_plane` is `{name}`, which needs pods; set `network = \"overlay\"` as well"
        )));
    }
    if settings.connections == Some(Connections::PerRequest) {
        return Err(StudyError::new(format!(
            "`connections` is `per-request`, so the client would ask the control plane ({name}) before each request; \
             set it to a number"
        )));
    }
    if protocol.is_secure() && settings.resumption.is_some_and(|resumption| resumption != Resumption::None) {
        return Err(StudyError::new(format!(
            "`resumption` is set beside `control_plane` ({name}), but its clients decide themselves when to open \
             connections; remove it"
        )));
    }
    match settings.address {
        None | Some(Address::Service) => Ok(Some(name.clone())),
        Some(_) => Err(StudyError::new(format!(
            "`address` is set beside `control_plane` ({name}), which sends clients the addresses of all servers; \
             remove one"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use wirelab_model::plan::{Job, Reach};

    use crate::error::StudyError;

    fn of(toml: &str) -> Result<Job, StudyError> {
        crate::job(&toml::from_str(toml).unwrap())
    }

    #[test]
    fn a_control_plane_stands_for_the_service_of_one_server_too() {
        for (protocol, servers) in [("grpcc", "far"), ("grpc", "2 far")] {
            let toml = format!(
                "protocol = '{protocol}'\ncontrol_plane = 'plane'\nnetwork = 'overlay'\nplacement = 'lan'\nservers = '{servers}'"
            );
            let job = of(&toml).unwrap();
            assert_eq!(job.servers().unwrap().reach, Reach::ControlPlane("plane".to_owned()));
        }
        assert_eq!(of("protocol = 'grpcc'").unwrap().control_plane(), None);
    }

    #[test]
    fn settings_that_contradict_a_control_plane_are_refused_with_the_remedy() {
        let lan = "control_plane = 'plane'\nplacement = 'lan'";
        let pods = format!("protocol = 'grpcc'\n{lan}\nnetwork = 'overlay'");
        for (toml, words) in [
            (format!("protocol = 'h2c'\n{lan}\nnetwork = 'overlay'"), "only gRPC clients"),
            (format!("protocol = 'grpcc'\n{lan}"), "`network = \"overlay\"`"),
            (format!("{pods}\nmesh = 'proxy'"), "`mesh` is set too"),
            (format!("{pods}\naddress = 'headless'"), "`address` is set"),
            (format!("{pods}\nconnections = 'per-request'"), "`per-request`"),
            (format!("{}\nresumption = 'resume'", pods.replace("grpcc", "grpc")), "`resumption` is set"),
        ] {
            let why = of(&toml).unwrap_err().to_string();
            assert!(why.contains(words), "{toml}: {why}");
        }
    }
}
